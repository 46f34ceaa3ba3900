"""A consumer: what was delivered and waits for the application, and how the broker is told of it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker_core.client.destinations import Queue, Topic
from broker_core.client.exceptions import IllegalStateException, JMSException, ResourceAllocationException
from broker_core.client.headers import number_in
from broker_core.client.messages import Message, kind_of
from broker_core.client.properties import header_line
from broker_core.client.settings import AcknowledgeMode
from broker_core.engine.link import NO_THRESHOLD

from .acknowledging import OUTSTANDING_OCTETS_MAX, Acknowledging, When, acknowledging, lowered, prefetch_of
from .reader import Delivery

if TYPE_CHECKING:
    from .confirmation import Confirmation
    from .session import SessionMachine

NEARLY = 16
"""A sixteenth below the broker's bound is as good as there: of messages of other protocols it counts octets that do not come here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """What is consumed."""

    destination: Queue | Topic
    selector: str = ""
    no_local: bool = False
    name: str = ""
    durable: bool = False
    shared: bool = False
    exclusive: bool = False
    priority: int = 0
    browses: bool = False
    """It looks, and consumes nothing."""
    client_id: str | None = None
    """Whose subscription it looks at. None: that of the connection's."""

    @property
    def on_topic(self) -> bool:
        return isinstance(self.destination, Topic)

    def lines(self, address: str) -> str:
        """Of SUBSCRIBE, each with its LF in front; `address` is how the destination is called on the wire."""
        lines = header_line("destination", address)
        if self.selector:
            lines += header_line("selector", self.selector)
        if self.no_local:
            lines += "\nno-local:true"
        if self.name:
            lines += header_line("durable-subscription-name" if self.durable else "subscription-name", self.name)
        if self.shared:
            lines += "\nshared:true"
        if self.exclusive:
            lines += "\nexclusive:true"
        if self.priority:
            lines += f"\nconsumer-priority:{self.priority}"
        if self.browses:
            lines += "\nbrowser:true"
        if self.client_id is not None:
            lines += header_line("client-id", self.client_id)
        return lines


