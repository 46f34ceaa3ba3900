"""How far the pipeline is, as the database knows it. Imports nothing that may be missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg

from .database import snapshot
from .extents import extent
from .runs import LOCK, READER


@dataclass(frozen=True, slots=True)
class Status:
    running: bool
    """Somebody holds the lock."""
    watermark: int | None
    """Up to which commit the ledger is in the lake; None: it never was."""
    last: int
    """The last commit that the ledger has."""
    runs: list[dict[str, Any]]
    """The newest first."""
    unarchived: int
    """Messages that should be in the archive and are not: nothing had read them when there was no more room for them."""


def status(url: str, *, shard: int = 0, limit: int = 10) -> Status:
    """Raises psycopg.Error."""
    with snapshot(url) as connection:
        held = connection.execute(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = %s AND objid = %s AND objsubid = 2 AND granted "
            "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))",
            [LOCK, shard],
        ).fetchone()
        mark = connection.execute("SELECT number FROM surety.ledger_reader WHERE shard = %s AND reader = %s", [shard, READER]).fetchone()
        cursor = connection.cursor(row_factory=psycopg.rows.dict_row)
        cursor.execute("SELECT * FROM surety.pipeline_run WHERE shard = %s ORDER BY run DESC LIMIT %s", [shard, limit])
        last = extent(connection, shard).last
        lost = connection.execute("SELECT coalesce(sum(messages), 0)::int8 FROM surety.archive_gap WHERE shard = %s", [shard]).fetchone()
        assert lost is not None
        running = held == (True,)
        runs = [row if running or row["state"] != "running" else row | {"state": "died"} for row in cursor.fetchall()]
        return Status(running, None if mark is None else mark[0], last, runs, lost[0])
