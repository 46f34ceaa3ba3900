"""One connection from its first octet to its last: frames to engine commands, the engine's outputs to frames.

The listener gives it octets (`receive_data`), the engine's outputs (`send`) and the time (`tick`); it returns what the octets ask for and queues what is to
be written (`data_to_send`). A Login, a Proof or an Opening is answered by the listener; until then what the peer sends is kept. A large body comes as
BodyPart and its message behind them; one that is to leave is asked for by `wanted_body` and given by `supply`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from enum import Enum
from itertools import islice
from typing import Any, cast

from broker_core.engine.commands import Command, Lookup, PeerLost, Sync
from broker_core.engine.commands import Open as EngineOpen
from broker_core.engine.effects import Confirmed, Delivered, Detached, Drained, Found, Output, Refused
from broker_core.engine.levels import UNMAPPED, LevelMapping
from broker_core.engine.refusal import Refusal

from . import opening
from .addresses import address_of, kind_of, written
from .coordinator import Transactions
from .frames import AMQP, AMQP_HEADER, EMPTY_FRAME, SASL, SASL_HEADER, Frame, ProtocolHeader, Reader, frame, sasl_frame
from .idle import Idle
from .limits import Limits
from .mapping import Convert
from .opening import Opening, opening_of
from .outbox import Outbox
from .performatives import (
    ACCEPTED, SENDER, Attach, Begin, Close, Coordinator, DeliveryState, Detach, Disposition, End, Error, Flow, Open, SaslChallenge, SaslCode, SaslInit,
    SaslMechanisms, SaslOutcome, SaslResponse, Target, TransactionalState, Transfer,
)  # fmt: skip
from .incoming import BodyDropped, BodyPart
from .receiver import Receiver
from .refusals import (
    FORCED, ILLEGAL_STATE, INVALID_FIELD, NOT_ALLOWED, NOT_FOUND, RESOURCE_DELETED, RESOURCE_LIMIT, RESOURCE_LOCKED, ConnectionFault, Fault, LinkFault,
    SessionFault, error_of, quoted,
)  # fmt: skip
from .sasl import ANONYMOUS, Login, Proof, checked, login_of
from .sender import Outgoing, Sender
from .session import Session
from .terminus import consumer_of, lifetime, temporary_kind
from .tokens import Farewell
from .types import Malformed

LINKS_PER_PEER = 65536
"""The engine's number of a link is peer * 65536 + n: so many links can be told apart on one connection."""
EFFORT_MAX = 10_000
"""Of one call, in microseconds, and of one frame more; the node has other clients."""
FRAMES_MAX = 1_000
"""Of one call, whatever they are."""
FRAME_EFFORT = 20
"""Of a frame that is no transfer, disposition or flow."""
TRANSFER_OVERHEAD = 64
"""Octets of a frame of a transfer beside its payload, at most."""

Event = Command | Login | Proof | Opening | BodyPart | BodyDropped


class Phase(Enum):
    GREETING = "waiting for a protocol header"
    LOGGING_IN = "waiting for sasl-init"
    CHECKING = "waiting for the verdict on the login"
    PROVING = "waiting for sasl-response"
    LOGGED_IN = "waiting for AMQP's protocol header"
    GREETED = "waiting for open"
    OPENING = "waiting for the verdict on open"
    OPEN = "open"
    LEAVING = "close seen, not answered yet"
    CLOSED = "closed or to be closed"


OPEN = Phase.OPEN
ENDING = frozenset((Phase.CHECKING, Phase.OPENING, Phase.CLOSED, Phase.LEAVING))
WAITING = (Phase.CHECKING, Phase.OPENING)
"""For the listener."""
BEFORE_OPEN = (Phase.GREETING, Phase.LOGGING_IN, Phase.CHECKING, Phase.PROVING, Phase.LOGGED_IN, Phase.GREETED, Phase.OPENING)


