"""Compaction that an operator asked for: every segment that was closed then is looked at once, one a look of the janitor's, and compacted if no more of it
is unsettled than he said. Of a term: the next one knows nothing of it, and what was compacted stays so."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from .refusal import Declined, Refusal

if TYPE_CHECKING:
    from .commands import Control, SegmentCompacted
    from .segments import Segment
    from .shard import Shard

PERCENT_MAX = 100
"""Of the rows of a segment that may be unsettled; with all of them something must be settled still, or nothing would be won."""


class Compaction:
    """Counts of segments, but for `rows`, those that were moved, and octets."""

    __slots__ = (
        "before", "busy", "compacted", "ended", "gone", "left", "octets_after", "octets_before", "percent", "request", "rows", "segments", "since", "waiting",
    )  # fmt: skip

    def __init__(self, request: int, percent: int, since: int, waiting: deque[int]) -> None:
        self.request = request
        self.percent = percent
        self.since = since
        self.waiting = waiting
        """To be looked at, the oldest first."""
        self.segments = len(waiting)
        self.busy: int | None = None
        """At work on this one; the next is looked at when it is done."""
        self.before: int | None = None
        """That in whose place this one is was at work on it, and is still; the same holds."""
        self.compacted = self.left = self.gone = 0
        """Left: too much is unsettled, or too scattered, or volatile. Gone: dropped or compacted otherwise meanwhile, or about to be."""
        self.rows = self.octets_before = self.octets_after = 0
        self.ended: int | None = None

    def told(self) -> dict[str, Any]:
        """For operators."""
        names = ("request", "percent", "since", "segments", "compacted", "left", "gone", "rows", "octets_before", "octets_after", "ended")
        return {name: getattr(self, name) for name in names}

    def taken(self, number: int, rows: int) -> None:
        self.busy = number
        self.rows += rows


def budget(segment: Segment, percent: int) -> int:
    """So many of its rows may be unsettled."""
    return min(segment.rows * percent // 100, segment.rows - 1)


def begin(shard: Shard, command: Control) -> dict[str, Any]:
    """In place of one that is going on: with 0 percent it ends. Raises Declined."""
    percent = percent_of(command)
    waiting = deque(number for number, segment in shard.segments.closed.items() if percent and not segment.busy)
    former, shard.compaction = shard.compaction, Compaction(command.request, percent, shard.now, waiting)
    if former is not None:
        shard.compaction.before = former.before if former.busy is None else former.busy
    return {"percent": percent, "segments": shard.compaction.segments}


def percent_of(command: Control) -> int:
    """Raises Declined."""
    percent = command.arguments.get("percent")
    if type(percent) is not int or not 0 <= percent <= PERCENT_MAX:
        raise Declined(Refusal.INVALID_SETTING, f"percent is a whole number up to {PERCENT_MAX}")
    return percent


def next_segment(shard: Shard) -> Segment | None:
    """The one to look at now; None: no operator has asked, or one is being compacted."""
    compaction = shard.compaction
    if compaction is None or compaction.ended is not None or is_at_work(shard):
        return None
    while compaction.waiting:
        segment = shard.segments.closed.get(compaction.waiting.popleft())
        if segment is not None and not segment.busy:
            return segment
        compaction.gone += 1
    compaction.ended = shard.now
    return None


def is_at_work(shard: Shard) -> bool:
    """A segment is being compacted by hand: no other one is meanwhile."""
    return shard.compaction is not None and (shard.compaction.busy is not None or shard.compaction.before is not None)


def compacted(shard: Shard, command: SegmentCompacted) -> None:
    compaction = shard.compaction
    if compaction is None:
        return
    if compaction.before == command.segment:
        compaction.before = None
    elif compaction.busy == command.segment:
        compaction.busy = None
        compaction.compacted += 1
        compaction.octets_before += command.octets_before
        compaction.octets_after += command.octets_after
