"""The broker's end of a link to a consumer: credit, and deliveries as transfers."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import TYPE_CHECKING, Any

from broker_core.engine.commands import Detach as EngineDetach
from broker_core.engine.commands import EndTemporary, Grant, Settle, Unsubscribe
from broker_core.engine.message import StoredBody
from broker_core.engine.outcome import Outcome
from broker_core.engine.outputs import Delivered, Found

from .mapping import delivery
from .outcomes import plain
from .per_message import WholeTransfers
from .performatives import (
    SENDER, Attach, Error, Flow, SenderSettleMode, Source, Transfer,
)  # fmt: skip
from .tokens import Attached, Closed, Looked

if TYPE_CHECKING:
    from .session import Session
    from .terminus import Consumer

MODULUS = 1 << 32
CREDIT_MAX = (1 << 31) - 1
TAG = Struct(">Q").pack


class Outgoing:
    """One delivery on its way out: its octets are cut into frames as the peer's session has room for them."""

    __slots__ = ("_at", "_data", "_left", "delivery_id", "has_begun", "is_dropped", "is_over", "sender", "settled", "size", "stored", "tag")

    def __init__(self, sender: Sender, tag: int, settled: bool, data: bytes, stored: StoredBody | None) -> None:
        """`data`: the message, or what comes before its body if that is `stored`."""
        self.sender = sender
        self.tag = tag
        self.settled = settled
        self.stored = stored
        self.delivery_id = 0
        self.has_begun = False
        self.is_over = False
        self.is_dropped = False
        """Nothing more of it leaves."""
        self.size = len(data)
        """Octets that are held when it begins to wait."""
        self._data = data
        self._at = 0
        self._left = 0 if stored is None else stored.size
        """Octets that are in the store only."""

    @property
    def is_hungry(self) -> bool:
        """Octets must come from the store before it goes on."""
        return self._left > 0 and self._at == len(self._data) and not self.is_dropped

    def supply(self, octets: bytes) -> None:
        """What comes next of the body."""
        self._left -= len(octets)
        self._data = self._data[self._at :] + octets
        self._at = 0

    def payloads(self, most: int) -> Iterator[tuple[bytes, bool]]:
        """The next frames' payloads, and whether more will follow; as far as there is anything."""
        while not self.is_over and not self.is_hungry:
            payload = self._data[self._at : self._at + most]
            self._at += len(payload)
            self.is_over = not self._left and self._at == len(self._data)
            yield payload, not self.is_over

    def transfer(self, *, more: bool) -> Transfer:
        handle = self.sender.handle
        if self.has_begun:
            return Transfer(handle, more=more)
        self.has_begun = True
        return Transfer(handle, self.delivery_id, TAG(self.tag), 0, self.settled, more)

    def abort(self) -> Transfer:
        return Transfer(self.sender.handle, aborted=True)


