"""One STOMP connection as a machine without sockets or clock: bytes in, engine commands out; engine outputs in, bytes out.

How to drive it
---------------
1. `receive_data(data, now)` returns engine commands, to be submitted in order, and among them two events of the connection itself:
   `Login`, whose verdict is owed by `accept` or `reject`, and `BodyPart`. Until the verdict nothing more is parsed.
2. `accept` returns more of the same; the first is the engine's Open.
3. Parts of a large body come in order, followed by its Send with `message.body` None: store the parts, put the StoredBody there, then
   submit it. If the connection ends between, drop the parts.
4. `send(outputs, now)` takes the engine's outputs for this peer, in order, after their commit.
5. After each of these write `data_to_send()`. When `wants_close` then is True, close the socket once that is written.
6. When the socket is gone for whatever reason call `receive_eof(now)` once; it returns the engine's PeerLost if the engine knows the peer.
7. Arm a timer for `next_deadline()` and call `tick(now)` when it is due. Do not read from the socket while `wants_pause`.

DISCONNECT closes every link and asks the engine for a Sync; when that is confirmed the receipt goes out and `wants_close` becomes True.

The peer's mistakes never raise: they queue one ERROR frame, drop what is held, and from then on the machine hears and says nothing more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from broker_core.engine.commands import Command, Open, PeerLost, Send, Sync
from broker_core.engine.effects import Confirmed, Delivered, Detached, Outcome, Output, Refused
from broker_core.engine.message import Header, Message, StoredBody
from broker_core.engine.refusal import Refusal

from .escaping import VERSIONS, escape
from .frames import ACK_BY_ID, PART, Parser
from .heartbeat import HeartBeat
from .limits import Limits
from .login import Login, NoCommonVersion, read_connect
from .mapping import outgoing
from .refusals import REFUSALS, error_frame, sentences
from .sections import CLIENT_COMMANDS, Malformed, Section, SectionMemory
from .subscriptions import Receipt, Subscriptions, Unsubscribed

CONNECTING = frozenset(("CONNECT", "STOMP"))
CONNECTED_COMMANDS = CLIENT_COMMANDS - CONNECTING


class Phase(Enum):
    WAITING = "waiting for CONNECT"
    LOGGING_IN = "waiting for the verdict on the login"
    OPEN = "open"
    LEAVING = "DISCONNECT seen, its receipt not sent yet"
    CLOSED = "closed or to be closed"


@dataclass(slots=True)
class BodyPart:
    """A part of the large body whose Send will follow."""

    octets: bytes


class Farewell:
    """The token of the Sync that DISCONNECT asks for."""

    __slots__ = ("receipt",)

    def __init__(self, receipt: bytes | None) -> None:
        self.receipt = receipt


Event = Command | Login | BodyPart


class Connection:
    """`instance` names the node's installation in message-ids: letters, digits, dot and dash."""

    def __init__(
        self, peer: int, limits: Limits, server: str, instance: str, now: int, memory: SectionMemory | None = None
    ) -> None:
        """`memory`: what the node's connections remember together; None: this one remembers for itself."""
        self.wants_close = False
        self.close_reason = ""
        """A sentence for the log, without secrets."""
        self.version = "1.0"
        self.listening = True
        """To be set False while the listener does not read for reasons of its own: the peer's silence is then not counted."""
        self._peer = peer
        self._limits = limits
        self._memory = memory
        self._server = server
        self._instance = instance
        self._phase = Phase.WAITING
        self._opened_at = now
        self._parser = Parser(limits, CONNECTING, self._prepare)
        self._parser.expect(CONNECTING, "comes before CONNECT")
        self._heart = HeartBeat(0, 0, now)
        self._beats = (0, 0)
        self._client_id = ""
        self._early = bytearray()
        self._known_to_engine = False
        self._subscriptions = Subscriptions(peer, limits, self.version, instance)
        self._unconfirmed: deque[int] = deque()
        self._unconfirmed_octets = 0
        self._out: list[bytes | StoredBody] = []

    # -- what the listener asks ---------------------------------------------------------------------------------------------------------
    @property
    def wants_pause(self) -> bool:
        """True: read nothing for now. A login is being checked, or too many sends are unconfirmed and nothing else comes here (R20)."""
        if self._phase is Phase.LOGGING_IN:
            return True
        limits = self._limits
        return not self._subscriptions and (
            len(self._unconfirmed) >= limits.unconfirmed_max or self._unconfirmed_octets >= limits.unconfirmed_octets_max
        )

    @property
    def subscribed(self) -> bool:
        """It has subscriptions, so its ACKs must go on being read."""
        return bool(self._subscriptions)

    @property
    def kept_octets(self) -> int:
        """Octets received and held."""
        return self._parser.kept_octets + len(self._early)

    def is_presettled(self, link: int) -> bool:
        """It is open, and its deliveries count as acknowledged once they have left (ack:auto)."""
        return self._subscriptions.is_presettled(link)

    def next_deadline(self) -> int | None:
        """The instant at which tick is due; None: no timer needed."""
        if self._phase is Phase.WAITING:
            return self._opened_at + self._limits.connect_ms_max
        if self._phase in (Phase.OPEN, Phase.LEAVING):
            return self._heart.next_deadline()
        return None

    def data_to_send(self) -> list[bytes | StoredBody]:
        """What to write, in order; a StoredBody means its octets, read from the store. Not given twice."""
        if not self._out:
            return []
        out, self._out = self._out, []
        pieces: list[bytes | StoredBody] = []
        first = 0
        for index, piece in enumerate(out):
            if piece.__class__ is StoredBody:
                pieces += (b"".join(out[first:index]), piece)  # type: ignore[arg-type]
                first = index + 1
        pieces.append(b"".join(out[first:]))  # type: ignore[arg-type]
        return pieces

    # -- from the socket ----------------------------------------------------------------------------------------------------------------
    def receive_data(self, data: bytes, now: int) -> list[Event]:
        """What `data` asks for: engine commands, Login, BodyPart, in order."""
        self._heart.received_at = now
        if self._phase is Phase.WAITING or self._phase is Phase.OPEN:
            return self._read(data)
        if self._phase is Phase.LOGGING_IN:
            self._early += data
            if self.kept_octets > self._limits.early_octets_max:
                self._fail(f"more than {self._limits.early_octets_max} octets were sent before CONNECTED")
        return []

    def receive_eof(self, now: int) -> list[Event]:
        """The socket is gone. PeerLost if the engine knows this peer; nothing the second time."""
        if self._phase is not Phase.CLOSED:
            self._close("the peer closed the connection")
        known, self._known_to_engine = self._known_to_engine, False
        return [PeerLost(self._peer)] if known else []

    def tick(self, now: int) -> list[Event]:
        """Do what is due: give up a silent peer, send a heart-beat."""
        if self._phase is Phase.WAITING:
            if now >= self._opened_at + self._limits.connect_ms_max:
                self._fail(f"no CONNECT frame within {self._limits.connect_ms_max} ms")
        elif self._phase in (Phase.OPEN, Phase.LEAVING):
            heart = self._heart
            if self.wants_pause or not self.listening:
                heart.received_at = now  # the silence is ours
            if heart.is_silent(now) and self._phase is Phase.OPEN:
                self._fail(f"no heart-beat and no frame for {heart.silence_ms} ms")
            elif heart.send_due(now):
                heart.sent_at = now
                self._out.append(b"\n")
        return []

    # -- the verdict on the login -------------------------------------------------------------------------------------------------------
    def accept(self, account: str, session: str, now: int) -> list[Event]:
        """Let the client in: CONNECTED is queued; the engine's Open, then whatever the client sent meanwhile."""
        if self._phase is not Phase.LOGGING_IN:
            return []
        self._phase = Phase.OPEN
        self._known_to_engine = True
        self._heart = HeartBeat(*self._beats, now)
        interval = self._limits.heart_beat_ms_min
        lines = ["CONNECTED", f"version:{self.version}", f"server:{self._server}", f"session:{session}"]
        if self.version != "1.0":
            lines.append(f"heart-beat:{interval},{interval}")
        self._out.append(("\n".join(lines) + "\n\n\0").encode())
        self._parser.version = self.version
        if self._memory is not None and not self._client_id:  # a header names its sender's client id
            self._parser.share(self._memory)
        self._parser.expect(CONNECTED_COMMANDS, "is not a command that a client may send now")
        early, self._early = bytes(self._early), bytearray()
        return [Open(self._peer, account, self._client_id), *self._read(early)]

    def reject(self, sentence: str) -> None:
        """Turn the client away: ERROR is queued."""
        if self._phase is Phase.LOGGING_IN:
            self._fail(sentence)

    def refuse(self, sentence: str) -> None:
        """Close with an ERROR for a reason of the listener's own: shutdown, a limit, an account removed."""
        if self._phase is not Phase.CLOSED:
            self._fail(sentence)

    # -- from the engine ----------------------------------------------------------------------------------------------------------------
    def send(self, outputs: Iterable[Output], now: int) -> None:
        """Turn the engine's outputs for this peer into frames."""
        out, unconfirmed = self._out, self._unconfirmed
        for output in outputs:
            if self._phase is Phase.CLOSED:
                return
            if output.__class__ is Confirmed:
                token = output.token
                if token.__class__ is bytes:  # of a SEND
                    out.append(b"RECEIPT\nreceipt-id:%b\n\n\0" % token)
                    self._unconfirmed_octets -= unconfirmed.popleft()
                else:
                    self._confirmed(token)
            elif output.__class__ is Delivered:
                link = self._subscriptions.link(output.link)
                if link is not None:
                    link.write(output, out)
            elif output.__class__ is Refused:
                self._refused(output)
            elif output.__class__ is Detached:
                self._error(REFUSALS[output.refusal], sentences(output.refusal, output.detail))
        if out:
            self._heart.sent_at = now

    def _confirmed(self, token: object) -> None:
        if isinstance(token, Unsubscribed):
            self._subscriptions.forget(token.link)
        if isinstance(token, Unsubscribed | Receipt | Farewell) and token.receipt is not None:
            self._out.append(b"RECEIPT\nreceipt-id:%b\n\n\0" % token.receipt)
        if isinstance(token, Farewell):
            self._close("the client disconnected")

    def _refused(self, refused: Refused) -> None:
        token = refused.token
        receipt = token if isinstance(token, bytes) or token is None else token.receipt
        if refused.refusal is Refusal.NO_SUCH_DELIVERY:
            # It was delivered here, or `subscriptions` had refused it: settled already, so there is nothing to complain about.
            self._confirmed(token)
            return
        self._error(REFUSALS[refused.refusal], sentences(refused.refusal, refused.detail), receipt)

    # -- frames -------------------------------------------------------------------------------------------------------------------------
    def _read(self, data: bytes) -> list[Event]:
        """Parse and map. SEND is mapped here without a call, it is the hot path; its section was prepared when it first came."""
        commands: list[Event] = []
        append, peer, parser, unconfirmed = commands.append, self._peer, self._parser, self._unconfirmed.append
        unconfirmed_octets = 0
        events = parser.events(data)
        try:
            for section, receipt, body in events:
                prepared = section.prepared
                if prepared is not None:
                    address, header, octets = prepared
                    size = octets + (len(body) if body is not None else parser.body_octets)
                    if receipt is not None:
                        held = size if body is not None else octets  # a large body is in the store, not in memory
                        unconfirmed(held)
                        unconfirmed_octets += held
                    append(Send(peer, receipt, address, Message(header, body, size)))
                elif section is ACK_BY_ID:
                    self._subscriptions.settle_by_id(body, Outcome.ACCEPTED, None, commands)  # type: ignore[arg-type]
                elif section is PART:
                    append(BodyPart(body))  # type: ignore[arg-type]
                else:
                    self._frame(section, commands)
                    if self._phase is not Phase.OPEN:
                        break
        except NoCommonVersion as malformed:
            self._error("unsupported protocol version", malformed.sentence, None, f"version:{','.join(VERSIONS)}\n")
        except Malformed as malformed:
            self._fail(malformed.sentence, malformed.receipt)
        finally:
            events.close()
            self._unconfirmed_octets += unconfirmed_octets
            if self._phase is Phase.LEAVING or self._phase is Phase.CLOSED:
                parser.discard()
        if self._phase is Phase.OPEN and self._subscriptions:
            self._check_unconfirmed()
        return commands

    def _check_unconfirmed(self) -> None:
        """R20, for connections that cannot be paused."""
        limits, factor = self._limits, self._limits.subscriber_unconfirmed_factor
        if len(self._unconfirmed) > limits.unconfirmed_max * factor:
            self._fail(f"more than {limits.unconfirmed_max * factor} sends wait for their receipt")
        elif self._unconfirmed_octets > limits.unconfirmed_octets_max * factor:
            self._fail(f"more than {limits.unconfirmed_octets_max * factor} octets wait for their receipt")

    def _prepare(self, headers: dict[str, str], lines: bytes | None) -> tuple[str, Header, int]:
        """What the parser keeps with a header section of SEND."""
        address, header = outgoing(headers, lines, self._client_id)
        return address, header, len(header.octets)

    def _frame(self, section: Section, commands: list[Event]) -> None:
        """Any frame but SEND and the plain ACK. Raises Malformed with the receipt that the frame asked for."""
        command, headers = section.command, section.headers
        receipt = headers.get("receipt")
        wire = None if receipt is None or command in CONNECTING else escape(receipt, self.version).encode()
        token = None if wire is None else Receipt(wire)
        try:
            if command in CONNECTING:
                self._connect(headers, commands)
            elif command == "SUBSCRIBE":
                commands.append(self._subscriptions.subscribe(headers, token))
            elif command == "UNSUBSCRIBE":
                commands.append(self._subscriptions.unsubscribe(headers, wire))
            elif command in ("ACK", "NACK"):
                self._subscriptions.settle(command, headers, token, commands)
            elif command == "DISCONNECT":
                commands += self._subscriptions.close_all()
                commands.append(Sync(self._peer, Farewell(wire)))
                self._phase = Phase.LEAVING
            else:
                raise Malformed(f"{command} is not supported yet: transactions are not")
        except Malformed as malformed:
            malformed.receipt = wire
            raise

    def _connect(self, headers: dict[str, str], commands: list[Event]) -> None:
        self.version, self._beats, login = read_connect(headers, self._limits)
        self._client_id = login.client_id
        self._subscriptions = Subscriptions(self._peer, self._limits, self.version, self._instance)
        self._phase = Phase.LOGGING_IN
        commands.append(login)

    # -- the end ------------------------------------------------------------------------------------------------------------------------
    def _fail(self, sentence: str, receipt: bytes | None = None) -> None:
        self._error(sentence, "", receipt)

    def _error(self, message: str, body: str, receipt: bytes | None = None, extra: str = "") -> None:
        """Queue the ERROR frame, the last one ("ERROR": the server must then close the connection)."""
        agreed = self._phase is not Phase.WAITING
        self._out.append(error_frame(message, body, receipt, extra, self.version if agreed else None))
        self._close(f"{message}: {body}" if body else message)

    def _close(self, reason: str) -> None:
        self._phase = Phase.CLOSED
        self.wants_close = True
        self.close_reason = reason
        self._parser.discard()
        self._early = bytearray()
