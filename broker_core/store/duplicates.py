"""Identifiers of accepted messages: rows that group commits append; here is how they go."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection

from broker_core.engine.upkeep import TrimDuplicates

from .arrays import integers
from .fence import Fence
from .queries import QUERIES
from .segments import Segments

STEP_ROWS = 1_000
"""Rows deleted in one transaction: some 10 ms, so that a takeover never waits longer for the lease's row."""


async def trim(connection: AsyncConnection[Any], fence: Fence, segments: Segments, trim: TrimDuplicates) -> None:
    """Raises psycopg.Error, CommitLost."""
    destinations, instants = zip(*trim.before, strict=True)
    keys = {"shard": fence.shard, "limit": STEP_ROWS, "destinations": integers(destinations), "instants": integers(instants)}
    deleted = STEP_ROWS
    while deleted == STEP_ROWS:
        async with segments.turn, fence.transaction(connection):
            deleted = (await connection.execute(QUERIES["duplicates_trim"], keys)).rowcount
