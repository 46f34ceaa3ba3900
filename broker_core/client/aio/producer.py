"""Sending."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from broker_core.client.bounds import check_timeout
from broker_core.client.clock import time_of_day
from broker_core.client.destinations import Queue, Topic
from broker_core.client.faces import ProducerFace
from broker_core.client.machine import CompletionListener, ProducerMachine
from broker_core.client.messages import Message, as_message
from broker_core.client.settings import DeliveryMode

from .driver import Driver

if TYPE_CHECKING:
    from .session import Session


class MessageProducer(ProducerFace):
    """Made by Session.create_producer. Its delivery mode, priority, time to live and delivery delay hold for all it sends."""

    def __init__(self, session: Session, driver: Driver, destination: Queue | Topic | None) -> None:
        super().__init__(ProducerMachine(session.machine, destination))
        self._session = session
        self._driver = driver

    async def send(
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
        when this returns; one whose sending raises, or is cancelled, is in doubt.

        With a completion listener it returns at once, and the listener, a plain function, is told the same later: called with the message
        and None, or the exception.
        """
        driver, machine = self._driver, self._machine
        await driver.ready_to_send()
        machine.check()
        confirmation = machine.send(
            as_message(message), time_of_day(), destination, delivery_mode, priority, time_to_live, completion_listener
        )
        if confirmation is not None:
            await driver.wait(confirmation)
        elif driver.flush_soon():
            await asyncio.sleep(0)

    async def flush(self, timeout: float | None = None) -> None:  # noqa: ASYNC109  # as the threads' face has it
        """Return when the broker has answered for everything that was sent with a completion listener in this session."""
        self._machine.check()
        check_timeout(timeout)
        await self._session.await_completions(timeout)

    async def close(self) -> None:
        self._machine.is_closed = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()
