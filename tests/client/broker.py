"""The other end of a client machine: what a broker reads and says, by hand, with a clock that stands still until it is moved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from broker_core.client import AcknowledgeMode, JMSException, Message, Queue, Topic
from broker_core.client.machine import Confirmation, ConnectionMachine, ConsumerMachine, ProducerMachine, SessionMachine, Subscription
from broker_core.client.settings import Settings
from broker_core.stomp.frames import ACK_BY_ID, Parser
from broker_core.stomp.limits import Limits
from broker_core.stomp.sections import CLIENT_COMMANDS

LIMITS = Limits(large_body_octets=Limits().body_octets_max)
INSTANT = 1_700_000_000_000
"""The time of day, in ms since 1970."""
Cut = Callable[[bytes], list[bytes]]


def whole(octets: bytes) -> list[bytes]:
    return [octets]


def byte_by_byte(octets: bytes) -> list[bytes]:
    return [octets[at : at + 1] for at in range(len(octets))]


@dataclass
class Frame:
    """What the broker read. Compared with what is expected by `said`."""

    command: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def receipt(self) -> str | None:
        return self.headers.get("receipt")


def frames_in(parser: Parser, octets: bytes) -> list[Frame]:
    """What a client wrote, for a reader that wants no shortcuts."""
    frames = []
    for section, receipt, body in parser.events(octets):
        assert body is not None
        if section is ACK_BY_ID:
            frames.append(Frame("ACK", {"id": body.decode()}))
            continue
        headers = dict(section.headers)
        if section.transaction is not None:
            headers["transaction"] = section.transaction.decode()
        if receipt is not None:
            headers["receipt"] = receipt.decode()
        headers.pop("content-length", None)
        frames.append(Frame(section.command, headers, body))
    return frames


class Broker:
    """`client` is the machine; it is connected."""

    def __init__(self, *, client_id: str = "", cut: Cut = whole, connected: bool = True, **settings: Any) -> None:
        self.now = 1_000_000
        self.client = ConnectionMachine(Settings(**settings), "guest", "secret", client_id)
        self.client.owner = "connection"
        self._cut = cut
        self._parser = Parser(LIMITS, CLIENT_COMMANDS)
        self._tags: dict[str, int] = {}
        self._sequence = 100
        self.subscribed = Frame("")
        """The last SUBSCRIBE."""
        if connected:
            self.lets_in()

    # -- hearing ------------------------------------------------------------------------------------------------------------------------
    def hears(self) -> list[Frame]:
        """The frames that the client has written since the last time."""
        return frames_in(self._parser, self.client.data_to_send())

    def heard(self) -> list[str]:
        """The same in short."""
        return [short(frame) for frame in self.hears()]

    # -- saying -------------------------------------------------------------------------------------------------------------------------
    def says(self, octets: bytes) -> None:
        for chunk in self._cut(octets):
            self.client.receive_data(chunk, self.now)
            while self.client.has_more:
                self.client.proceed(self.now)

    def lets_in(self, heart_beat: str = "0,0", session: str = "n-1-7") -> Frame:
        """Whoever said CONNECT; returns that."""
        self.client.connect("broker", self.now)
        self._parser = Parser(LIMITS, CLIENT_COMMANDS)
        (connect,) = self.hears()
        self._parser.version = "1.2"
        self._tags = {}
        self.says(f"CONNECTED\nversion:1.2\nserver:Surety/1\nsession:{session}\nheart-beat:{heart_beat}\n\n\0".encode())
        return connect

    def confirms(self, *frames: Frame) -> None:
        """Their receipts; without frames, those of everything that the client has written and that asks for one."""
        for frame in frames or self.hears():
            if frame.receipt is not None:
                self.says(b"RECEIPT\nreceipt-id:%b\n\n\0" % frame.receipt.encode())

    def refuses(self, message: str, body: str = "", receipt: str | None = None) -> None:
        asked = "" if receipt is None else f"receipt-id:{receipt}\n"
        self.says(f"ERROR\nmessage:{message}\n{asked}content-length:{len(body)}\n\n{body}\0".encode())

    def message(self, consumer: ConsumerMachine, body: bytes = b"hello", lines: str = "", redelivered: bool = False) -> bytes:
        """A MESSAGE for the consumer. Its ack is `<subscription>.<n>`, n counting from 1."""
        subscription = consumer.subscription.decode()
        tag = self._tags[subscription] = self._tags.get(subscription, 0) + 1
        self._sequence += 1
        ack = "" if consumer.acknowledging.wire == "auto" else f"ack:{subscription}.{tag}\n"
        flag = "redelivered:true\n" if redelivered else ""
        head = f"MESSAGE\nsubscription:{subscription}\nmessage-id:ID\\cn-{self._sequence}\n{ack}{flag}timestamp:1700\n"
        return f"{head}destination:{consumer.what.destination.address}\n{lines}content-length:{len(body)}\n\n".encode() + body + b"\0"

    def delivers(self, consumer: ConsumerMachine, count: int = 1, **message: Any) -> None:
        self.says(b"".join([self.message(consumer, **message) for _ in range(count)]))

    def loses_the_connection(self) -> None:
        self.client.lost(JMSException("the cable is cut", "CONNECTION_LOST"), self.now)

    # -- time ---------------------------------------------------------------------------------------------------------------------------
    def passes(self, ms: int) -> None:
        """So much time, in which the client does what is due when it is due."""
        end = self.now + ms
        while (deadline := self.client.next_deadline()) <= end:
            self.now = max(self.now, deadline)
            self.client.tick(self.now)
        self.now = end
        self.client.tick(end)

    # -- the application ----------------------------------------------------------------------------------------------------------------
    def session(self, mode: AcknowledgeMode = AcknowledgeMode.AUTO) -> SessionMachine:
        session = self.client.open_session(mode)
        session.owner = f"session {mode.name}"
        return session

    def consumer(self, session: SessionMachine, destination: Queue | Topic | str = "a", **what: Any) -> ConsumerMachine:
        """A consumer that the broker has confirmed."""
        target = Queue(destination) if isinstance(destination, str) else destination
        consumer, confirmation = session.create_consumer(Subscription(destination=target, **what))
        frames = self.hears()
        self.subscribed = frames[-1]
        self.confirms(*frames)
        assert confirmation.is_settled and confirmation.error is None
        return consumer

    def producer(self, session: SessionMachine, destination: str = "a") -> ProducerMachine:
        return ProducerMachine(session, Queue(destination))

    def receive(self, consumer: ConsumerMachine) -> tuple[Message, Confirmation | None]:
        """What receive() does before it waits: the message, and what it waits for."""
        taken = consumer.receive(self.now, INSTANT)
        assert taken is not None, "there is no message"
        return taken

    def consume(self, consumer: ConsumerMachine, count: int = 1) -> list[Message]:
        """So many are delivered and received."""
        self.delivers(consumer, count)
        return [self.receive(consumer)[0] for _ in range(count)]


def short(frame: Frame) -> str:
    """`ACK 1.5`, `SEND /queue/a`, `COMMIT 1t1`; with `?` if a receipt is asked for."""
    headers = frame.headers
    subject = next((headers[name] for name in ("destination", "id", "transaction") if name in headers), "")
    if frame.command in ("ACK", "NACK", "SEND") and "transaction" in headers:
        subject += f" in {headers['transaction']}"
    if frame.command == "ACK" and "ack" in headers:
        subject += " only"
    return f"{frame.command} {subject}".strip() + ("?" if frame.receipt is not None else "")
