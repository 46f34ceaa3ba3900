"""Idle time-outs of one connection, both ways (transport 2.4.5). Times in milliseconds."""

from __future__ import annotations

NOTICE = 2
"""We say half of the silence that we bear, so that a peer that keeps to it is never given up; and speak twice as often as we are asked to."""
INTERVAL_MIN = 100
"""A peer that asks for more often than ten frames a second asks for too much; it gets this."""


class Idle:
    def __init__(self, silence_ms: int, now: int) -> None:
        self.received_at = self.sent_at = now
        self.silence_ms = silence_ms
        """How long the peer may be silent."""
        self._send_ms = 0

    @property
    def told(self) -> int:
        """Our idle-time-out, as the peer is told."""
        return self.silence_ms // NOTICE

    def wants(self, idle_time_out: int | None) -> None:
        """The peer's; 0 or None: it has none."""
        self._send_ms = max(idle_time_out // NOTICE, INTERVAL_MIN) if idle_time_out else 0

    def send_due(self, now: int) -> bool:
        return bool(self._send_ms) and now >= self.sent_at + self._send_ms

    def is_silent(self, now: int) -> bool:
        return now >= self.received_at + self.silence_ms

    def next_deadline(self) -> int:
        deadline = self.received_at + self.silence_ms
        return min(deadline, self.sent_at + self._send_ms) if self._send_ms else deadline
