"""A client that speaks with the connection machine: octets in, frames out, time by hand. Every conversation can be held byte by byte."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from broker_core.engine.commands import Command
from broker_core.engine.message import Header, Message, Reliability, StoredBody
from broker_core.engine.outputs import Confirmed, Delivered, Output
from broker_core.stomp.connection import BodyPart, Connection, Event
from broker_core.stomp.frames import ACK_BY_ID, PART, Parser
from broker_core.stomp.limits import Limits
from broker_core.stomp.login import Login
from broker_core.stomp.outbox import LargeBody
from broker_core.stomp.sections import CLIENT_COMMANDS, SERVER_COMMANDS, Malformed, SectionMemory

PEER = 7
INSTANCE = "node1"
SESSION = f"{INSTANCE}-1-{PEER}"
LINK = PEER * 65536 + 1
"""The engine's number of a connection's first subscription."""
Cut = Callable[[bytes], list[bytes]]
SMALL = Limits(header_octets_max=200, headers_max=5, line_octets_max=60, body_octets_max=1000, large_body_octets=100, part_octets_max=150)


def whole(octets: bytes) -> list[bytes]:
    return [octets]


def byte_by_byte(octets: bytes) -> list[bytes]:
    return [octets[at : at + 1] for at in range(len(octets))]


@dataclass
class Frame:
    command: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


def parse(parser: Parser, stream: bytes, cut: Cut = whole) -> list[Frame]:
    """The frames in `stream`, as a reader sees them who wants no shortcuts."""
    frames, parts = [], []
    for chunk in cut(stream):
        for section, receipt, body in parser.events(chunk):
            if section is PART:
                assert body is not None
                parts.append(body)
                continue
            if section is ACK_BY_ID:
                assert body is not None
                frames.append(Frame("ACK", {"id": body.decode()}))
                continue
            headers = dict(section.headers)
            if receipt is not None:
                headers["receipt"] = receipt.decode()
            octets = body if body is not None else b"".join(parts)
            if body is None:
                parts = []
                assert len(octets) == parser.body_octets
            frames.append(Frame(section.command, headers, octets))
    return frames


def client_parser(version: str = "1.2", limits: Limits | None = None) -> Parser:
    """For what clients send."""
    parser = Parser(limits or Limits(), CLIENT_COMMANDS)
    parser.version = version
    return parser


def refusal(octets: bytes, cut: Cut, version: str = "1.2", limits: Limits | None = None) -> str:
    """The sentence with which `octets` are refused."""
    with pytest.raises(Malformed) as refused:
        parse(client_parser(version, limits), octets, cut)
    return refused.value.sentence


class Client:
    """One client and the machine that serves it."""

    def __init__(
        self, version: str = "1.2", cut: Cut = whole, limits: Limits | None = None, memory: SectionMemory | None = None, session: str = SESSION
    ) -> None:
        self.version = version
        self.session = session
        self.cut = cut
        self.now = 1_000_000
        self.limits = limits if limits is not None else Limits()
        self.machine = Connection(PEER, self.limits, "Surety/0.1.0", INSTANCE, self.now, memory)
        self._reader = Parser(Limits(), SERVER_COMMANDS)

    def says(self, octets: bytes) -> list[Event]:
        events = []
        for chunk in self.cut(octets):
            events += self.machine.receive_data(chunk, self.now)
        return events

    def connects(self, headers: bytes = b"") -> list[Event]:
        """CONNECT, with a login that is accepted; everything that the machine then has for the engine."""
        accept = b"" if self.version == "1.0" else b"accept-version:%b\n" % self.version.encode()
        events = self.says(b"CONNECT\n%bhost:/\nlogin:guest\npasscode:secret\n%b\n\0" % (accept, headers))
        assert [type(event) for event in events] == [Login], self.machine.close_reason
        events = self.machine.accept("guest", self.session, self.now)
        (connected,) = self.hears()
        assert connected.command == "CONNECTED" and connected.headers["version"] == self.version
        return events

    def octets(self) -> bytes:
        """What the machine wants to write; of a stored body, its name."""
        pieces = self.machine.data_to_send()
        return b"".join([b"<body %d>" % piece.stored.body if isinstance(piece, LargeBody) else piece for piece in pieces])

    def hears(self) -> list[Frame]:
        self._reader.version = self.machine.version
        return parse(self._reader, self.octets())

    def error(self) -> Frame:
        """The one ERROR frame; the connection is to be closed."""
        frames = self.hears()
        assert [frame.command for frame in frames] == ["ERROR"], frames
        assert self.machine.wants_close
        assert frames[0].headers["content-length"] == str(len(frames[0].body))
        return frames[0]

    def gets(self, *outputs: Output) -> None:
        self.machine.send(outputs, self.now)

    def confirm(self, events: list[Event]) -> None:
        """The engine confirms everything that asked for it."""
        self.gets(*[Confirmed(PEER, event.token) for event in events if getattr(event, "token", None) is not None])

    def is_delivered(self, link: int, *messages: Message, tag: int = 1) -> None:
        self.gets(Delivered(PEER, link, tag, list(messages)))

    def subscribes(self, ack: bytes = b"client", subscription: bytes = b"0", destination: bytes = b"/queue/a") -> int:
        """The engine's number of a new subscription."""
        (attach,) = self.says(b"SUBSCRIBE\nid:%b\ndestination:%b\nack:%b\n\n\0" % (subscription, destination, ack))
        return attach.link


def message(
    octets: bytes = b"destination:/queue/a",
    body: bytes | StoredBody = b"hello",
    sequence: int = 5,
    accepted_at: int = 1700,
    **header: object,
) -> Message:
    shared = Header(octets, reliability=Reliability.ASSURED, **header)  # type: ignore[arg-type]
    made = Message(shared, body, len(octets) + (len(body) if isinstance(body, bytes) else body.size))
    made.sequence = sequence
    made.accepted_at = accepted_at
    made.position = sequence
    made.destination = 1
    return made


def commands(events: list[Event]) -> list[Command]:
    """The engine's part of the events."""
    return [event for event in events if not isinstance(event, Login | BodyPart)]


def connected(cut: Cut, version: str = "1.2", limits: Limits | None = None) -> Client:
    client = Client(version, cut, limits)
    client.connects()
    return client


def subscribed(cut: Cut, mode: bytes, version: str = "1.2", limits: Limits | None = None) -> Client:
    """A client with subscription 0 and five messages, numbered 100 to 104, delivered to it."""
    client = connected(cut, version, limits)
    client.is_delivered(client.subscribes(mode), *[message(sequence=100 + n) for n in range(5)])
    client.octets()
    return client
