"""Heart-beats of one connection, both ways (STOMP 1.2, "Heart-beating"). Times in milliseconds."""

from __future__ import annotations

from .mapping import quoted
from .sections import Malformed

TOLERANCE = 2
"""The peer counts as dead after so many agreed intervals without an octet; the specification asks for an error margin."""


def negotiate(wanted: str | None, interval_min: int) -> tuple[int, int]:
    """The intervals agreed with a client that sent `wanted`: (we send every, we hear from it every); 0: not at all. Raises Malformed.

    We offer and ask for `interval_min` both ways, so the longer of it and the client's figure holds.
    """
    if wanted is None:
        return 0, 0
    parts = wanted.split(",")
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() and len(part) <= 9 for part in parts):
        raise Malformed(f"header heart-beat is {quoted(wanted)}, not two numbers of milliseconds")
    can_send, wants = int(parts[0]), int(parts[1])
    return (max(interval_min, wants) if wants else 0), (max(interval_min, can_send) if can_send else 0)


class HeartBeat:
    """When to send a line feed, and when to give the peer up."""

    def __init__(self, send_ms: int, receive_ms: int, now: int) -> None:
        self.sent_at = self.received_at = now
        self._silence_ms = receive_ms * TOLERANCE
        # Three quarters of what was agreed, so that a late timer does not break the promise.
        self._send_ms = send_ms - send_ms // 4

    @property
    def silence_ms(self) -> int:
        """How long the peer may be silent; 0: for ever."""
        return self._silence_ms

    def send_due(self, now: int) -> bool:
        return bool(self._send_ms) and now >= self.sent_at + self._send_ms

    def is_silent(self, now: int) -> bool:
        return bool(self._silence_ms) and now >= self.received_at + self._silence_ms

    def next_deadline(self) -> int | None:
        deadlines = []
        if self._send_ms:
            deadlines.append(self.sent_at + self._send_ms)
        if self._silence_ms:
            deadlines.append(self.received_at + self._silence_ms)
        return min(deadlines, default=None)
