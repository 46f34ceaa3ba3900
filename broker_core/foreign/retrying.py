"""When a link that was lost is tried again."""

from __future__ import annotations

FIRST_MS = 250
MOST_MS = 30_000
STEADY_MS = 60_000
"""Connected for so long, it has not failed in a row."""


class BackOff:
    """Twice as long each time, up to a half minute, and less a part of it by chance: else all links would come back to a broker at the same moment."""

    def __init__(self, first_ms: int = FIRST_MS, most_ms: int = MOST_MS) -> None:
        self._first, self._most = first_ms, most_ms
        self._failures = 0

    def failed(self, chance: float) -> int:
        """How long to wait, in ms. `chance`: from 0 up to 1."""
        longest = min(self._first * 2 ** min(self._failures, 30), self._most)
        self._failures += 1
        return int(longest * (1 - chance / 2))

    def succeeded(self) -> None:
        """It carried something, or was steady: the next failure is the first one."""
        self._failures = 0
