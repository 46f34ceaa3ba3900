"""What purges have discarded and may be given back for a while (R14). The rows stay where they are: segments that hold them are not dropped, and the
janitor takes them along as it takes what is unsettled. undoing.py makes these records and undoes purges."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from itertools import chain

from .segments import LaneKey

NEVER = -1
"""The mark of a message that was never offered. Of others it is how many times they have failed."""


class Kept:
    """Of one subscription and lane: ranges in ascending order, and what befell the messages in each."""

    __slots__ = ("_firsts", "_lasts", "_marks", "destination", "index", "subscription")

    def __init__(self, destination: int, subscription: int, index: int) -> None:
        self.destination = destination
        self.subscription = subscription
        self.index = index
        self._firsts, self._lasts, self._marks = array("q"), array("q"), array("l")

    def add(self, first: int, last: int, mark: int) -> bool:
        """Behind all others. Whether it is a range more."""
        if self._lasts and self._lasts[-1] + 1 == first and self._marks[-1] == mark:
            self._lasts[-1] = last
            return False
        self._firsts.append(first)
        self._lasts.append(last)
        self._marks.append(mark)
        return True

    def __len__(self) -> int:
        return len(self._firsts)

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """(first, last, mark)"""
        return zip(self._firsts, self._lasts, self._marks, strict=True)

    @property
    def lowest(self) -> int:
        return self._firsts[0]

    @property
    def key(self) -> LaneKey:
        return self.destination, self.index

    def within(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """The parts of the interval that it holds."""
        for place in range(bisect_left(self._lasts, first), len(self._lasts)):
            if self._firsts[place] > last:
                return
            yield max(self._firsts[place], first), min(self._lasts[place], last)


class Record:
    """Of one purge, or of one operation that deletes messages."""

    __slots__ = ("address", "at", "destination", "fresh", "kept", "lapses_at", "messages", "number", "octets", "swept", "verb")

    def __init__(self, number: int, verb: str, address: str, destination: int, at: int, swept: int) -> None:
        self.number = number
        """That of the request."""
        self.verb = verb
        self.address = address
        self.destination = destination
        self.at = at
        self.swept = swept
        """What expires later than this was not looked at when it was discarded (expiring.py)."""
        self.lapses_at = 0
        """0: the operation has not ended."""
        self.messages = self.octets = 0
        self.kept: dict[tuple[int, int], Kept] = {}
        """By subscription and lane."""
        self.fresh: list[tuple[int, int, int, int, int]] = []
        """What is in no commit yet: (subscription, lane, first, last, mark)."""

    @property
    def ranges(self) -> int:
        return sum([len(kept) for kept in self.kept.values()])


class Records:
    """Of a shard."""

    __slots__ = ("_held", "destinations", "known", "octets", "ranges")

    def __init__(self) -> None:
        self.known: dict[int, Record] = {}
        """By number, oldest first."""
        self.ranges = 0
        self.octets = 0
        """Of the messages in all of them: what the disk would be rid of without them, about."""
        self.destinations: Counter[int] = Counter()
        """How many concern each."""
        self._held: dict[LaneKey, list[Kept]] = {}

    def enter(self, record: Record) -> None:
        self.known[record.number] = record
        self.destinations[record.destination] += 1

    def add(self, record: Record, subscription: int, index: int, first: int, last: int, mark: int) -> None:
        kept = record.kept.get((subscription, index))
        if kept is None:
            kept = record.kept[subscription, index] = Kept(record.destination, subscription, index)
            self._held.setdefault(kept.key, []).append(kept)
        self.ranges += kept.add(first, last, mark)

    def count(self, record: Record, messages: int, octets: int) -> None:
        record.messages += messages
        record.octets += octets
        self.octets += octets

    def forget(self, record: Record) -> None:
        """It holds nothing any more."""
        del self.known[record.number]
        self.octets -= record.octets
        self.destinations[record.destination] -= 1
        if not self.destinations[record.destination]:
            del self.destinations[record.destination]
        for kept in record.kept.values():
            self.ranges -= len(kept)
            held = self._held[kept.key]
            held.remove(kept)
            if not held:
                del self._held[kept.key]

    def within(self, key: LaneKey, first: int, last: int) -> Iterator[tuple[int, int]]:
        """What they hold of the lane's interval, in no order, some of it perhaps several times."""
        return chain.from_iterable(self.runs(key, first, last))

    def runs(self, key: LaneKey, first: int, last: int) -> Iterator[Iterator[tuple[int, int]]]:
        """The same, what each holds by itself and in order."""
        return (kept.within(first, last) for kept in self._held.get(key, ()))

    def lowest(self, key: LaneKey, position: int) -> int:
        """The lowest position that they hold of the lane, or this one if that is lower."""
        return min([position, *(kept.lowest for kept in self._held.get(key, ()))])
