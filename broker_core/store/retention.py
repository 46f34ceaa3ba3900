"""How long the ledger is kept (R26): whole tables go, oldest first, once they are old and read; for want of room also unread ones, which leaves a gap row."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import AsyncConnection

from .fence import Fence
from .queries import QUERIES
from .segments import Segments


async def trim_ledger(connection: AsyncConnection[Any], fence: Fence, segments: Segments, before: int, octets_max: int) -> int:
    """Drop tables whose last commit was before `before` (ms) and that every reader has read, and what exceeds `octets_max`. How many went.
    A table that someone holds a lock on stays for the next time. Raises psycopg.Error, CommitLost."""
    await _close(connection, fence, segments)
    dropped = 0
    rows = await (await connection.execute(QUERIES["ledger_segments_closed"], {"shard": fence.shard})).fetchall()
    for segment, last_number, last_at, total, unread in rows:
        if total <= octets_max and (last_at >= before or unread):
            break  # an older table is never kept longer than a newer one
        try:
            await _drop(connection, fence, segments, segment, last_number if unread else None)
        except psycopg.errors.LockNotAvailable:
            break
        dropped += 1
    return dropped


async def _close(connection: AsyncConnection[Any], fence: Fence, segments: Segments) -> None:
    """Tables that the ledger has left behind learn where they end."""
    keys = {"shard": fence.shard, "segment": segments.ledger_in_use}
    for (segment,) in await (await connection.execute(QUERIES["ledger_segments_open"], keys)).fetchall():
        table = f"surety.ledger_{fence.shard}_{segment}"
        statement = f"SELECT number, at, pg_total_relation_size('{table}') FROM {table} ORDER BY number DESC LIMIT 1"
        row = await (await connection.execute(statement.encode())).fetchone()
        number, at, octets = row or (0, 0, 0)
        async with segments.turn, fence.transaction(connection):
            await connection.execute(QUERIES["ledger_segment_close"], {"shard": fence.shard, "segment": segment, "number": number, "at": at, "octets": octets})


async def _drop(connection: AsyncConnection[Any], fence: Fence, segments: Segments, segment: int, unread_upto: int | None) -> None:
    table = f"surety.ledger_{fence.shard}_{segment}"
    async with segments.turn, fence.transaction(connection):
        await connection.execute("SET LOCAL lock_timeout = '100ms'")
        if unread_upto is not None:
            first = await (await connection.execute(f"SELECT min(number) FROM {table}".encode())).fetchone()
            assert first is not None
            gap = {"shard": fence.shard, "first": first[0], "last": unread_upto, "reason": "the ledger exceeded its size cap"}
            await connection.execute(QUERIES["ledger_gap_add"], gap)
        await connection.execute(f"DROP TABLE {table}".encode())
        await connection.execute(QUERIES["ledger_segment_remove"], {"shard": fence.shard, "segment": segment})
    segments.ledgers.remove(segment)
