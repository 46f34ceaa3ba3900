"""One connection from its first octet to its last: frames to engine commands, the engine's outputs to frames.

The listener gives it octets (`receive_data`), the engine's outputs (`send`) and the time (`tick`); it returns what the octets ask for and queues what is to
be written (`data_to_send`). A Login, a Proof or an Opening is answered by the listener; until then what the peer sends is kept. A large body comes as
BodyPart and its message behind them; one that is to leave is asked for by `wanted_body` and given by `supply`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from itertools import islice
from typing import cast

from broker_core.engine.commands import Command, PeerLost, Sync
from broker_core.engine.commands import Open as EngineOpen
from broker_core.engine.levels import UNMAPPED, LevelMapping
from broker_core.engine.outputs import Confirmed, Delivered, Detached, Drained, Found, Output, Refused, Waiting
from broker_core.engine.producers import Producers
from broker_core.engine.refusal import Refusal

from .coordinator import TransactionNames
from .frames import EMPTY_FRAME, FRAME_OCTETS_MIN, Frame, ProtocolHeader, Reader, frame
from .greeting import Greeting
from .idle import Idle
from .incoming import BodyDropped, BodyPart
from .limits import Limits
from .links import Links
from .mapping import Convert
from .opening import Opening
from .outbox import Outbox
from .performatives import Close, Error
from .phases import BEFORE_OPEN, OPEN, OVER, WAITING, Phase
from .refusals import FORCED, RESOURCE_DELETED, RESOURCE_LIMIT, Fault, error_of, fitting, quoted
from .sasl import Login, Proof
from .sender import Outgoing
from .session import Session
from .sessions import Sessions
from .tokens import Farewell
from .types import Malformed

EFFORT_MAX = 10_000
"""Of one call, in microseconds, and of one frame more; the node has other clients."""
FRAMES_MAX = 1_000
"""Of one call, whatever they are."""
TRANSFER_OVERHEAD = 64
"""Octets of a frame of a transfer beside its payload, at most."""

Event = Command | Login | Proof | Opening | BodyPart | BodyDropped


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
        self.begun_octets = 0
        """Of messages that are not here as a whole."""
        self.frame_octets_max = FRAME_OCTETS_MIN
        """Of frames that the peer takes, and that we send."""
        self.payload_max = FRAME_OCTETS_MIN - TRANSFER_OVERHEAD
        self.phase = Phase.GREETING
        self.idle = Idle(limits.idle_ms, now)
        self.sessions = Sessions(self)
        self.links = Links(self)
        self.producers = Producers(peer)
        self.transactions = TransactionNames()
        self._deadline = now + limits.login_ms_max
        self._reader = Reader(limits.frame_octets_max)
        self._greeting = Greeting(self, version, instance, mechanisms)
        self._early = bytearray()
        self._known_to_engine = False
        self._account = ""

    # -- what the listener asks ---------------------------------------------------------------------------------------------------------
    @property
    def wants_pause(self) -> bool:
        """True: read nothing for now."""
        if self.phase in WAITING:
            return True
        return not self.links.senders and (self.unconfirmed >= self.limits.unconfirmed_max or self.unconfirmed_octets >= self.limits.unconfirmed_octets_max)

    @property
    def is_full(self) -> bool:
        """Although it had to be read on, as it has consumers, no more is taken in."""
        factor, limits = self.limits.subscriber_unconfirmed_factor, self.limits
        return self.unconfirmed >= limits.unconfirmed_max * factor or self.unconfirmed_octets >= limits.unconfirmed_octets_max * factor

    @property
    def subscribed(self) -> bool:
        """It has consumers, so their outcomes must go on being read."""
        return bool(self.links.senders)

    @property
    def choked(self) -> bool:
        """Its sessions have no room for what was delivered: nothing more should be."""
        return self.sessions.waiting_octets > self.limits.waiting_octets_max

    @property
    def is_leaving(self) -> bool:
        """The peer has said close, and is to be answered."""
        return self.phase is Phase.LEAVING

    @property
    def has_begun(self) -> bool:
        """A performative may be said."""
        return self.phase in (Phase.OPEN, Phase.LEAVING)

    def next_deadline(self) -> int | None:
        """The instant at which tick is due; None: no timer needed."""
        if self.phase in WAITING or self.phase is Phase.CLOSED:
            return None
        return self._deadline if self.phase in BEFORE_OPEN else self.idle.next_deadline()

    def data_to_send(self) -> list[bytes]:
        """What to write. Not given twice."""
        return self.out.take()

    @property
    def wanted_body(self) -> Outgoing | None:
        """A delivery that waits for octets of its large body."""
        return self.sessions.hungry

    def hand_over(self, events: list[Event]) -> None:
        """What has left while the peer is heard is settled before what it says next."""
        if self.commands and events is not self.commands:
            events += self.commands
            self.commands = []

    def supply(self, outgoing: Outgoing, octets: bytes, now: int) -> None:
        """What comes next of its body."""
        outgoing.supply(octets)
        outgoing.sender.session.pump()
        self.idle.sent_at = now

    def abort(self, outgoing: Outgoing) -> None:
        """Its body is gone: its message was removed."""
        outgoing.sender.session.abort(outgoing)

    # -- from the socket ----------------------------------------------------------------------------------------------------------------
    def receive_data(self, data: bytes, now: int) -> list[Event]:
        """What `data` asks for, in order."""
        self.now = now
        self.idle.received_at = now
        if self.phase in WAITING:
            self._early += data
            if len(self._early) > self.limits.early_octets_max:
                self._fail(Error(RESOURCE_LIMIT, f"more than {self.limits.early_octets_max} octets were sent before the answer to open"))
            return []
        if self.phase in OVER:
            return []
        return self._read(data)

    def receive_eof(self, now: int) -> list[Event]:
        """The socket is gone. PeerLost if the engine knows this peer; nothing the second time."""
        if self.phase is not Phase.CLOSED:
            self.close("the peer closed the connection")
        known, self._known_to_engine = self._known_to_engine, False
        return [PeerLost(self.peer)] if known else []

    def tick(self, now: int) -> list[Event]:
        """Do what is due: give up a silent peer, send an empty frame."""
        idle = self.idle
        if self.phase in WAITING or self.phase is Phase.CLOSED:
            return []
        if self.phase in BEFORE_OPEN:
            if now >= self._deadline:
                self._fail(Error(FORCED, f"no open within {self.limits.login_ms_max} ms"))
            return []
        if self.wants_pause or not self.listening:
            idle.received_at = now  # the silence is ours
        if idle.is_silent(now) and self.phase is Phase.OPEN:
            self._fail(Error(RESOURCE_LIMIT, f"no frame for {idle.silence_ms} ms, which is beyond the idle-time-out"))
        elif idle.send_due(now):
            idle.sent_at = now
            self.out.append(EMPTY_FRAME)
        return []

    # -- the verdicts -------------------------------------------------------------------------------------------------------------------
    def challenge(self, octets: bytes) -> list[Event]:
        """What the client has to prove; whatever it sent meanwhile."""
        if self.phase is not Phase.CHECKING:
            return []
        self._greeting.challenge(octets)
        return self._read(self._take_early())

    def accept(self, account: str, mapping: LevelMapping = UNMAPPED, additional: bytes | None = None) -> list[Event]:
        """The login is right. `mapping`: the account's, of delivery modes to levels. `additional`: what the mechanism has to say."""
        if self.phase is not Phase.CHECKING:
            return []
        self._account, self.mapping = account, mapping
        self._greeting.accept(additional)
        return self._read(self._take_early())

    def reject(self, sentence: str) -> None:
        """The login is wrong."""
        if self.phase is Phase.CHECKING:
            self._greeting.reject()
            self.close(sentence)

    def open(self, session: str, now: int) -> list[Event]:
        """Let the client in: the engine's Open, then whatever the client sent meanwhile. `session`: `<instance>-<epoch>-<number>`, which no other connection
        has or will have."""
        opened = self._greeting.opened
        if self.phase is not Phase.OPENING or opened is None:
            return []
        self._known_to_engine = True
        self.client_id, self.temporaries = opened.container_id, session
        self.frame_octets_max = min(opened.max_frame_size, self.limits.frame_octets_max)
        self.payload_max = self.frame_octets_max - TRANSFER_OVERHEAD
        self.idle.wants(opened.idle_time_out)
        self.idle.received_at = self.idle.sent_at = now
        self._greeting.open()
        return [EngineOpen(self.peer, self._account, self.client_id, session, detaches=True), *self._read(self._take_early())]

    def refuse_opening(self, error: Error) -> None:
        if self.phase is Phase.OPENING:
            self._fail(error)

    def refuse(self, sentence: str, condition: str = FORCED) -> None:
        """Close for a reason of the listener's own: shutdown, a limit, an account removed."""
        if self.phase is not Phase.CLOSED:
            self._fail(Error(condition, sentence))

    def _take_early(self) -> bytes:
        early, self._early = bytes(self._early), bytearray()
        return early

    # -- from the engine ----------------------------------------------------------------------------------------------------------------
    def send(self, outputs: Iterable[Output], now: int) -> None:
        """Turn the engine's outputs for this peer into frames."""
        self.now = now
        if self.phase is not Phase.OPEN:
            if self.phase is Phase.LEAVING:
                self._send_last(outputs)
            return
        for output in outputs:
            if output.__class__ is Confirmed:
                if output.token is not None:
                    output.token.confirmed()
            elif output.__class__ is Delivered:
                sender = self.links.senders.get(output.link)
                if sender is not None:
                    sender.deliver(output, now)
            elif output.__class__ is Refused:
                if output.token is not None:
                    output.token.refused(output.refusal, output.detail)
            elif output.__class__ is Drained:
                sender = self.links.senders.get(output.link)
                if sender is not None:
                    sender.drained(output.drain)
            elif output.__class__ is Found:
                output.token.sender.found(output)
            elif output.__class__ is Waiting:
                output.token.waits()
            elif output.__class__ is Detached:
                self._detached(output)
        if self.telling:
            telling, self.telling = self.telling, []
            for session in telling:
                session.tell_accepted()
        if self.out:
            self.idle.sent_at = now

    def _send_last(self, outputs: Iterable[Output]) -> None:
        """Nothing but the answer to the peer's close is said any more."""
        for output in outputs:
            if isinstance(output, Confirmed) and isinstance(output.token, Farewell):
                output.token.confirmed()

    def _detached(self, output: Detached) -> None:
        sender = self.links.senders.pop(output.link, None)
        if sender is None or sender.closing:
            return
        error = error_of(output.refusal, output.detail)
        if output.refusal is Refusal.NO_SUCH_DESTINATION:
            error.condition = RESOURCE_DELETED
        sender.end(error)

    # -- frames -------------------------------------------------------------------------------------------------------------------------
    def _read(self, data: bytes) -> list[Event]:
        events: list[Event] = []
        reader, sessions = self._reader, self.sessions
        self.effort = reader.effort = 0
        received = cast("Generator[Frame | ProtocolHeader, None, None]", reader.receive(data))
        try:
            for each in islice(received, FRAMES_MAX):
                if isinstance(each, ProtocolHeader):
                    self._greeting.header(each, events)
                elif self.phase is not OPEN:
                    self._greeting.frame(each, events)
                elif sessions.take(each, events) and self.effort + reader.effort <= EFFORT_MAX:
                    continue
                if self.effort + reader.effort > EFFORT_MAX or self.phase in WAITING or self.phase in OVER:
                    break
        except Malformed as malformed:
            self._fail(Error(malformed.condition, str(malformed)))
        except Fault as fault:
            self._fail(fault.error)
        finally:
            received.close()
            self.effort += reader.effort
            self.unfinished = not reader.exhausted and self.phase not in WAITING and self.phase not in OVER
            if self.unfinished:
                self.effort += FRAMES_MAX
        return events

    # -- the end ------------------------------------------------------------------------------------------------------------------------
    def take_leave(self, close: Close, events: list[Event]) -> None:
        """The peer closes: it is answered when what it asked for before is done."""
        self.phase = Phase.LEAVING
        if close.error is not None:
            self.close_reason = f"the peer closed the connection: {quoted(close.error.condition)} {quoted(close.error.description or '')}"
        self.sessions.leave(events)
        events.append(Sync(self.peer, Farewell(self)))

    def leave(self) -> None:
        """All is done: answer the peer's close."""
        if self.phase is Phase.LEAVING:
            self.out.append(frame(0, Close()))
            self.close(self.close_reason or "the peer closed the connection")

    def _fail(self, error: Error) -> None:
        """Say why, and close."""
        if self.phase in BEFORE_OPEN:
            self._greeting.refuse(error)
        elif self.phase in (OPEN, Phase.LEAVING):
            self.out.append(fitting(0, Close(error), self.frame_octets_max))
        self.close(f"{error.condition}: {error.description}")

    def close(self, reason: str) -> None:
        """Nothing more is said or heard. `reason`: a sentence for the log."""
        self.phase = Phase.CLOSED
        self.unfinished = False
        self.wants_close = True
        self.close_reason = reason
        self._reader.discard()
        self._early = bytearray()
        self.sessions.by_channel.clear()
