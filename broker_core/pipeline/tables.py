"""The small tables beside the ledger, and the rows of stored messages, as record batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pyarrow as pa

from broker_core.engine.address import is_reserved, is_topic
from broker_core.engine.message import LANES, LEVEL_NAMES, Encoding
from broker_core.engine.progress import BLOCK, Progress
from broker_core.store.rows import SENT

from . import schema
from .columns import Frame
from .database import is_there, snapshot
from .extents import extent

ROWS = 10_000
"""In one batch."""
PROGRESS_ROWS = 200
"""Rows of bitmaps at a time: each may come to 2,048 ranges."""

_DESTINATIONS = """SELECT shard, destination, address, to_timestamp(created_at / 1000.0), automatic, state, settings::text, destroyed_at
FROM surety.destination WHERE shard = %(shard)s ORDER BY destination"""
_SUBSCRIPTIONS = """SELECT shard, subscription, destination, name, client_id, shared, name = '' AND pattern = '', selector, no_local, account, pattern,
    CASE WHEN idle_since > 0 THEN to_timestamp(idle_since / 1000.0) END, destroyed_at
FROM surety.subscription WHERE shard = %(shard)s ORDER BY subscription"""
_GAPS = "SELECT shard, first_number, last_number, reason, dropped_at FROM surety.ledger_gap WHERE shard = %(shard)s ORDER BY first_number"
_MESSAGES = """SELECT sequence, destination, position, accepted_at, expiration, size, priority, reliability, encoding, message_id, client_id, annotations
FROM {table} {where}"""
_PREPARED = """SELECT i.branch, i.subscription, i.destination, i.outcome, i.priority, i.position, i.address, d.destination
FROM surety.prepared_item i LEFT JOIN surety.destination d ON d.shard = i.shard AND d.address = i.address AND d.destroyed_at IS NULL
WHERE i.shard = %(shard)s ORDER BY i.branch, i.item"""
_SCHEDULED = "SELECT destination, count(*) FROM surety.scheduled WHERE shard = %(shard)s AND NOT volatile GROUP BY destination ORDER BY destination"


def portions(connection: psycopg.Connection[Any], statement: str, shard: int, size: int = ROWS) -> Iterator[list[tuple[Any, ...]]]:
    """An answer that may be long, so many rows at a time; the statement asks for %(shard)s. Raises psycopg.Error."""
    with connection.cursor("pipeline") as cursor:
        cursor.execute(statement.encode(), {"shard": shard})
        while rows := cursor.fetchmany(size):
            yield rows


def destinations(url: str, shard: int) -> Iterator[pa.RecordBatch]:
    """Batches of schema.DESTINATIONS. Raises psycopg.Error."""
    frame = Frame(schema.DESTINATIONS)
    with snapshot(url) as connection:
        for rows in portions(connection, _DESTINATIONS, shard):
            yield frame.of_rows([(*row[:3], is_topic(row[2]), is_reserved(row[2]), *row[3:]) for row in rows])


def subscriptions(url: str, shard: int) -> Iterator[pa.RecordBatch]:
    """Batches of schema.SUBSCRIPTIONS. Raises psycopg.Error."""
    frame = Frame(schema.SUBSCRIPTIONS)
    with snapshot(url) as connection:
        for rows in portions(connection, _SUBSCRIPTIONS, shard):
            yield frame.of_rows(rows)


def gaps(url: str, shard: int) -> Iterator[pa.RecordBatch]:
    """Batches of schema.GAPS: what the size cap dropped. Raises psycopg.Error."""
    frame = Frame(schema.GAPS)
    with snapshot(url) as connection:
        for rows in portions(connection, _GAPS, shard):
            yield frame.of_rows(rows)


# -- messages -------------------------------------------------------------------------------------------------------------------------
def message_segments(connection: psycopg.Connection[Any], shard: int) -> list[int]:
    """The numbers of the tables that hold messages."""
    return [segment for (segment,) in connection.execute("SELECT segment FROM surety.segment WHERE shard = %s ORDER BY segment", [shard]).fetchall()]


def messages_of(url: str, shard: int, segment: int) -> Iterator[pa.RecordBatch]:
    """Batches of schema.MESSAGES: of the segment's table, or what was retained of it if it is gone. Raises psycopg.Error."""
    table, where = f"surety.message_{int(shard)}_{int(segment)}", ""
    with snapshot(url) as connection:
        if not is_there(connection, table):
            table, where = "surety.retained", f"WHERE shard = %(shard)s AND segment = {int(segment)}"
        yield from _messages(connection, shard, segment, _MESSAGES.format(table=table, where=where))


def messages_retained(url: str, shard: int, known: list[int]) -> Iterator[pa.RecordBatch]:
    """The same of segments that are in no catalogue any more, thus not among the `known`."""
    with snapshot(url) as connection:
        statement = "SELECT DISTINCT segment FROM surety.retained WHERE shard = %s AND segment <> ALL(%s) ORDER BY segment"
        for (segment,) in connection.execute(statement, [shard, known]).fetchall():
            where = f"WHERE shard = %(shard)s AND segment = {int(segment)}"
            yield from _messages(connection, shard, segment, _MESSAGES.format(table="surety.retained", where=where))


