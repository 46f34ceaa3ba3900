"""Moves the survivors of nearly empty segments to the retained table and sweeps it (R5), in steps small enough to disturb nobody."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from psycopg import AsyncConnection

from broker_core.engine.upkeep import CompactSegment, SweepRetained

from .bodies import remove_bodies
from .fence import Fence
from .queries import QUERIES
from .segments import Segments, message_table

STEP_ROWS = 1_000
"""Rows copied or deleted in one transaction: some 20 ms at 1 KiB, so that a takeover never waits longer for the lease's row."""

Range = tuple[int, int, int, int]

_COLUMNS = (
    "sequence, position, accepted_at, expiration, destination, size, priority, reliability, encoding, routed, stored_body, "
    "message_id, client_id, annotations, headers, body"
)


async def compact(connection: AsyncConnection[Any], fence: Fence, segments: Segments, wanted: CompactSegment) -> None:
    """Copy the survivors; then, durably, the segment counts as compacted. Interrupted, it leaves a mark that recovery undoes. Raises psycopg.Error,
    CommitLost."""
    keys = {"shard": fence.shard, "segment": wanted.segment}
    async with segments.turn, fence.transaction(connection):
        await connection.execute(QUERIES["segment_compacting"], keys)
    for ranges in steps(wanted.survivors, STEP_ROWS):
        async with segments.turn, fence.transaction(connection):
            await _copy(connection, fence.shard, wanted.segment, ranges)
    async with segments.turn, fence.transaction(connection):
        await connection.execute(QUERIES["segment_compacted"], keys)
    segments.known[wanted.segment].compacted = True


async def sweep(connection: AsyncConnection[Any], fence: Fence, segments: Segments, wanted: SweepRetained) -> None:
    """Delete the ranges. Raises psycopg.Error, CommitLost."""
    if not wanted.settled:
        return
    destinations, lanes, firsts, lasts = map(list, zip(*wanted.settled, strict=True))
    keys = {"shard": fence.shard, "destinations": destinations, "lanes": lanes, "firsts": firsts, "lasts": lasts, "limit": STEP_ROWS}
    deleted = STEP_ROWS
    while deleted == STEP_ROWS:
        async with segments.turn, fence.transaction(connection):
            rows = await (await connection.execute(QUERIES["retained_sweep"], keys)).fetchall()
            deleted = len(rows)
            bodies = [body for (body,) in rows if body is not None]
            if bodies:
                released = await connection.execute(QUERIES["references_release"], {"shard": fence.shard, "bodies": bodies})
                await remove_bodies(connection, fence.shard, [body for (body,) in await released.fetchall()])


def steps(ranges: Sequence[Range], rows_max: int) -> Iterator[list[Range]]:
    """The ranges cut up so that no step has more than `rows_max` positions."""
    step: list[Range] = []
    room = rows_max
    for destination, lane, first, last in ranges:
        start = first
        while start <= last:
            upto = min(last, start + room - 1)
            step.append((destination, lane, start, upto))
            room -= upto - start + 1
            start = upto + 1
            if not room:
                yield step
                step, room = [], rows_max
    if step:
        yield step


async def _copy(connection: AsyncConnection[Any], shard: int, segment: int, ranges: Sequence[Range]) -> None:
    # LATERAL with an ORDER BY and LIMIT is one index scan a range, whatever the planner thinks of a table without statistics. What an earlier,
    # interrupted attempt has copied is there already.
    statement = (
        f"INSERT INTO surety.retained (shard, segment, {_COLUMNS}) SELECT {shard}, {segment}, o.* "
        "FROM unnest(%(destinations)s::int4[], %(lanes)s::int2[], %(firsts)s::int8[], %(lasts)s::int8[]) AS r (destination, lane, first, last) "
        f"CROSS JOIN LATERAL (SELECT {_COLUMNS} FROM {message_table(shard, segment)} m WHERE m.destination = r.destination AND m.priority = r.lane "
        "AND m.position BETWEEN r.first AND r.last ORDER BY m.position LIMIT (r.last - r.first + 1)) AS o ON CONFLICT DO NOTHING RETURNING stored_body"
    )
    destinations, lanes, firsts, lasts = map(list, zip(*ranges, strict=True))
    keys = {"destinations": destinations, "lanes": lanes, "firsts": firsts, "lasts": lasts}
    rows = await (await connection.execute(statement.encode(), keys)).fetchall()
    bodies = [body for (body,) in rows if body is not None]
    if bodies:
        await connection.execute(QUERIES["references_retain"], {"shard": shard, "bodies": bodies})
