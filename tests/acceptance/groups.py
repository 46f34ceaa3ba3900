"""What consumers saw of message groups, and whether it keeps the promises about them. A part of the book (book.py), which holds the lock.

    out of order in its group   a consumer got what one connection sent to a group in another order; what was refused may come later
    shared                      a group had two consumers at a time

A *tenure* is what one consumer, on one of its connections, got for the first time of what one connection sent to a group. Since a group's messages
are dealt in order, its owner has it from the first message of a tenure on, for as long as it is there. So it was shared if the next tenure begins
before this one has its last message; or if the next tenure's first message had been read already when the owner asked for something that was
answered: the broker had dealt it while the owner was there. Neither depends on which thread read first, nor on faults: connections end with the
broker's term, and what was dealt in an earlier term and comes again is flagged and no part of a tenure.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise

NEVER = -1


@dataclass(slots=True, frozen=True)
class Group:
    name: str
    lasting: bool = True
    """No message closes it."""


@dataclass(slots=True, frozen=True)
class Arrival:
    """A message of a group that was delivered."""

    place: str
    group: Group
    stream: str
    """The connection that sent it."""
    number: int
    """In the order of sending."""
    holder: str
    """Who got it: a consumer on one of its connections."""


@dataclass(slots=True)
class Tenure:
    holder: str
    first: int
    last: int
    since: float
    """When its first message had been read."""


@dataclass(slots=True)
class Groups:
    deliveries: int = 0
    handovers: int = 0
    """How often a group went from one consumer to another within what one connection sent: shows that the audit had something to see."""
    _last: dict[tuple[str, str, str, str], int] = field(default_factory=dict)
    """(holder, place, group, stream) -> the number of the message that came last."""
    _tenures: dict[tuple[str, str, str], dict[str, Tenure]] = field(default_factory=lambda: defaultdict(dict))
    """(place, group, stream) -> by holder."""
    _alive: dict[str, float] = field(default_factory=dict)
    """By holder: when it last said what was answered."""

    def deliver(self, arrival: Arrival, *, redelivered: bool, refused: bool) -> bool:
        """False: it is out of order."""
        self.deliveries += 1
        if arrival.group.lasting and not redelivered:
            self._hold(arrival)
        if refused:
            return True
        key = arrival.holder, arrival.place, arrival.group.name, arrival.stream
        before = self._last.get(key, NEVER)
        self._last[key] = max(before, arrival.number)
        return before < arrival.number

    def _hold(self, arrival: Arrival) -> None:
        tenures = self._tenures[arrival.place, arrival.group.name, arrival.stream]
        tenure = tenures.get(arrival.holder)
        if tenure is None:
            self.handovers += bool(tenures)
            tenures[arrival.holder] = Tenure(arrival.holder, arrival.number, arrival.number, time.monotonic())
        else:
            tenure.first, tenure.last = min(tenure.first, arrival.number), max(tenure.last, arrival.number)

    def answered(self, holder: str, said_at: float) -> None:
        """The broker has answered what the holder said then."""
        self._alive[holder] = max(said_at, self._alive.get(holder, 0.0))

    def verdict(self) -> list[str]:
        return [
            f"shared: {group} in {place} by {former.holder} and {latter.holder}: {former}, {latter}"
            for (place, group, _), tenures in self._tenures.items()
            for former, latter in pairwise(sorted(tenures.values(), key=lambda tenure: tenure.first))
            if former.last > latter.first or self._alive.get(former.holder, 0.0) > latter.since
        ]
