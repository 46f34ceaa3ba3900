"""The data pipeline, as its rows in the database tell: how far the lake is, what its runs did. Spark is not asked, and need not be there."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings

from broker_core.pipeline.runs import LOCK
from broker_core.pipeline.surroundings import java_missing, packages_missing

from .rows import rows

PAGE_ROWS = 100
STATES = ("running", "done", "failed", "died")

# A run whose session is gone has died, though nobody has said so yet.
_RUNS = """
    SELECT run AS number, kind, stage, requested_by, process, started_at, ended_at, from_number AS first_commit, to_number AS last_commit, error,
           counts::text AS counts, CASE WHEN state = 'running' AND NOT EXISTS (
               SELECT FROM pg_locks l WHERE l.locktype = 'advisory' AND l.classid = %(lock)s AND l.objid = shard AND l.objsubid = 2 AND l.granted
               AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())) THEN 'died' ELSE state END AS state
      FROM surety.pipeline_run WHERE shard = 0"""
# One that works, though nobody does, has died with its process; asked for again it goes on.
_REPLAYS = """
    SELECT replay AS number, requested_by, address, "into", accepted_from, accepted_to, selector, identifiers, rate, sent, total, created_at, ended_at,
           CASE WHEN state = 'running' AND NOT EXISTS (
               SELECT FROM pg_locks l WHERE l.locktype = 'advisory' AND l.classid = %(lock)s AND l.objid = shard AND l.objsubid = 2 AND l.granted
               AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())) THEN 'failed' ELSE state END AS state,
           CASE WHEN state IN ('asked', 'running') AND cancels THEN 'being cancelled' ELSE error END AS error
      FROM surety.pipeline_replay"""
_PIPELINE = """
    SELECT r.number AS lake_commit, r.at AS moved_at, c.number AS checkpoint_commit
      FROM surety.checkpoint c LEFT JOIN surety.ledger_reader r ON r.shard = c.shard AND r.reader = 'pipeline' WHERE c.shard = 0"""

_UNARCHIVED = """
    SELECT g.destination, d.address, sum(g.messages)::int8 AS messages, min(g.dropped_at) AS since, max(g.dropped_at) AS until
      FROM surety.archive_gap g LEFT JOIN surety.destination d USING (shard, destination) WHERE g.shard = 0
     GROUP BY g.destination, d.address ORDER BY max(g.dropped_at) DESC, g.destination LIMIT %(limit)s"""


@dataclass(slots=True, frozen=True)
class PipelineRun:
    number: int
    kind: str
    state: str
    stage: str
    requested_by: str
    process: str
    started_at: datetime
    ended_at: datetime | None
    first_commit: int | None
    last_commit: int | None
    counts: dict[str, Any]
    error: str


@dataclass(slots=True, frozen=True)
class Replay:
    number: int
    state: str
    requested_by: str
    address: str
    into: str
    accepted_from: datetime | None
    accepted_to: datetime | None
    selector: str
    identifiers: list[str]
    rate: int
    sent: int
    total: int | None
    created_at: datetime
    ended_at: datetime | None
    error: str


@dataclass(slots=True, frozen=True)
class Unarchived:
    """Messages of a destination with `archive_ms` that are not in the archive: nothing had read them, and there was no more room for them."""

    destination: int
    address: str | None
    messages: int
    since: datetime
    until: datetime


@dataclass(slots=True, frozen=True)
class Pipeline:
    problem: str
    """Why it cannot run on this machine, and what to do; empty: it can."""
    lake_commit: int | None
    """Up to this commit the ledger is in the lake; None: the pipeline never ran."""
    moved_at: datetime | None
    behind: int | None
    """Commits that the ledger has beyond it, as of the last checkpoint; None: unknown."""
    run: PipelineRun | None
    """The last one."""
    unarchived: list[Unarchived]
    """The newest first."""


def pipeline() -> Pipeline:
    """Three queries."""
    [found] = rows(_PIPELINE) or [{"lake_commit": None, "moved_at": None, "checkpoint_commit": None}]
    mark, last = found["lake_commit"], found["checkpoint_commit"]
    runs, _ = page(limit=1)
    behind = None if mark is None or last is None else max(last - mark, 0)
    lost = [Unarchived(**row) for row in rows(_UNARCHIVED, {"limit": PAGE_ROWS})]
    return Pipeline(problem(), mark, found["moved_at"], behind, runs[0] if runs else None, lost)


def problem() -> str:
    """One sentence with the cure, or nothing."""
    return java_missing(settings.JAVA_HOME) or packages_missing()


def page(before: int = 0, limit: int = PAGE_ROWS) -> tuple[list[PipelineRun], str]:
    """At most `limit` with lower numbers than `before` (0: the newest), and the key of the next page, empty if this is the last. One query."""
    found = rows(
        f"{_RUNS} AND (%(before)s = 0 OR run < %(before)s) ORDER BY run DESC LIMIT %(limit)s", {"before": before, "limit": limit + 1, "lock": LOCK}
    )
    shown = [_made(row) for row in found[:limit]]
    return shown, str(shown[-1].number) if len(found) > limit else ""


def by_number(number: int) -> PipelineRun | None:
    found = rows(f"{_RUNS} AND run = %(run)s", {"run": number, "lock": LOCK})
    return _made(found[0]) if found else None


def replays(before: int = 0, limit: int = PAGE_ROWS) -> tuple[list[Replay], str]:
    """At most `limit` with lower numbers than `before` (0: the newest), and the key of the next page, empty if this is the last. One query."""
    found = rows(
        f"{_REPLAYS} WHERE shard = 0 AND (%(before)s = 0 OR replay < %(before)s) ORDER BY replay DESC LIMIT %(limit)s",
        {"before": before, "limit": limit + 1, "lock": LOCK},
    )
    shown = [Replay(**row) for row in found[:limit]]
    return shown, str(shown[-1].number) if len(found) > limit else ""


def replay(number: int) -> Replay | None:
    found = rows(f"{_REPLAYS} WHERE shard = 0 AND replay = %(replay)s", {"replay": number, "lock": LOCK})
    return Replay(**found[0]) if found else None


def _made(row: dict[str, Any]) -> PipelineRun:
    return PipelineRun(**row | {"counts": json.loads(row["counts"])})
