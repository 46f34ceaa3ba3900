"""Receiving."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Self

from .bounds import check_timeout
from .clock import milliseconds, time_of_day
from .driver import Driver
from .faces import ConsumerFace
from .machine import ConsumerMachine
from .messages import Message

if TYPE_CHECKING:
    from .session import Session

MessageListener = Callable[[Message], None]


class MessageConsumer(ConsumerFace[MessageListener]):
    """Made by Session.create_consumer and its like. Iterating over it receives until it is closed."""

    def __init__(self, session: Session, driver: Driver, machine: ConsumerMachine) -> None:
        super().__init__(machine)
        self._session = session
        self._driver = driver

    # -- asking for messages ------------------------------------------------------------------------------------------------------------
    def receive(self, timeout: float | None = None) -> Message | None:
        """The next message. None: `timeout` seconds brought none, or the consumer was closed meanwhile; without a timeout it waits."""
        driver, machine = self._driver, self._machine
        connection = machine.session.connection
        with driver.lock:
            machine.check_open()
            check_timeout(timeout)
            self._session.check_no_listeners()
            deadline = None if timeout is None else time.monotonic() + timeout
            while True:
                if connection.started and (taken := machine.receive(milliseconds(), time_of_day())) is not None:
                    break
                left = None if deadline is None else deadline - time.monotonic()
                if machine.is_over or (left is not None and left <= 0):
                    machine.ran_dry()
                    driver.flush_soon()
                    return None
                driver.flush_soon()
                self._session.sleep(left)
                if not machine.is_over:
                    machine.check_open()
            message, confirmation = taken
            if confirmation is not None:
                try:
                    self._session.await_quietly(confirmation)
                except BaseException:  # a signal's handler has raised: the next one has it
                    machine.keep(message, confirmation)
                    raise
            else:
                driver.flush_soon()
        return message

    def receive_no_wait(self) -> Message | None:
        """The next message if there is one here already."""
        return self.receive(0.0)

    def __iter__(self) -> Iterator[Message]:
        return self

    def __next__(self) -> Message:
        message = None if self._machine.is_over else self.receive()
        if message is None:
            raise StopIteration
        return message

    # -- being told of messages ---------------------------------------------------------------------------------------------------------
    def _listen(self, listener: MessageListener | None) -> None:
        with self._driver.lock:
            self._machine.check_open()
            self._listener = listener
            if listener is not None:
                self._session.listen()

    def call(self, message: Message) -> None:
        """For the session."""
        if self._listener is not None:
            self._listener(message)

    # -- the end ------------------------------------------------------------------------------------------------------------------------
    def close(self) -> None:
        """No message comes any more; a receive() under way returns None. What was received can still be acknowledged."""
        self._session.close_consumer(self, self._machine)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
