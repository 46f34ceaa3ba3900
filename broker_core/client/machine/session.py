"""A session: its consumers, its transactions, and what it asks of the broker in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_core.client.bounds import wrong_client_id, wrong_subscription_name, wrong_text
from broker_core.client.destinations import Destination, Queue, TemporaryTopic, Topic
from broker_core.client.exceptions import (
    IllegalStateException,
    InvalidClientIDException,
    InvalidDestinationException,
    InvalidSelectorException,
    JMSException,
    TransactionRolledBackException,
)
from broker_core.client.messages import Acknowledger
from broker_core.client.properties import header_line
from broker_core.client.settings import AcknowledgeMode
from broker_core.engine.eligibility import PRIORITY_MAX
from broker_core.engine.pattern import problem
from broker_core.engine.selector import SelectorError, compile_selector

from .acknowledging import When
from .confirmation import Confirmation
from .consumer import ConsumerMachine, Subscription
from .consumption import Consumption
from .reader import Delivery

if TYPE_CHECKING:
    from .connection import ConnectionMachine


class SessionMachine:
    def __init__(self, connection: ConnectionMachine, number: int, mode: AcknowledgeMode) -> None:
        self.connection = connection
        self.mode = mode
        self.transacted = mode is AcknowledgeMode.SESSION_TRANSACTED
        self.owner: Any = None
        self.acknowledger: Acknowledger | None = None
        """Whom messages ask that are to acknowledge themselves."""
        self.is_woken = False
        self.is_closed = False
        self.consumers: list[ConsumerMachine] = []
        """Open ones and those that linger."""
        self.consumption = Consumption(self)
        self.completing = 0
        """Asynchronous sends whose listeners have not been told."""
        self.transaction = b""
        """The name of the present one."""
        self._number = number
        self._begun = False
        self._transactions = 0
        self._rolled_back: JMSException | None = None
        """Why the present transaction can only be rolled back."""
        self._name_transaction()

    def check(self) -> None:
        """Raise if the session can do nothing any more."""
        if self.is_closed:
            raise IllegalStateException("the session is closed: create another one with connection.create_session()")
        self.connection.check()

    # -- consumers ----------------------------------------------------------------------------------------------------------------------
    def create_consumer(self, what: Subscription) -> tuple[ConsumerMachine, Confirmation]:
        """A consumer, and what to wait for before it can be believed to be there."""
        self.check()
        _check_selector(what.selector)
        self._check_subscription(what)
        connection = self.connection
        connection.temporaries.check_own(what.destination)
        consumer = self._consumer_of(what)
        confirmation = connection.subscribe(consumer)
        connection.attach(consumer)
        self.consumers.append(consumer)
        return consumer, confirmation

    def _consumer_of(self, what: Subscription) -> ConsumerMachine:
        return ConsumerMachine(self, what)

    def check_listening(self) -> None:
        """Raise if its consumers can have no listeners."""

    def check_browsable(self, what: Subscription) -> None:
        """Raise if it cannot be looked at."""
        self.check()
        if what.on_topic and not what.durable:
            raise InvalidDestinationException(f"{what.destination} is no queue: topics keep no messages to look at, but for durable subscriptions")
        if isinstance(what.destination, Queue) and what.durable:
            raise InvalidDestinationException(f"{what.destination} has no subscriptions, which are for topics: use create_browser")
        _check_destination(what)
        if what.durable:
            _check_subscription_name(what.name)
        if what.client_id is not None and (wrong := wrong_client_id(what.client_id)):
            raise InvalidClientIDException(f"the client identifier {wrong}")
        _check_selector(what.selector)
        self.connection.temporaries.check_own(what.destination)

    def _check_subscription(self, what: Subscription) -> None:
        _check_destination(what)
        if what.name or what.durable or what.shared:
            _check_subscription_name(what.name)
        if what.durable and isinstance(what.destination, TemporaryTopic):
            raise InvalidDestinationException(f"{what.destination} ends with the connection: a durable subscription needs a topic that stays")
        if not isinstance(what.priority, int) or isinstance(what.priority, bool) or abs(what.priority) > PRIORITY_MAX:
            raise JMSException(f"the consumer's priority is {what.priority!r}: it must be a whole number from -{PRIORITY_MAX} to {PRIORITY_MAX}")
        if what.no_local and not self.connection.client_id:
            raise IllegalStateException("no_local needs a client identifier: set connection.client_id, or configured_client_id of the factory")
        if not what.durable or what.shared or what.browses:
            return
        if not self.connection.client_id:
            raise IllegalStateException(
                "a durable subscription belongs to a client identifier: set connection.client_id before anything else, or "
                "configured_client_id of the factory; or create a shared durable consumer, which needs none"
            )
        if self._active(what.name) is not None:
            raise IllegalStateException(f"the durable subscription {what.name!r} has a consumer already: close that one first")

    def _active(self, name: str) -> ConsumerMachine | None:
        """This connection's consumer of the durable subscription."""
        return next((each for each in self.connection.consumers() if each.what.durable and each.what.name == name and not each.what.browses), None)

    def close_consumer(self, consumer: ConsumerMachine) -> Confirmation | None:
        """What it handed over stays to be acknowledged (JMS 8.8); until that is done it lingers, and the broker keeps what it held ready for it."""
        if consumer.is_closed:
            return None
        consumer.is_closed = True
        consumer.forget_buffer()
        self.connection.wake(self)
        if consumer.is_cut_off:
            return None
        if consumer.acknowledging.when is When.BATCH:
            self.consumption.acknowledge_batch(consumer)
        if self._has_in_use(consumer):
            return None
        return self._unsubscribe(consumer, asked=True)

    def _unsubscribe(self, consumer: ConsumerMachine, *, asked: bool) -> Confirmation | None:
        self.consumers.remove(consumer)
        connection = self.connection
        connection.detach(consumer)
        frame = b"UNSUBSCRIBE\nid:%b\n" % consumer.subscription
        if asked and connection.is_open:
            return connection.request(frame, Confirmation(self, "the broker finds out by itself that the consumer is closed"))
        connection.write(frame, b"\n\0")
        return None

    def _let_go(self) -> None:
        """Of consumers that lingered and have nothing to be acknowledged any more."""
        for consumer in [each for each in self.consumers if each.is_closed and not self._has_in_use(each)]:
            self._unsubscribe(consumer, asked=False)

    def _has_in_use(self, consumer: ConsumerMachine) -> bool:
        """Something of it may still be acknowledged or given back."""
        return consumer.unacked > 0 or self.consumption.is_handling(consumer)

    def delete_temporary(self, destination: Destination) -> None:
        """End a temporary destination of this connection. It must have no consumers; what it holds nobody gets any more."""
        self.check()
        if any(each.what.destination == destination for each in self.connection.consumers()):
            raise IllegalStateException(f"{destination} has a consumer: close it before deleting the destination")
        if short := self.connection.temporaries.delete(destination):
            self.connection.write(b"UNSUBSCRIBE\ntemporary-destination:%b\n\n\0" % short.encode())

    def unsubscribe(self, name: str) -> Confirmation:
        """End a durable subscription."""
        self.check()
        _check_subscription_name(name)
        if (active := self._active(name)) is not None:
            lingers = " and acknowledge what it has received" if active.is_closed else ""
            raise IllegalStateException(f"the durable subscription {name!r} has a consumer: close it{lingers} before unsubscribing")
        start = f"UNSUBSCRIBE{header_line('durable-subscription-name', name)}\n".encode()
        return self.connection.request(start, Confirmation(self, "the subscription may or may not have been ended"))

    # -- acknowledging ------------------------------------------------------------------------------------------------------------------
    def handled(self, failure: str | None, now: int) -> Confirmation | None:
        """The listener to which a consumer's `next_for_listener` went has returned, or raised what `failures` puts into words."""
        confirmation = self.consumption.handled(failure, now)
        self._let_go()
        return confirmation

    def acknowledge(self, delivery: Delivery) -> Confirmation | None:
        """CLIENT: all that was consumed; INDIVIDUAL: this one; else nothing."""
        self.check()
        if self.mode is AcknowledgeMode.INDIVIDUAL or self.mode is AcknowledgeMode.CLIENT:
            self._check_received(delivery)
        if self.mode is AcknowledgeMode.INDIVIDUAL:
            return self._then_let_go(self.consumption.acknowledge_these([delivery]))
        if self.mode is AcknowledgeMode.CLIENT:
            return self._then_let_go(self.consumption.acknowledge_all())
        return None

    def acknowledge_this(self, delivery: Delivery) -> Confirmation | None:
        self.check()
        if self.mode not in (AcknowledgeMode.CLIENT, AcknowledgeMode.INDIVIDUAL):
            raise IllegalStateException(
                f"{_named(self.mode)} acknowledges by itself: messages are acknowledged one by one in sessions with AcknowledgeMode.CLIENT or INDIVIDUAL"
            )
        self._check_received(delivery)
        return self._then_let_go(self.consumption.acknowledge_these([delivery], only=self.mode is AcknowledgeMode.CLIENT))

    def acknowledge_up_through(self, delivery: Delivery) -> Confirmation | None:
        self.check()
        if self.mode is not AcknowledgeMode.CLIENT:
            raise IllegalStateException(f"{_named(self.mode)} does not acknowledge up to a message: that is for sessions with AcknowledgeMode.CLIENT")
        self._check_received(delivery)
        return self._then_let_go(self.consumption.acknowledge_up_through(delivery))

    def _check_received(self, delivery: Delivery | None) -> None:
        """By a consumer of this session."""
        if delivery is None or delivery.consumer is None or delivery.consumer.session is not self:
            raise IllegalStateException("the message was not received in this session: acknowledge it in the session that received it")

    def _then_let_go(self, confirmation: Confirmation | None) -> Confirmation | None:
        self._let_go()
        return confirmation

    def recover(self) -> Confirmation | None:
        """Have delivered again what was consumed and not acknowledged; the broker marks it redelivered (checklist item 74)."""
        self.check()
        if self.transacted:
            raise IllegalStateException("a transacted session has nothing to recover: roll back instead")
        if self.mode is AcknowledgeMode.NO_ACKNOWLEDGE:
            raise IllegalStateException("NO_ACKNOWLEDGE leaves nothing to recover: the broker has acknowledged what it sent")
        return self._then_let_go(self.consumption.recover())

    def tick(self, now: int) -> None:
        self.consumption.tick(now)

    # -- transactions -------------------------------------------------------------------------------------------------------------------
    def _name_transaction(self) -> None:
        self._transactions += 1
        self.transaction = b"%dt%d" % (self._number, self._transactions)
        self._begun = False

    def begin(self) -> bytes:
        """The present transaction, which has begun."""
        if not self._begun:
            self._begun = True
            self.connection.write(b"BEGIN\ntransaction:%b\n\n\0" % self.transaction)
        return self.transaction

    def _check_transacted(self) -> None:
        self.check()
        if not self.transacted:
            raise IllegalStateException(
                f"{_named(self.mode)} has no transactions: create a transacted session with connection.create_session(transacted=True)"
            )

    def commit(self) -> Confirmation | None:
        """Everything sent and consumed since the last time, or nothing. Waits for the broker if there is anything."""
        self._check_transacted()
        if self._rolled_back is not None:
            cause = self._rolled_back
            self._roll_back()
            raise TransactionRolledBackException(
                f"the transaction was rolled back, for {cause.reason}: do its work again in a new one", cause.error_code
            ) from cause
        self.consumption.acknowledge_batches()
        return self._end_transaction(b"COMMIT", "the transaction may or may not have been committed")

    def roll_back(self) -> Confirmation | None:
        """Nothing that was sent is; what was consumed the broker delivers again."""
        self._check_transacted()
        return self._roll_back()

    def _roll_back(self) -> Confirmation | None:
        self._rolled_back = None
        confirmation = self.consumption.give_back()
        return self._end_transaction(b"ABORT", "the transaction is rolled back") or confirmation

    def _end_transaction(self, command: bytes, doubt: str) -> Confirmation | None:
        if not self._begun:
            return None
        name = self.transaction
        self._name_transaction()
        return self.connection.request(b"%b\ntransaction:%b\n" % (command, name), Confirmation(self, doubt))

    # -- the end ------------------------------------------------------------------------------------------------------------------------
    def connection_lost(self, error: JMSException) -> None:
        """What the session had done and the broker not confirmed is undone."""
        if self.transacted:
            self._transaction_lost(error)
        self.consumption.connection_lost(error)
        for consumer in list(self.consumers):
            consumer.connection_lost()
            if consumer.is_closed or not consumer.is_confirmed or consumer.what.browses or consumer.failure is not None:
                consumer.is_cut_off = True
                self.consumers.remove(consumer)
                self.connection.detach(consumer)

    def _transaction_lost(self, error: JMSException) -> None:
        if self._begun or any(consumer.last for consumer in self.consumers):
            self._rolled_back = error
        self._name_transaction()

    def end(self) -> None:
        """Say what is to be said before the session is gone: what was consumed and is acknowledged lazily; a transaction is rolled back."""
        if self.is_closed:
            return
        self.is_closed = True
        if not self.transacted:
            self.consumption.acknowledge_batches()
        else:
            self._abandon()

    def _abandon(self) -> None:
        """The transaction that is open."""
        if self._begun:
            self.connection.write(b"ABORT\ntransaction:%b\n\n\0" % self.transaction)
            self._begun = False

    def close(self) -> Confirmation | None:
        """End it and its consumers. What was handed over and not acknowledged the broker delivers again."""
        if self.is_closed:
            return None
        self.end()
        self.connection.sessions.pop(self._number, None)
        confirmation = None
        for consumer in list(self.consumers):
            consumer.is_closed = True
            consumer.forget_buffer()
            confirmation = self._unsubscribe(consumer, asked=consumer is self.consumers[-1])
        self.consumption.forget()
        self.connection.wake(self)
        return confirmation


def _named(mode: AcknowledgeMode) -> str:
    return f"a session with {mode.name}"


def _check_selector(selector: str) -> None:
    """Here, for the broker would end the connection."""
    if selector:
        if wrong := wrong_text(selector):
            raise InvalidSelectorException(f"the selector {wrong}")
        try:
            compile_selector(selector)
        except SelectorError as error:
            raise InvalidSelectorException(f"the selector {selector!r} is not valid: {error}") from None


def _check_destination(what: Subscription) -> None:
    destination = what.destination
    if not isinstance(destination, Queue | Topic):
        raise InvalidDestinationException(f"{destination!r} is no destination: use Queue(name) or Topic(name)")
    if destination.is_pattern and (sentence := problem(destination.address[1:])):
        raise InvalidDestinationException(f"{destination} cannot be consumed from: {sentence}")
    if not what.on_topic and (what.durable or what.shared):
        why = "a queue keeps its messages anyway" if what.durable else "the consumers of a queue share it anyway"
        raise InvalidDestinationException(f"{destination} has no subscriptions, which are for topics: use create_consumer, for {why}")


def _check_subscription_name(name: str) -> None:
    if wrong := wrong_subscription_name(name):
        raise IllegalStateException(f"the name of the subscription {wrong}")