def _messages(connection: psycopg.Connection[Any], shard: int, segment: int, statement: str) -> Iterator[pa.RecordBatch]:
    frame = Frame(schema.MESSAGES)
    encodings = [encoding.name.lower() for encoding in Encoding]
    for rows in portions(connection, statement, shard):
        columns: list[Any] = list(zip(*rows, strict=True))
        sequence, destination, position, accepted_at, expiration, size, priority, reliability, encoding, *texts = columns
        told = {
            "sequence": sequence, "destination": destination, "lane": priority, "position": position, "size": size, "priority": priority,
            "accepted_at": [at * 1000 for at in accepted_at], "expiration": [_microseconds(at) for at in expiration],
            "reliability": [LEVEL_NAMES[level] for level in reliability], "encoding": [encodings[one] for one in encoding],
            **dict(zip(("message_id", "client_id", "annotations"), texts, strict=True)),
        }  # fmt: skip
        arrays = {field.name: pa.array(told[field.name], field.type) for field in frame.schema if field.name in told}
        yield frame.batch(len(rows), {"shard": shard, "segment": segment, **arrays})


def _microseconds(expiration: int) -> int | None:
    """Some expire in millions of years, which is as good as never and more than a timestamp holds."""
    return expiration * 1000 if 0 < expiration < 1 << 53 else None


# -- what is there now ----------------------------------------------------------------------------------------------------------------
def present_now(url: str, shard: int) -> Iterator[pa.RecordBatch]:
    """Batches of schema.PRESENT. Raises psycopg.Error."""
    with snapshot(url) as connection:
        yield from present_in(connection, shard, extent(connection, shard).last)


def present_in(connection: psycopg.Connection[Any], shard: int, upto: int) -> Iterator[pa.RecordBatch]:
    """The same in a snapshot that is open; `upto`: the last commit that it sees."""
    frame = Frame(schema.PRESENT)
    point = connection.execute("SELECT number FROM surety.checkpoint WHERE shard = %s", [shard]).fetchone()
    number = point[0] if point is not None else 0
    for rows in _present(connection, shard, number, upto):
        for start in range(0, len(rows), ROWS):
            yield frame.of_rows(rows[start : start + ROWS])


def _present(connection: psycopg.Connection[Any], shard: int, number: int, upto: int) -> Iterator[list[tuple[Any, ...]]]:
    of = (shard, number)
    for rows in portions(connection, "SELECT destination, lane, tail FROM surety.lane WHERE shard = %(shard)s ORDER BY 1, 2", shard):
        yield [(*of, "tail", destination, None, lane, 0, tail - 1, None, None) for destination, lane, tail in rows]
    for rows in portions(connection, "SELECT subscription, lane, floor, offered FROM surety.cursor WHERE shard = %(shard)s ORDER BY 1, 2", shard):
        yield [(*of, "settled", None, s, lane, 0, floor - 1, None, None) for s, lane, floor, _ in rows if s > 0 and floor]
        yield [(*of, "offered", None, s, lane, 0, offered, None, None) for s, lane, _, offered in rows if s > 0 and offered >= 0]
        yield [(*of, "buried", -s, None, lane, 0, floor - 1, None, None) for s, lane, floor, _ in rows if s < 0 and floor]
    statement = "SELECT subscription, lane, block, bits FROM surety.block WHERE shard = %(shard)s ORDER BY 1, 2, 3"
    for rows in portions(connection, statement, shard, PROGRESS_ROWS):
        yield [(*of, *row) for subscription, lane, block, bits in rows for row in _block(subscription, lane, block, bits)]
    for rows in portions(connection, "SELECT subscription, lane, position, failures FROM surety.failure WHERE shard = %(shard)s ORDER BY 1, 2, 3", shard):
        yield [(*of, "failed", None, s, lane, position, position, failures, None) for s, lane, position, failures in rows]
    statement = "SELECT destination, octets, accepted, settled, dead, expired, redelivered FROM surety.counter WHERE shard = %(shard)s ORDER BY 1"
    kinds = ("octets", "accepted_total", "settled_total", "dead_total", "expired_total", "redelivered_total")
    for rows in portions(connection, statement, shard):
        yield [(*of, kind, row[0], None, None, None, None, count, None) for row in rows for kind, count in zip(kinds, row[1:], strict=True)]
    of = (shard, upto)
    for rows in portions(connection, _PREPARED, shard):
        yield [(*of, *_prepared(*row)) for row in rows]
    for rows in portions(connection, _SCHEDULED, shard):
        yield [(*of, "scheduled", destination, None, None, None, None, count, None) for destination, count in rows]


def _block(subscription: int, lane: int, block: int, bits: bytes) -> Iterator[tuple[Any, ...]]:
    """The ranges of a bitmap: those of `offered` have a lane of their own in the table."""
    kind = "buried" if subscription < 0 else "offered" if lane >= LANES else "settled"
    whose = (-subscription, None) if subscription < 0 else (None, subscription)
    for first, last in ranges_of(block, bits):
        yield (kind, *whose, lane % LANES, first, last, None, None)


def ranges_of(block: int, bits: bytes) -> Iterator[tuple[int, int]]:
    """(first, last) of the positions that a checkpoint's block has marked."""
    progress = Progress()
    progress.load(block, bits)
    base = at = block * BLOCK
    for low, high in [*progress.unsettled(base, base + BLOCK - 1), (base + BLOCK, base + BLOCK)]:
        if low > at:
            yield at, low - 1
        at = high + 1


def _prepared(
    branch: int, subscription: int, destination: int, outcome: int, priority: int, position: int, _address: str, target: int | None
) -> tuple[Any, ...]:
    if outcome == SENT:
        return ("sent", target, None, priority, None, None, 1, branch)
    return ("reserved", destination, subscription, priority, position, position, None, branch)
