"""A session: work with the broker, in order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar

from broker_core.client.clock import milliseconds, time_of_day
from broker_core.client.destinations import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from broker_core.client.exceptions import ACK_TIMEOUT, IllegalStateException, JMSException
from broker_core.client.faces import SessionFace
from broker_core.client.faces.session import browsed, listener_cannot, unconfirmed
from broker_core.client.failures import in_words
from broker_core.client.machine import Confirmation, ConsumerMachine, SessionMachine, Subscription
from broker_core.client.messages import Message

from .browser import QueueBrowser, SubscriptionBrowser
from .consumer import MessageConsumer
from .driver import Driver
from .opening import Opening
from .producer import MessageProducer
from .waiting import Signal

if TYPE_CHECKING:
    from .connection import Connection

log = logging.getLogger("surety.client")

T = TypeVar("T", TemporaryQueue, TemporaryTopic)


class Session(SessionFace[MessageConsumer, Opening[MessageConsumer], Coroutine[Any, Any, None]]):
    """Made by Connection.create_session. Its message listeners are called by a task of its own, one at a time."""

    def __init__(self, connection: Connection, driver: Driver, machine: SessionMachine) -> None:
        super().__init__(machine)
        machine.acknowledger = AWAITED
        self._connection = connection
        self._driver = driver
        self._signal = Signal(driver.loop)
        self._listening: asyncio.Task[None] | None = None

    # -- what it makes ------------------------------------------------------------------------------------------------------------------
    def create_producer(self, destination: Queue | Topic | None = None) -> MessageProducer:
        """For one destination; without, each send() names its own."""
        return MessageProducer(self, self._driver, destination)

    def create_browser(self, queue: Queue, selector: str = "") -> QueueBrowser:
        """To look at what the queue holds."""
        return QueueBrowser(self, self._driver, self._browsable(browsed(queue, selector)))

    def create_durable_browser(self, topic: Topic, name: str, selector: str = "", *, client_id: str | None = None) -> SubscriptionBrowser:
        """To look at what a durable subscription has collected; it belongs to the connection's client identifier, or to another one of its user."""
        return SubscriptionBrowser(self, self._driver, self._browsable(browsed(topic, selector, name, client_id)))

    def _browsable(self, what: Subscription) -> Subscription:
        self.machine.check_browsable(what)
        return what

    async def create_temporary_queue(self) -> TemporaryQueue:
        """A queue that this connection alone consumes from and that ends with it: for replies."""
        return await self._create_temporary(TemporaryQueue)

    async def create_temporary_topic(self) -> TemporaryTopic:
        """A topic that this connection alone consumes from and that ends with it."""
        return await self._create_temporary(TemporaryTopic)

    async def _create_temporary(self, kind: type[T]) -> T:
        await self._driver.ready()
        self.machine.check()
        return self.machine.connection.temporaries.create(kind, self._delete_temporary)

    def _delete_temporary(self, destination: Destination) -> None:
        self.machine.delete_temporary(destination)
        self._driver.flush_soon()

    def _consume(self, what: Subscription) -> Opening[MessageConsumer]:
        return Opening(self._open(what))

    async def _open(self, what: Subscription) -> MessageConsumer:
        await self._driver.ready()
        machine, confirmation = self.machine.create_consumer(what)
        try:
            await self._driver.wait(confirmation)
        except BaseException:  # so that the broker delivers nothing to a consumer that nobody has
            self.machine.close_consumer(machine)
            self._driver.flush_soon()
            raise
        consumer = MessageConsumer(self, self._driver, machine)
        self._consumers.append(consumer)
        return consumer

    # -- for what the session makes -----------------------------------------------------------------------------------------------------
    async def _perform(self, operation: Callable[[], Confirmation | None]) -> None:
        await self._driver.ready()
        confirmation = operation()
        if confirmation is None:
            self._driver.flush_soon()
        else:
            await self._driver.wait(confirmation)

    async def await_quietly(self, confirmation: Confirmation) -> None:
        """Wait for an acknowledgement that does not concern the application: if it fails, the message comes again."""
        try:
            await self._driver.wait(confirmation)
        except JMSException:
            log.debug("An acknowledgement was not confirmed", exc_info=True)

    def notify(self) -> None:
        """Something has come."""
        self._signal.notify()

    async def sleep(self, timeout: float | None) -> None:  # noqa: ASYNC109  # it ends the wait, and is no error
        """Until something has come."""
        self._driver.flush_soon()
        await self._signal.wait(timeout)

    # -- listeners ----------------------------------------------------------------------------------------------------------------------
    def listen(self) -> None:
        """A consumer has a listener now: see that somebody calls it."""
        if self._listening is None:
            self._listening = self._driver.loop.create_task(self._listen(), name="surety-session")
        self.notify()

    def stop_listening(self) -> None:
        """Whoever has waited for the end of a listener waits no longer."""
        if self._listening is not None and self._handling is not None:
            self._listening.cancel()

    def _is_listening(self) -> bool:
        """This is the task that calls the listeners."""
        return self._listening is not None and asyncio.current_task() is self._listening

    def check_not_listening(self, what: str) -> None:
        if self._is_listening():
            raise listener_cannot(what, "task")

    async def await_listener(self, consumer: MessageConsumer | None = None) -> None:
        """Until the consumer's listener is not running; without, until none of this session is. None may be called again meanwhile."""
        while self._is_handling(consumer):
            await self._signal.wait()

    async def _listen(self) -> None:
        """Call the listeners, until the session is closed."""
        driver = self._driver
        try:
            while (taken := await self._next_for_listener()) is not None:
                driver.flush_soon()
                confirmation = self.machine.handled(await self._call(*taken), milliseconds())
                if confirmation is not None:
                    await self.await_quietly(confirmation)
        finally:
            self._handling = None
            self.notify()

    async def _next_for_listener(self) -> tuple[MessageConsumer, Message] | None:
        """Wait for a message whose consumer has a listener."""
        if self._handling is not None:
            self._handling = None
            self.notify()  # who waits for the end of the listener
        while self._wants_listeners_called:
            taken = self._next_turn(milliseconds(), time_of_day())
            if taken is not None:
                return taken
            await self.sleep(None)
        return None

    async def _call(self, consumer: MessageConsumer, message: Message) -> str | None:
        """What the listener failed with, in words."""
        try:
            await consumer.call(message)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            log.warning("A message listener failed: something it awaited was cancelled")
            return in_words(error)
        except Exception as error:
            log.exception("A message listener failed")
            return in_words(error)
        return None

    # -- the end ------------------------------------------------------------------------------------------------------------------------
    async def close_consumer(self, consumer: MessageConsumer, machine: ConsumerMachine) -> None:
        """What MessageConsumer.close does."""
        if consumer in self._consumers:
            self._consumers.remove(consumer)
        confirmation = None
        try:
            if not self._is_listening():
                await self.await_listener(consumer)
        finally:
            if not self._driver.machine.is_ended:
                confirmation = self.machine.close_consumer(machine)
            self._driver.flush_soon()
            self.notify()
        if confirmation is not None:
            await self.await_quietly(confirmation)

    async def await_completions(self, timeout: float | None) -> None:  # noqa: ASYNC109  # as the threads' face has it
        """Until the listeners of all asynchronous sends have been told. Raises when that takes longer."""
        loop = self._driver.loop
        deadline = None if timeout is None else loop.time() + timeout
        while self.machine.completing:
            left = None if deadline is None else deadline - loop.time()
            if left is not None and left <= 0:
                raise JMSException(unconfirmed(self.machine.completing, timeout), ACK_TIMEOUT)
            await self.sleep(left)

    async def finish(self) -> None:
        """Let asynchronous sends and a running listener come to their end."""
        try:
            await self.await_completions(self.machine.connection.settings.async_send_completion_wait_timeout)
        except JMSException as error:
            log.warning("Closing without them: %s", error)
        self._is_ending = True
        await self.await_listener()

    async def close(self) -> None:
        """Close its consumers and producers too. Waits for a running listener and for asynchronous sends; a transaction is rolled back. Cancelled,
        it cancels the listener, and the rest is closed all the same."""
        self.check_not_listening("close its session")
        confirmation = None
        try:
            await self.finish()
        finally:
            self._is_ending = True
            self.stop_listening()
            if not self._driver.machine.is_ended:
                confirmation = self.machine.close()
            self._driver.flush_soon()
            self.notify()
            self._connection.forget(self)
        if confirmation is not None:
            await self.await_quietly(confirmation)
        await self.join()

    async def join(self) -> None:
        """Until the task of its listeners has ended."""
        if self._listening is not None:
            await asyncio.wait({self._listening})

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()


class Awaited:
    """What a message is told that is to acknowledge itself: a message has no colour, and this must be awaited."""

    def acknowledge(self, message: Message) -> NoReturn:
        raise self._elsewhere("acknowledge")

    def acknowledge_this_message(self, message: Message) -> NoReturn:
        raise self._elsewhere("acknowledge_this_message")

    def acknowledge_up_through_this_message(self, message: Message) -> NoReturn:
        raise self._elsewhere("acknowledge_up_through_this_message")

    def _elsewhere(self, name: str) -> IllegalStateException:
        return IllegalStateException(f"acknowledging waits for the broker: await session.{name}(message)")


AWAITED = Awaited()
