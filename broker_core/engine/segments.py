"""Which segment holds what: the engine's copy of the catalogue (R4, R5).

A segment takes rows until it is full, is then closed, and goes when nothing in it is unsettled any more. Reads name the segments they need;
a segment with a reader is not dropped. A compacted segment's survivors are in the retained table, which reads name as RETAINED.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from .definitions import SegmentClosed
from .message import BEYOND
from .reads import RETAINED

if TYPE_CHECKING:
    from .subscription import Subscription

Range = tuple[int, int]
LaneKey = tuple[int, int]


class Segment:
    __slots__ = ("busy", "frozen", "lanes", "last_sequence", "number", "readers", "rows", "stays", "survivors", "witness")

    def __init__(self, number: int, last_sequence: int, lanes: dict[LaneKey, Range]) -> None:
        self.number = number
        self.last_sequence = last_sequence
        self.lanes = lanes
        self.rows = sum(last - first + 1 for first, last in lanes.values())
        self.readers = 0
        self.busy = False
        """The janitor is at work on it."""
        self.stays = False
        """There was something unsettled in it when it was looked at after its close."""
        self.frozen = False
        self.survivors: dict[LaneKey, Range] = {}
        """Being compacted: lowest and highest position of what is moved to the retained table."""
        self.witness: tuple[LaneKey, Subscription] | None = None
        """Of whom there were unsettled rows here when last looked at: look there first."""


class Segments:
    def __init__(self, current: int = 1) -> None:
        self.current = current
        self.lanes: dict[LaneKey, Range] = {}
        """Of the open segment."""
        self.rows = 0
        self.octets = 0
        self.closed: dict[int, Segment] = {}
        """By number, oldest first."""
        self.leaving: dict[int, Segment] = {}
        """Compacted or without anything unsettled: read no more, dropped when their last reader is done."""
        self.retained: dict[LaneKey, Range] = {}
        """Lowest and highest position that may be in the retained table."""
        self.to_sweep: deque[tuple[LaneKey, int]] = deque()
        """Lanes of the retained table that are still to be looked through in this round, and from which position on."""
        self.sweep_at = 0
        """When the next round may begin."""
        self._reads: dict[int, list[int]] = {}

    def add(self, key: LaneKey, first: int, last: int) -> None:
        """Rows first to last of a lane go into the open segment."""
        known = self.lanes.get(key)
        self.lanes[key] = (known[0], last) if known else (first, last)

    def close(self, last_sequence: int) -> SegmentClosed:
        """The open segment is full; the next one opens."""
        closed = SegmentClosed(self.current, last_sequence, self.lanes)
        self.adopt(closed)
        self.current += 1
        self.lanes = {}
        self.rows = self.octets = 0
        return closed

    def adopt(self, closed: SegmentClosed) -> None:
        segment = self.closed[closed.segment] = Segment(closed.segment, closed.last_sequence, closed.lanes)
        segment.readers = self.readers_of(closed.segment)

    def holding(self, key: LaneKey, position: int) -> int:
        """Where the row of this unsettled position is: a segment's number or RETAINED. Positions are dense: a segment holds all of a lane's
        between its first and last there; what no closed segment holds was compacted, or is in the open one."""
        return self.holding_from(key, position)[0]

    def holding_from(self, key: LaneKey, position: int) -> tuple[int, int]:
        """The same, and up to which position it holds all of the lane's that are unsettled."""
        for number, segment in self.closed.items():
            held = segment.lanes.get(key)
            if held and held[0] <= position <= held[1]:
                return number, held[1]
        opened, kept = self.lanes.get(key), self.retained.get(key)
        if not kept or not kept[0] <= position <= kept[1] or (opened and position >= opened[0]):
            return self.current, BEYOND
        firsts = [segment.lanes[key][0] for segment in self.closed.values() if key in segment.lanes] + ([opened[0]] if opened else [])
        return RETAINED, min([first - 1 for first in firsts if first > position], default=kept[1])

    def overlapping(self, key: LaneKey, first: int, last: int) -> list[int]:
        """The segments that may hold rows of the lane's interval, oldest first."""
        found = []
        kept = self.retained.get(key)
        if kept and kept[0] <= last and kept[1] >= first:
            found.append(RETAINED)
        for number, segment in self.closed.items():
            held = segment.lanes.get(key)
            if held and held[0] <= last and held[1] >= first:
                found.append(number)
        held = self.lanes.get(key)
        if held and held[0] <= last and held[1] >= first:
            found.append(self.current)
        return found

    def placed(self, key: LaneKey, first: int, last: int) -> list[tuple[int, int, int]]:
        """The same with the first and the last of the lane's positions in each."""
        found = []
        for number in self.overlapping(key, first, last):
            held = self.retained[key] if number == RETAINED else self.closed[number].lanes[key] if number in self.closed else self.lanes[key]
            found.append((number, *held))
        return found

    def all(self) -> list[int]:
        return [RETAINED, *self.closed, self.current]

    def begin_read(self, read: int, numbers: Iterable[int]) -> None:
        self._reads[read] = list(numbers)
        for number in self._reads[read]:
            if number in self.closed:
                self.closed[number].readers += 1

    def readers_of(self, number: int) -> int:
        return sum(number in numbers for numbers in self._reads.values())

    def end_read(self, read: int) -> None:
        for number in self._reads.pop(read, ()):
            segment = self.closed.get(number) or self.leaving.get(number)
            if segment is not None:
                segment.readers -= 1

    def dropped(self, number: int) -> None:
        self.leaving.pop(number, None)

    def leave(self, segment: Segment) -> None:
        """It is being dropped: from now on no read names it, whatever its ranges say."""
        self.closed.pop(segment.number, None)
        self.leaving[segment.number] = segment

    def compacted(self, number: int) -> None:
        """The segment's survivors are in the retained table from now on."""
        segment = self.closed.pop(number)
        segment.busy = False
        self.leaving[number] = segment
        for key, (first, last) in segment.survivors.items():
            self._retain(key, first, last)

    def _retain(self, key: LaneKey, first: int, last: int) -> None:
        kept = self.retained.get(key)
        self.retained[key] = (min(first, kept[0]), max(last, kept[1])) if kept else (first, last)
