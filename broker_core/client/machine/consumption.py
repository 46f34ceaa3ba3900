"""What a session has handed over to its application, and how the broker is told: acknowledged, or given back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_core.client.exceptions import CONNECTION_LOST, JMSException
from broker_core.client.properties import header_line

from .acknowledging import When
from .confirmation import Confirmation
from .reader import Delivery

if TYPE_CHECKING:
    from .consumer import ConsumerMachine
    from .session import SessionMachine

AGAIN = "the message may be delivered again"


class Consumption:
    def __init__(self, session: SessionMachine) -> None:
        self._session = session
        self._connection = session.connection
        self._unacked: dict[Delivery, None] = {}
        """Handed over and to be acknowledged when the application asks for it, in order."""
        self._stale: JMSException | None = None
        """Why some of those are none any more: the connection was lost."""
        self._consumed = 0
        """Since the last acknowledgement, over all consumers: of those that acknowledge in batches."""
        self._ack_at = 0
        """When they must be acknowledged at the latest; 0: nothing must."""
        self._handling: Delivery | None = None
        """What a listener has in its hands."""
        self._over = False
        """It has been acknowledged already, whatever becomes of it."""
        self._recovering = False

    # -- handing over -------------------------------------------------------------------------------------------------------------------
    def consumed(self, delivery: Delivery, now: int) -> Confirmation | None:
        """The application has it: receive() returns it, or its listener has returned."""
        if delivery.epoch != self._connection.epoch:
            return None  # the broker delivers it again
        consumer: ConsumerMachine = delivery.consumer
        plan = consumer.acknowledging
        if plan.when is When.EACH:
            return self._say_ack(delivery.ack, plan.confirmed and not self._over)
        if plan.when is When.ASKED:
            self._unacked[delivery] = None
            consumer.unacked += 1
            consumer.octets += delivery.octets
        elif plan.when is When.BATCH:
            consumer.last = delivery.ack
            consumer.consumed += 1
            consumer.octets += delivery.octets
            self._consumed += 1
            enough = self._consumed if plan.of_session else consumer.consumed
            if enough >= plan.messages or consumer.octets >= consumer.octets_max // 2 or consumer.is_closed:
                return self.acknowledge_batches() if plan.of_session else self.acknowledge_batch(consumer)
            if plan.timeout_ms:
                due = now + plan.timeout_ms
                self._ack_at = min(self._ack_at or due, due)
                self._connection.ack_at = min(self._connection.ack_at, self._ack_at)
        return None

    def handling(self, delivery: Delivery, best_effort: bool, now: int) -> None:
        """A listener is about to be called with it, which may acknowledge, commit or roll back. Best effort is over when its listener begins (item 128)."""
        self._handling = delivery
        asked = self._session.transacted or delivery.consumer.acknowledging.when is When.ASKED
        self._over = not asked and best_effort
        if asked or self._over:
            self.consumed(delivery, now)

    def handled(self, failure: str | None, now: int) -> Confirmation | None:
        """The listener has returned, or raised what is put here into words. What failed in a session that acknowledges by itself the broker gets back;
        else that is the application's to do."""
        delivery, self._handling = self._handling, None
        recovering, self._recovering = self._recovering, False
        over, self._over = self._over, False
        if delivery is None or over or self._session.transacted or delivery.consumer.acknowledging.when is When.ASKED:
            return None
        if failure is not None or recovering:
            self._refuse(delivery, header_line("comment", failure) if failure else "")
            return None
        return self.consumed(delivery, now)

    def is_handling(self, consumer: ConsumerMachine) -> bool:
        return self._handling is not None and self._handling.consumer is consumer

    def _refuse(self, delivery: Delivery, why: str) -> None:
        """NACK: the broker redelivers it under the destination's policy, or it is dead, and `why`, a header line, tells those who find it."""
        if delivery.epoch != self._connection.epoch or not delivery.ack:
            return
        consumer: ConsumerMachine = delivery.consumer
        if consumer.acknowledging.when is When.BATCH:
            self.acknowledge_batch(consumer)  # else the NACK, being cumulative, would refuse these too
        self._connection.write(b"NACK\nid:%b%b\n\n\0" % (delivery.ack, why.encode()))

    # -- batches ------------------------------------------------------------------------------------------------------------------------
    def tick(self, now: int) -> None:
        """Acknowledge what has waited long enough."""
        if self._ack_at and now >= self._ack_at:
            self.acknowledge_batches()
        elif self._ack_at:
            self._connection.ack_at = min(self._connection.ack_at, self._ack_at)

    def acknowledge_batches(self) -> Confirmation | None:
        """All that was consumed and not told, for each consumer one cumulative acknowledgement."""
        confirmation = None
        for consumer in self._session.consumers:
            if consumer.last:
                confirmation = self.acknowledge_batch(consumer)
        return confirmation

    def acknowledge_batch(self, consumer: ConsumerMachine) -> Confirmation | None:
        """One cumulative acknowledgement for the consumer, in a transaction as part of it."""
        ack = consumer.last
        self._consumed -= consumer.consumed
        consumer.last = b""
        consumer.consumed = consumer.octets = 0
        if not self._consumed:
            self._ack_at = 0
        return self._say_ack(ack, consumer.acknowledging.confirmed) if ack else None

    def _say_ack(self, ack: bytes, confirmed: bool, only: bool = False) -> Confirmation | None:
        """`only`: of a consumer that acknowledges cumulatively, this message and none before it."""
        connection, session = self._connection, self._session
        if session.transacted:
            connection.write(b"ACK\nid:%b\ntransaction:%b\n\n\0" % (ack, session.begin()))
            return None
        single = b"ack:client-individual\n" if only else b""
        if confirmed and connection.is_open:
            return connection.request(b"ACK\nid:%b\n%b" % (ack, single), Confirmation(session, AGAIN))
        connection.write(b"ACK\nid:%b\n%b\n\0" % (ack, single))
        return None

    # -- when the application asks for it -------------------------------------------------------------------------------------------------
    def acknowledge_all(self) -> Confirmation | None:
        return self.acknowledge_these(list(self._unacked))

    def acknowledge_up_through(self, delivery: Delivery) -> Confirmation | None:
        these = list(self._unacked)
        return self.acknowledge_these(these[: these.index(delivery) + 1] if delivery in self._unacked else [])

    def acknowledge_these(self, deliveries: list[Delivery], *, only: bool = False) -> Confirmation | None:
        """Those of them that are not acknowledged yet: of a consumer that acknowledges cumulatively, the last one says it for all.
        The broker does as it is told in order, so the last answer stands for all."""
        stale, self._stale = self._stale, None
        last: dict[ConsumerMachine | Delivery, Delivery] = {}
        for delivery in deliveries:
            if delivery in self._unacked:
                del self._unacked[delivery]
                consumer: ConsumerMachine = delivery.consumer
                consumer.unacked -= 1
                consumer.octets -= delivery.octets
                cumulative = consumer.acknowledging.wire == "client" and not only
                last[consumer if cumulative else delivery] = delivery
        confirmation = None
        for number, delivery in enumerate(last.values(), 1):
            confirmed = delivery.consumer.acknowledging.confirmed and number == len(last)
            confirmation = self._say_ack(delivery.ack, confirmed, only)
        if stale is not None:
            raise JMSException(
                "the connection was lost after messages had been received: they were not acknowledged and will be delivered again", CONNECTION_LOST
            ) from stale
        return confirmation

    def recover(self) -> Confirmation | None:
        """Give back all that was handed over and is not acknowledged."""
        self._stale = None
        self._recovering = self._handling is not None
        return self.give_back()

    def give_back(self) -> Confirmation | None:
        """NACK, for each consumer that acknowledges cumulatively the last, which stands for all before it."""
        last: dict[ConsumerMachine | Delivery, bytes] = {consumer: consumer.last for consumer in self._session.consumers if consumer.last}
        for delivery in self._unacked:
            consumer: ConsumerMachine = delivery.consumer
            last[consumer if consumer.acknowledging.wire == "client" else delivery] = delivery.ack
        self.forget()
        confirmation = None
        connection = self._connection
        for number, ack in enumerate(last.values(), 1):
            if number == len(last) and connection.is_open:
                confirmation = connection.request(b"NACK\nid:%b\n" % ack, Confirmation(self._session, AGAIN))
            else:
                connection.write(b"NACK\nid:%b\n\n\0" % ack)
        return confirmation

    # -- the end ------------------------------------------------------------------------------------------------------------------------
    def connection_lost(self, error: JMSException) -> None:
        """The broker delivers all of it again."""
        if self._unacked:
            self._stale = error
        self.forget()

    def forget(self) -> None:
        self._unacked.clear()
        self._consumed = self._ack_at = 0
        for consumer in self._session.consumers:
            consumer.unacked = consumer.consumed = consumer.octets = 0
            consumer.last = b""
