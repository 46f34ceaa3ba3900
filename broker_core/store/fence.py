"""Transactions on connections that do not hold the lock: each first makes sure that the epoch is still ours, and that it stays so to its end (R11)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg import AsyncConnection

from . import CommitLost, SpaceExhausted
from .queries import QUERIES

OUT_OF_SPACE = "53100"
"""disk_full. The other states of class 53 (memory, connections) say nothing about space."""


def translated(error: psycopg.Error) -> Exception:
    """What the port promises for an error of the database."""
    if error.sqlstate == OUT_OF_SPACE:
        return SpaceExhausted(str(error).strip())
    return CommitLost(str(error).strip())


class Fence:
    def __init__(self, shard: int, epoch: int) -> None:
        self.shard, self.epoch = shard, epoch

    @asynccontextmanager
    async def transaction(self, connection: AsyncConnection[Any]) -> AsyncIterator[None]:
        """A transaction that nobody's higher epoch can overtake. Raises CommitLost when one has already."""
        async with connection.transaction():
            held = await connection.execute(QUERIES["fence"], {"shard": self.shard, "epoch": self.epoch})
            if await held.fetchone() is None:
                raise CommitLost(f"epoch {self.epoch} of shard {self.shard} is over: another node has the lease")
            yield
