"""What the engine gives back with its answers. Each knows what to say then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_core.engine.refusal import Refusal

from .performatives import ACCEPTED, Rejected
from .refusals import error_of

if TYPE_CHECKING:
    from .connection import Connection
    from .performatives import DeliveryState
    from .receiver import Receiver
    from .sender import Sender
    from .session import Session


class Token:
    __slots__ = ()

    def confirmed(self) -> None:
        """It is done, and durable as far as that was promised."""

    def refused(self, refusal: Refusal, detail: str) -> None:
        """It is not."""

    def waits(self) -> None:
        """Its destination is full."""


class Sent(Token):
    """Of a message: its producer is told unless it wanted to hear nothing."""

    __slots__ = ("delivery_id", "octets", "receiver", "settled", "state")

    def __init__(self, receiver: Receiver, delivery_id: int, octets: int, settled: bool, state: DeliveryState) -> None:
        self.receiver = receiver
        self.delivery_id = delivery_id
        self.octets = octets
        """Held in memory."""
        self.settled = settled
        """By the producer, already."""
        self.state = state
        """What the producer is told when all is well."""

    def confirmed(self) -> None:
        self.receiver.accept(self)

    def refused(self, refusal: Refusal, detail: str) -> None:
        self.receiver.reject(self, refusal, error_of(refusal, detail))


class Relayed(Sent):
    """Of a message that came on a link to the anonymous relay."""

    __slots__ = ("address", "is_waiting", "size")

    def __init__(self, receiver: Receiver, delivery_id: int, octets: int, settled: bool, state: DeliveryState, address: str, size: int) -> None:
        super().__init__(receiver, delivery_id, octets, settled, state)
        self.address = address
        self.size = size
        """Octets of the message, be they in memory or in the store."""
        self.is_waiting = False

    def waits(self) -> None:
        if not self.is_waiting:
            self.is_waiting = True
            self.receiver.waits(self)

    def confirmed(self) -> None:
        if self.is_waiting:
            self.receiver.waits_no_more(self)
        super().confirmed()

    def refused(self, refusal: Refusal, detail: str) -> None:
        if self.is_waiting:
            self.receiver.waits_no_more(self)
        super().refused(refusal, detail)


class Attached(Token):
    """Of a consumer's link."""

    __slots__ = ("sender",)

    def __init__(self, sender: Sender) -> None:
        self.sender = sender

    def confirmed(self) -> None:
        self.sender.opened()

    def refused(self, refusal: Refusal, detail: str) -> None:
        self.sender.refused(error_of(refusal, detail))


class Looked(Token):
    """Of a subscription that was looked for by its name."""

    __slots__ = ("sender",)

    def __init__(self, sender: Sender) -> None:
        self.sender = sender

    def refused(self, refusal: Refusal, detail: str) -> None:
        self.sender.refused(error_of(refusal, detail))


class Made(Token):
    """Of a producer's link, and of the temporary destination that it makes."""

    __slots__ = ("receiver",)

    def __init__(self, receiver: Receiver) -> None:
        self.receiver = receiver

    def confirmed(self) -> None:
        self.receiver.opened()

    def refused(self, refusal: Refusal, detail: str) -> None:
        self.receiver.refused(error_of(refusal, detail))


class Closed(Token):
    """Of a link that the peer has detached: it is told that it is so, or what could not be done. Of a consumer's the engine says nothing more from then on."""

    __slots__ = ("closed", "handle", "link", "session")

    def __init__(self, session: Session, handle: int, closed: bool, link: int = 0) -> None:
        self.session = session
        self.handle = handle
        self.closed = closed
        self.link = link

    def confirmed(self) -> None:
        self.session.connection.links.forget(self.link)
        if self.handle >= 0:
            self.session.answer_detach(self.handle, self.closed)

    def refused(self, refusal: Refusal, detail: str) -> None:
        if refusal is Refusal.NO_SUCH_LINK:  # it was closed by the engine meanwhile
            self.confirmed()
            return
        self.session.connection.links.forget(self.link)
        if self.handle >= 0:
            self.session.answer_detach(self.handle, self.closed, error_of(refusal, detail))


class Settled(Token):
    """Of outcomes that the peer wants to hear of."""

    __slots__ = ("first", "last", "session", "state")

    def __init__(self, session: Session, first: int, last: int, state: DeliveryState | None) -> None:
        self.session = session
        self.first = first
        self.last = last
        self.state = state

    def confirmed(self) -> None:
        self.session.settle_outgoing(self.first, self.last, self.state)

    def refused(self, refusal: Refusal, detail: str) -> None:
        """What is over already is over; what a transaction would not take is told when that ends."""
        self.confirmed()


class Farewell(Token):
    """Of the Sync behind everything that the peer asked for before it closed the connection."""

    __slots__ = ("connection",)

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def confirmed(self) -> None:
        self.connection.leave()


class Transacting(Token):
    """Of a declare or a discharge, which came as a delivery."""

    __slots__ = ("delivery_id", "link", "settled", "state")

    def __init__(self, link: Any, delivery_id: int, settled: bool, state: DeliveryState = ACCEPTED) -> None:
        self.link = link
        self.delivery_id = delivery_id
        self.settled = settled
        self.state = state

    def confirmed(self) -> None:
        self.link.tell(self, self.state)

    def refused(self, refusal: Refusal, detail: str) -> None:
        self.link.tell(self, Rejected(error_of(refusal, detail)))
