"""The schedule: rows of messages that are not due yet (R3). They come and go with group commits; here is how else they go."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection

from .bodies import remove_bodies
from .fence import Fence
from .queries import QUERIES
from .segments import Segments

SCHEDULED = -1
"""Stands for the schedule where body_reference names a segment."""
STEP_ROWS = 1_000
"""Rows deleted in one transaction: some 10 ms, so that a takeover never waits longer for the lease's row."""


async def remove_volatile(connection: AsyncConnection[Any], fence: Fence, segments: Segments) -> None:
    """Delete what does not survive its node (R25). Raises psycopg.Error, CommitLost."""
    await _in_steps(connection, fence, segments, "scheduled_remove_volatile", {})


async def discard(connection: AsyncConnection[Any], fence: Fence, segments: Segments, destination: int) -> None:
    """Delete what waits for a destination that is no more. Raises psycopg.Error, CommitLost."""
    await _in_steps(connection, fence, segments, "scheduled_discard", {"destination": destination})


async def _in_steps(connection: AsyncConnection[Any], fence: Fence, segments: Segments, query: str, keys: dict[str, int]) -> None:
    keys = {"shard": fence.shard, "limit": STEP_ROWS, **keys}
    deleted = STEP_ROWS
    while deleted == STEP_ROWS:
        async with segments.turn, fence.transaction(connection):
            rows = await (await connection.execute(QUERIES[query], keys)).fetchall()
            deleted = len(rows)
            if bodies := [body for (body,) in rows if body is not None]:
                released = await connection.execute(QUERIES["references_unschedule"], {"shard": fence.shard, "bodies": bodies})
                await remove_bodies(connection, fence.shard, [body for (body,) in await released.fetchall()])
