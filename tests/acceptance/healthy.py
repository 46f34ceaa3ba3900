"""Traffic that must not be disturbed: one connection sends, receives and acknowledges, and notes how long each round took."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

from tests.support.clients import Connection, ConnectionLost

ROUND_SECONDS_MAX = 20


class HealthyTraffic(threading.Thread):
    """A context manager. A round is a confirmed SEND, its MESSAGE and a confirmed ACK; `failure` says what went wrong, if anything did."""

    def __init__(self, port: int, queue: str, *, pause: float = 0.01, round_seconds_max: float = ROUND_SECONDS_MAX) -> None:
        super().__init__(daemon=True)
        self.connection = Connection(port)
        self.connection.subscribe(queue)
        self.queue, self.pause, self.round_seconds_max = queue, pause, round_seconds_max
        self.rounds = 0
        self.slowest = 0.0
        self.failure: BaseException | None = None
        self._stopping = threading.Event()

    def run(self) -> None:
        try:
            while not self._stopping.is_set():
                began = time.monotonic()
                self._round(b"round %d" % self.rounds)
                self.slowest = max(self.slowest, time.monotonic() - began)
                self.rounds += 1
                time.sleep(self.pause)
        except (ConnectionLost, AssertionError) as error:
            self.failure = error

    def _round(self, body: bytes) -> None:
        self.connection.confirmed("SEND", {"destination": self.queue, "persistent": "true"}, body, timeout=self.round_seconds_max)
        message = self.connection.expect("MESSAGE", self.round_seconds_max)
        assert message.body == body, f"expected {body!r}, got {message}"
        assert message.headers.get("redelivered", "false") == "false", message
        self.connection.confirmed("ACK", {"id": message.headers["ack"]}, timeout=self.round_seconds_max)

    def unharmed(self) -> None:
        """Raises AssertionError if the traffic failed or does not go on."""
        before, deadline = self.rounds, time.monotonic() + self.round_seconds_max
        while self.failure is None and self.rounds < before + 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert self.failure is None, f"after {self.rounds} rounds: {self.failure!r}"
        assert self.rounds >= before + 2, f"healthy traffic stands still after {self.rounds} rounds"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stopping.set()
        self.join(self.round_seconds_max)
        self.connection.close()
