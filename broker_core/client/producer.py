"""Sending."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from .bounds import check_timeout
from .clock import time_of_day
from .destinations import Queue, Topic
from .driver import Driver
from .faces import ProducerFace
from .machine import CompletionListener, ProducerMachine
from .messages import Message, as_message
from .settings import DeliveryMode

if TYPE_CHECKING:
    from .session import Session


class MessageProducer(ProducerFace):
    """Made by Session.create_producer. Its delivery mode, priority, time to live and delivery delay hold for all it sends."""

    def __init__(self, session: Session, driver: Driver, destination: Queue | Topic | None) -> None:
        super().__init__(ProducerMachine(session.machine, destination))
        self._session = session
        self._driver = driver

    def send(
        self,
        message: Message | str | bytes | dict[str, Any],
        destination: Queue | Topic | None = None,
        *,
        delivery_mode: DeliveryMode | None = None,
        priority: int | None = None,
        time_to_live: float | None = None,
        completion_listener: CompletionListener | None = None,
    ) -> None:
        """Send it; a str, bytes or a dict as the message that carries it. A persistent message outside a transaction is stored by the broker
        when this returns; one whose sending raises is in doubt.

        With a completion listener it returns at once, and the listener is told the same later: called with the message and None, or the
        exception. The listener runs in the connection's thread and must not wait for the broker.
        """
        driver, machine = self._driver, self._machine
        with driver.lock:
            driver.ready_to_send()
            machine.check()
            confirmation = machine.send(
                as_message(message), time_of_day(), destination, delivery_mode, priority, time_to_live, completion_listener
            )
            if confirmation is None:
                driver.flush_soon()
                return
            self._session.await_confirmed(confirmation)

    def flush(self, timeout: float | None = None) -> None:
        """Return when the broker has answered for everything that was sent with a completion listener in this session."""
        self._machine.check()
        check_timeout(timeout)
        self._session.await_completions(timeout)

    def close(self) -> None:
        self._machine.is_closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
