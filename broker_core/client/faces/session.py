"""A session: less the waiting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from broker_core.client.destinations import Queue, Topic
from broker_core.client.exceptions import IllegalStateException
from broker_core.client.machine import Confirmation, SessionMachine, Subscription
from broker_core.client.messages import BytesMessage, MapMessage, Message, ObjectMessage, TextMessage
from broker_core.client.settings import AcknowledgeMode

from .consumer import ConsumerFace

F = TypeVar("F", bound=ConsumerFace[Any])
"""The session's consumers."""
C = TypeVar("C")
"""What creating a consumer gives back: the consumer, or something to be awaited for it."""
R = TypeVar("R")
"""What any other operation gives back: None, or something to be awaited."""


class SessionFace(Generic[F, C, R]):
    def __init__(self, machine: SessionMachine) -> None:
        self.machine = machine
        machine.owner = self
        self._consumers: list[F] = []
        self._handling: F | None = None
        """Whose listener is running."""
        self._is_ending = False
        """No listener is called any more."""

    def _consume(self, what: Subscription) -> C:
        raise NotImplementedError

    def _perform(self, operation: Callable[[], Confirmation | None]) -> R:
        """Do it when there is a connection, and wait for the broker if JMS wants that."""
        raise NotImplementedError

    # -- what it is ---------------------------------------------------------------------------------------------------------------------
    @property
    def acknowledge_mode(self) -> AcknowledgeMode:
        return self.machine.mode

    @property
    def transacted(self) -> bool:
        return self.machine.transacted

    # -- what it makes ------------------------------------------------------------------------------------------------------------------
    def create_queue(self, name: str) -> Queue:
        return Queue(name)

    def create_topic(self, name: str) -> Topic:
        return Topic(name)

    def create_message(self) -> Message:
        return Message()

    def create_text_message(self, text: str = "") -> TextMessage:
        return TextMessage(text)

    def create_bytes_message(self, data: bytes = b"") -> BytesMessage:
        return BytesMessage(data)

    def create_map_message(self, values: dict[str, Any] | None = None) -> MapMessage:
        return MapMessage(values)

    def create_object_message(self, value: Any = None) -> ObjectMessage:
        return ObjectMessage(value)

    def create_consumer(
        self, destination: Queue | Topic, selector: str = "", *, no_local: bool = False, exclusive: bool = False, priority: int = 0
    ) -> C:
        """Of a queue, or with a subscription of its own to a topic, which ends with it. Of a queue's consumers an `exclusive` one receives
        alone, and those of a higher `priority` before others."""
        return self._consume(
            Subscription(destination=destination, selector=selector, no_local=no_local, exclusive=exclusive, priority=priority)
        )

    def create_durable_consumer(self, topic: Topic, name: str, selector: str = "", *, no_local: bool = False) -> C:
        """Of a subscription that goes on collecting while nobody consumes; it belongs to the connection's client identifier."""
        return self._consume(Subscription(destination=topic, selector=selector, no_local=no_local, name=name, durable=True))

    def create_shared_consumer(self, topic: Topic, name: str, selector: str = "") -> C:
        """Of a subscription that several consumers share; it ends with the last of them."""
        return self._consume(Subscription(destination=topic, selector=selector, name=name, shared=True))

    def create_shared_durable_consumer(self, topic: Topic, name: str, selector: str = "") -> C:
        """Of a durable subscription that several consumers share."""
        return self._consume(Subscription(destination=topic, selector=selector, name=name, durable=True, shared=True))

    def unsubscribe(self, name: str) -> R:
        """End a durable subscription, with all that it has collected. It must have no consumer."""
        return self._perform(lambda: self.machine.unsubscribe(name))

    # -- acknowledging ------------------------------------------------------------------------------------------------------------------
    def acknowledge(self, message: Message) -> R:
        """CLIENT: all that the session has consumed; INDIVIDUAL: this message. In other modes nothing, for the session does it by itself."""
        return self._perform(lambda: self.machine.acknowledge(message.delivery))

    def acknowledge_this_message(self, message: Message) -> R:
        """CLIENT and INDIVIDUAL: this message alone. In other modes IllegalStateException."""
        return self._perform(lambda: self.machine.acknowledge_this(message.delivery))

    def acknowledge_up_through_this_message(self, message: Message) -> R:
        """CLIENT: what the session has consumed up to this message, and not what came after. In other modes IllegalStateException."""
        return self._perform(lambda: self.machine.acknowledge_up_through(message.delivery))

    def recover(self) -> R:
        """Have what was received and not acknowledged delivered again, marked so, under the destination's redelivery policy."""
        return self._perform(self.machine.recover)

    # -- transactions -------------------------------------------------------------------------------------------------------------------
    def commit(self) -> R:
        """All that was sent and received since the last time counts, at once. Returns when the broker has it."""
        return self._perform(self.machine.commit)

    def rollback(self) -> R:
        """Nothing that was sent since the last time is; what was received is delivered again."""
        return self._perform(self.machine.roll_back)

    # -- listeners ----------------------------------------------------------------------------------------------------------------------
    @property
    def has_listeners(self) -> bool:
        return any(consumer.has_listener for consumer in self._consumers)

    def check_no_listeners(self) -> None:
        if self.has_listeners:
            raise IllegalStateException("the session delivers to message listeners: receive in another session")

    @property
    def _wants_listeners_called(self) -> bool:
        """Now or later."""
        return not (self.machine.is_closed or self.machine.connection.is_ended)

    def _is_handling(self, consumer: F | None) -> bool:
        """The consumer's listener is running; of None: any."""
        return self._handling is not None and consumer in (None, self._handling)

    def _next_turn(self, now: int, instant: int) -> tuple[F, Message] | None:
        """A message whose consumer has a listener, which is about to be called; of several consumers the one served longest ago comes first."""
        if self.machine.connection.started and not self._is_ending:
            for number, consumer in enumerate(self._consumers):
                message = consumer.next_for_listener(now, instant)
                if message is not None:
                    if number != len(self._consumers) - 1:
                        self._consumers.append(self._consumers.pop(number))
                    self._handling = consumer
                    return consumer, message
        return None


def browsed(destination: Queue | Topic, selector: str, name: str | None = None, client_id: str | None = None) -> Subscription:
    """What a browser looks at: a queue, or the durable subscription of this name."""
    return Subscription(
        destination=destination, selector=selector, name=name or "", durable=name is not None, browses=True, client_id=client_id
    )  # fmt: skip


def listener_cannot(what: str, other: str) -> IllegalStateException:
    """JMS 8.7: a listener that waits for its own end would wait for ever."""
    return IllegalStateException(f"a message listener cannot {what}: let another {other} do it")


def unconfirmed(count: int, timeout: float | None) -> str:
    """What is said of asynchronous sends that are waited for too long."""
    return f"{count} messages were not confirmed within {timeout:g} s"
