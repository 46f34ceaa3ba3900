"""Writes checkpoints: what changed, set-based, in one fenced transaction a second (R1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg import AsyncConnection

from broker_core.engine.writes import Checkpoint

from .arrays import integers
from .fence import Fence
from .open_segment import OpenSegment
from .queries import QUERIES


async def write_checkpoint(connection: AsyncConnection[Any], fence: Fence, checkpoint: Checkpoint, open_segment: OpenSegment) -> None:
    """Replace what the checkpoint names. Raises CommitLost, psycopg.Error."""
    shard = fence.shard
    segment, rows, octets = open_segment.after(checkpoint.number)
    firsts = open_segment.firsts(segment, checkpoint.lanes)
    lanes = [
        (destination, lane, tail, segment if first is not None else None, first)
        for (destination, lane, tail), first in zip(checkpoint.lanes, firsts, strict=True)
    ]
    full = [row for row in checkpoint.blocks if row[3]]
    empty = [row[:3] for row in checkpoint.blocks if not row[3]]
    failed = [row for row in checkpoint.failures if row[3]]
    healed = [row[:3] for row in checkpoint.failures if not row[3]]

    async def write(query: str, columns: tuple[str, ...], values: Sequence[tuple[object, ...]]) -> None:
        if values:
            arrays = {name: list(column) if name == "bits" else integers(column) for name, column in zip(columns, zip(*values, strict=True), strict=True)}
            await connection.execute(QUERIES[query], {"shard": shard, **arrays})

    async with fence.transaction(connection):
        # The ledger is the truth until the checkpoint is on disk; its own loss costs a longer replay, nothing else.
        await connection.execute("SET LOCAL synchronous_commit = off")
        await write("lanes_write", ("destinations", "lanes", "tails", "segments", "firsts"), lanes)
        await write("cursors_write", ("subscriptions", "lanes", "floors", "offered"), checkpoint.cursors)
        await write("blocks_write", ("subscriptions", "lanes", "blocks", "bits"), full)
        await write("blocks_delete", ("subscriptions", "lanes", "blocks"), empty)
        await write("failures_write", ("subscriptions", "lanes", "positions", "failures"), failed)
        await write("failures_delete", ("subscriptions", "lanes", "positions"), healed)
        await write("counters_write", ("destinations", "octets", "accepted", "settled", "dead", "expired", "redelivered"), checkpoint.counters)
        await write("idle_write", ("subscriptions", "instants"), checkpoint.idle)
        await connection.execute(
            QUERIES["checkpoint_write"],
            {
                "shard": shard, "number": checkpoint.number, "at": checkpoint.at, "sequence": checkpoint.sequence,
                "segment": segment, "rows": rows, "octets": octets,
            },
        )  # fmt: skip
