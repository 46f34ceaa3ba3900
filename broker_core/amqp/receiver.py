"""The broker's end of a link from a producer: transfers as sends, outcomes as dispositions, and the credit that withholds what there is no room for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_core.engine.commands import CreateTemporary, EndTemporary, MayProduce, Request, Send, Settle, Transacted
from broker_core.engine.message import Message
from broker_core.engine.refusal import Refusal

from .addresses import KINDS, address_of
from .arrivals import Arrivals, Said
from .coordinator import transaction_of
from .incoming import BodyDropped, BodyPart, Incoming
from .performatives import (
    ACCEPTED, RECEIVER, Attach, DeliveryState, Error, Flow, ReceiverSettleMode, Rejected, Target, Transfer,
)  # fmt: skip
from .refusals import (
    INVALID_FIELD, MESSAGE_SIZE, NOT_IMPLEMENTED, RESOURCE_LIMIT, TRANSFER_LIMIT, LinkFault, SessionFault,
)  # fmt: skip
from .tokens import Made, Relayed, Sent
from .types import Malformed

if TYPE_CHECKING:
    from .session import Session

MODULUS = 1 << 32
TEMPORARY = ("temp-queue:", "temp-topic:", "/temp-queue/", "/temp-topic/")
FIRST_CREDIT = 64
"""Before the size of its messages is known."""
PIECE_OCTETS_MIN = 64
"""What a piece of a delivery takes at least, however few octets it has."""
SIZE_DECAY = 16
"""The size that is reckoned with falls to a sixteenth less with each smaller message."""


class Receiver:
    role = RECEIVER

    def __init__(self, session: Session, attach: Attach, address: str, target: Target) -> None:
        self.session = session
        self.handle = attach.handle
        self.name = attach.name
        self._attach = attach
        self._address = address
        """Where all its messages go; empty: where each of them says."""
        self._target = target
        """As it is answered."""
        self._made = address if target.dynamic else ""
        self._second = attach.rcv_settle_mode == ReceiverSettleMode.SECOND
        """The producer settles when it has heard the outcome."""
        self._count = self._first = (attach.initial_delivery_count or 0) % MODULUS
        """Not wrapped."""
        self._producer = 0
        """Its number for operators, while it is one."""
        self._credit = 0
        self._unconfirmed = 0
        self._waiting = 0
        """Of these: on a link to the anonymous relay, those that wait in a full destination."""
        self._waiting_by: dict[str, tuple[int, int]] = {}
        """How many of them, and their octets, by address."""
        self._arrivals = Arrivals(session.connection.client_id, session.connection.mapping)
        self._said: Said | None = None
        """Of the last message; where it goes, and what it tells others:"""
        self._to = self._replies = ""
        self._size = 0
        """Octets of a message, as it seems."""
        self._incoming: Incoming | None = None
        self._drop_rest = False
        """It was rejected before it was here as a whole."""
        self._is_lost = False
        self._is_open = False
        self._closing = False
        """The peer has detached it, perhaps before it was answered."""

    # -- opening and closing --------------------------------------------------------------------------------------------------------
    @property
    def unanswered(self) -> Attach | None:
        """The peer's attach, until it is answered."""
        return None if self._is_open else self._attach

    def open(self, events: list[Any]) -> None:
        if self._made:
            events.append(CreateTemporary(self.session.connection.peer, self._made, Made(self)))
        elif self._address:
            events.append(MayProduce(self.session.connection.peer, self._address, Made(self)))
        else:
            self.opened()

    def answer(self) -> Attach:
        """To the peer's attach."""
        asked, connection = self._attach, self.session.connection
        answer = Attach(asked.name, asked.handle, RECEIVER, asked.snd_settle_mode, asked.rcv_settle_mode, asked.source, self._target)
        answer.unsettled = None if asked.unsettled is None else {}
        answer.max_message_size = connection.limits.body_octets_max
        answer.offered_capabilities = tuple([each for each in asked.desired_capabilities if each == "DELAYED_DELIVERY"])
        return answer

    def opened(self) -> None:
        if self._is_lost and not self._closing:
            return
        self.session.write(self.answer())
        self._attach, self._target = Attach(self.name, self.handle, self._attach.role), Target()  # what else was said is not kept
        self._is_open = True
        if self._address and not self._closing:
            connection = self.session.connection
            self._producer = connection.producers.open(self._address, connection.now, self.name, self._sent)
        self.replenish()

    def _sent(self) -> int:
        return self._count - self._first

    def refused(self, error: Error) -> None:
        if self._closing:
            self.session.refuse_attach(self._attach, None)
        elif not self._is_lost:
            self._is_lost = True
            self.session.refuse_attach(self._attach, error)

    def close(self, closed: bool, events: list[Any]) -> None:
        """The peer detaches it. A temporary destination that the link made ends with it, unless somebody consumes from it."""
        self._leave(events)
        if self._made and not self._is_lost:
            events.append(EndTemporary(self.session.connection.peer, self._made, self.session.closing(self.handle, closed)))
            self._closing = True
        elif not (self._is_lost or self._is_open):
            events.append(MayProduce(self.session.connection.peer, self._address, self.session.closing(self.handle, closed)))  # behind the attach's answer
            self._closing = True
        elif not self._is_lost:
            self.session.answer_detach(self.handle, closed)
        self._is_lost = True

    def lose(self, events: list[Any]) -> None:
        """It is gone without another word."""
        self._is_lost = True
        self._leave(events)
        if self._made:
            events.append(EndTemporary(self.session.connection.peer, self._made))

    def leave(self, events: list[Any]) -> None:
        """The connection closes."""
        self._is_lost = True
        self._leave(events)

    def _leave(self, events: list[Any]) -> None:
        self.session.connection.producers.close(self._producer)
        self._end(events)

    def _end(self, events: list[Any]) -> None:
        incoming, self._incoming = self._incoming, None
        if incoming is None:
            return
        self._gathered(incoming)
        if incoming.message is not None:
            self.session.connection.large_bodies -= 1
            events.append(BodyDropped(incoming))

    # -- credit ---------------------------------------------------------------------------------------------------------------------
    def flow(self, flow: Flow, events: list[Any]) -> None:
        """Of a producer nothing but its wish to be answered matters: we know what it has sent."""
        if flow.echo and self._is_open:
            self._tell()

    def replenish(self) -> None:
        """Credit for what was confirmed. What waits for room in a full destination is not, and so its producer has none (R20)."""
        if not self._is_open or self._is_lost:
            return
        window = self._window()
        room = window - (self._unconfirmed - self._waiting) - self._credit
        if room > 0 and 2 * self._credit <= window:
            self._credit += room
            self._tell()

    def _window(self) -> int:
        limits = self.session.connection.limits
        if not self._size:
            return min(FIRST_CREDIT, limits.credit)
        return max(min(limits.credit, limits.credit_octets // self._size), 2)

    def _tell(self) -> None:
        self.session.write_flow(self.handle, self._count % MODULUS, self._credit)

    def waits(self, sent: Relayed) -> None:
        """One full destination must not take the credit that is for all: what waits there does not count, up to as much as a link of its own would have."""
        messages, octets = self._waiting_by.get(sent.address, (0, 0))
        self._waiting_by[sent.address] = messages + 1, octets + sent.size
        self._waiting += 1
        self.session.accept(self, -1, sent.state)

    def waits_no_more(self, sent: Relayed) -> None:
        messages, octets = self._waiting_by.pop(sent.address)
        if messages > 1:
            self._waiting_by[sent.address] = messages - 1, octets - sent.size
        self._waiting -= 1

    def _check_room(self, incoming: Incoming) -> None:
        """Raises LinkFault if as much waits already where it goes. A transaction does not wait."""
        messages, octets = self._waiting_by.get(self._to, (0, 0))
        limits = self.session.connection.limits
        if (messages >= limits.credit or octets >= limits.credit_octets) and incoming.state is None:
            raise LinkFault(RESOURCE_LIMIT, f"{self._to} is full, and {messages} messages of this link wait for room there: send it again later")

    # -- messages -------------------------------------------------------------------------------------------------------------------
    def transfer(self, transfer: Transfer, payload: bytes, events: list[Any]) -> None:
        """Raises LinkFault, SessionFault."""
        incoming = self._incoming
        if self._drop_rest:
            self._drop_rest = transfer.more and not transfer.aborted
            self._incoming = incoming if self._drop_rest else None
            return
        if incoming is None:
            if transfer.delivery_id is None:
                raise SessionFault(INVALID_FIELD, "the first transfer of a delivery has no delivery-id")
            if transfer.resume:
                raise LinkFault(NOT_IMPLEMENTED, "deliveries are not resumed: the broker remembers none of an earlier link")
            if self._credit <= 0:
                raise LinkFault(TRANSFER_LIMIT, "a message came without credit for it")
            self._credit -= 1
            self._count += 1
            state = None if transfer.state is None else transaction_of(transfer.state)
            if not (transfer.more or transfer.aborted):
                self._take(Incoming(transfer.delivery_id, transfer.settled is True, state), payload, events)
                return
            incoming = self._incoming = Incoming(transfer.delivery_id, transfer.settled is True, state)
        elif transfer.delivery_id is not None and transfer.delivery_id != incoming.delivery_id:
            raise SessionFault(INVALID_FIELD, f"delivery {incoming.delivery_id} has not ended")
        incoming.settled = incoming.settled or transfer.settled is True
        if transfer.state is not None:
            incoming.state = transaction_of(transfer.state) or incoming.state
        if transfer.aborted:
            self._end(events)
            self.replenish()
            return
        if payload:
            self._keep(incoming, payload)
        self._take_pieces(incoming, events, last=not transfer.more)

    def _keep(self, incoming: Incoming, payload: bytes) -> None:
        """Until there is enough of it."""
        held = max(len(payload), PIECE_OCTETS_MIN)
        incoming.pieces.append(payload)
        incoming.octets += len(payload)
        incoming.held += held
        self.session.connection.begun_octets += held

    def _gathered(self, incoming: Incoming) -> bytes:
        """What was kept of it, which it is not any longer."""
        octets = b"".join(incoming.pieces)
        self.session.connection.begun_octets -= incoming.held
        incoming.pieces, incoming.octets, incoming.held = [], 0, 0
        return octets

    def _take_pieces(self, incoming: Incoming, events: list[Any], *, last: bool) -> None:
        limits = self.session.connection.limits
        if incoming.body + incoming.octets > limits.body_octets_max + limits.section_octets_max:
            raise LinkFault(MESSAGE_SIZE, f"the message has more than {limits.body_octets_max} octets")
        if last:
            self._incoming = None
        if incoming.message is None:
            if last:
                self._take(incoming, self._gathered(incoming), events)
            elif incoming.octets > limits.large_body_octets + limits.section_octets_max:
                self._take(incoming, self._gathered(incoming), events, whole=False)
            elif self.session.connection.begun_octets > limits.begun_octets_max:
                self._gathered(incoming)
                text = f"more than {limits.begun_octets_max} octets of this connection's messages have come in part: send it again later"
                self._reject(incoming, Error(RESOURCE_LIMIT, text), events)
        elif last or incoming.held >= limits.part_octets_max:
            self._store(incoming, self._gathered(incoming), events)
            if last:
                self._send(incoming, incoming.message, incoming.body, 0, events)

    def _take(self, incoming: Incoming, octets: bytes, events: list[Any], *, whole: bool = True) -> None:
        """A message that is here as a whole, or so much of a large one that its body has begun."""
        connection = self.session.connection
        limits = connection.limits
        if connection.is_full:
            self._reject(incoming, Error(RESOURCE_LIMIT, "too many messages of this connection are not confirmed: send it again later"), events)
            return
        arrivals = self._arrivals
        try:
            arrived = arrivals.read(octets, connection.now, whole=whole)
            if arrived is None:
                raise Malformed(f"what comes before the message's body has more than {limits.section_octets_max} octets", RESOURCE_LIMIT)
            if arrived.said is not self._said:
                self._route(arrived.said)
            if self._waiting:
                self._check_room(incoming)
        except Malformed as malformed:
            self._reject(incoming, Error(malformed.condition, str(malformed)), events)
            return
        except LinkFault as fault:  # this message is wrong, not the link
            self._reject(incoming, fault.error, events)
            return
        finally:
            if arrivals.effort:
                connection.effort += arrivals.effort
                arrivals.effort = 0
        incoming.address, incoming.replies = self._to, self._replies
        header, body = arrived.header, octets[arrived.body_at :]
        if whole and len(body) <= limits.large_body_octets:
            size = len(header.octets) + len(body)
            self._send(incoming, Message(header, body, size), 0, size, events)
        elif connection.large_bodies >= limits.large_bodies_max:
            self._reject(incoming, Error(RESOURCE_LIMIT, f"{limits.large_bodies_max} large messages are under way on this connection already"), events)
        else:
            connection.large_bodies += 1
            incoming.message = Message(header, None, 0)
            self._store(incoming, body, events)
            if whole:
                self._send(incoming, incoming.message, incoming.body, 0, events)

    def _route(self, said: Said) -> None:
        """Where messages that say this go, and which temporary destination of their sender they tell others. Raises Malformed, LinkFault."""
        self._said, to = None, self._address
        if not to:
            if not said.to:
                raise LinkFault(INVALID_FIELD, "a message on an anonymous link says in its properties where it goes: `to` is missing")
            to = address_of(said.to, _kind(said.kind))
            self.session.connection.producers.meet(to, self.session.connection.now)
        self._to, self._replies = to, self._reply_address(said.reply_to or "")
        self._said = said

    def _reply_address(self, reply_to: str) -> str:
        """If it is a temporary destination of this connection's."""
        if not reply_to.startswith(TEMPORARY):
            return ""
        address = address_of(reply_to)
        return address if address.partition("/")[2].startswith(f"{self.session.connection.temporaries}.") else ""

    def _store(self, incoming: Incoming, octets: bytes, events: list[Any]) -> None:
        incoming.body += len(octets)
        if octets:
            events.append(BodyPart(incoming, octets))

    def _send(self, incoming: Incoming, message: Message, body: int, held: int, events: list[Any]) -> None:
        """`body`: octets of a large one. `held`: those in memory."""
        connection = self.session.connection
        if body:
            message.size = len(message.header.octets) + body
        self._size = max(message.size, self._size - self._size // SIZE_DECAY)
        state, transaction = incoming.state, None
        told: DeliveryState = ACCEPTED
        if state is not None:
            transaction = state.txn_id
            told = connection.transactions.accepted(transaction)
        if self._address:
            token = Sent(self, incoming.delivery_id, held, incoming.settled, told)
        else:
            token = Relayed(self, incoming.delivery_id, held, incoming.settled, told, incoming.address, message.size)
        self._unconfirmed += 1
        connection.unconfirmed += 1
        connection.unconfirmed_octets += held
        peer, address, replies = connection.peer, incoming.address, incoming.replies
        if transaction is None:
            events.append(Request(peer, token, address, message, replies) if replies else Send(peer, token, address, message))
        else:
            send = Request(peer, None, address, message, replies) if replies else Send(peer, None, address, message)
            events.append(Transacted(peer, transaction, send, token))
        if body:
            connection.large_bodies -= 1

    # -- outcomes -------------------------------------------------------------------------------------------------------------------
    def accept(self, sent: Sent) -> None:
        self._over(sent)
        if self._is_lost:
            return
        if self._second and not sent.settled:
            self.session.settle_incoming(sent.delivery_id, sent.delivery_id, sent.state, settled=False)
            self.session.accept(self, -1, sent.state)
        else:
            self.session.accept(self, -1 if sent.settled else sent.delivery_id, sent.state)

    def reject(self, sent: Sent, refusal: Refusal, error: Error) -> None:
        """Whoever settled it before does not hear of an outcome: the link ends instead (anonymous terminus, 2.2.2). That a reply comes too late is no
        reason: who waited for it is gone."""
        self._over(sent)
        if self._is_lost:
            return
        self.session.accept(self, -1, sent.state)
        if not sent.settled:
            self._tell_rejected(sent.delivery_id, error)
        elif refusal is not Refusal.TEMPORARY_DESTINATION_GONE:
            self._fail(error)

    def _over(self, sent: Sent) -> None:
        connection = self.session.connection
        self._unconfirmed -= 1
        connection.unconfirmed -= 1
        connection.unconfirmed_octets -= sent.octets

    def _reject(self, incoming: Incoming, error: Error, events: list[Any]) -> None:
        """A message that does not reach the engine. What is still to come of it is dropped."""
        self._drop_rest = self._incoming is incoming
        if incoming.state is not None:
            # Its client may have said that all is to be committed: to settle what there is not is what tells the engine that this cannot be.
            peer = self.session.connection.peer
            events.append(Transacted(peer, incoming.state.txn_id, Settle(peer, 0)))
        if incoming.settled:
            raise LinkFault(error.condition, error.description or "")
        self._tell_rejected(incoming.delivery_id, error)
        self.replenish()

    def _tell_rejected(self, delivery_id: int, error: Error) -> None:
        self.session.settle_incoming(delivery_id, delivery_id, Rejected(error), settled=not self._second)

    def _fail(self, error: Error) -> None:
        commands: list[Any] = []
        self.lose(commands)
        self.session.end_link(self.handle, error)
        self.session.connection.commands += commands


def _kind(number: object) -> str:
    """Empty: nothing is said."""
    return KINDS[number] if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < len(KINDS) else ""
