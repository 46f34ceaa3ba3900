"""One connection from its first octet to its last (how to drive it: see the package). What happens before CONNECTED is `handshake`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from itertools import islice

from broker_core.engine.commands import Begin, Command, End, Open, PeerLost, Request, Send, Sync, Transacted
from broker_core.engine.levels import UNMAPPED, LevelMapping
from broker_core.engine.message import Header, Message
from broker_core.engine.outcome import Outcome
from broker_core.engine.outputs import Attached, Browsed, Confirmed, Delivered, Detached, Output, Refused
from broker_core.engine.producers import Producers
from broker_core.engine.refusal import Refusal

from .branches import DESTINATIONS, administer, branch_frame
from .escaping import VERSIONS, escape
from .frames import ACK_BY_ID, PART, Parser
from .handshake import Handshake
from .heartbeat import HeartBeat
from .limits import Limits
from .link import Translate, untranslated
from .login import Login, NoCommonVersion
from .mapping import outgoing
from .outbox import Outbox, Piece
from .refusals import REFUSALS, error_frame, sentences
from .sections import CLIENT_COMMANDS, Malformed, Section, SectionMemory, on_wire
from .subscriptions import Subscriptions
from .temporaries import Temporaries
from .tokens import Farewell, Receipt, Subscribed, Unsubscribed
from .unconfirmed import Unconfirmed

CONNECTING = frozenset(("CONNECT", "STOMP"))
CONNECTED_COMMANDS = CLIENT_COMMANDS - CONNECTING
EFFORT_MAX = 10_000
"""Of one call, in microseconds, and of one frame more; the node has other clients."""
FRAMES_MAX = 1_000
"""Of one call, whatever they are: a microsecond or two each."""
SECTION_EFFORT = 8
"""Of a header section that is read for itself."""
PARENTHESIS_EFFORT = 10
"""Of one in a selector, besides a microsecond for each octet of it."""


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


Event = Command | Login | BodyPart


class Connection:
    """`instance` names the node's installation in message-ids: letters, digits, dot and dash."""

    def __init__(
        self, peer: int, limits: Limits, server: str, instance: str, now: int, memory: SectionMemory | None = None, translate: Translate = untranslated
    ) -> None:
        """`memory`: what the node's connections remember together; None: this one remembers for itself. `translate`: messages of other protocols."""
        self.wants_close = False
        self.close_reason = ""
        """A sentence for the log, without secrets."""
        self.version = "1.0"
        self.unfinished = False
        """There are frames left that took too long for one call: `receive_data` is to be called again, if only with nothing."""
        self.effort = 0
        """What was parsed last took about so long, in microseconds, beside what every frame takes."""
        self.listening = True
        """To be set False while the listener does not read for reasons of its own: the peer's silence is then not counted."""
        self.forwards = False
        """See engine.commands.Open; to be set before the login."""
        self._peer = peer
        self._limits = limits
        self._memory = memory
        self._instance = instance
        self._translate = translate
        self._phase = Phase.WAITING
        self._handshake = Handshake(limits, server, now)
        self._parser = Parser(limits, CONNECTING, self._prepare)
        self._parser.expect(CONNECTING, "comes before CONNECT")
        self._heart = HeartBeat(0, 0, now)
        self._known_to_engine = False
        self.producers = Producers(peer)
        self._temporaries = Temporaries(instance)
        self._subscriptions = Subscriptions(peer, limits, self.version, instance, self._temporaries)
        self._unconfirmed = Unconfirmed(limits)
        self._out = Outbox()

    # -- what the listener asks ---------------------------------------------------------------------------------------------------------
    @property
    def wants_pause(self) -> bool:
        """True: read nothing for now. A login is being checked, or too many sends are unconfirmed and nothing else comes here (R20)."""
        if self._phase is Phase.LOGGING_IN:
            return True
        return not self._subscriptions and self._unconfirmed.full

    @property
    def subscribed(self) -> bool:
        """It has subscriptions, so its ACKs must go on being read."""
        return bool(self._subscriptions)

    @property
    def kept_octets(self) -> int:
        """Octets received and held."""
        return self._parser.kept_octets + len(self._handshake.early)

    def next_deadline(self) -> int | None:
        """The instant at which tick is due; None: no timer needed."""
        if self._phase is Phase.WAITING:
            return self._handshake.deadline
        if self._phase in (Phase.OPEN, Phase.LEAVING):
            return self._heart.next_deadline()
        return None

    def data_to_send(self) -> list[Piece]:
        """What to write, in order; a LargeBody means its octets, read from the store. Not given twice."""
        return self._out.take() if self._out else []

    # -- from the socket ----------------------------------------------------------------------------------------------------------------
    def receive_data(self, data: bytes, now: int) -> list[Event]:
        """What `data` asks for: engine commands, Login, BodyPart, in order."""
        self._heart.received_at = now
        if self._phase is Phase.WAITING or self._phase is Phase.OPEN:
            return self._read(data)
        if self._phase is Phase.LOGGING_IN:
            self._handshake.early += data
            if self.kept_octets > self._limits.early_octets_max:
                self._fail(f"more than {self._limits.early_octets_max} octets were sent before CONNECTED")
        return []

    @property
    def is_leaving(self) -> bool:
        """The client has said DISCONNECT, and is to be answered."""
        return self._phase is Phase.LEAVING

    def receive_eof(self, now: int) -> list[Event]:
        """The socket is gone. PeerLost if the engine knows this peer; nothing the second time."""
        if self._phase is not Phase.CLOSED:
            self._close("the peer closed the connection")
        known, self._known_to_engine = self._known_to_engine, False
        return [PeerLost(self._peer)] if known else []

    def tick(self, now: int) -> list[Event]:
        """Do what is due: give up a silent peer, send a heart-beat."""
        if self._phase is Phase.WAITING:
            if now >= self._handshake.deadline:
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
    def accept(self, account: str, session: str, now: int, mapping: LevelMapping = UNMAPPED, told: str = "") -> list[Event]:
        """Let the client in: CONNECTED is queued; the engine's Open, then whatever the client sent meanwhile. `session`: `<instance>-<epoch>-<number>`,
        which no other connection has or will have. `mapping`: the account's, of delivery modes to levels. `told`: the
        administered object that the client asked for, as JSON."""
        if self._phase is not Phase.LOGGING_IN:
            return []
        self._phase = Phase.OPEN
        self._known_to_engine = True
        self._temporaries.session = session
        handshake = self._handshake
        self._heart = HeartBeat(*handshake.beats, now)
        self._out.append(handshake.connected(session, told))
        self._parser.version = self.version
        handshake.mapping = handshake.mapping.over(mapping)
        if self._memory is not None and not handshake.client_id and handshake.mapping == UNMAPPED:  # what is prepared says both
            self._parser.share(self._memory)
        self._parser.expect(CONNECTED_COMMANDS, "is not a command that a client may send now")
        return [Open(self._peer, account, handshake.client_id, session, self.forwards), *self._read(handshake.take_early())]

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
                    unconfirmed.octets -= unconfirmed.sizes.popleft()
                else:
                    self._confirmed(token)
            elif output.__class__ is Delivered:
                link = self._subscriptions.link(output.link)
                if link is not None:
                    link.write(output, out)
            elif output.__class__ is Refused:
                self._refused(output)
            elif output.__class__ is Attached:
                self._subscribed(output.token, output.credit)
            elif output.__class__ is Browsed:
                link = self._subscriptions.link(output.link)
                if link is not None:
                    out.append(link.end_of_browsing())
            elif output.__class__ is Detached:
                self._error(REFUSALS[output.refusal], sentences(output.refusal, output.detail))
        if out:
            self._heart.sent_at = now

    def _subscribed(self, token: Receipt, credit: int) -> None:
        """Who knows how far he is delivered ahead does not wait for more with acknowledgements that would make room for it."""
        octets = self._limits.outstanding_octets_max
        self._out.append(b"RECEIPT\nreceipt-id:%b\nprefetch-count:%d\nprefetch-octets:%d\n\n\0" % (token.receipt, credit, octets))

    def _confirmed(self, token: object) -> None:
        if isinstance(token, Unsubscribed):
            self._subscriptions.forget(token.link)
        if isinstance(token, Subscribed):
            self._subscribed(token, token.credit)
        elif isinstance(token, Unsubscribed | Receipt | Farewell) and token.receipt is not None:
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
        if refused.refusal is Refusal.TEMPORARY_DESTINATION_GONE:
            # Who waited for the reply is gone. That must not end the connection that answers thousands of others: the reply is over, and the engine
            # has counted it.
            if receipt is not None:
                self._out.append(b"RECEIPT\nreceipt-id:%b\n\n\0" % receipt)
                self._unconfirmed.octets -= self._unconfirmed.sizes.popleft()
            return
        self._error(REFUSALS[refused.refusal], sentences(refused.refusal, refused.detail), receipt)

    # -- frames -------------------------------------------------------------------------------------------------------------------------
    def _read(self, data: bytes) -> list[Event]:
        """Parse and map. SEND is mapped here without a call, it is the hot path; its section was prepared when it first came."""
        self.effort = 0
        commands: list[Event] = []
        append, peer, parser, unconfirmed = commands.append, self._peer, self._parser, self._unconfirmed.sizes.append
        unconfirmed_octets = 0
        events = parser.events(data)
        try:
            for section, receipt, body in islice(events, FRAMES_MAX):
                prepared = section.prepared
                if prepared is not None:
                    address, header, octets, replies = prepared
                    size = octets + (len(body) if body is not None else parser.body_octets)
                    if receipt is not None:
                        held = size if body is not None else octets  # a large body is in the store, not in memory
                        unconfirmed(held)
                        unconfirmed_octets += held
                    message = Message(header, body, size)
                    if section.transaction is None:
                        append(Request(peer, receipt, address, message, replies) if replies else Send(peer, receipt, address, message))
                    else:
                        send = Request(peer, None, address, message, replies) if replies else Send(peer, None, address, message)
                        append(Transacted(peer, section.transaction, send, receipt))
                elif section is ACK_BY_ID:
                    self._subscriptions.settle_by_id(body, Outcome.ACCEPTED, None, commands)  # type: ignore[arg-type]
                elif section is PART:
                    append(BodyPart(body))  # type: ignore[arg-type]
                elif section.command == "SEND":
                    self._administer(section, receipt, body, commands)
                else:
                    self._frame(section, commands)
                    if self._phase is not Phase.OPEN:
                        break
                    if self.effort > EFFORT_MAX:
                        break
        except NoCommonVersion as malformed:
            self._error("unsupported protocol version", malformed.sentence, None, f"version:{','.join(VERSIONS)}\n")
        except Malformed as malformed:
            self._fail(malformed.sentence, malformed.receipt)
        finally:
            self.unfinished = self._phase is Phase.OPEN and not parser.exhausted
            if self.unfinished:
                self.effort += FRAMES_MAX
            events.close()
            self._unconfirmed.octets += unconfirmed_octets
            if parser.turned:
                for section in parser.turned:
                    self.producers.meet(section.prepared[0], self._heart.received_at)
                parser.turned.clear()
            if self._phase is Phase.LEAVING or self._phase is Phase.CLOSED:
                parser.discard()
        if self._phase is Phase.OPEN and self._subscriptions:
            excess = self._unconfirmed.excess()
            if excess:
                self._fail(excess)
        return commands

    def _administer(self, section: Section, receipt: bytes | None, body: bytes | None, commands: list[Event]) -> None:
        """A SEND that is no message, but a request of a transaction manager. Raises Malformed."""
        token = None if receipt is None else Receipt(receipt)
        self.effort += SECTION_EFFORT
        try:
            commands.append(administer(self._peer, section.headers, body, section.transaction, token, self._temporaries))
        except Malformed as malformed:
            malformed.receipt = receipt
            raise

    def _prepare(self, headers: dict[str, str], lines: bytes | None) -> tuple[str, Header, int, str] | None:
        """What the parser keeps with a header section of SEND; None: it is no message."""
        self.effort += SECTION_EFFORT
        if headers.get("destination") in DESTINATIONS:
            return None
        handshake = self._handshake
        address, header, replies = outgoing(headers, lines, handshake.client_id, self._temporaries, handshake.mapping)
        return address, header, len(header.octets), replies

    def _frame(self, section: Section, commands: list[Event]) -> None:
        """Any frame but SEND and the plain ACK. Raises Malformed with the receipt that the frame asked for."""
        command, headers = section.command, section.headers
        self.effort += SECTION_EFFORT
        receipt = headers.get("receipt")
        wire = None if receipt is None or command in CONNECTING else escape(receipt, self.version).encode()
        token = None if wire is None else Receipt(wire)
        try:
            if command in CONNECTING:
                self._connect(headers, commands)
            elif command == "SUBSCRIBE":
                selector = headers.get("selector", "")
                self.effort += len(selector) + PARENTHESIS_EFFORT * selector.count("(")
                commands.append(self._subscriptions.subscribe(headers, token))
            elif command == "UNSUBSCRIBE":
                commands += self._subscriptions.unsubscribe(headers, wire)
            elif command in ("ACK", "NACK"):
                self._subscriptions.settle(command, headers, token, commands)
                self.effort += self._subscriptions.effort
                self._subscriptions.effort = 0
            elif command == "DISCONNECT":
                commands += self._subscriptions.close_all()
                commands.append(Sync(self._peer, Farewell(wire)))
                self._phase = Phase.LEAVING
            elif "xid" in headers:
                commands.append(branch_frame(self._peer, command, headers, token, self.version))
            else:
                name = _transaction_of(command, headers, self.version)
                commands.append(Begin(self._peer, name, token) if command == "BEGIN" else End(self._peer, name, command == "COMMIT", token))
        except Malformed as malformed:
            malformed.receipt = wire
            raise

    def _connect(self, headers: dict[str, str], commands: list[Event]) -> None:
        login = self._handshake.read(headers)
        self.version = self._handshake.version
        client_id = self._handshake.client_id
        self._subscriptions = Subscriptions(self._peer, self._limits, self.version, self._instance, self._temporaries, client_id, self._translate)
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
        self.unfinished = False  # what is left of its frames is dropped
        self.wants_close = True
        self.close_reason = reason
        self._parser.discard()
        self._handshake.early = bytearray()


def _transaction_of(command: str, headers: dict[str, str], version: str) -> bytes:
    if "phase" in headers:
        raise Malformed("XAER_INVAL: header phase is for branches of distributed transactions: COMMIT needs header xid, too")
    name = on_wire(headers.get("transaction"), version)
    if not name:
        raise Malformed(f"{command} needs header transaction")
    return name
