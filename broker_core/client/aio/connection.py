"""A connection to the broker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

from broker_core.client.exceptions import JMSException
from broker_core.client.faces import ConnectionFace
from broker_core.client.faces.connection import mode_of
from broker_core.client.machine import Address, Addresses, ConnectionMachine
from broker_core.client.settings import AcknowledgeMode, Settings

from .driver import Driver
from .link import Link
from .session import Session

log = logging.getLogger("surety.client")

S = TypeVar("S", bound=Session)

ExceptionListener = Callable[[JMSException], Coroutine[Any, Any, None]]
"""Told once, when the connection has failed for good; run in a task of its own."""


class Connection(ConnectionFace[Session, ExceptionListener]):
    """Made by ConnectionFactory.create_connection. It belongs to the event loop it was made in; tasks of that may share it and its sessions.

    In an `async with` statement it is started when the block begins and closed when it ends.
    """

    def __init__(
        self,
        settings: Settings,
        make_machine: Callable[[str], tuple[ConnectionMachine, Addresses]],
        open_link: Callable[[Link, Address], Awaitable[None]],
    ) -> None:
        super().__init__(settings)
        self._make_machine = make_machine
        self._open_link = open_link
        self._driver: Driver
        self._telling: asyncio.Task[None] | None = None

    async def open(self) -> Self:
        """For the factory: connect and log in."""
        await self._connect(self._settings.configured_client_id)
        return self

    async def _connect(self, client_id: str) -> None:
        self._machine, addresses = self._make_machine(client_id)
        self._driver = Driver(self._machine, addresses, self._open_link, self._failed)
        await self._driver.start()

    # -- who this is --------------------------------------------------------------------------------------------------------------------
    async def set_client_id(self, client_id: str) -> None:
        """To be set before anything else is done with the connection, and once."""
        self._check_client_id(client_id)
        await self._shut()
        await self._connect(client_id)

    def _failed(self, error: JMSException) -> None:
        listener = self._exception_listener
        if listener is None:
            log.warning("The connection has failed: %s", error)
        else:
            self._telling = asyncio.create_task(listener(error), name="surety-exception-listener")

    # -- sessions -----------------------------------------------------------------------------------------------------------------------
    def create_session(self, acknowledge_mode: AcknowledgeMode = AcknowledgeMode.AUTO, *, transacted: bool = False) -> Session:
        """A session of the mode; `transacted`: what it sends and consumes counts when it commits."""
        mode = mode_of(acknowledge_mode, transacted)
        return self._opened(Session(self, self._driver, self._machine.open_session(mode)))

    def _opened(self, session: S) -> S:
        self._used = True
        self._sessions.append(session)
        return session

    # -- delivering ---------------------------------------------------------------------------------------------------------------------
    async def start(self) -> None:
        """Let messages come."""
        await self._driver.ready()
        self._used = True
        self._machine.started = True
        for session in self._sessions:
            session.notify()

    async def stop(self) -> None:
        """Let no message come until it is started again. Returns when no listener is running any more; what is under way waits here."""
        self._machine.check()
        self._used = True
        for session in self._sessions:
            session.check_not_listening("stop the connection")
        self._machine.started = False
        for session in list(self._sessions):
            await session.await_listener()

    # -- the end ------------------------------------------------------------------------------------------------------------------------
    async def close(self) -> None:
        """Close sessions, consumers and producers too: acknowledge what is acknowledged lazily, roll transactions back, and leave. Cancelled, it
        cancels listeners that run, and leaves without waiting."""
        sessions = list(self._sessions)
        for session in sessions:
            session.check_not_listening("close the connection")
        self._machine.started = False
        try:
            for session in sessions:
                await session.finish()
        except BaseException:
            for session in sessions:
                session.stop_listening()
            self._machine.close()
            self._driver.flush()
            self._driver.stop()
            raise
        await self._shut()
        for session in sessions:
            await session.join()

    async def _shut(self) -> None:
        driver = self._driver
        confirmation = self._machine.close()
        driver.flush()
        try:
            if confirmation is not None:
                await driver.wait(confirmation)
        except JMSException:  # closed it is all the same; what was not acknowledged comes again
            log.debug("The broker was lost while the connection was being closed", exc_info=True)
        finally:
            driver.stop()
        await driver.join()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()
