"""Engine time (R12): the database's clock at acquisition plus our monotonic clock, never before the last instant in the ledger."""

from __future__ import annotations

import time


class Clock:
    """Instants in ms since the epoch."""

    __slots__ = ("_last", "_offset")

    def __init__(self, database_ms: int, at_monotonic: float) -> None:
        """`database_ms`: the database's clock when ours, time.monotonic(), stood at `at_monotonic`."""
        self._offset = database_ms - int(at_monotonic * 1000)
        self._last = 0

    def not_before(self, instant_ms: int) -> None:
        self._last = max(self._last, instant_ms)

    def now(self) -> int:
        """Never decreasing."""
        self._last = max(self._last, int(time.monotonic() * 1000) + self._offset)
        return self._last
