"""The inbox: messages that sessions of the database sent within their own transactions (R17, surety.send). What an uncommitted transaction has put there
is not seen, and committed rows come in any order: so rows are never asked for by "those after the last", and go by key with the commit that takes them.
"""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection
from psycopg.types.numeric import Int8

from broker_core.engine.commands import TakeOver
from broker_core.engine.message import Encoding, Header, Message, StoredBody

from .arrays import integers
from .queries import QUERIES

INBOX = -2
"""Stands for the inbox where body_reference names a segment."""


async def read(connection: AsyncConnection[Any], shard: int, limit: int, bytes_max: int) -> list[TakeOver]:
    """The first rows, one at least if there is any. Raises psycopg.Error."""
    keys = {"shard": Int8(shard), "limit": Int8(limit), "bytes_max": Int8(bytes_max)}
    cursor = connection.cursor(binary=True)
    return [_arrival(row) for row in await (await cursor.execute(QUERIES["inbox"], keys, prepare=True)).fetchall()]


def _arrival(row: tuple[Any, ...]) -> TakeOver:
    entry, address, sent_at, delay, expiration, size, priority, reliability, encoding, message_id, duplicate_id, annotations, headers, body, stored_body = row
    told = annotations or ""
    header = Header(headers, priority, reliability, expiration, Encoding(encoding), message_id, "", told, delay, duplicate_id)
    return TakeOver(entry, address, Message(header, body if stored_body is None else StoredBody(stored_body, size - len(headers)), size), sent_at)


def take(shard: int, entries: list[int]) -> bytes:
    """The statement that deletes the rows. If one is gone it fails, and the commit with it: better none than a message that is taken twice."""
    count = len(entries)
    return (
        f"WITH gone AS (DELETE FROM surety.inbox WHERE shard = {shard} AND entry = ANY('{integers(entries)}'::int8[]) RETURNING stored_body), "
        f"released AS (DELETE FROM surety.body_reference WHERE shard = {shard} AND segment = {INBOX} "
        "AND body IN (SELECT stored_body FROM gone WHERE stored_body IS NOT NULL)) "
        # No number in its text: the cast fails.
        f"SELECT (CASE WHEN count(*) = {count} THEN '0' "
        f"ELSE format('%s of {count} rows of surety.inbox were deleted by somebody else', {count} - count(*)) END)::int FROM gone"
    ).encode()