class Sender:
    role = SENDER

    def __init__(self, session: Session, attach: Attach, link: int, consumer: Consumer) -> None:
        self.session = session
        self.handle = attach.handle
        self.name = attach.name
        self.link = link
        """The engine's number; 0: it consumes nothing, its subscription was only looked for."""
        self.default_outcome = plain(attach.source.default_outcome) if attach.source is not None else None
        self.presettled = consumer.presettled
        self._settles = consumer.presettled and not consumer.browses
        """What has left is settled."""
        self._attach = attach
        self._consumer = consumer
        self._transfers = WholeTransfers(session.channel, attach.handle, settled=consumer.presettled)
        self._is_lost = False
        """Nothing is said on it any more."""
        self.closing = False
        """The engine takes back what has not left."""
        self._tag = 0
        """Of the last delivery."""
        self._lapsed = 0
        """Credit that was given and came to nothing, by drains."""
        self._limit = 0
        """The delivery-count that it may reach."""
        self._is_open = self._owes_flow = False
        """It was answered; the peer wants to hear of its credit when it is."""
        self.waiting = 0
        """Deliveries that the session has no room for."""
        self._drains = self._drain = 0
        """How often the peer has asked to be drained; which of these holds, 0: none."""
        self._drained = False
        """What waits is to leave before the peer is told that it is drained."""

    # -- opening and closing --------------------------------------------------------------------------------------------------------
    def open(self, events: list[Any]) -> None:
        commands = self._consumer.commands
        commands[-1].token = Attached(self) if self.link else Looked(self)
        events += commands

    def opened(self) -> None:
        """The engine has it."""
        if self._is_lost:
            return
        self.session.write(self.answer())
        self._attach, self._consumer.source = Attach(self.name, self.handle, self._attach.role), Source()  # what else was said is not kept
        self._is_open = True
        if self._owes_flow and not self.closing:
            self._tell()

    def answer(self) -> Attach:
        """To the peer's attach."""
        asked, consumer = self._attach, self._consumer
        mode = SenderSettleMode.SETTLED if self.presettled else SenderSettleMode.UNSETTLED
        answer = Attach(asked.name, asked.handle, SENDER, mode, asked.rcv_settle_mode, consumer.source, asked.target)
        answer.unsettled = None if asked.unsettled is None else {}
        answer.initial_delivery_count, answer.offered_capabilities = 0, consumer.offered
        return answer

    def found(self, found: Found) -> None:
        """The subscription of this name."""
        self._consumer.found(found)
        if too_large := self.session.overflow(self.answer()):
            self.refused(too_large)
        else:
            self.opened()

    def refused(self, error: Error) -> None:
        connection = self.session.connection
        connection.links.forget(self.link)
        if self._consumer.made and not self.closing:
            connection.commands.append(EndTemporary(connection.peer, self._consumer.made))
        if not self._is_lost:
            self.session.refuse_attach(self._attach, None if self.closing else error)
        self.closing = True

    def close(self, closed: bool, events: list[Any]) -> None:
        """The peer detaches it. A durable subscription goes on unless it is closed for good."""
        events += self._end(self.handle, closed)
        self.session.pump()
        self.session.connection.hand_over(events)

    def lose(self, events: list[Any]) -> None:
        """It is gone without another word: with its session, or for a mistake of the peer's."""
        self._is_lost = True
        events += self._end(-1, closed=False)

    def end(self, error: Error) -> None:
        """The engine ends it."""
        self._is_lost = self.closing = True
        connection = self.session.connection
        connection.commands += self._unpin(self.session.forget(self))
        if self._settles:  # the engine waits for this one: behind what has left, the rest comes back
            connection.commands.append(EngineDetach(connection.peer, self.link, outcome=Outcome.UNUSED))
        self.session.pump()
        if self._consumer.made:
            connection.commands.append(EndTemporary(connection.peer, self._consumer.made))
        self.session.end_link(self.handle, error)

    def leave(self, events: list[Any]) -> None:
        """The connection closes, gracefully: who knows what of its deliveries was looked at."""
        self._is_lost = self.closing = True
        if self.link:
            events.append(EngineDetach(self.session.connection.peer, self.link))

    def _unpin(self, dropped: list[Outgoing]) -> list[Any]:
        """Copies with large bodies are kept for a browser until they have left."""
        peer = self.session.connection.peer
        return [Settle(peer, self.link, [each.tag]) for each in dropped if self._consumer.browses and each.stored is not None]

    def _end(self, handle: int, closed: bool) -> list[Any]:
        """The commands; the last one answers the peer, if a handle is given."""
        self.closing = True
        dropped = self.session.forget(self)
        peer, consumer = self.session.connection.peer, self._consumer
        commands = self._unpin(dropped)
        if self.link:
            commands.append(EngineDetach(peer, self.link, outcome=Outcome.UNUSED))
        if closed and consumer.subscription:
            commands.append(Unsubscribe(peer, consumer.subscription, of_any_client=consumer.of_any_client))
        if consumer.made:
            commands.append(EndTemporary(peer, consumer.made))
        if commands:
            commands[-1].token = Closed(self.session, handle, closed, self.link)
        elif handle >= 0:
            self.session.answer_detach(handle, closed)
        return commands

    # -- credit ---------------------------------------------------------------------------------------------------------------------
    @property
    def delivered(self) -> int:
        """So many deliveries there were."""
        return self._tag

    @property
    def _count(self) -> int:
        """The delivery-count."""
        return (self._tag + self._lapsed) % MODULUS

    def flow(self, flow: Flow, events: list[Any]) -> None:
        if flow.link_credit is not None and self.link and not self.closing:
            behind = 0 if flow.delivery_count is None else (self._count - flow.delivery_count) % MODULUS
            if flow.delivery_count is None:
                behind = self._count
            if behind > CREDIT_MAX:  # it counts what was never sent
                behind = 0
            credit = min(flow.link_credit, CREDIT_MAX)
            self._limit = (self._count - behind + credit) % MODULUS
            self._drained = False  # what was asked before is not asked any more, or anew
            self._drains += flow.drain
            self._drain = self._drains if flow.drain else 0
            events.append(Grant(self.link, max(credit - behind, 0), self._drain, self._tag, self.session.connection.peer))
        if flow.echo and self._is_open:
            self._tell()
        self._owes_flow = flow.echo and not self._is_open

    def drained(self, drain: int) -> None:
        """Nothing more can come now: the rest of the credit lapses, unless the peer has changed its mind meanwhile."""
        if drain == self._drain:
            self._drained = True
            self.tell_drained()

    def tell_drained(self) -> None:
        """Something of it has left, or never will: if that was the last and the peer wants to know."""
        if self._drained and not self.closing and not self.waiting:
            self._drained, self._drain = False, 0
            self._lapsed += self._credit
            self.session.write_flow(self.handle, self._count, 0, drained=True)

    @property
    def _credit(self) -> int:
        credit = (self._limit - self._count) % MODULUS
        return credit if credit <= CREDIT_MAX else 0

    def _tell(self) -> None:
        self.session.write_flow(self.handle, self._count, self._credit)

    # -- deliveries -----------------------------------------------------------------------------------------------------------------
    def deliver(self, delivered: Delivered, now: int) -> None:
        """Consecutive deliveries: what does not leave at once waits in the session, with its octets."""
        if self.closing:
            self._give_up(delivered)
            return
        session, presettled, head = self.session, self.presettled, self._transfers.head
        connection = session.connection
        convert, most, out = connection.convert, connection.payload_max, connection.out
        tag = gone = delivered.tag
        for message in delivered.messages:
            data, body = delivery(message, now, convert)
            if isinstance(body, StoredBody):
                session.send(Outgoing(self, tag, presettled, data, body))
            elif session.room <= 0 or (octets := len(data) + len(body)) > most:
                session.send(Outgoing(self, tag, presettled, data + body, None))
            else:
                out += (head(session.send_whole(self, tag), tag, octets), data, body)
                gone = tag + 1
            tag += 1
        self._tag = tag - 1
        if self._settles and gone > delivered.tag:
            self._settle(delivered.tag, gone)
        session.pump()

    def has_left(self, outgoing: Outgoing) -> None:
        """The last octet of a delivery is written."""
        if self._settles or (outgoing.stored is not None and outgoing.settled):  # the engine keeps a large body until it is told, for a browser too
            self._settle(outgoing.tag, outgoing.tag + 1)
        self.tell_drained()

    def _settle(self, first: int, upto: int) -> None:
        """Neighbours that have left."""
        connection = self.session.connection
        last = connection.commands[-1] if connection.commands else None
        if isinstance(last, Settle) and last.link == self.link and isinstance(last.tags, range) and last.tags.stop == first:
            last.tags = range(last.tags.start, upto)
        else:
            connection.commands.append(Settle(connection.peer, self.link, range(first, upto)))

    def _give_up(self, delivered: Delivered) -> None:
        """Copies with large bodies are kept for a browser until it has them."""
        if self._consumer.browses:
            tags = [tag for tag, message in enumerate(delivered.messages, delivered.tag) if message.body.__class__ is StoredBody]
            if tags:
                self.session.connection.commands.append(Settle(self.session.connection.peer, self.link, tags))
