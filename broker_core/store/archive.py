"""What is archived outlives its segment: before a table is dropped, the rows of destinations with `archive_ms` that the data pipeline has not read yet go into
`surety.archive`. It reads what is still in a segment from there, so that mostly nothing is copied; other destinations pay one query a segment.
"""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection

from .fence import Fence
from .queries import QUERIES

ARCHIVE = -4
"""Stands for the archive where body_reference names a segment."""
OCTETS_MAX = 20_000_000_000
"""Of what waits for the pipeline, as the ledger (R26); beyond it what goes is a row of `archive_gap`."""
STEP_ROWS = 1_000
"""Copied in one transaction, as compaction does."""
_COLUMNS = (
    "sequence, position, accepted_at, expiration, destination, size, priority, reliability, encoding, routed, stored_body, "
    "message_id, client_id, annotations, headers, body"
)


async def wanted(connection: AsyncConnection[Any], shard: int) -> list[tuple[int, int]]:
    """Destinations whose bodies are archived, each with the last message that was read. Raises psycopg.Error."""
    return await (await connection.execute(QUERIES["archived_destinations"], {"shard": shard})).fetchall()


async def is_full(connection: AsyncConnection[Any], shard: int, octets_max: int) -> bool:
    """Raises psycopg.Error."""
    row = await (await connection.execute(QUERIES["archive_octets"], {"shard": shard})).fetchone()
    return row is not None and row[0] >= octets_max


async def copy_step(
    connection: AsyncConnection[Any], fence: Fence, segment: int, destination: int, read: int, after: tuple[int, int]
) -> tuple[int, int] | None:  # fmt: skip
    """The next rows of the destination behind this (lane, position), those that the pipeline has `read` left out. Where it goes on; None: that was all.
    What an earlier attempt has copied is there already. Raises psycopg.Error, CommitLost."""
    shard = fence.shard
    statement = (
        f"WITH taken AS (SELECT {_COLUMNS} FROM surety.message_{shard}_{segment} WHERE destination = %(destination)s "
        "AND (priority, position) > (%(lane)s, %(position)s) AND sequence > %(read)s ORDER BY priority, position LIMIT %(limit)s), "
        f"kept AS (INSERT INTO surety.archive (shard, segment, {_COLUMNS}) SELECT {shard}, {segment}, taken.* FROM taken ON CONFLICT DO NOTHING), "
        f"named AS (INSERT INTO surety.body_reference (shard, segment, body) SELECT DISTINCT {shard}, {ARCHIVE}, stored_body FROM taken "
        "WHERE stored_body IS NOT NULL ON CONFLICT DO NOTHING) "
        "SELECT priority, position FROM taken ORDER BY priority DESC, position DESC LIMIT 1"
    )
    keys = {"destination": destination, "lane": after[0], "position": after[1], "read": read, "limit": STEP_ROWS}
    async with fence.transaction(connection):
        return await (await connection.execute(statement.encode(), keys)).fetchone()


async def tell_gap(connection: AsyncConnection[Any], fence: Fence, segment: int, destination: int, read: int) -> None:
    """What goes unread. Raises psycopg.Error, CommitLost."""
    shard = fence.shard
    statement = (
        "INSERT INTO surety.archive_gap (shard, segment, destination, first_sequence, last_sequence, messages) "
        f"SELECT {shard}, {segment}, %(destination)s, min(sequence), max(sequence), count(*) FROM surety.message_{shard}_{segment} "
        "WHERE destination = %(destination)s AND sequence > %(read)s HAVING count(*) > 0 ON CONFLICT DO NOTHING"
    )
    async with fence.transaction(connection):
        await connection.execute(statement.encode(), {"destination": destination, "read": read})
