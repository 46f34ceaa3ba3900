"""Purges, and operations that delete, are kept for a while and undone (R14): what they have settled is not settled any more, at its old positions.

Only what is stored can come back: what was in memory alone is discarded with the purge. A cursor that something comes back to goes back to it: whatever
it has in memory behind is on disk again, and is read in its turn. What consumers and transactions hold was left alone by the purge, and is now.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from .capacity import depth_of
from .commands import Control
from .cursor import Cursor
from .definitions import UndoEnd, UndoEnded, UndoKept
from .destination import Destination
from .expiring import sweep_expired
from .outcome import Outcome
from .paging import evict
from .records import NEVER, Record
from .refusal import Declined, Refusal
from .scanning import remove
from .settings import REMOVING, UNLIMITED
from .shard import Shard
from .waiting import free

RANGE_EFFORT = 2
"""What a range takes that comes back, in microseconds, about."""


# -- while a purge is done --------------------------------------------------------------------------------------------------------------
def begin(shard: Shard, number: int, verb: str, destination: Destination) -> Record | None:
    """For what a purge discards now. None: it cannot be undone."""
    if not period(shard, destination) or destination.owner is not None:
        return None
    return Record(number, verb, destination.address, destination.number, shard.now, shard.expiry_from[0])


def period(shard: Shard, destination: Destination) -> int:
    """For how long a purge of it can be undone, in ms; 0: it cannot."""
    own = destination.settings.undo_ms
    return shard.limits.undo_ms if own == UNLIMITED else own


def keep(shard: Shard, record: Record, cursor: Cursor, first: int, last: int, failed: Sequence[int]) -> None:
    """These are about to be settled. `failed`: positions of messages that have failures, ascending."""
    for low, high, mark in _marked(cursor, first, last, failed):
        shard.records.add(record, cursor.subscription.number, cursor.index, low, high, mark)
        record.fresh.append((cursor.subscription.number, cursor.index, low, high, mark))


def _marked(cursor: Cursor, first: int, last: int, failed: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """The interval in parts that are alike."""
    for low, high, mark in _offered(cursor, first, last):
        at = low
        for position in failed[bisect_left(failed, low) : bisect_right(failed, high)]:
            if position > at:
                yield at, position - 1, mark
            yield position, position, cursor.failures.get(position, 0)
            at = position + 1
        if at <= high:
            yield at, high, mark


def _offered(cursor: Cursor, first: int, last: int) -> Iterator[tuple[int, int, int]]:
    upto = min(cursor.offered, last)
    if first <= upto:
        yield first, upto, 0
        first = upto + 1
    for low, high in list(cursor.ahead.unsettled(first, last)):
        if low > first:
            yield first, low - 1, 0
        yield low, high, NEVER
        first = high + 1
    if first <= last:
        yield first, last, 0


def write(shard: Shard, record: Record, octets: int) -> bool:
    """What was kept since the last time goes into the commit that discards it; `octets` it holds. Whether the record is there: it may hold too much, or
    nothing."""
    records, fresh = shard.records, record.fresh
    record.fresh = []
    if not fresh:
        return record.number in records.known
    known = record.number in records.known
    if not known:
        records.enter(record)
    records.count(record, sum([last - first + 1 for _, _, first, last, _ in fresh]), octets)
    most = shard.limits.undo_ranges_max
    if records.ranges > most or record.ranges > most // 4:
        if known:
            end(shard, record, UndoEnd.SCATTERED)
        else:
            records.forget(record)
        return False
    _tell(shard, record, fresh)
    while len(records.known) > shard.limits.undo_records_max:
        end(shard, next(iter(records.known.values())), UndoEnd.CROWDED)
    return True


def finish(shard: Shard, record: Record) -> None:
    """Nothing is added to it any more: from now on its time runs."""
    destination = shard.numbered.get(record.destination)
    if destination is not None:
        record.lapses_at = shard.now + max(period(shard, destination), 1)
        _tell(shard, record, [])


def _tell(shard: Shard, record: Record, ranges: list[tuple[int, int, int, int, int]]) -> None:
    told = record.verb, record.address, record.destination, record.at, record.lapses_at, record.swept, record.messages, record.octets
    shard.batch.definitions.append(UndoKept(record.number, *told, ranges))


def restore(shard: Shard, row: UndoKept) -> None:
    """It is there since before a crash."""
    record = Record(row.undo, row.verb, row.address, row.destination, row.at, row.swept)
    record.lapses_at = row.lapses_at
    shard.records.enter(record)
    shard.records.count(record, row.messages, row.octets)
    for subscription, index, first, last, mark in row.ranges:
        shard.records.add(record, subscription, index, first, last, mark)


# -- when it ends -----------------------------------------------------------------------------------------------------------------------
def end(shard: Shard, record: Record, how: UndoEnd) -> None:
    """Its rows are the janitor's again, once this commit is durable."""
    shard.records.forget(record)
    shard.batch.definitions.append(UndoEnded(record.number, how))
    if how is UndoEnd.SPACE:
        shard.batch.given_up.append((record.number, record.address, record.octets))


def lapse(shard: Shard, *, space_low: bool) -> None:
    """Those whose time is over; when disk space is low the oldest, one a second, so that no more are given up than need be (R21)."""
    for record in [record for record in shard.records.known.values() if 0 < record.lapses_at <= shard.now]:
        end(shard, record, UndoEnd.LAPSED)
    if space_low and shard.records.known:
        end(shard, next(iter(shard.records.known.values())), UndoEnd.SPACE)


