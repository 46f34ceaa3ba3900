"""What the ledger has, as intervals of commits. Imports nothing that may be missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg

from .database import is_there, ledger_table

PARTITION_OCTETS = 48 << 20
"""Of the ledger's table: some hundred thousand events, seconds of work."""


@dataclass(slots=True, frozen=True)
class Interval:
    """Commits after `after` up to `upto`, which lie in one table of the ledger."""

    shard: int
    segment: int
    after: int
    upto: int


@dataclass(slots=True, frozen=True)
class Extent:
    """What the ledger holds: its first and its last commit (0 and 0: none)."""

    first: int
    last: int


def extent(connection: psycopg.Connection[Any], shard: int) -> Extent:
    tables = _tables(connection, shard)
    return Extent(tables[0].after + 1, tables[-1].upto) if tables else Extent(0, 0)


def intervals(
    connection: psycopg.Connection[Any], shard: int, after: int = 0, upto: int | None = None, *, octets: int = PARTITION_OCTETS
) -> list[Interval]:
    """What there is of these commits, in portions of about so many octets of the ledger."""
    portions = []
    for table in _tables(connection, shard):
        low, high = max(after, table.after), table.upto if upto is None else min(upto, table.upto)
        if low >= high:
            continue
        size = connection.execute(f"SELECT pg_total_relation_size('{ledger_table(shard, table.segment)}')".encode()).fetchone()
        assert size is not None
        share = size[0] * (high - low) / (table.upto - table.after)
        parts = min(max(round(share / octets), 1), high - low)
        edges = [low + (high - low) * part // parts for part in range(parts + 1)]
        portions += [Interval(shard, table.segment, edges[i], edges[i + 1]) for i in range(parts)]
    return portions


def _tables(connection: psycopg.Connection[Any], shard: int) -> list[Interval]:
    """Those that have commits, in order. What is dropped while this looks is left out; from then on nothing of it is."""
    found = []
    rows = connection.execute("SELECT segment FROM surety.ledger_segment WHERE shard = %s ORDER BY segment", [shard]).fetchall()
    for (segment,) in rows:
        table = ledger_table(shard, segment)
        if not is_there(connection, table):
            continue
        ends = connection.execute(f"SELECT min(number), max(number) FROM {table}".encode()).fetchone()
        if ends is not None and ends[0] is not None:
            found.append(Interval(shard, segment, ends[0] - 1, ends[1]))
    return found


def is_told(connection: psycopg.Connection[Any], interval: Interval) -> bool:
    """Whether the database says that these commits were dropped unread."""
    row = connection.execute(
        "SELECT EXISTS (SELECT FROM surety.ledger_gap WHERE shard = %s AND first_number <= %s AND last_number >= %s)",
        [interval.shard, interval.after + 1, interval.upto],
    ).fetchone()
    return row is not None and bool(row[0])
