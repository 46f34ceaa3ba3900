"""What the janitor should do: drop segments in which nothing is unsettled, freeze those that stay, compact those that are nearly empty, sweep
the retained table (R4, R5), delete the delayed messages of destinations that are no more, and identifiers that nobody remembers. Decided at flush,
done after that flush's commit: a row goes only when its settlement is durable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import chain, islice
from typing import Any

from .commands import Control
from .compaction import Compaction, budget, is_at_work, next_segment, percent_of
from .duplicates import trims
from .message import VOLATILE
from .pins import pinned_within
from .progress import BLOCK
from .scheduling import discards
from .segments import LaneKey, Segment
from .shard import Shard
from .subscription import Subscription
from .upkeep import CompactSegment, DropSegment, FreezeSegment, Maintenance, SweepRetained

FRESH = 2
"""The newest closed segments are not compacted: most of what they hold is about to be consumed anyway."""
SHARED = 20
"""Subscriptions that may need the same few rows of a segment, before it is too much work to find out: 25,000 ranges each at 0.5 us are 0.25 s."""
SWEEP_RANGES = 500
"""Settled ranges deleted from the retained table in one step: one statement of some milliseconds."""
SWEEP_EFFORT = 10_000
"""Ranges, and blocks of somebody's progress, that are looked at in one step to find those that lie between unsettled ones: 1 us each."""
SWEEP_EVERY = 10_000
"""Milliseconds from one round through the retained table's lanes to the next: mostly they find what the one before has found."""
COUNT_EFFORT = 200_000
"""Lanes and ranges that a count of what could be compacted looks at, by hand and once: at 1 us each everybody else waits so long."""
Survivors = tuple[int, int, int, int]
"""Destination, lane, first and last position."""


def maintain(shard: Shard) -> list[Maintenance]:
    """At most a few steps a call; the host calls about once a second."""
    segments = shard.segments
    steps: list[Maintenance] = []
    for segment in [*segments.leaving.values(), *segments.closed.values()]:
        if not segment.busy and not segment.readers and (segment.number in segments.leaving or not _is_live(shard, segment)):
            segment.busy = True
            segments.leave(segment)
            steps.append(DropSegment(segment.number))
    freeze = _freeze(shard)
    if freeze:
        steps.append(freeze)
    compact = _compact(shard)
    if compact:
        steps.append(compact)
    sweep = _sweep(shard)
    if sweep.settled:
        steps.append(sweep)
    return [*steps, *discards(shard), *trims(shard)]


def _freeze(shard: Shard) -> FreezeSegment | None:
    """One a call, the oldest first: it is read first. Not at the first look: of what is consumed as it comes, nothing is left at the second."""
    due = None
    for segment in shard.segments.closed.values():
        if not segment.stays:
            segment.stays = True
        elif due is None and not segment.frozen and not segment.busy:
            segment.frozen = True
            due = FreezeSegment(segment.number)
    return due


def _is_live(shard: Shard, segment: Segment) -> bool:
    """Of thousands of subscriptions the one that kept it alive the last time is asked first."""
    if segment.witness is not None:
        key, subscription = segment.witness
        if subscription.number in shard.subscriptions and _needs(subscription, key, segment):
            return True
    for key, (first, last) in segment.lanes.items():
        if shard.pinned and pinned_within(shard, key, first, last):
            return True
        if shard.records.known and next(shard.records.within(key, first, last), None) is not None:
            return True
        destination = shard.numbered.get(key[0])
        for subscription in destination.subscriptions if destination is not None else ():
            if _needs(subscription, key, segment):
                segment.witness = key, subscription
                return True
    return False


def _needs(subscription: Subscription, key: LaneKey, segment: Segment) -> bool:
    cursor = subscription.cursors[key[1]]
    first, last = segment.lanes[key]
    return cursor is not None and cursor.progress.floor <= last and next(cursor.progress.unsettled(first, last), None) is not None


def _unsettled(shard: Shard, key: LaneKey, first: int, last: int, at_most: int, each: int) -> list[tuple[int, int]]:
    """Up to `at_most` ranges of the lane's interval that are needed, of each who needs some up to so many."""
    return list(islice(chain.from_iterable(islice(ranges, each) for ranges in _needed(shard, key, first, last)), at_most))


def _needed(shard: Shard, key: LaneKey, first: int, last: int) -> Iterator[Iterable[tuple[int, int]]]:
    """The ranges of the lane's interval in which some subscription has something unsettled, or a purge may be undone, or a browser is still being sent a
    body: those of each in order."""
    if shard.pinned:
        yield [(position, position) for position in sorted(pinned_within(shard, key, first, last))]
    yield from shard.records.runs(key, first, last)
    destination = shard.numbered.get(key[0])
    for subscription in destination.subscriptions if destination is not None else ():
        cursor = subscription.cursors[key[1]]
        if cursor is not None and cursor.progress.floor <= last:
            yield cursor.progress.scattered(first, last)


def _compact(shard: Shard) -> CompactSegment | None:
    """Look at one closed segment a call: at those that an operator has asked for, else in turn."""
    segment = next_segment(shard)
    if segment is not None and shard.compaction is not None:
        return _compact_by_hand(shard, segment, shard.compaction)
    candidates = [s for s in list(shard.segments.closed.values())[:-FRESH] if not s.busy]
    if not candidates or is_at_work(shard):
        return None
    shard.compact_turn = (shard.compact_turn + 1) % len(candidates)
    segment = candidates[shard.compact_turn]
    survivors, _ = _survivors(shard, segment, int(segment.rows * shard.limits.compact_below))
    return _begin(segment, survivors) if survivors else None


