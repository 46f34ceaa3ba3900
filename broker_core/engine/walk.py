"""Looking at what a subscription holds, a few messages at a time, without touching it (R6): rows of its lanes less what is settled, and what is only
in memory. For browsers, and for operators who ask.

A walk sees what was there when it began and is still there when it comes by: highest priority first, each lane in order. Stored messages are read from
the store, whatever memory knows of them: there each of them has its row, in order. Volatile ones are in memory below `loaded`, and above it a topic's
lane keeps them, or they are spilled.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable
from heapq import nsmallest
from itertools import islice

from .cursor import Cursor
from .message import Message


class Walk:
    __slots__ = ("at", "lanes")

    def __init__(self, cursors: Iterable[Cursor]) -> None:
        self.lanes = deque([(cursor, cursor.lane.tail) for cursor in cursors])
        """What is left to look at, and where each lane ended when the walk began."""
        self.at = 0
        """The next position of the first of them."""

    def seek(self) -> Cursor | None:
        """Go on to the next unsettled position; the cursor that holds it. None: nothing is left."""
        while self.lanes:
            cursor, tail = self.lanes[0]
            for first, _ in cursor.progress.unsettled(self.at, tail - 1):
                self.at = first
                return cursor
            self.lanes.popleft()
            self.at = 0
        return None

    def interval(self, rows: int) -> tuple[int, int]:
        """First and last position of the rows to read next: up to a gap in which a whole page would be settled, or to what its lane keeps."""
        cursor, tail = self.lanes[0]
        if cursor.lane.kept and self.at < cursor.lane.kept_first:
            tail = min(tail, cursor.lane.kept_first)
        last = self.at
        for low, high in cursor.progress.unsettled(self.at, tail - 1):
            if low - last > rows:
                break
            last = high
            if last - self.at >= rows:
                break
        return self.at, last

    def is_in_memory(self) -> bool:
        """Whether what comes next has no row that could be read."""
        cursor = self.lanes[0][0]
        return not cursor.stored and (self.at < cursor.loaded or cursor.lane.keeps(self.at))

    def from_memory(self, rows: int, octets: int) -> list[Message]:
        """What comes next from memory, one message at least if there is any, and on past it."""
        cursor, tail = self.lanes[0]
        upto = min(tail, cursor.loaded if self.at < cursor.loaded else cursor.lane.kept_end)
        found = _in_memory(cursor, self.at, upto, rows)
        for number, message in enumerate(found):
            octets -= message.weight
            if octets < 0 and number:
                found = found[:number]
                self.at = found[-1].position + 1
                return found
        self.at = found[-1].position + 1 if len(found) >= rows else upto
        return found


def _in_memory(cursor: Cursor, first: int, upto: int, rows: int) -> list[Message]:
    """The lowest of the messages in memory from `first` on and below `upto`, wherever they are, in order; fewer than `rows` only if there are no more.
    What is not in `ready` is looked through as a whole each time; that is as much as links may hold."""
    ready = [message for message in _slice(cursor, first, rows + cursor.stale) if message.position not in cursor.gone]
    if len(ready) >= rows:
        upto = min(upto, ready[rows - 1].position + 1)
    found = [message for message in ready if message.position < upto]
    for place in (cursor.returned, cursor.missing, cursor.delayed, cursor.aside, cursor.reserved):
        found += [message for position, message in place.items() if first <= position < upto]
    of = cursor.lane.destination.number
    for link in cursor.subscription.links.values():
        found += [m for m in link.unsettled.values() if first <= m.position < upto and m.header.lane == cursor.index and m.destination == of]
    if first >= cursor.loaded:
        found += _kept(cursor, first, upto, rows)
    return nsmallest(rows, found, key=_position)


def _kept(cursor: Cursor, first: int, upto: int, rows: int) -> Iterable[Message]:
    """What a topic's lane keeps for it, whom it has not been given to yet."""
    kept, is_settled = cursor.lane.kept, cursor.progress.is_settled
    waiting = (kept[at] for at in range(first, upto) if at in kept and at not in cursor.gone and not is_settled(at))
    return islice(waiting, rows)


def _slice(cursor: Cursor, first: int, rows: int) -> Iterable[Message]:
    ready = cursor.ready
    start = bisect_left(ready, first, key=_position) if ready and ready[0].position < first else 0
    return islice(ready, start, start + rows)


def _position(message: Message) -> int:
    return message.position


def may_come_again(cursor: Cursor, position: int) -> bool:
    """Whether a stored message would be flagged if it were delivered now."""
    if position <= cursor.offered_before or cursor.ahead.is_settled(position) or position in cursor.failures:
        return True
    back = cursor.returned.get(position) or cursor.missing.get(position) or cursor.delayed.get(position)
    return back is not None and back.redelivered
