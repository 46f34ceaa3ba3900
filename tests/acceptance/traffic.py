"""Producers and consumers for the kill loop: threads that lose their connection, come back and write down what they saw."""

from __future__ import annotations

import random
import threading
import time
import zlib

from tests.acceptance.book import Book
from tests.acceptance.groups import Group
from tests.acceptance.places import Headers, Place, headers_of, places_of
from tests.support.clients import Connection, ConnectionLost, ErrorReceived, Frame, encode, reconnect

WINDOW = 50
"""Sends of one producer not yet confirmed."""
BACKLOG_MAX = 20_000
"""Producers wait when so many confirmed copies are not acknowledged: the end must not become a long drain."""
BATCH = 10
"""Deliveries per cumulative ACK."""
PREFETCH = 100
LEAVE_EVERY, REFUSE_EVERY, LARGE_EVERY, DOUBLED_EVERY = 3_000, 500, 400, 30
"""One delivery in so many is followed by a sudden end of the connection; one answered NACK; one body is larger than 256 KiB;
of what has a name, one in so many is sent twice at once."""
IDLE_SECONDS = 0.2
SILENCE_SECONDS_MAX = 15
"""A connection on which an answer is due and nothing comes for so long is given up: a stopped node closes no socket."""

_FILLER = bytes(range(256)) * 1200


def body_of(send_id: str) -> bytes:
    """The body that belongs to a send id: 60 octets to 4 KiB, sometimes 300 KiB, every octet value in it."""
    digest = zlib.crc32(send_id.encode())
    size = 300_000 if digest % LARGE_EVERY == 0 else 60 + digest % 4_000
    return send_id.encode() + b"\0" + _FILLER[digest % 256 : digest % 256 + size]


def send_headers(send_id: str) -> dict[str, str]:
    """A send id is the message's name and the number of the attempt."""
    return headers_of(send_id.rpartition(".")[0]) | {"send-id": send_id, "content-type": "application/octet-stream"}


class Client(threading.Thread):
    """Runs `work` on one connection after the other until told to stop."""

    client_id = ""

    def __init__(self, name: str, ports: list[int], book: Book, seed: int) -> None:
        super().__init__(name=name, daemon=True)
        self.ports, self.book, self.chance = ports, book, random.Random(f"{seed}{name}")
        self.stopping = threading.Event()
        self.failure: BaseException | None = None
        self.connections = 0
        self._generation = 0

    @property
    def stream(self) -> str:
        """Names this connection and what it sends."""
        return f"{self.name}/{self.connections}"

    def run(self) -> None:
        headers = {"client-id": self.client_id} if self.client_id else {}
        try:
            while not (self.stopping.is_set() and self.is_done()):
                try:
                    self._generation = self.book.generation
                    with reconnect(self.chance.choice(self.ports), seconds_max=0.5, headers=headers) as connection:
                        self.connections += 1
                        self.work(connection)
                except ErrorReceived as error:
                    self.book.note_error(f"{error.frame.headers.get('message', '')}"[:100])
                except ConnectionLost:
                    continue
        except Exception as error:  # noqa: BLE001 (the loop reports it with its seed)
            self.failure = error

    def work(self, connection: Connection) -> None:
        raise NotImplementedError

    def is_done(self) -> bool:
        """It may end when told to stop."""
        return True

    def stop(self) -> None:
        self.stopping.set()

    def refuse_silence(self, since: float) -> None:
        if time.monotonic() - since > SILENCE_SECONDS_MAX:
            raise ConnectionLost("an answer is due and nothing comes")


class Producer(Client):
    """Sends with a window of receipts; repeats what was not confirmed, under a new send id, on the next connection."""

    def __init__(self, *arguments: object, destination: str, pace: float) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.destination = destination
        self.pace = pace
        """Messages a second."""
        self._number = 0
        self._unconfirmed: dict[str, None] = {}
        self._repeat: list[str] = []

    def is_done(self) -> bool:
        return not self._unconfirmed and not self._repeat

    def work(self, connection: Connection) -> None:
        self._repeat += [self._again(send_id) for send_id in self._unconfirmed]
        self._unconfirmed.clear()
        heard = time.monotonic()
        while not (self.stopping.is_set() and self.is_done()):
            while self._repeat and len(self._unconfirmed) < WINDOW:
                self._send(connection, self._repeat.pop(0))
            frames = 0
            while (
                not self._repeat and len(self._unconfirmed) < WINDOW and frames < 10
                and self.book.backlog() < BACKLOG_MAX and not self.stopping.is_set()
            ):  # fmt: skip
                self._number += 1
                frames += 1
                self._send(connection, f"{self.name}-{self._number}.0")
            confirmed = self._receipts(connection, 10 / self.pace)
            if confirmed or not self._unconfirmed:
                heard = time.monotonic()
            self.refuse_silence(heard)
            self.book.confirm(confirmed)

    def _send(self, connection: Connection, send_id: str) -> None:
        self._unconfirmed[send_id] = None
        headers = self._headers(send_id)
        if send_id not in self.book.sends:
            places, delay = places_of(self.destination, headers), int(headers.get("delay", 0))
            self.book.sent(send_id, places, stream=self.stream, delay_ms=delay, group=self._group(headers))
        connection.send(self.destination, body_of(send_id), headers | {"receipt": send_id})

    def _headers(self, send_id: str) -> dict[str, str]:
        return send_headers(send_id)

    def _group(self, _headers: Headers) -> Group | None:
        return None

    def _again(self, send_id: str) -> str:
        """What a message that is in doubt is repeated as."""
        message, _, attempt = send_id.rpartition(".")
        return f"{message}.{int(attempt) + 1}"

    def _receipts(self, connection: Connection, seconds: float) -> list[str]:
        """Receipts that come within `seconds`, which also sets the pace."""
        confirmed = []
        deadline = time.monotonic() + seconds
        try:
            while (frame := connection.receive(max(0.0, deadline - time.monotonic()))) is not None:
                assert frame.command == "RECEIPT", frame
                confirmed.append(frame.headers["receipt-id"])
                del self._unconfirmed[confirmed[-1]]
        except ConnectionLost:
            self.book.confirm(confirmed)
            raise
        return confirmed


