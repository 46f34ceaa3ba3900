"""Receiving."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Self

from .channel import milliseconds
from .destinations import Queue, Topic
from .driver import Driver, time_of_day
from .exceptions import IllegalStateException
from .machine import ConsumerMachine
from .messages import Message

if TYPE_CHECKING:
    from .session import Session

MessageListener = Callable[[Message], None]


class MessageConsumer:
    """Made by Session.create_consumer and its like. Iterating over it receives until it is closed."""

    def __init__(self, session: Session, driver: Driver, machine: ConsumerMachine) -> None:
        self._session = session
        self._driver = driver
        self._machine = machine
        self._listener: MessageListener | None = None

    @property
    def destination(self) -> Queue | Topic:
        return self._machine.what.destination

    @property
    def message_selector(self) -> str:
        return self._machine.what.selector

    @property
    def no_local(self) -> bool:
        return self._machine.what.no_local

    # -- asking for messages ------------------------------------------------------------------------------------------------------------
    def receive(self, timeout: float | None = None) -> Message | None:
        """The next message. None: `timeout` seconds brought none, or the consumer was closed meanwhile; without a timeout it waits."""
        driver, machine = self._driver, self._machine
        connection = machine.session.connection
        with driver.lock:
            machine.check_open()
            self._check_no_listeners()
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
                self._session.await_quietly(confirmation)
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

    def _check_no_listeners(self) -> None:
        if self._session.has_listeners:
            raise IllegalStateException("the session delivers to message listeners: receive in another session")

    # -- being told of messages ---------------------------------------------------------------------------------------------------------
    @property
    def message_listener(self) -> MessageListener | None:
        return self._listener

    @message_listener.setter
    def message_listener(self, listener: MessageListener | None) -> None:
        """Called with each message by the session's thread. If it raises, a session that acknowledges by itself gives the message back."""
        with self._driver.lock:
            self._machine.check_open()
            self._listener = listener
            if listener is not None:
                self._session.listen()

    @property
    def has_listener(self) -> bool:
        return self._listener is not None

    def next_for_listener(self) -> Message | None:
        """For the session: the next message, which the listener is about to get."""
        return self._machine.next_for_listener(milliseconds(), time_of_day()) if self._listener is not None else None

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
