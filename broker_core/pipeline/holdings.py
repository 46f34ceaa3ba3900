"""What the store holds of messages after a commit: the rows that are there, as ranges, and what prepared transactions have reserved. One snapshot, so that it
can be held against the ledger up to that commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from .database import is_there, snapshot
from .ledger import extent
from .tables import message_segments

ATTEMPTS = 20
"""A segment that goes meanwhile has the whole looked at again."""
_RUNS = """
SELECT 'row', destination, NULL::int4, priority, min(position), max(position)
FROM (SELECT destination, priority, position, position - row_number() OVER (PARTITION BY destination, priority ORDER BY position) AS run
      FROM {table} WHERE priority < 10 {where}) AS r
GROUP BY destination, priority, run
"""
_RESERVED = """
SELECT 'reserved', s.destination, i.subscription, i.priority, i.position, i.position
FROM surety.prepared_item i JOIN surety.subscription s USING (shard, subscription) WHERE i.shard = %s AND i.outcome >= 0
"""


class HoldingsUnsteady(RuntimeError):
    """The message says what to do."""


@dataclass(slots=True, frozen=True)
class Holdings:
    upto: int
    """The last commit that it knows of."""
    rows: list[tuple[Any, ...]]
    """Columns of examination.HOLDINGS."""
    subscription: int
    """The highest number of one that there was."""


def holdings(url: str, shard: int) -> Holdings:
    """Reads every position that is stored by its index, once. Raises HoldingsUnsteady, psycopg.Error."""
    for _ in range(ATTEMPTS):
        with snapshot(url) as connection:
            found = _look(connection, shard)
        if found is not None:
            return found
    raise HoldingsUnsteady("message tables were dropped as fast as the audit could look: run it again when less is going on")


def _look(connection: psycopg.Connection[Any], shard: int) -> Holdings | None:
    upto = extent(connection, shard).last
    rows = connection.execute(_RESERVED, [shard]).fetchall()
    retained = sql.SQL(_RUNS).format(table=sql.Identifier("surety", "retained"), where=sql.SQL("AND shard = {}").format(sql.Literal(shard)))
    rows += connection.execute(retained).fetchall()
    for segment in message_segments(connection, shard):
        name = f"message_{shard}_{segment}"
        if not is_there(connection, f"surety.{name}"):
            return None
        rows += connection.execute(sql.SQL(_RUNS).format(table=sql.Identifier("surety", name), where=sql.SQL(""))).fetchall()
    last = connection.execute("SELECT coalesce(max(subscription), 0) FROM surety.subscription WHERE shard = %s", [shard]).fetchone()
    assert last is not None
    return Holdings(upto, rows, last[0])