class Connection:
    def __init__(
        self,
        peer: int,
        limits: Limits,
        version: str,
        instance: str,
        now: int,
        mechanisms: tuple[str, ...],
        convert: Convert,
    ) -> None:
        """`mechanisms`: of SASL, those that are offered. `convert`: of messages that other protocols brought."""
        self.peer = peer
        self.limits = limits
        self.wants_close = False
        self.close_reason = ""
        """A sentence for the log, without secrets."""
        self.unfinished = False
        """There are frames left that took too long for one call: `receive_data` is to be called again, if only with nothing."""
        self.effort = 0
        """What was read last took about so long, in microseconds, beside what every frame takes."""
        self.listening = True
        """To be set False while the listener does not read for reasons of its own: the peer's silence is then not counted."""
        self.commands: list[Command] = []
        """For the engine, that outputs have led to. To be taken after `send` and `supply`."""
        self.out = Outbox()
        self.convert = convert
        self.mapping = UNMAPPED
        """The account's, of delivery modes to levels."""
        self.now = now
        """The instant of the last call."""
        self.client_id = ""
        self.temporaries = ""
        """What the names of its temporary destinations begin with, before a dot."""
        self.telling: list[Session] = []
        """Sessions that have something to tell of what was confirmed just now."""
        self.unconfirmed = self.unconfirmed_octets = self.large_bodies = 0
        """Sends, the octets of them that are in memory, and large bodies on their way to the store."""
        self.payload_max = 512 - TRANSFER_OVERHEAD
        self._version, self._instance, self._mechanisms = version, instance, mechanisms
        self._phase = Phase.GREETING
        self._deadline = now + limits.login_ms_max
        self._reader = Reader(limits.frame_octets_max)
        self._idle = Idle(limits.idle_ms, now)
        self._early = bytearray()
        self._opened: Open | None = None
        self._greets_late = True
        """The client logs in by SASL first."""
        self._known_to_engine = False
        self._account = ""
        self._sessions: dict[int, Session] = {}
        self._ending: dict[int, None] = {}
        """Channels of sessions that we have ended and the peer has not."""
        self._senders: dict[int, Sender] = {}
        """By the engine's number."""
        self._count = self._named = self._made = 0
        self._states: dict[bytes, TransactionalState] = {}

    # -- what the listener asks ---------------------------------------------------------------------------------------------------------
    @property
    def wants_pause(self) -> bool:
        """True: read nothing for now."""
        if self._phase in WAITING:
            return True
        return not self._senders and (self.unconfirmed >= self.limits.unconfirmed_max or self.unconfirmed_octets >= self.limits.unconfirmed_octets_max)

    @property
    def is_full(self) -> bool:
        """Although it had to be read on, as it has consumers, no more is taken in."""
        factor, limits = self.limits.subscriber_unconfirmed_factor, self.limits
        return self.unconfirmed >= limits.unconfirmed_max * factor or self.unconfirmed_octets >= limits.unconfirmed_octets_max * factor

    @property
    def subscribed(self) -> bool:
        """It has consumers, so their outcomes must go on being read."""
        return bool(self._senders)

    @property
    def choked(self) -> bool:
        """Its sessions have no room for what was delivered: nothing more should be."""
        return sum([session.waiting_octets for session in self._sessions.values()]) > self.limits.waiting_octets_max

    @property
    def has_begun(self) -> bool:
        """A performative may be said."""
        return self._phase in (Phase.OPEN, Phase.LEAVING)

    def next_deadline(self) -> int | None:
        """The instant at which tick is due; None: no timer needed."""
        if self._phase in WAITING or self._phase is Phase.CLOSED:
            return None
        return self._deadline if self._phase in BEFORE_OPEN else self._idle.next_deadline()

    def data_to_send(self) -> list[bytes]:
        """What to write. Not given twice."""
        return self.out.take()

    @property
    def wanted_body(self) -> Outgoing | None:
        """A delivery that waits for octets of its large body."""
        for session in self._sessions.values():
            head = session.head
            if head is not None and head.is_hungry:
                return head
        return None

    def supply(self, outgoing: Outgoing, octets: bytes, now: int) -> None:
        """What comes next of its body."""
        outgoing.supply(octets)
        outgoing.sender.session.pump()
        self._idle.sent_at = now

    def abort(self, outgoing: Outgoing) -> None:
        """Its body is gone: its message was removed."""
        outgoing.sender.session.abort(outgoing)

    # -- from the socket ----------------------------------------------------------------------------------------------------------------
    def receive_data(self, data: bytes, now: int) -> list[Event]:
        """What `data` asks for, in order."""
        self.now = now
        self._idle.received_at = now
        if self._phase in WAITING:
            self._early += data
            if len(self._early) > self.limits.early_octets_max:
                self._fail(Error(RESOURCE_LIMIT, f"more than {self.limits.early_octets_max} octets were sent before the answer to open"))
            return []
        if self._phase is Phase.CLOSED or self._phase is Phase.LEAVING:
            return []
        return self._read(data)

    def receive_eof(self, now: int) -> list[Event]:
        """The socket is gone. PeerLost if the engine knows this peer; nothing the second time."""
        if self._phase is not Phase.CLOSED:
            self._close("the peer closed the connection")
        known, self._known_to_engine = self._known_to_engine, False
        return [PeerLost(self.peer)] if known else []

    def tick(self, now: int) -> list[Event]:
        """Do what is due: give up a silent peer, send an empty frame."""
        idle = self._idle
        if self._phase in WAITING or self._phase is Phase.CLOSED:
            return []
        if self._phase in BEFORE_OPEN:
            if now >= self._deadline:
                self._fail(Error(FORCED, f"no open within {self.limits.login_ms_max} ms"))
            return []
        if self.wants_pause or not self.listening:
            idle.received_at = now  # the silence is ours
        if idle.is_silent(now) and self._phase is Phase.OPEN:
            self._fail(Error(RESOURCE_LIMIT, f"no frame for {idle.silence_ms} ms, which is beyond the idle-time-out"))
        elif idle.send_due(now):
            idle.sent_at = now
            self.out.append(EMPTY_FRAME)
        return []

    # -- the verdicts -------------------------------------------------------------------------------------------------------------------
    def challenge(self, octets: bytes) -> list[Event]:
        """What the client has to prove; whatever it sent meanwhile."""
        if self._phase is not Phase.CHECKING:
            return []
        self._phase = Phase.PROVING
        self.out.append(sasl_frame(SaslChallenge(octets)))
        return self._read(self._take_early())

    def accept(self, account: str, mapping: LevelMapping = UNMAPPED, additional: bytes | None = None) -> list[Event]:
        """The login is right. `mapping`: the account's, of delivery modes to levels. `additional`: what the mechanism has to say."""
        if self._phase is not Phase.CHECKING:
            return []
        self._account, self.mapping = account, mapping
        if self._greets_late:
            self._phase = Phase.LOGGED_IN
            self.out.append(sasl_frame(SaslOutcome(SaslCode.OK, additional)))
        else:
            self._phase = Phase.GREETED
        return self._read(self._take_early())

    def reject(self, sentence: str) -> None:
        """The login is wrong."""
        if self._phase is Phase.CHECKING:
            self.out.append(sasl_frame(SaslOutcome(SaslCode.AUTH)))
            self._close(sentence)

    def open(self, session: str, now: int) -> list[Event]:
        """Let the client in: the engine's Open, then whatever the client sent meanwhile. `session`: `<instance>-<epoch>-<number>`, which no other connection
        has or will have."""
        opened = self._opened
        if self._phase is not Phase.OPENING or opened is None:
            return []
        self._phase = Phase.OPEN
        self._known_to_engine = True
        self.client_id, self.temporaries = opened.container_id, session
        self.payload_max = min(opened.max_frame_size, self.limits.frame_octets_max) - TRANSFER_OVERHEAD
        self._idle.wants(opened.idle_time_out)
        self._idle.received_at = self._idle.sent_at = now
        self.out.append(frame(0, self._answer()))
        return [EngineOpen(self.peer, self._account, self.client_id, session), *self._read(self._take_early())]

    def refuse_opening(self, error: Error) -> None:
        if self._phase is Phase.OPENING:
            self._fail(error)

    def refuse(self, sentence: str, condition: str = FORCED) -> None:
        """Close for a reason of the listener's own: shutdown, a limit, an account removed."""
        if self._phase is not Phase.CLOSED:
            self._fail(Error(condition, sentence))

    def _take_early(self) -> bytes:
        early, self._early = bytes(self._early), bytearray()
        return early

    def _answer(self) -> Open:
        limits = self.limits
        return opening.answer(self._instance, self._version, limits.frame_octets_max, limits.channels_max, self._idle.told)

    # -- from the engine ----------------------------------------------------------------------------------------------------------------
    def send(self, outputs: Iterable[Output], now: int) -> None:
        """Turn the engine's outputs for this peer into frames."""
        self.now = now
        if self._phase is not Phase.OPEN:
            if self._phase is Phase.LEAVING:
                self._send_last(outputs)
            return
        for output in outputs:
            if output.__class__ is Confirmed:
                if output.token is not None:
                    output.token.confirmed()
            elif output.__class__ is Delivered:
                sender = self._senders.get(output.link)
                if sender is not None:
                    sender.deliver(output, now)
            elif output.__class__ is Refused:
                if output.token is not None:
                    output.token.refused(output.refusal, output.detail)
            elif output.__class__ is Drained:
                sender = self._senders.get(output.link)
                if sender is not None:
                    sender.drained()
            elif output.__class__ is Found:
                output.token.sender.found(output)
            elif output.__class__ is Detached:
                self._detached(output)
        if self.telling:
            telling, self.telling = self.telling, []
            for session in telling:
                session.tell_accepted()
        if self.out:
            self._idle.sent_at = now

    def _send_last(self, outputs: Iterable[Output]) -> None:
        """Nothing but the answer to the peer's close is said any more."""
        for output in outputs:
            if isinstance(output, Confirmed) and isinstance(output.token, Farewell):
                output.token.confirmed()

    def _detached(self, output: Detached) -> None:
        sender = self._senders.pop(output.link, None)
        if sender is None or sender.closing:
            return
        error = error_of(output.refusal, output.detail)
        if output.refusal is Refusal.NO_SUCH_DESTINATION:
            error.condition = RESOURCE_DELETED
        sender.end(error)

    # -- frames -------------------------------------------------------------------------------------------------------------------------
    def _read(self, data: bytes) -> list[Event]:
        self.effort = 0
        events: list[Event] = []
        reader = self._reader
        received = cast("Generator[Frame | ProtocolHeader, None, None]", reader.receive(data))
        try:
            for each in islice(received, FRAMES_MAX):
                if isinstance(each, Frame):
                    if self._phase is OPEN and (session := self._sessions.get(each.channel)) is not None:
                        if self._said(session, each, events) and self.effort <= EFFORT_MAX:
                            continue
                    else:
                        self._frame(each, events)
                else:
                    self._protocol_header(each, events)
                if self._phase in ENDING or self.effort > EFFORT_MAX:
                    break
        except Malformed as malformed:
            self._fail(Error(malformed.condition, str(malformed)), events)
        except Fault as fault:
            self._fail(fault.error, events)
        finally:
            received.close()
            self.unfinished = not reader.exhausted and self._phase not in ENDING
            if self.unfinished:
                self.effort += FRAMES_MAX
        return events

    def _protocol_header(self, header: ProtocolHeader, events: list[Event]) -> None:
        wanted = SASL_HEADER if self._phase is Phase.GREETING else AMQP_HEADER
        if header.version != (1, 0, 0) or header.protocol not in (AMQP, SASL) or self._phase not in (Phase.GREETING, Phase.LOGGED_IN):
            self._turn_away(wanted, f"protocol {header.protocol} in version {header.version} is not spoken here, or not now")
        elif header.protocol == SASL and self._phase is Phase.GREETING:
            self._phase = Phase.LOGGING_IN
            self.out += (SASL_HEADER, sasl_frame(SaslMechanisms(self._mechanisms)))
        elif header.protocol == AMQP and self._phase is Phase.LOGGED_IN:
            self._phase = Phase.GREETED
            self.out.append(AMQP_HEADER)
        elif header.protocol == AMQP and ANONYMOUS in self._mechanisms:
            self._phase = Phase.CHECKING
            self._greets_late = False
            self.out.append(AMQP_HEADER)
            events.append(Login(ANONYMOUS, b"", ""))
        else:
            self._turn_away(wanted, "the client did not log in by SASL")

    def _turn_away(self, wanted: bytes, reason: str) -> None:
        """Say what is wanted, and close (transport 2.2)."""
        self.out.append(wanted)
        self._close(reason)

    def _said(self, session: Session, each: Frame, events: list[Event]) -> bool:
        """What was said within a session. True: it is open as it was."""
        performative = each.performative
        kind = performative.__class__
        try:
            if kind is Transfer:
                session.transfer(performative, each.payload, events)  # type: ignore[arg-type]
            elif kind is Disposition:
                session.disposition(performative, events)  # type: ignore[arg-type]
            elif kind is Flow:
                session.flow(performative, events)  # type: ignore[arg-type]
            else:
                self.effort += FRAME_EFFORT
                self._within(session, performative, events)
                return False
        except SessionFault as fault:
            self._end(session, fault.error, events)
        return True

    def _frame(self, each: Frame, events: list[Event]) -> None:
        performative = each.performative
        kind = performative.__class__
        if self._phase is OPEN:
            self._outside(each.channel, performative, events)
        elif kind is SaslInit and self._phase is Phase.LOGGING_IN:
            login = login_of(performative, self._mechanisms)  # type: ignore[arg-type]
            self._phase = Phase.CHECKING
            if login is None:
                self.reject("the client wants a SASL mechanism that was not offered")
            else:
                events.append(login)
        elif kind is SaslResponse and self._phase is Phase.PROVING:
            self._phase = Phase.CHECKING
            events.append(Proof(checked(performative.response)))  # type: ignore[union-attr]
        elif kind is Open and self._phase is Phase.GREETED:
            if each.channel:
                raise ConnectionFault(NOT_ALLOWED, "open comes on channel 0")
            self._opened = performative  # type: ignore[assignment]
            self._phase = Phase.OPENING
            events.append(opening_of(performative, self.limits.container_id_max))  # type: ignore[arg-type]
        else:
            raise ConnectionFault(ILLEGAL_STATE, f"{kind.__name__} came while the broker was {self._phase.value}")

    def _outside(self, channel: int, performative: Any, events: list[Event]) -> None:
        """Of no session, or of one that has not begun or is over."""
        kind = performative.__class__
        self.effort += FRAME_EFFORT
        if kind is Close:
            self._leave(performative, events)
        elif kind is Begin:
            if performative.remote_channel is not None:
                raise ConnectionFault(INVALID_FIELD, "begin answers a session that the broker did not begin")
            if channel in self._ending:
                raise ConnectionFault(ILLEGAL_STATE, f"the session of channel {channel} was ended, and that was not answered")
            if channel >= self.limits.channels_max:
                raise ConnectionFault(NOT_ALLOWED, f"channel {channel} is more than the channel-max {self.limits.channels_max - 1}")
            session = self._sessions[channel] = Session(self, channel, performative)
            session.begin()
        elif kind is End and channel in self._ending:
            del self._ending[channel]
        elif channel in self._ending:
            return
        else:
            raise ConnectionFault(ILLEGAL_STATE, f"{kind.__name__} came on channel {channel}, which has no session")

    def _within(self, session: Session, performative: Any, events: list[Event]) -> None:
        kind = performative.__class__
        if kind is Attach:
            session.attach(performative, events)
        elif kind is Detach:
            session.detach(performative, events)
        elif kind is End:
            self._drop(session, events)
            self.out.append(frame(session.channel, End()))
        elif kind is Close:
            self._leave(performative, events)
        elif kind is Begin:
            raise ConnectionFault(ILLEGAL_STATE, f"the session of channel {session.channel} has begun already")
        else:
            raise ConnectionFault(ILLEGAL_STATE, f"{kind.__name__} came on an open connection")

    def _end(self, session: Session, error: Error, events: list[Event]) -> None:
        """The peer's mistake ends its session."""
        self._drop(session, events)
        self._ending[session.channel] = None
        self.out.append(frame(session.channel, End(error)))

    def again(self, session: Session, late: list[Any], events: list[Any]) -> None:
        """What the peer said before the handle that it is about was free."""
        for performative in late:
            try:
                session.flow(performative, events) if isinstance(performative, Flow) else self._within(session, performative, events)
            except SessionFault as fault:
                self._end(session, fault.error, events)
                return

    def _drop(self, session: Session, events: list[Event]) -> None:
        del self._sessions[session.channel]
        session.close(events)

    # -- links --------------------------------------------------------------------------------------------------------------------------
    def make_link(self, session: Session, attach: Attach) -> Sender | Receiver | Transactions:
        """Raises LinkFault."""
        if attach.role == SENDER:  # the peer's: it produces
            return Transactions(session, attach) if isinstance(attach.target, Coordinator) else self._receiver(session, attach)
        number = self._next_link()
        consumer = consumer_of(attach, self.peer, number, self.client_id, self.temporaries, self._temporary())
        self.effort += consumer.effort
        if isinstance(consumer.commands[-1], Lookup):
            return Sender(session, attach, 0, consumer)
        sender = self._senders[number] = Sender(session, attach, number, consumer)
        return sender

    def check_name(self, attach: Attach) -> None:
        """Raises LinkFault."""
        if len(attach.name) > self.limits.name_max:
            raise LinkFault(INVALID_FIELD, f"a link's name has at most {self.limits.name_max} characters")
        links = 0
        for session in self._sessions.values():
            links += len(session.links)
            if (attach.name, attach.role) in session.names:
                raise LinkFault(RESOURCE_LOCKED, f"a link {quoted(attach.name)} is attached on this connection")
        if links >= self.limits.links_max:
            raise LinkFault(RESOURCE_LIMIT, f"more than {self.limits.links_max} links on one connection")

    def _receiver(self, session: Session, attach: Attach) -> Receiver:
        target = attach.target
        if not isinstance(target, Target):
            raise LinkFault(NOT_FOUND, "no link of this name is known whose target could be told: a producer states its own")
        if target.dynamic:
            address = f"{temporary_kind(target.capabilities)}/{self._temporary()}"
            answered = Target(
                written(address), dynamic=True, expiry_policy="link-detach", dynamic_node_properties=lifetime(), capabilities=target.capabilities
            )  # fmt: skip
            return Receiver(session, attach, address, answered)
        address = "" if target.address is None else address_of(target.address, kind_of(target.capabilities))
        return Receiver(session, attach, address, target)

    def _next_link(self) -> int:
        while True:
            self._count += 1
            link = self.peer * LINKS_PER_PEER + self._count % LINKS_PER_PEER
            if link not in self._senders:
                return link

    def _temporary(self) -> str:
        self._made += 1
        return f"{self.temporaries}.{self._made}"

    def forget(self, link: int) -> None:
        """The engine says nothing of it any more."""
        self._senders.pop(link, None)

    # -- transactions -------------------------------------------------------------------------------------------------------------------
    def name_transaction(self) -> bytes:
        """Unique on this connection."""
        self._named += 1
        name = self._named.to_bytes(8, "big")
        self._states[name] = TransactionalState(name, ACCEPTED)
        return name

    def transactional(self, transaction: bytes) -> DeliveryState:
        """That a message was accepted within it: one value for all."""
        return self._states.get(transaction) or TransactionalState(transaction, ACCEPTED)

    def forget_transaction(self, transaction: bytes) -> None:
        self._states.pop(transaction, None)

    # -- the end ------------------------------------------------------------------------------------------------------------------------
    def _leave(self, close: Close, events: list[Event]) -> None:
        """The peer closes: it is answered when what it asked for before is done."""
        self._phase = Phase.LEAVING
        if close.error is not None:
            self.close_reason = f"the peer closed the connection: {close.error.condition} {close.error.description or ''}"[:200]
        for session in list(self._sessions.values()):
            session.leave(events)
        events.append(Sync(self.peer, Farewell(self)))

    def leave(self) -> None:
        """All is done: answer the peer's close."""
        if self._phase is Phase.LEAVING:
            self.out.append(frame(0, Close()))
            self._close(self.close_reason or "the peer closed the connection")

    def _fail(self, error: Error, events: list[Event] | None = None) -> None:
        """Say why, and close. Before the peer was let in there is an open to say it behind, where it can be said at all."""
        if self._phase in (Phase.OPENING, Phase.GREETED):
            self.out.append(frame(0, opening.refusal(self._answer())))
            self.out.append(frame(0, Close(error)))
        elif self._phase in (Phase.OPEN, Phase.LEAVING):
            self.out.append(frame(0, Close(error)))
        elif self._phase in (Phase.LOGGING_IN, Phase.CHECKING, Phase.PROVING):
            self.out.append(sasl_frame(SaslOutcome(SaslCode.SYS_TEMP if error.condition in (FORCED, RESOURCE_LIMIT) else SaslCode.SYS_PERM)))
        elif self._phase is Phase.GREETING:
            self.out.append(SASL_HEADER)
        self._close(f"{error.condition}: {error.description}")

    def _close(self, reason: str) -> None:
        self._phase = Phase.CLOSED
        self.unfinished = False
        self.wants_close = True
        self.close_reason = reason
        self._reader.discard()
        self._early = bytearray()
        self._sessions.clear()
