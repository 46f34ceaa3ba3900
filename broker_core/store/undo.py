"""Purges that may be undone (R14): a row each, and what they hold as columns of ranges, a row a commit. What became of them is kept for some weeks."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncCursor

from broker_core.engine.definitions import UndoEnd, UndoEnded, UndoKept

from .arrays import integers
from .literals import literal
from .queries import QUERIES

UNASKED = (UndoEnd.SPACE, UndoEnd.CROWDED, UndoEnd.SCATTERED)
"""Ends that somebody should find in the audit."""


def keep(kept: UndoKept, shard: int, number: int) -> list[bytes]:
    """`number`: of the commit."""
    by = b"coalesce((SELECT requested_by FROM surety.control_request WHERE shard=%d AND request=%d),'')" % (shard, kept.undo)
    row = b"(%d,%d,%b,%b,%d,%b,%d,%d,%d,%d,%d)" % (
        shard, kept.undo, literal(kept.verb), literal(kept.address), kept.destination, by, kept.at, kept.lapses_at, kept.swept, kept.messages, kept.octets,
    )  # fmt: skip
    parts = [
        b"INSERT INTO surety.undo(shard,undo,verb,address,destination,requested_by,kept_at,lapses_at,swept,messages,octets)VALUES" + row
        + b"ON CONFLICT(shard,undo)DO UPDATE SET lapses_at=excluded.lapses_at,messages=excluded.messages,octets=excluded.octets"
    ]  # fmt: skip
    if kept.ranges:
        columns = b",".join([b"'" + integers(column).encode() + b"'" for column in zip(*kept.ranges, strict=True)])
        parts.append(b"INSERT INTO surety.undo_range(shard,undo,number,subscriptions,lanes,firsts,lasts,marks)VALUES(%d,%d,%d," % (shard, kept.undo, number))
        parts[-1] += columns + b")"
    return parts


def end(ended: UndoEnded, shard: int, at: int) -> list[bytes]:
    where = b"WHERE shard=%d AND undo=%d" % (shard, ended.undo)
    parts = [
        b"DELETE FROM surety.undo_range " + where,
        b"UPDATE surety.undo SET ended_at=%d,ended_how=%b " % (at, literal(ended.how.value)) + where,
    ]
    if ended.how in UNASKED:
        parts.append(
            b"INSERT INTO surety.audit(who,what,address,request,result)SELECT requested_by,'undo ended',address,undo,"
            b"jsonb_build_object('why',ended_how,'messages',messages,'octets',octets)FROM surety.undo " + where
        )
    return parts


async def undoable(cursor: AsyncCursor[Any], shard: int) -> list[UndoKept]:
    """In the order of their numbers. Raises psycopg.Error."""
    found = {row[0]: UndoKept(*row) for row in await (await cursor.execute(QUERIES["undo_read"], {"shard": shard})).fetchall()}
    for undo, *columns in await (await cursor.execute(QUERIES["undo_ranges_read"], {"shard": shard})).fetchall():
        found[undo].ranges += zip(*columns, strict=True)
    return list(found.values())
