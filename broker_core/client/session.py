"""A session: one thread's work with the broker, in order."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from .browser import QueueBrowser, SubscriptionBrowser
from .clock import milliseconds, time_of_day
from .consumer import MessageConsumer
from .destinations import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from .driver import Driver
from .exceptions import ACK_TIMEOUT, JMSException
from .faces import SessionFace
from .faces.session import browsed, listener_cannot, unconfirmed
from .failures import in_words
from .machine import Confirmation, ConsumerMachine, SessionMachine, Subscription
from .messages import Message
from .producer import MessageProducer

if TYPE_CHECKING:
    from .connection import Connection

log = logging.getLogger("surety.client")

T = TypeVar("T", TemporaryQueue, TemporaryTopic)


class Session(SessionFace[MessageConsumer, MessageConsumer, None]):
    """Made by Connection.create_session. Its message listeners are called by a thread of its own, one at a time."""

    def __init__(self, connection: Connection, driver: Driver, machine: SessionMachine) -> None:
        super().__init__(machine)
        machine.acknowledger = self
        self._connection = connection
        self._driver = driver
        self._condition = threading.Condition(driver.lock)
        self._listening: threading.Thread | None = None

    # -- what it makes ------------------------------------------------------------------------------------------------------------------
    def create_producer(self, destination: Queue | Topic | None = None) -> MessageProducer:
        """For one destination; without, each send() names its own."""
        with self._driver.lock:
            self._driver.ready()
            return MessageProducer(self, self._driver, destination)

    def create_browser(self, queue: Queue, selector: str = "") -> QueueBrowser:
        """To look at what the queue holds."""
        return QueueBrowser(self, self._driver, self._browsable(browsed(queue, selector)))

    def create_durable_browser(self, topic: Topic, name: str, selector: str = "", *, client_id: str | None = None) -> SubscriptionBrowser:
        """To look at what a durable subscription has collected; it belongs to the connection's client identifier, or to another one of its user."""
        return SubscriptionBrowser(self, self._driver, self._browsable(browsed(topic, selector, name, client_id)))

    def _browsable(self, what: Subscription) -> Subscription:
        with self._driver.lock:
            self._driver.ready()
            self.machine.check_browsable(what)
        return what

    def create_temporary_queue(self) -> TemporaryQueue:
        """A queue that this connection alone consumes from and that ends with it: for replies."""
        return self._create_temporary(TemporaryQueue)

    def create_temporary_topic(self) -> TemporaryTopic:
        """A topic that this connection alone consumes from and that ends with it."""
        return self._create_temporary(TemporaryTopic)

    def _create_temporary(self, kind: type[T]) -> T:
        with self._driver.lock:
            self._driver.ready()
            self.machine.check()
            return self.machine.connection.temporaries.create(kind, self._delete_temporary)

    def _delete_temporary(self, destination: Destination) -> None:
        with self._driver.lock:
            self.machine.delete_temporary(destination)
            self._driver.flush_soon()

    def _consume(self, what: Subscription) -> MessageConsumer:
        driver = self._driver
        with driver.lock:
            driver.ready()
            machine, confirmation = self.machine.create_consumer(what)
            try:
                self.await_confirmed(confirmation)
            except BaseException:  # so that the broker delivers nothing to a consumer that nobody has
                self.machine.close_consumer(machine)
                raise
            consumer = MessageConsumer(self, driver, machine)
            self._consumers.append(consumer)
        return consumer

    # -- for what the session makes -----------------------------------------------------------------------------------------------------
    def _perform(self, operation: Callable[[], Confirmation | None]) -> None:
        driver = self._driver
        with driver.lock:
            driver.ready()
            confirmation = operation()
            if confirmation is None:
                driver.flush_soon()
            else:
                self.await_confirmed(confirmation)

    def await_confirmed(self, confirmation: Confirmation) -> None:
        """Wait for the broker's word. Raises what it says."""
        self._driver.flush()
        self._driver.wait(confirmation, self._condition)

    def await_quietly(self, confirmation: Confirmation) -> None:
        """Wait for an acknowledgement that does not concern the application: if it fails, the message comes again."""
        try:
            self.await_confirmed(confirmation)
        except JMSException:
            log.debug("An acknowledgement was not confirmed", exc_info=True)

    def notify(self) -> None:
        """Something has come."""
        self._driver.notify(self._condition)

    def sleep(self, timeout: float | None) -> None:
        """Until something has come."""
        self._driver.sleep(self._condition, timeout)

    # -- listeners ----------------------------------------------------------------------------------------------------------------------
    def listen(self) -> None:
        """A consumer has a listener now: see that somebody calls it."""
        if self._listening is None:
            self._listening = threading.Thread(target=self._listen, name="surety-session", daemon=True)
            self._listening.start()
        self.notify()

    def check_not_listening(self, what: str) -> None:
        if threading.current_thread() is self._listening:
            raise listener_cannot(what, "thread")

    def await_listener(self, consumer: MessageConsumer | None = None) -> None:
        """Until the consumer's listener is not running; without, until none of this session is. None may be called again meanwhile."""
        while self._is_handling(consumer):
            self._condition.wait()

    def _listen(self) -> None:
        """Call the listeners, until the session is closed."""
        driver, machine = self._driver, self.machine
        handled = False
        failure: str | None = None
        while True:
            with driver.lock:
                if handled:
                    confirmation = machine.handled(failure, milliseconds())
                    failure = None
                    if confirmation is not None:
                        self.await_quietly(confirmation)
                taken = self._next_for_listener()
                if taken is None:
                    return
                consumer, message = taken
                driver.flush_soon()
            handled = True
            try:
                consumer.call(message)
            except BaseException as error:  # sys.exit() too: it would end this thread, and close() wait for the listener for ever
                log.exception("A message listener failed")
                failure = in_words(error)

    def _next_for_listener(self) -> tuple[MessageConsumer, Message] | None:
        """Wait for a message whose consumer has a listener."""
        if self._handling is not None:
            self._handling = None
            self.notify()  # who waits for the end of the listener
        while self._wants_listeners_called:
            taken = self._next_turn(milliseconds(), time_of_day())
            if taken is not None:
                return taken
            self.sleep(None)
        return None

    # -- the end ------------------------------------------------------------------------------------------------------------------------
    def close_consumer(self, consumer: MessageConsumer, machine: ConsumerMachine) -> None:
        """What MessageConsumer.close does."""
        driver = self._driver
        with driver.lock:
            if consumer in self._consumers:
                self._consumers.remove(consumer)
            if threading.current_thread() is not self._listening:
                self.await_listener(consumer)
            if not driver.machine.is_ended:
                confirmation = self.machine.close_consumer(machine)
                if confirmation is not None:
                    self.await_quietly(confirmation)
                driver.flush_soon()
            self.notify()

    def await_completions(self, timeout: float | None) -> None:
        """Until the listeners of all asynchronous sends have been told. Raises when that takes longer."""
        driver = self._driver
        deadline = None if timeout is None else time.monotonic() + timeout
        with driver.lock:
            driver.flush()
            if self.machine.completing:
                driver.check_thread("it is one of those that are waited for")
            while self.machine.completing:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise JMSException(unconfirmed(self.machine.completing, timeout), ACK_TIMEOUT)
                self.sleep(left)

    def finish(self) -> None:
        """Let asynchronous sends and a running listener come to their end."""
        try:
            self.await_completions(self.machine.connection.settings.async_send_completion_wait_timeout)
        except JMSException as error:
            log.warning("Closing without them: %s", error)
        with self._driver.lock:
            self._is_ending = True
            self.await_listener()

    def close(self) -> None:
        """Close its consumers and producers too. Waits for a running listener and for asynchronous sends; a transaction is rolled back."""
        with self._driver.lock:
            self.check_not_listening("close its session")
        self.finish()
        with self._driver.lock:
            if not self._driver.machine.is_ended:
                confirmation = self.machine.close()
                if confirmation is not None:
                    self.await_quietly(confirmation)
                self._driver.flush_soon()
            self.notify()
            self._connection.forget(self)
        self.join()

    def join(self) -> None:
        """Without the lock: until the thread of its listeners has ended."""
        if self._listening is not None and threading.current_thread() is not self._listening:
            self._listening.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
