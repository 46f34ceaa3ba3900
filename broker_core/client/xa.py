"""Distributed transactions: sessions whose work a transaction manager commits together with work elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .connection import Connection
from .consumer import MessageConsumer
from .driver import Driver
from .factory import ConnectionFactory
from .faces import XASessionFace
from .machine import Recovered, XASessionMachine
from .session import Session
from .xid import Xid


class XASession(XASessionFace[MessageConsumer, MessageConsumer, None, list[Xid]], Session):
    """Made by XAConnection.create_xa_session. It works in branches: see `tpc_begin`."""

    def __init__(self, connection: Connection, driver: Driver, machine: XASessionMachine) -> None:
        super().__init__(connection, driver, machine)

    def _recover(self, operation: Callable[[], Recovered]) -> list[Xid]:
        with self._driver.lock:
            self._driver.ready()
            recovered = operation()
            self.await_confirmed(recovered.confirmation)
        return recovered.xids


class XAConnection(Connection):
    """Made by XAConnectionFactory.create_xa_connection. It has ordinary sessions, too."""

    def create_xa_session(self) -> XASession:
        """A session for branches of distributed transactions."""
        return self._opened(lambda: XASession(self, self._driver, self._machine.open_xa_session()))


@dataclass(slots=True, kw_only=True)
class XAConnectionFactory(ConnectionFactory):
    """A connection factory for distributed transactions."""

    def create_xa_connection(self, username: str | None = None, password: str | None = None) -> XAConnection:
        """As `create_connection`."""
        return self._connected(XAConnection, username, password)
