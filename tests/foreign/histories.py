"""Seeded histories of carriers between two brokers that are models: connections break at any octet, receipts are lost, the target refuses some messages,
and bodies come in pieces of any size. What must hold at the end: every message is at the target or dead, and nothing came twice but after a failure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from random import Random


from broker_core.foreign.carrier import Carrier
from broker_core.foreign.end import PART_OCTETS, Access, End
from tests.support.clients import Frame, FrameReader, encode

NEAR, FAR = Access("near", kind="surety"), Access("far", kind="surety")
REDELIVERIES = 3
STEPS_MAX = 20_000


class Broken(AssertionError):
    pass


@dataclass
class Source:
    """A queue: what is not acknowledged comes back to its head."""

    waiting: deque[int]
    prefetch: int = 0
    unsettled: dict[str, int] = field(default_factory=dict)
    acknowledged: list[int] = field(default_factory=list)
    failures: dict[int, int] = field(default_factory=dict)
    dead: list[int] = field(default_factory=list)
    delivered: set[int] = field(default_factory=set)
    tags: int = 0

    def lose(self) -> None:
        self.waiting.extendleft(sorted(self.unsettled.values(), reverse=True))
        self.unsettled, self.prefetch = {}, 0

    def take(self, frame: Frame) -> list[bytes]:
        if frame.command == "CONNECT":
            return [encode("CONNECTED", {"version": "1.2"})]
        if frame.command == "SUBSCRIBE":
            self.prefetch = int(frame.headers["prefetch-count"])
            return []
        number = self.unsettled.pop(frame.headers["id"])
        if frame.command == "ACK":
            self.acknowledged.append(number)
            return []
        self.failures[number] = self.failures.get(number, 0) + 1
        if self.failures[number] > REDELIVERIES:
            self.dead.append(number)
        else:
            self.waiting.appendleft(number)
        return [encode("RECEIPT", {"receipt-id": frame.headers["receipt"]})]

    def deliver(self, bodies: dict[int, bytes]) -> bytes:
        if not self.waiting or len(self.unsettled) >= self.prefetch:
            return b""
        number, self.tags = self.waiting.popleft(), self.tags + 1
        self.unsettled[f"1.{self.tags}"] = number
        headers = {"subscription": "0", "message-id": f"m{number}", "ack": f"1.{self.tags}", "number": str(number), "content-length": str(len(bodies[number]))}
        if number in self.delivered:
            headers["redelivered"] = "true"
        self.delivered.add(number)
        lines = "".join(f"\n{name}:{value}" for name, value in headers.items())
        return f"MESSAGE{lines}\n\n".encode() + bodies[number] + b"\0"


@dataclass
class Target:
    """What it has taken, in order; what it never takes; whether its ERROR says which message it is about."""

    unwanted: frozenset[int]
    precise: bool
    taken: list[tuple[int, bytes, bool]] = field(default_factory=list)
    closed: bool = False

    def take(self, frame: Frame) -> list[bytes]:
        if self.closed:
            return []
        if frame.command == "CONNECT":
            return [encode("CONNECTED", {"version": "1.2"})]
        number = int(frame.headers["number"])
        if number in self.unwanted:
            self.closed = True
            return [encode("ERROR", {"message": "no", **({"receipt-id": frame.headers["receipt"]} if self.precise else {})})]
        self.taken.append((number, frame.body, "foreign-redelivered" in frame.headers))
        return [encode("RECEIPT", {"receipt-id": frame.headers["receipt"]})]


class History:
    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        count = random.choice((1, 5, 40))
        sizes = (0, 3, PART_OCTETS, PART_OCTETS + 1, 3 * PART_OCTETS)
        self.bodies = {number: bytes([number % 251]) * random.choice(sizes if random.random() < 0.2 else sizes[:2]) for number in range(count)}
        self.source = Source(deque(range(count)))
        unwanted = frozenset(number for number in range(count) if random.random() < 0.1) if random.random() < 0.5 else frozenset()
        self.target = Target(unwanted, random.random() < 0.5)
        self.cuts = random.choice((0, 1, 8))
        self.failed = False
        self.now = 1_000_000

    def run(self) -> None:
        cautious = False
        for _ in range(500):
            if not (self.source.waiting or self.source.unsettled):
                break
            carrier = Carrier({"/queue/a": "/queue/b"}, NEAR, FAR, self.now, cautious=cautious, window=self.random.choice((1, 3, 100)))
            self._carry(carrier)
            self.failed = self.failed or bool(carrier.ended)
            self.source.lose()
            cautious = carrier.nameless or (cautious and not carrier.refused)
        self._check()

    def _carry(self, carrier: Carrier) -> None:
        random, self.target.closed = self.random, False
        readers = {id(carrier.source): (FrameReader(), self.source), id(carrier.target): (FrameReader(), self.target)}
        wires: dict[int, bytearray] = {id(carrier.source): bytearray(), id(carrier.target): bytearray()}
        ends = (carrier.source, carrier.target)
        for _ in range(STEPS_MAX):
            if carrier.ended or not (self.source.waiting or self.source.unsettled):
                return
            self.now += 1
            for end in ends:
                reader, broker = readers[id(end)]
                for frame in reader.feed(end.take(self.now)):
                    wires[id(end)] += b"".join(broker.take(frame))
            if random.random() < 0.5:
                wires[id(carrier.source)] += self.source.deliver(self.bodies)
            self._arrive(carrier, random.choice(ends), wires)
            if self.cuts and random.random() < 0.01:
                self.cuts -= 1
                carrier.lost(random.choice(ends), "cut, by chance")
            carrier.tick(self.now)
        raise Broken("it never ends")

    def _arrive(self, carrier: Carrier, end: End, wires: dict[int, bytearray]) -> None:
        """A piece of what a broker said. Nothing is read from the source while that should pause."""
        wire = wires[id(end)]
        if not wire or (end is carrier.source and carrier.wants_pause):
            return
        piece = self.random.choice((1, 50, 5_000, 1 << 20))
        octets = bytes(wire[:piece])
        del wire[:piece]
        carrier.received(end, octets, self.now)

    def _check(self) -> None:
        taken = [number for number, _, _ in self.target.taken]
        for number, body, _ in self.target.taken:
            if body != self.bodies[number]:
                raise Broken(f"message {number} has another body")
        if missing := set(self.bodies) - set(taken) - set(self.source.dead):
            raise Broken(f"messages {sorted(missing)} are lost")
        if innocent := set(self.source.dead) - self.target.unwanted:
            raise Broken(f"messages {sorted(innocent)} are dead, and the target would have taken them")
        if lost := set(self.source.acknowledged) - set(taken):
            raise Broken(f"messages {sorted(lost)} are acknowledged, and the target has not got them")
        if not self.failed and taken != sorted(self.bodies):
            raise Broken(f"nothing failed, and they came as {taken}")
        first: set[int] = set()
        for number, _, told in self.target.taken:
            if number in first and not told:
                raise Broken(f"message {number} came twice, and nobody said so")
            first.add(number)


