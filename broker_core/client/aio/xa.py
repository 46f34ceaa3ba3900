"""Distributed transactions: sessions whose work a transaction manager commits together with work elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from broker_core.client.faces import XASessionFace
from broker_core.client.machine import Recovered, XASessionMachine
from broker_core.client.xid import Xid

from .connection import Connection
from .consumer import MessageConsumer
from .driver import Driver
from .factory import ConnectionFactory
from .opening import Opening
from .session import Session


class XASession(
    XASessionFace[MessageConsumer, Opening[MessageConsumer], Coroutine[Any, Any, None], Coroutine[Any, Any, list[Xid]]], Session
):
    """Made by XAConnection.create_xa_session. It works in branches: see `tpc_begin`."""

    def __init__(self, connection: Connection, driver: Driver, machine: XASessionMachine) -> None:
        super().__init__(connection, driver, machine)

    async def _recover(self, operation: Callable[[], Recovered]) -> list[Xid]:
        await self._driver.ready()
        recovered = operation()
        await self._driver.wait(recovered.confirmation)
        return recovered.xids


class XAConnection(Connection):
    """Made by XAConnectionFactory.create_xa_connection. It has ordinary sessions, too."""

    def create_xa_session(self) -> XASession:
        """A session for branches of distributed transactions."""
        return self._opened(XASession(self, self._driver, self._machine.open_xa_session()))


@dataclass(slots=True, kw_only=True)
class XAConnectionFactory(ConnectionFactory):
    """A connection factory for distributed transactions."""

    def create_xa_connection(self, username: str | None = None, password: str | None = None) -> Opening[XAConnection]:
        """As `create_connection`."""
        return Opening(self._connection(XAConnection, username, password).open())
