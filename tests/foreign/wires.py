"""A carrier between two brokers of a test, which says what each of them says; octets, and a clock that stands until it is moved."""

from __future__ import annotations

from collections.abc import Mapping

from broker_core.foreign.carrier import Carrier
from broker_core.foreign.end import Access, End
from tests.support.clients import Frame, FrameReader, encode

START = 1_000_000
NEAR, FAR = Access("this broker", kind="surety"), Access("far:61613", "user", "secret", "vhost", 1000, "activemq")
ROUTES = {"/queue/a": "/queue/there.a", "/queue/b": "/queue/there.b"}


class Wires:
    """`source` and `target` say what the carrier has written to each, since it was last asked."""

    def __init__(self, routes: Mapping[str, str] = ROUTES, *, source: Access = NEAR, target: Access = FAR, opened: bool = True, **how: object) -> None:
        self.now = START
        self.carrier = Carrier(routes, source, target, self.now, **how)  # type: ignore[arg-type]
        self._readers = {id(self.carrier.source): FrameReader(), id(self.carrier.target): FrameReader()}
        if opened:
            for end in (self.carrier.source, self.carrier.target):
                self.connect(end)
            self.source()
            self.target()

    def connect(self, end: End, version: str = "1.2", heart_beat: str = "1000,1000") -> None:
        self.says(end, "CONNECTED", {"version": version, "heart-beat": heart_beat})

    def says(self, end: End, command: str, headers: Mapping[str, str], body: bytes = b"") -> None:
        self.octets(end, encode(command, headers, body))

    def octets(self, end: End, octets: bytes) -> None:
        self.carrier.received(end, octets, self.now)

    def source(self) -> list[Frame]:
        return self._readers[id(self.carrier.source)].feed(self.carrier.source.take(self.now))

    def target(self) -> list[Frame]:
        return self._readers[id(self.carrier.target)].feed(self.carrier.target.take(self.now))

    def deliver(self, number: int, body: bytes = b"x", subscription: str = "0", **headers: str) -> None:
        said = {"subscription": subscription, "message-id": f"ID:s-{number}", "ack": f"1.{number}", "destination": "/queue/a", **headers}
        self.says(self.carrier.source, "MESSAGE", said, body)

    def confirm(self, frame: Frame) -> None:
        self.says(self.carrier.target, "RECEIPT", {"receipt-id": frame.headers["receipt"]})

    def passes(self, ms: int) -> None:
        self.now += ms
        self.carrier.tick(self.now)