class NamingProducer(Producer):
    """Gives every message a name for the broker, and repeats what was not confirmed under the same send id: it must be there once."""

    repeated = 0

    def _send(self, connection: Connection, send_id: str) -> None:
        self.repeated += send_id in self.book.sends
        super()._send(connection, send_id)
        if self.chance.random() < 1 / DOUBLED_EVERY:
            connection.send(self.destination, body_of(send_id), self._headers(send_id))

    def _headers(self, send_id: str) -> dict[str, str]:
        return super()._headers(send_id) | {"duplicate-id": send_id}

    def _again(self, send_id: str) -> str:
        return send_id


class Receiver(Client):
    """Subscribed to a place; writes down what is delivered there."""

    def __init__(self, *arguments: object, place: Place) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.place = place
        self.client_id = place.client_id
        self.subscribed = threading.Event()
        """Once: from then on a durable subscription keeps what is sent."""

    def subscribe(self, connection: Connection, ack: str, prefetch: int) -> None:
        headers = {"id": "0", "destination": self.place.destination, "ack": ack, "prefetch-count": str(prefetch)}
        connection.confirmed("SUBSCRIBE", headers | dict(self.place.subscribe))
        self.subscribed.set()

    def note(self, frame: Frame) -> str:
        """The send id."""
        assert frame.command == "MESSAGE", frame
        send_id = frame.headers["send-id"]
        self.book.deliver(
            self.place.name,
            send_id,
            redelivered=frame.headers.get("redelivered") == "true",
            generation=self._generation,
            intact=self._is_intact(frame),
            alone=self.place.alone,
            holder=self.stream,
        )
        return send_id

    def _is_intact(self, frame: Frame) -> bool:
        return frame.body == body_of(frame.headers["send-id"])


class Consumer(Receiver):
    """Acknowledges singly or cumulatively, each ACK with a receipt; now and then says NACK, now and then dies without a word."""

    leave_every = LEAVE_EVERY
    prefetch = PREFETCH

    def __init__(self, *arguments: object, place: Place, individual: bool) -> None:
        super().__init__(*arguments, place=place)
        self.individual = individual

    def work(self, connection: Connection) -> None:
        self.subscribe(connection, "client-individual" if self.individual else "client", self.prefetch)
        self._acks: dict[str, tuple[float, list[str]]] = {}
        """By receipt: when an ACK left, and what it acknowledges."""
        self._held: list[tuple[str, str]] = []
        self._count = 0
        heard = time.monotonic()
        while not self.stopping.is_set():
            frame = connection.receive(IDLE_SECONDS)
            if frame is not None:
                heard = time.monotonic()
            elif self._acks:
                self.refuse_silence(heard)
            if frame is None or len(self._held) >= BATCH:
                self._acknowledge_held(connection)
            if frame is None:
                continue
            if frame.command == "RECEIPT":
                said_at, send_ids = self._acks.pop(frame.headers["receipt-id"])
                self.book.acknowledge(self.place.name, send_ids, holder=self.stream, said_at=said_at)
            elif not self._take(connection, frame):
                return
        self._acknowledge_held(connection)

    def _take(self, connection: Connection, frame: Frame) -> bool:
        """Note a delivery and answer it. False: this client dies now."""
        send_id = self.note(frame)
        chance = self.chance.random()
        if chance < 1 / self.leave_every:
            self._leave(connection)
            return False
        if self.individual and chance < 1 / self.leave_every + 1 / REFUSE_EVERY:
            self.book.refusing(self.place.name, send_id)
            connection.command("NACK", {"id": frame.headers["ack"]})
        elif self.individual:
            self._acknowledge(connection, frame.headers["ack"], [send_id])
        else:
            self._held.append((frame.headers["ack"], send_id))
        return True

    def _leave(self, connection: Connection) -> None:
        connection.reset()

    def _acknowledge_held(self, connection: Connection) -> None:
        if self._held:
            self._acknowledge(connection, self._held[-1][0], [send_id for _, send_id in self._held])
            self._held = []

    def _acknowledge(self, connection: Connection, ack: str, send_ids: list[str]) -> None:
        self._count += 1
        receipt = f"ack-{self._count}"
        self._acks[receipt] = time.monotonic(), send_ids
        self.book.acknowledging(self.place.name, send_ids)
        connection.raw(encode("ACK", {"id": ack, "receipt": receipt}))