def _compact_by_hand(shard: Shard, segment: Segment, compaction: Compaction) -> CompactSegment | None:
    survivors, _ = _survivors(shard, segment, budget(segment, compaction.percent))
    if survivors is None:
        compaction.left += 1
    elif not survivors:
        compaction.gone += 1  # nothing in it is needed: it is dropped
    else:
        compaction.taken(segment.number, _rows(survivors))
        step = _begin(segment, survivors)
        step.measured = True
        return step
    return None


def _begin(segment: Segment, survivors: list[Survivors]) -> CompactSegment:
    segment.busy = True
    for destination, lane, low, high in survivors:
        known = segment.survivors.get((destination, lane))
        segment.survivors[destination, lane] = (min(low, known[0]), max(high, known[1])) if known else (low, high)
    return CompactSegment(segment.number, survivors)


def _survivors(shard: Shard, segment: Segment, budget: int) -> tuple[list[Survivors] | None, int]:
    """What of it is unsettled, if that is no more than `budget` rows, and how many lanes and ranges were looked at for it. None: more, or it is not to be
    compacted. Whatever the budget, no more ranges are looked at than for the one that every segment has."""
    if any(key[1] >= VOLATILE for key in segment.lanes):
        return None, len(segment.lanes)
    survivors: list[Survivors] = []
    live, looked, at_most = 0, 0, (int(segment.rows * shard.limits.compact_below) + 1) * SHARED
    for key, (first, last) in segment.lanes.items():
        ranges = _unsettled(shard, key, first, last, at_most - looked, budget - live + 1)  # a range is a row at least
        looked += len(ranges)
        if looked >= at_most:
            return None, len(segment.lanes) + looked
        for low, high in _merged(ranges):
            survivors.append((*key, low, high))
            live += high - low + 1
            if live > budget:
                return None, len(segment.lanes) + looked
    return survivors, len(segment.lanes) + looked


def _rows(survivors: Iterable[Survivors]) -> int:
    return sum(last - first + 1 for _, _, first, last in survivors)


def compactable(shard: Shard, command: Control) -> dict[str, Any]:
    """What a compaction by hand would do now; it does nothing. Not all of what is closed is looked at if that were long work: `looked_at` says how many.
    Raises Declined."""
    percent, effort = percent_of(command), 0
    closed = [segment for segment in shard.segments.closed.values() if not segment.busy]
    told: dict[str, Any] = {"percent": percent, "segments": len(closed), "looked_at": 0, "rows": 0, "unsettled": 0, "numbers": []}
    for segment in closed:
        if effort >= COUNT_EFFORT:
            break
        survivors, looked = _survivors(shard, segment, budget(segment, percent))
        effort += looked
        told["looked_at"] += 1
        if survivors:
            told["numbers"].append(segment.number)
            told["rows"] += segment.rows
            told["unsettled"] += _rows(survivors)
    return told


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """What subscriptions need of a lane, each row once."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def _sweep(shard: Shard) -> SweepRetained:
    """Rows of the retained table that are settled by now: all below the floor, once it moved; in turn, those between unsettled ones."""
    sweep = SweepRetained([])
    for key, (low, high) in list(shard.segments.retained.items()):
        destination = shard.numbered.get(key[0])
        cursors = [s.cursors[key[1]] for s in destination.subscriptions] if destination else []
        floor = min((c.progress.floor for c in cursors if c is not None), default=high + 1)
        floor = min([floor, *(pinned_within(shard, key, low, high) if shard.pinned else ())])
        floor = shard.records.lowest(key, floor)
        if floor > low:
            sweep.settled.append((*key, low, min(floor - 1, high)))
            if floor > high:
                del shard.segments.retained[key]
            else:
                shard.segments.retained[key] = (floor, high)
        if len(sweep.settled) >= SWEEP_RANGES:
            return sweep
    _sweep_between(shard, sweep)
    return sweep


def _sweep_between(shard: Shard, sweep: SweepRetained) -> None:
    """Go on with the round through the lanes. What became settled since it was moved there is not noted anywhere: that would be work for each message."""
    segments = shard.segments
    if not segments.to_sweep and shard.now >= segments.sweep_at:
        segments.to_sweep.extend((key, low) for key, (low, _) in segments.retained.items())
        segments.sweep_at = shard.now + SWEEP_EVERY
    effort = 0
    while segments.to_sweep and len(sweep.settled) < SWEEP_RANGES and effort < SWEEP_EFFORT:
        key, start = segments.to_sweep.popleft()
        if key not in segments.retained:
            continue
        first, last = segments.retained[key]
        settled, upto, looked = _between(shard, key, max(first, start), last, SWEEP_RANGES - len(sweep.settled))
        sweep.settled += [(*key, *gap) for gap in settled]
        effort += looked
        if upto < last:
            segments.to_sweep.appendleft((key, upto + 1))


def _between(shard: Shard, key: LaneKey, first: int, last: int, at_most: int) -> tuple[list[tuple[int, int]], int, int]:
    """Up to `at_most` ranges of the lane's interval that nobody needs, up to where it was looked at, and the effort."""
    destination = shard.numbered.get(key[0])
    asked = 1 + (len(destination.subscriptions) if destination is not None else 0)
    last = min(last, first + BLOCK * max(SWEEP_EFFORT // asked, 1) - 1)
    settled: list[tuple[int, int]] = []
    effort, looked = asked * (1 + (last - first) // BLOCK), 0
    for low, high in merge(*_needed(shard, key, first, last)):
        if low > first:
            settled.append((first, low - 1))
        first = max(first, high + 1)
        looked += 1
        if len(settled) == at_most or looked == SWEEP_EFFORT:
            return settled, first - 1, effort + looked
    if first <= last:
        settled.append((first, last))
    return settled, last, effort + looked
