"""Runs of the pipeline: one at a time, each a row of `surety.pipeline_run` that says how far it is and what came of it."""

from __future__ import annotations

import json
import logging
import os
import socket
from types import TracebackType
from typing import Any, Self

import psycopg

log = logging.getLogger("surety.pipeline")

READER = "pipeline"
"""By this name the pipeline reads the ledger (surety.ledger_reader)."""
LOCK = 0x53504950
"""The class of the advisory lock of whoever runs; the object is the shard. It ends with its session, so a run that was killed holds nobody up."""
ERROR_CHARACTERS_MAX = 2_000
RUNS_KEPT = 1_000


class RunRefused(RuntimeError):
    """One sentence that says why there is no run now, and what to do."""


class Run:
    """A run that has begun; a context manager. Left by an exception it has failed, and says why; killed, it is found by the next one to have died."""

    def __init__(self, url: str, kind: str, *, shard: int = 0, requested_by: str = "") -> None:
        """Raises RunRefused, psycopg.Error."""
        self.shard = shard
        self.connection: psycopg.Connection[Any] = psycopg.connect(url, autocommit=True, application_name="surety pipeline")
        # What is told here as published is so for good.
        self.connection.execute("SET synchronous_commit = on")
        locked = self.connection.execute("SELECT pg_try_advisory_lock(%s, %s)", [LOCK, shard]).fetchone()
        if locked != (True,):
            row = self.connection.execute(
                "SELECT run, kind, process FROM surety.pipeline_run WHERE shard = %s AND state = 'running' ORDER BY run DESC LIMIT 1", [shard]
            ).fetchone()
            self.connection.close()
            who = f": run {row[0]} ({row[1]}) in process {row[2]}" if row else ""
            raise RunRefused(f"the pipeline is running already{who}; wait until it has ended, or end that process")
        self.connection.execute(
            "UPDATE surety.pipeline_run SET state = 'died', ended_at = clock_timestamp(), error = 'its process ended before it did' "
            "WHERE shard = %s AND state = 'running'",
            [shard],
        )
        self.connection.execute(
            "DELETE FROM surety.pipeline_run WHERE run < (SELECT max(run) FROM surety.pipeline_run) - %s AND to_number IS NULL", [RUNS_KEPT]
        )
        found = self.connection.execute(
            "INSERT INTO surety.pipeline_run (shard, kind, state, requested_by, process) VALUES (%s, %s, 'running', %s, %s) RETURNING run",
            [shard, kind, requested_by, f"{socket.gethostname()}:{os.getpid()}"],
        ).fetchone()
        assert found is not None
        self.number: int = found[0]
        self.counts: dict[str, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if error is None:
                self._end("done", "")
            elif not self.connection.closed:
                self._end("failed", (str(error) or type(error).__name__)[:ERROR_CHARACTERS_MAX])
        finally:
            self._leave()

    def _leave(self) -> None:
        """The lock is given back before the session ends: that the server does when it notices, and the next run may begin sooner."""
        try:
            if not self.connection.closed:
                self.connection.execute("SELECT pg_advisory_unlock(%s, %s)", [LOCK, self.shard])
        except psycopg.OperationalError as error:
            log.warning("The pipeline's session was lost at its end: %s", str(error).strip())
        finally:
            self.connection.close()

    def _end(self, state: str, error: str) -> None:
        self.connection.execute(
            "UPDATE surety.pipeline_run SET state = %s, stage = '', ended_at = clock_timestamp(), error = %s, counts = %s WHERE run = %s",
            [state, error, json.dumps(self.counts), self.number],
        )

    def says(self, stage: str, **counts: Any) -> None:
        """What it is at, and what has come of it so far. Durable when it returns. Raises psycopg.Error, also if the run is not the one that holds the lock
        any more: then its session has ended, and what it was to publish must not be."""
        self.counts |= counts
        self.connection.execute("UPDATE surety.pipeline_run SET stage = %s, counts = %s WHERE run = %s", [stage, json.dumps(self.counts), self.number])

    def reads(self, after: int, upto: int) -> None:
        """Which commits it is about. When this returns all of them outlive a crash of the database: it waits for the disk, where they went before it."""
        self.connection.execute(
            "UPDATE surety.pipeline_run SET from_number = coalesce(from_number, %s), to_number = %s WHERE run = %s", [after + 1, upto, self.number]
        )

    # -- the watermark ------------------------------------------------------------------------------------------------------------------
    def watermark(self) -> int | None:
        """Up to which commit the lake is known to have the ledger; None: the pipeline never ran."""
        row = self.connection.execute("SELECT number FROM surety.ledger_reader WHERE shard = %s AND reader = %s", [self.shard, READER]).fetchone()
        return None if row is None else int(row[0])

    def move_watermark(self, number: int) -> None:
        """From now on the ledger may drop what is up to there."""
        self.connection.execute(
            "INSERT INTO surety.ledger_reader (shard, reader, number) VALUES (%s, %s, %s) "
            "ON CONFLICT (shard, reader) DO UPDATE SET number = excluded.number, at = clock_timestamp()",
            [self.shard, READER, number],
        )

    def has_read(self, run: int, upto: int) -> bool:
        """Whether the database knows that this run, or one before it, has read so far. It does not if it was restored from a backup that is older; then the
        run's number may be there all the same, given out anew: to this run, or to one that was refused."""
        statement = "SELECT EXISTS (SELECT FROM surety.pipeline_run WHERE run <= %s AND run <> %s AND to_number >= %s)"
        return self.connection.execute(statement, [run, self.number, upto]).fetchone() == (True,)

    def instance(self) -> str:
        """What this installation is called."""
        row = self.connection.execute("SELECT instance FROM surety.installation").fetchone()
        assert row is not None
        return str(row[0])
