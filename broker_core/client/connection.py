"""A connection to the broker."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

from .driver import Driver
from .exceptions import JMSException
from .faces import ConnectionFace
from .faces.connection import mode_of
from .machine import Address, Addresses, ConnectionMachine
from .session import Session
from .settings import AcknowledgeMode, Settings
from .sockets import Socket

log = logging.getLogger("surety.client")

S = TypeVar("S", bound=Session)

ExceptionListener = Callable[[JMSException], None]
"""Told once, when the connection has failed for good; called by a thread of its own."""


class Connection(ConnectionFace[Session, ExceptionListener]):
    """Made by ConnectionFactory.create_connection. Threads may share it; a session belongs to one thread at a time.

    In a `with` statement it is started when the block begins and closed when it ends.
    """

    def __init__(
        self,
        settings: Settings,
        make_machine: Callable[[str], tuple[ConnectionMachine, Addresses]],
        open_socket: Callable[[Address], Socket],
    ) -> None:
        super().__init__(settings)
        self._make_machine = make_machine
        self._open_socket = open_socket
        self._connect(settings.configured_client_id)

    def _connect(self, client_id: str) -> None:
        machine, addresses = self._make_machine(client_id)
        self._machine = machine
        self._driver = Driver(machine, addresses, self._open_socket, self._failed)
        try:
            self._driver.start()
        except JMSException:
            self._driver.join()
            raise

    # -- who this is --------------------------------------------------------------------------------------------------------------------
    @property
    def client_id(self) -> str:
        """The client identifier, which durable subscriptions belong to; empty: none. To be set before anything else is done with the
        connection, and once."""
        return self._machine.client_id

    @client_id.setter
    def client_id(self, client_id: str) -> None:
        self._check_client_id(client_id)
        self._shut()
        self._connect(client_id)

    def _failed(self, error: JMSException) -> None:
        listener = self._exception_listener
        if listener is None:
            log.warning("The connection has failed: %s", error)
        else:
            threading.Thread(target=listener, args=(error,), name="surety-exception-listener", daemon=True).start()

    # -- sessions -----------------------------------------------------------------------------------------------------------------------
    def create_session(self, acknowledge_mode: AcknowledgeMode = AcknowledgeMode.AUTO, *, transacted: bool = False) -> Session:
        """A session of the mode; `transacted`: what it sends and consumes counts when it commits."""
        mode = mode_of(acknowledge_mode, transacted)
        return self._opened(lambda: Session(self, self._driver, self._machine.open_session(mode)))

    def _opened(self, open_session: Callable[[], S]) -> S:
        with self._driver.lock:
            self._driver.ready()
            self._used = True
            session = open_session()
            self._sessions.append(session)
        return session

    # -- delivering ---------------------------------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Let messages come."""
        with self._driver.lock:
            self._driver.ready()
            self._used = True
            self._machine.started = True
            for session in self._sessions:
                session.notify()

    def stop(self) -> None:
        """Let no message come until it is started again. Returns when no listener is running any more; what is under way waits here."""
        with self._driver.lock:
            self._machine.check()
            self._used = True
            for session in self._sessions:
                session.check_not_listening("stop the connection")
            self._machine.started = False
            for session in list(self._sessions):
                session.await_listener()

    # -- the end ------------------------------------------------------------------------------------------------------------------------
    def close(self) -> None:
        """Close sessions, consumers and producers too: acknowledge what is acknowledged lazily, roll transactions back, and leave."""
        sessions = list(self._sessions)
        with self._driver.lock:
            for session in sessions:
                session.check_not_listening("close the connection")
            self._machine.started = False
        for session in sessions:
            session.finish()
        self._shut()
        for session in sessions:
            session.join()

    def _shut(self) -> None:
        driver = self._driver
        with driver.lock:
            confirmation = self._machine.close()
            driver.flush()
            if confirmation is not None:
                try:
                    driver.wait(confirmation, driver.condition)
                except JMSException:  # closed it is all the same; what was not acknowledged comes again
                    log.debug("The broker was lost while the connection was being closed", exc_info=True)
            driver.stop()
        driver.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
