"""Engine time (R12): the database's clock at acquisition plus our monotonic clock, never before the last instant in the ledger, if that is near.

Within a term the engine relies on time that does not go back. Between terms it compares instants hardly anywhere: expirations are absolute,
waits for redelivery are in memory, idleness begins anew; instants in the ledger inform. To wait for an instant that a clock set wrong for a
while left in the ledger, however, would stop every timer, heart-beat and expiry, and refuse every operator's request as too late, for as
long as the clock was ahead. So recovery believes the ledger for a second, which covers a leap second and two servers' clocks, and no more.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from broker_core.engine.recovered import Recovered

log = logging.getLogger("surety.clock")

AHEAD_MS_MAX = 1000
"""Engine time stands still for so long at most when the database's clock has gone back: half of what the shortest heart-beats tolerate."""


def believable(found: Recovered) -> Recovered:
    """What was found, without instants that are too far ahead of the database's clock."""
    last = found.clock_ms + AHEAD_MS_MAX
    latest = max([found.checkpoint.at, *(row.at for row in found.ledger)])
    if latest <= last:
        return found
    ahead = (latest - found.clock_ms) / 1000
    log.warning("The ledger is %.1f s ahead of the database's clock, which was wrong then or is now; time begins with the clock.", ahead)
    ledger = [replace(row, at=min(row.at, last)) for row in found.ledger]
    return replace(found, checkpoint=replace(found.checkpoint, at=min(found.checkpoint.at, last)), ledger=ledger)


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
