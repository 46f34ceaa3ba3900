"""What the store holds of messages after a commit: the rows that are there, as ranges, what prepared transactions have reserved, and what the checkpoint counts
as over, which nobody is going to get whether its row is there or not. One snapshot, so that it can be held against the ledger up to that commit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from pyspark.sql import DataFrame, SparkSession

from broker_core.engine.message import LANES, VOLATILE
from broker_core.engine.progress import BLOCK

from .database import is_there, snapshot
from .examination import HOLDINGS
from .extents import extent
from .tables import PROGRESS_ROWS, message_segments, portions, ranges_of

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
_FLOORS = f"""
SELECT s.destination, c.subscription, c.lane, c.floor
FROM surety.cursor c JOIN surety.subscription s USING (shard, subscription) WHERE c.shard = %s AND c.lane < {VOLATILE} AND c.floor > 0
"""
_BLOCKS = f"""
SELECT s.destination, b.subscription, b.lane, b.block, b.bits
FROM surety.block b JOIN surety.subscription s USING (shard, subscription) WHERE b.shard = %(shard)s AND b.lane < {LANES}
"""
BLOCKS_A_TASK = 500
"""Of bitmaps of up to 2,048 ranges."""


class HoldingsUnsteady(RuntimeError):
    """The message says what to do."""


@dataclass(slots=True, frozen=True)
class Holdings:
    upto: int
    """The last commit that it knows of."""
    rows: list[tuple[Any, ...]]
    """Columns of examination.HOLDINGS; of what is settled what lies below floors."""
    subscription: int
    """The highest number of one that there was."""
    point: int
    """The commit of the checkpoint."""
    blocks: list[tuple[int, int, int, int, bytes]]
    """And what it has settled above floors, from the lane's first row on: (destination, subscription, lane, number, bits)."""

    def frame(self, spark: SparkSession, after: int, destination: int | None) -> DataFrame:
        """examination.HOLDINGS, of one destination or of all. A checkpoint from before commit `after` says nothing: what it has settled may have been restored
        by a commit that is not looked at."""
        known = self.point >= after
        rows = [row for row in self.rows if destination in (None, row[1]) and (known or row[0] != "settled")]
        frame = spark.createDataFrame(rows, HOLDINGS)
        blocks = [block for block in self.blocks if known and destination in (None, block[0])]
        if not blocks:
            return frame
        tasks = -(-len(blocks) // BLOCKS_A_TASK)
        return frame.unionByName(spark.createDataFrame(spark.sparkContext.parallelize(blocks, tasks).flatMap(_settled), HOLDINGS))


def _settled(block: tuple[int, int, int, int, bytes]) -> Iterator[tuple[Any, ...]]:
    destination, subscription, lane, number, bits = block
    return (("settled", destination, subscription, lane, first, last) for first, last in ranges_of(number, bits))


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
    lows = _lows(rows)
    rows += _below_floors(connection.execute(_FLOORS.encode(), [shard]).fetchall(), lows)
    blocks = [block for portion in portions(connection, _BLOCKS, shard, PROGRESS_ROWS) for block in portion if _is_of_rows(block, lows)]
    last = connection.execute("SELECT coalesce(max(subscription), 0) FROM surety.subscription WHERE shard = %s", [shard]).fetchone()
    point = connection.execute("SELECT coalesce(max(number), 0) FROM surety.checkpoint WHERE shard = %s", [shard]).fetchone()
    assert last is not None and point is not None
    return Holdings(upto, rows, last[0], point[0], blocks)


def _lows(rows: list[tuple[Any, ...]]) -> dict[tuple[int, int], int]:
    """Of a destination's lane the first position that has a row: what lies before is history, of whatever length."""
    lows: dict[tuple[int, int], int] = {}
    for kind, destination, _, lane, first, _ in rows:
        if kind == "row":
            lows[destination, lane] = min(first, lows.get((destination, lane), first))
    return lows


def _is_of_rows(block: tuple[int, int, int, int, bytes], lows: dict[tuple[int, int], int]) -> bool:
    """It ends at the lane's first row, or behind it."""
    destination, _, lane, number, _ = block
    return (destination, lane) in lows and number >= lows[destination, lane] // BLOCK


def _below_floors(floors: list[tuple[Any, ...]], lows: dict[tuple[int, int], int]) -> list[tuple[Any, ...]]:
    """From the first row of the lane on."""
    return [
        ("settled", destination, subscription, lane, lows[destination, lane], floor - 1)
        for destination, subscription, lane, floor in floors
        if lows.get((destination, lane), floor) < floor
    ]
