"""Receiving."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from broker_core.client.bounds import check_timeout
from broker_core.client.clock import milliseconds, time_of_day
from broker_core.client.faces import ConsumerFace
from broker_core.client.machine import ConsumerMachine
from broker_core.client.messages import Message

from .driver import Driver

if TYPE_CHECKING:
    from .session import Session

MessageListener = Callable[[Message], Coroutine[Any, Any, None]]


class MessageConsumer(ConsumerFace[MessageListener]):
    """Made by Session.create_consumer and its like. `async for` receives until it is closed."""

    def __init__(self, session: Session, driver: Driver, machine: ConsumerMachine) -> None:
        super().__init__(machine)
        self._session = session
        self._driver = driver

    # -- asking for messages ------------------------------------------------------------------------------------------------------------
    async def receive(self, timeout: float | None = None) -> Message | None:  # noqa: ASYNC109  # JMS's: None is no error
        """The next message. None: `timeout` seconds brought none, or the consumer was closed meanwhile; without a timeout it waits.
        Cancelled, it takes none: what it was about to return the next one returns."""
        driver, machine, loop = self._driver, self._machine, self._driver.loop
        connection = machine.session.connection
        machine.check_open()
        check_timeout(timeout)
        self._session.check_no_listeners()
        deadline = None if timeout is None else loop.time() + timeout
        while True:
            if connection.started and (taken := machine.receive(milliseconds(), time_of_day())) is not None:
                break
            left = None if deadline is None else deadline - loop.time()
            if machine.is_over or (left is not None and left <= 0):
                machine.ran_dry()
                driver.flush_soon()
                return None
            await self._session.sleep(left)
            if not machine.is_over:
                machine.check_open()
        message, confirmation = taken
        if confirmation is None:
            driver.flush_soon()
            return message
        try:
            await self._session.await_quietly(confirmation)
        except BaseException:
            machine.keep(message, confirmation)
            self._session.notify()
            raise
        return message

    async def receive_no_wait(self) -> Message | None:
        """The next message if there is one here already."""
        return await self.receive(0.0)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        message = None if self._machine.is_over else await self.receive()
        if message is None:
            raise StopAsyncIteration
        return message

    # -- being told of messages ---------------------------------------------------------------------------------------------------------
    def _listen(self, listener: MessageListener | None) -> None:
        self._machine.check_open()
        self._listener = listener
        if listener is not None:
            self._session.listen()

    async def call(self, message: Message) -> None:
        """For the session."""
        if self._listener is not None:
            await self._listener(message)

    # -- the end ------------------------------------------------------------------------------------------------------------------------
    async def close(self) -> None:
        """No message comes any more; a receive() under way returns None. What was received can still be acknowledged."""
        await self._session.close_consumer(self, self._machine)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()