def destroyed(shard: Shard, destination: Destination) -> None:
    for record in [record for record in shard.records.known.values() if record.destination == destination.number]:
        end(shard, record, UndoEnd.DESTROYED)


def give_up(shard: Shard, command: Control) -> dict[str, Any]:
    """An operator does not need it any more."""
    record = _find(shard, command)
    end(shard, record, UndoEnd.GIVEN_UP)
    return {"undo": record.number}


# -- back -------------------------------------------------------------------------------------------------------------------------------
def undo(shard: Shard, command: Control) -> dict[str, Any]:
    """All that the record holds waits again."""
    record = _find(shard, command)
    destination = shard.numbered[record.destination]
    if record.number in shard.operations.known:
        raise Declined(Refusal.DESTINATION_IN_USE, f"operation {record.number} still runs: cancel it first")
    _check_room(shard, record, destination)
    back = 0
    for (number, index), kept in record.kept.items():
        subscription = shard.subscriptions.get(number)
        cursor = subscription.cursors[index] if subscription is not None else None
        if cursor is None:
            continue
        _go_back(shard, cursor, kept.lowest)
        for first, last, mark in kept:
            _reopen(shard, cursor, first, last, mark)
            back += last - first + 1
        shard.change(cursor)
        shard.mark(cursor.subscription)
    octets = record.octets if back == record.messages else record.octets * back // max(record.messages, 1)
    destination.octets += octets
    destination.octets_arrived += octets
    destination.estimated = destination.estimated or destination.is_topic
    shard.batch.touched[destination] = None
    shard.batch.synchronous = True
    shard.effort += RANGE_EFFORT * record.ranges
    if destination.capacity is not None:
        destination.capacity.forget()
    end(shard, record, UndoEnd.UNDONE)
    shard.expiry_again = min(record.swept, shard.expiry_again if shard.expiry_again is not None else record.swept)
    sweep_expired(shard)
    return {"undo": record.number, "restored": back}


def _find(shard: Shard, command: Control) -> Record:
    number = command.arguments.get("undo")
    record = shard.records.known.get(number) if isinstance(number, int) else None
    if record is None or record.address != command.address:
        raise Declined(Refusal.INVALID_SETTING, f"there is no purge {number} of {command.address} that can be undone: its time may be over")
    return record


def _check_room(shard: Shard, record: Record, destination: Destination) -> None:
    """Where what is too much is removed, that would be the very messages that come back."""
    settings = destination.settings
    if settings.limit_behavior not in REMOVING or not settings.bounds_depth:
        return
    counts: Counter[int] = Counter()
    for (number, _), kept in record.kept.items():
        counts[number] += sum([last - first + 1 for first, last, _ in kept])
    depth = max([depth_of(shard.subscriptions[number]) + count for number, count in counts.items() if number in shard.subscriptions], default=0)
    if settings.exceeded_by(depth, destination.octets + record.octets):
        detail = f"{destination.address} would hold {depth} messages, more than its limits allow, and remove the oldest: raise max_messages or max_octets first"
        raise Declined(Refusal.DESTINATION_FULL, detail)


def _go_back(shard: Shard, cursor: Cursor, first: int) -> None:
    """Nothing from here on is in memory any more but what was in turn already, and waits to come again, or is with somebody: all that is known as gone."""
    if first < cursor.loaded:
        evict(shard, cursor)
        cursor.loaded, cursor.barren = min(cursor.loaded, first), -1
        _forget_aside(shard, cursor)
        held = [message.position for message in cursor.subscription.delivered() if message.header.lane == cursor.index]
        for places in (held, cursor.returned, cursor.missing, cursor.delayed, cursor.aside, cursor.reserved, cursor.accepted):
            cursor.gone.update((position, None) for position in places if position >= cursor.loaded)
    for scan in cursor.scans:
        back = cursor.returned.keys() | cursor.missing.keys()  # looked at already, and nowhere else
        for position in [position for position in scan.found if position >= first and position not in back]:
            remove(shard, scan, position)
        scan.at, scan.end = min(scan.at, first), None


def _forget_aside(shard: Shard, cursor: Cursor) -> None:
    """What was set aside for owners of message groups comes behind what comes back, in its turn."""
    for position in [position for position in cursor.aside if position >= cursor.loaded]:
        message = cursor.aside.pop(position)
        cursor.aside_octets -= message.weight
        cursor.gone.pop(position, None)
        free(shard, cursor, message.weight)
    owners = cursor.subscription.owners
    if owners is None:
        return
    for link, lanes in list(owners.queues.items()):
        if cursor in lanes:
            lanes[cursor] = [position for position in lanes[cursor] if position in cursor.aside]
            if not lanes[cursor]:
                del lanes[cursor]
            if not lanes:
                del owners.queues[link]


def _reopen(shard: Shard, cursor: Cursor, first: int, last: int, mark: int) -> None:
    """In memory and in the ledger, in the same order."""
    cursor.reopen(first, last)
    number, index = cursor.subscription.number, cursor.index
    batch = shard.batch
    batch.settled.append((number, index, first, last, Outcome.RESTORED))
    if mark == NEVER:
        return
    cursor.offer_ahead(first, last)
    batch.offered.append((number, index, first, last, 0))
    if mark:
        cursor.failures[first] = mark
        cursor.failures_changed[first] = None
        batch.failures.append((number, index, first, mark))