class ConsumerMachine:
    def __init__(self, session: SessionMachine, what: Subscription) -> None:
        connection = session.connection
        self.session = session
        self.what = what
        self.prefetch = self._asked = prefetch_of(connection.settings, what.on_topic, what.durable, what.browses, what.destination.administered)
        self.octets_max = OUTSTANDING_OCTETS_MAX
        """The broker sends no more while so many are not acknowledged."""
        self.acknowledging = self._plan()
        self._threshold = self.acknowledging.threshold
        self.subscription = b"%d" % connection.number()
        self.is_closed = False
        """The application has closed it. It lingers while something that it handed over can still be acknowledged."""
        self.is_confirmed = False
        """The broker has it."""
        self.is_cut_off = False
        """The connection was lost and it does not come back with it."""
        self.failure: JMSException | None = None
        """Why the broker does not let it come back."""
        self.buffer: deque[Delivery] = deque()
        self.kept: deque[tuple[Message, Confirmation]] = deque()
        """Received, and acknowledged, by callers that were interrupted before they had them: the next ones have them."""
        self.unacked = 0
        """Handed over and to be acknowledged when the application asks for it."""
        self.last = b""
        """Of the last one handed over that a cumulative acknowledgement would name; empty: there is none."""
        self.consumed = 0
        """Since the last cumulative acknowledgement."""
        self.octets = 0
        """Of those, or of those that the application is to acknowledge."""
        self._bounded = self.acknowledging.when is When.NEVER
        self._low = int(self.prefetch * connection.settings.consumer_flow_threshold / 100)
        self._overfull = False

    def _plan(self) -> Acknowledging:
        session, what = self.session, self.what
        mode = AcknowledgeMode.NO_ACKNOWLEDGE if what.browses else session.mode
        return acknowledging(mode, what.on_topic, self.prefetch, session.connection.settings)

    def subscribe_frame(self, receipt: bytes) -> bytes:
        wire = self.acknowledging.wire
        address = self.session.connection.temporaries.address_of(self.what.destination)
        prefetch = "" if wire == "auto" else f"\nprefetch-count:{self._asked}"
        if self._threshold < NO_THRESHOLD:
            prefetch += f"\nconsumer-flow-threshold:{self._threshold}"
        lines = self.what.lines(address)
        return f"SUBSCRIBE\nid:{self.subscription.decode()}\nack:{wire}{prefetch}{lines}\nreceipt:{receipt.decode()}\n\n\0".encode()

    def confirmed(self) -> None:
        self.is_confirmed = True

    def allowed(self, said: dict[str, str]) -> None:
        """How far ahead it is delivered, as the receipt of SUBSCRIBE says: batches of which more would be waited for are smaller."""
        self.prefetch = min(self._asked, max(number_in(said.get("prefetch-count"), self._asked), 1))
        self.octets_max = max(number_in(said.get("prefetch-octets"), OUTSTANDING_OCTETS_MAX), 1)
        self.acknowledging = lowered(self._plan(), self._threshold, self.prefetch)

    # -- arriving -----------------------------------------------------------------------------------------------------------------------
    def arrived(self, delivery: Delivery) -> None:
        if self.is_closed:
            return  # it goes back to the broker when the consumer stops lingering
        delivery.consumer = self
        buffer, connection = self.buffer, self.session.connection
        buffer.append(delivery)
        connection.holds()
        if len(buffer) == 1:
            connection.wake(self.session)
        elif self._bounded and not self._overfull and len(buffer) >= self.prefetch:
            self._overfull = True
            connection.overfull += 1

    def next(self, instant: int) -> tuple[Message, Delivery] | None:
        """The next message, for the application; None: there is none at present. What becomes of it is said by session.consumption."""
        buffer = self.buffer
        if not buffer:
            return None
        delivery = buffer.popleft()
        session = self.session
        connection = session.connection
        connection.released(1)
        if self._overfull and len(buffer) <= self._low:
            self._overfull = False
            connection.overfull -= 1
        section, body = delivery.section, delivery.body
        if self.acknowledging.when is When.ASKED:
            delivery.octets = delivery.as_counted()
            if self.unacked + len(buffer) >= self.prefetch:  # with this one it has more than it may, so an operator has raised that, who knows how far
                self.prefetch = self._asked
        delivery.section = delivery.body = b""  # the message has them
        acknowledger = None if self.what.browses else session.acknowledger
        message = kind_of(section, body).received(section, body, delivery, acknowledger)
        settings = connection.settings
        if settings.set_jmsx_rcv_timestamp:
            message.properties.state("JMSXRcvTimestamp", instant)
        if settings.set_jmsx_consumer_txid and session.transacted:
            message.properties.state("JMSXConsumerTXID", session.transaction.decode())
        return message, delivery

    def receive(self, now: int, instant: int) -> tuple[Message, Confirmation | None] | None:
        """The next message as receive() returns it: consumed. None: there is none at present. Raises if there can be none."""
        if self.kept:
            return self.kept.popleft()
        taken = self.next(instant)
        if taken is None:
            self._check_can_come()
            return None
        message, delivery = taken
        return message, self.session.consumption.consumed(delivery, now)

    def keep(self, message: Message, confirmation: Confirmation) -> None:
        """Whom `receive` gave it to was interrupted while it waited for the broker."""
        self.kept.append((message, confirmation))
        self.session.connection.wake(self.session)

    def next_for_listener(self, now: int, instant: int) -> Message | None:
        """The next message for the consumer's listener; when that has returned, session.handled. None: there is none at present."""
        if self.kept:
            return self.kept.popleft()[0]
        taken = self.next(instant)
        if taken is None:
            return None
        message, delivery = taken
        self.session.consumption.handling(delivery, message.is_best_effort, now)
        return message

    @property
    def is_over(self) -> bool:
        """It was closed, or what it belongs to was; not: the connection has failed."""
        connection = self.session.connection
        return self.is_closed or self.session.is_closed or (connection.is_ended and connection.failure is None)

    def ran_dry(self) -> None:
        """A receive() has waited in vain: what is acknowledged lazily is acknowledged now (Open MQ)."""
        if not self.session.transacted:
            self.session.consumption.acknowledge_batches()

    def _check_can_come(self) -> None:
        """Nobody should wait for what the broker will not send."""
        if self.unacked >= self.prefetch:
            why = "as many as its flow limit lets it have: acknowledge some, or raise consumer_flow_limit"
        elif self.octets >= self.octets_max - self.octets_max // NEARLY:
            why = f"with {self.octets} octets, and the broker sends no more beyond {self.octets_max}: acknowledge some"
        else:
            return
        raise ResourceAllocationException(f"the consumer of {self.what.destination} holds {self.unacked} messages that are not acknowledged, {why}")

    def forget_buffer(self) -> None:
        """Nobody will get what waits here."""
        self.session.connection.released(len(self.buffer))
        self.buffer.clear()
        if self._overfull:
            self._overfull = False
            self.session.connection.overfull -= 1

    def connection_lost(self) -> None:
        """What the broker counts as outstanding it will deliver again; what it counts as acknowledged is only here."""
        if self.acknowledging.when is not When.NEVER:
            self.forget_buffer()
            self.prefetch, self.octets_max, self.acknowledging = self._asked, OUTSTANDING_OCTETS_MAX, self._plan()

    def check_open(self) -> None:
        self.session.check()
        if self.is_closed:
            raise IllegalStateException("the consumer is closed: create another one")
        if self.failure is not None:
            raise self.failure.again()
