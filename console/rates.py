"""Messages a second, from successive readings of a counter."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

SERIES_MAX = 20_000
"""About 400 octets each: 8 MiB for a page that shows every one of 20,000 destinations."""
SUMS = -(1 << 40)
"""Stands for all destinations together; none has the number."""
GAP_SECONDS_MAX = 15
"""Readings further apart say what was, not what is: the rate is unknown until the next."""


@dataclass(slots=True, frozen=True)
class Reading:
    at: datetime
    accepted: int
    settled: int


@dataclass(slots=True, frozen=True)
class Rate:
    accepted: float
    """Messages a second that came in."""
    settled: float
    """Messages a second that consumers acknowledged."""


class Rates:
    """Remembers the last two readings of each destination. One a process; readings come from whichever page is looked at.

    Threads may call it at once: an entry is replaced as a whole, and of two equal readings either may stay.
    """

    def __init__(self) -> None:
        self._series: dict[int, tuple[Reading | None, Reading]] = {}

    def observe(self, destination: int, reading: Reading) -> Rate | None:
        """The rate up to `reading`; None: unknown, because there is no earlier one that is recent, or the counters began anew."""
        earlier, latest = self._series.get(destination, (None, reading))
        if reading.at > latest.at:
            earlier, latest = latest, reading
        if len(self._series) >= SERIES_MAX and destination not in self._series:
            self._series.clear()
        self._series[destination] = (earlier, latest)
        return _rate(earlier, latest)

    def of_sums(self, sums: Mapping[str, Any] | None) -> Rate | None:
        """Over all destinations; None: nobody tells their sums."""
        return None if sums is None else self.observe(SUMS, Reading(sums["at"], sums["accepted_total"], sums["settled_total"]))


def _rate(earlier: Reading | None, latest: Reading) -> Rate | None:
    if earlier is None:
        return None
    seconds = (latest.at - earlier.at).total_seconds()
    accepted, settled = latest.accepted - earlier.accepted, latest.settled - earlier.settled
    if not 0 < seconds <= GAP_SECONDS_MAX or accepted < 0 or settled < 0:
        return None
    return Rate(accepted / seconds, settled / seconds)
