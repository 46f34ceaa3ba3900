"""The audit as a job: what came into the lake since the last one is examined and rolled up, and the results go to PostgreSQL, all at once. An audit that was
killed has left nothing; the next one does it again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import psycopg
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from . import findings
from .examination import Examination, Matter, examine, no_state, with_evidence
from .holdings import Holdings, HoldingsUnsteady, holdings
from .jobs import DatabaseLost, Place, bring_up_to_date, forget_dead, spark_told
from .lake import Lake, Manifest
from .runs import Run
from .session import session
from .transforms import lives, rollups

Tell = Callable[[str], None]
SEGMENTS_A_TASK = 500_000
"""Events that one task of a shuffle has about."""
PARTITIONS = 1, 2_000
"""Of a shuffle, at least and at most."""
FILES = 16
"""Of what one audit hands to the next, at the most."""


@dataclass(slots=True, frozen=True)
class Scope:
    """What an audit is of. By default what is new since the last one; that is what the next one goes on from."""

    since: datetime | None = None
    """Only messages that were accepted since then, from the lake as it is."""
    destination: int | None = None

    @property
    def goes_on(self) -> bool:
        return self.since is None and self.destination is None


WHOLE = Scope()


@dataclass(slots=True, frozen=True)
class Report:
    audit: int
    after: int
    upto: int
    proven: int
    unproven: int
    violations: int

    def __str__(self) -> str:
        found = f"{self.violations} violations" if self.violations else "no violation"
        doubt = f", {self.unproven} not proven as commits are missing" if self.unproven else ""
        return f"audit {self.audit}: commits {self.after + 1} to {self.upto}: {self.proven} fates of messages proven{doubt}, {found}"


class DestinationUnknown(RuntimeError):
    """One sentence."""


def begin(place: Place, *, tell: Tell, requested_by: str = "", since: datetime | None = None, address: str = "") -> Report | None:
    """Bring the lake up to date, then examine what is new in it, or all that was accepted `since` then or at this address. None: nothing is. Raises what
    jobs.run does, HoldingsUnsteady and DestinationUnknown."""
    try:
        with Run(place.url, "audit", shard=place.shard, requested_by=requested_by) as begun, spark_told(place.spark.work):
            tell(f"run {begun.number} has begun")
            forget_dead(place.spark.work)
            lake = Lake(session(place.spark), place.lake)
            scope = Scope(since, _number_of(begun, address) if address else None)
            begun.says("looking at what is stored")
            try:
                held = holdings(place.url, place.shard)
            except HoldingsUnsteady:
                bring_up_to_date(lake, begun, place.url, tell=tell)  # the ledger must not wait for an audit
                raise
            bring_up_to_date(lake, begun, place.url, tell=tell)
            return run_audit(lake, begun, held, tell=tell, scope=scope)
    except psycopg.Error as error:
        raise DatabaseLost(f"the database does not go on with the audit: {str(error).strip() or type(error).__name__}") from error


def _number_of(run: Run, address: str) -> int:
    row = run.connection.execute(
        "SELECT destination FROM surety.destination WHERE shard = %s AND address = %s ORDER BY destination DESC LIMIT 1", [run.shard, address]
    ).fetchone()
    if row is None:
        raise DestinationUnknown(f"there is no destination {address}: write queue/NAME or topic/NAME")
    return int(row[0])


def run_audit(lake: Lake, run: Run, held: Holdings, *, tell: Tell, scope: Scope = WHOLE) -> Report | None:
    """`held`: from before the lake was brought up to date, so that the lake has its commits. None: nothing is new. Raises psycopg.Error, and what Spark
    raises."""
    manifest = lake.manifest()
    before = _last(lake, run, manifest) if scope.goes_on else None
    after, upto = before["to_number"] if before else manifest.begins - 1, min(held.upto, manifest.upto)
    if scope.since is not None:
        after = max(after, _commit_before(lake, manifest, scope.since))
    if upto <= after:
        tell(f"nothing is new since commit {after}")
        return None
    began = time.monotonic()
    run.reads(after, upto)
    run.says("audit")
    events = _events(lake, manifest, after, upto, scope)
    count = manifest.count("events") * (upto - after) // max(manifest.upto - manifest.begins + 1, 1)
    with _partitions(lake, count):
        matter = _matter(lake, manifest, held, before, events, after, upto, scope)
        examination = examine(matter)
        try:
            return _concluded(lake, run, examination, matter, (after, upto), before, scope, began, tell)
        finally:
            examination.release()


def _last(lake: Lake, run: Run, manifest: Manifest) -> dict[str, Any] | None:
    """The audit to go on from, if the lake has what that one left, and all that came after it."""
    row = run.connection.execute(
        "SELECT audit, to_number, state, complete FROM surety.pipeline_audit WHERE shard = %s AND state <> '' ORDER BY audit DESC LIMIT 1", [run.shard]
    ).fetchone()
    if row is None or not manifest.begins - 1 <= row[1] <= manifest.upto or not lake.has(row[2]):
        return None
    return dict(zip(("audit", "to_number", "state", "complete"), row, strict=True))


def _rolled_up(run: Run) -> int:
    """The last commit that is in the roll-ups. A lake that was begun anew has some of those again."""
    row = run.connection.execute("SELECT coalesce(max(to_number), 0) FROM surety.pipeline_audit WHERE shard = %s AND state <> ''", [run.shard]).fetchone()
    assert row is not None
    return int(row[0])


def _commit_before(lake: Lake, manifest: Manifest, since: datetime) -> int:
    row = lake.frame("commits", manifest).where(f.col("at") < f.lit(since)).agg(f.max("number").alias("number")).first()
    return int(row.number) if row is not None and row.number is not None else manifest.begins - 1


def _events(lake: Lake, manifest: Manifest, after: int, upto: int, scope: Scope) -> DataFrame:
    wanted = (f.col("number") > after) & (f.col("number") <= upto)
    events: DataFrame = lake.frame("events", manifest).where(wanted)
    if after >= manifest.begins:  # whole folders are passed over; a new term may begin on an earlier day than the last one ended
        day = lake.frame("commits", manifest).where(wanted).agg(f.min("date").alias("first")).first()
        events = events.where(f.col("date") >= f.lit(day.first if day is not None else None))
    return events if scope.destination is None else of_one(events, scope.destination)


def of_one(events: DataFrame, destination: int) -> DataFrame:
    """What concerns this destination. Of others only the copies count that came from there: what became of their messages is not looked at."""
    here = {name: f.when(f.col(name) == destination, f.col(name)) for name in ("destination", "to")}
    return events.where((f.col("destination") == destination) | (f.col("to") == destination)).withColumns(here)


def _matter(
    lake: Lake, manifest: Manifest, held: Holdings, before: dict[str, Any] | None, events: DataFrame, after: int, upto: int, scope: Scope
) -> Matter:  # fmt: skip
    spark = lake.spark
    gaps = lake.frame("gaps", manifest).where((f.col("first_number") <= upto) & (f.col("first_number") >= manifest.begins)).collect()
    defined = lake.frame("subscriptions", manifest).where(f.col("subscription") <= held.subscription)
    commits = lake.frame("commits", manifest).where((f.col("number") >= after) & (f.col("number") <= upto))
    state = spark.read.schema(lives.STATE).parquet(f"{lake.root}/{before['state']}") if before is not None else no_state(spark)
    complete = before["complete"] if before is not None else after == 0
    return Matter(
        events, commits, lake.frame("destinations", manifest), defined, held.frame(spark, after, scope.destination), state,
        [(row.first_number, row.last_number, row.reason) for row in gaps if row.last_number > after],
        [(row.first_number, row.last_number) for row in gaps if row.last_number <= after and before is not None], complete,
    )  # fmt: skip


class _partitions:  # noqa: N801 - it reads as a statement
    """As many partitions of shuffles as the events ask for, as long as it lasts."""

    def __init__(self, lake: Lake, events: int) -> None:
        self._conf = lake.spark.conf
        self._wanted = min(max(events // SEGMENTS_A_TASK, PARTITIONS[0]), PARTITIONS[1])

    def __enter__(self) -> None:
        self._before = self._conf.get("spark.sql.shuffle.partitions")
        self._conf.set("spark.sql.shuffle.partitions", str(max(self._wanted, int(self._before or 0))))

    def __exit__(self, *_: object) -> None:
        self._conf.set("spark.sql.shuffle.partitions", str(self._before))


# -- results --------------------------------------------------------------------------------------------------------------------------
def _concluded(
    lake: Lake, run: Run, examination: Examination, matter: Matter, interval: tuple[int, int], before: dict[str, Any] | None, scope: Scope, began: float,
    tell: Tell,
) -> Report:  # fmt: skip
    after, upto = interval
    addresses = {row.destination: row.address for row in matter.destinations.select("destination", "address").collect()}
    fates = [row.asDict() | {"address": addresses.get(row.destination)} for row in examination.tally.collect()]
    kinds = examination.kinds()
    ranges, bad = sum(kind["ranges"] for kind in kinds.values()), sum(kind["messages"] for kind in kinds.values())
    wrong = with_evidence(examination, matter.events).collect() if kinds else []
    run.says("audit: what is discarded, roll-ups", violations=ranges)
    discards = findings.discards(run, examination.verdict, addresses)
    # Computed here, so that the transaction below does not wait for Spark.
    rolled = rollups.rolled_up(matter.events, examination.verdict, max(after, _rolled_up(run))).localCheckpoint() if scope.goes_on else None
    state = _kept(lake, run, examination) if scope.goes_on else ""
    ends = matter.commits.where(f.col("number") > after).agg(f.min("at").alias("low"), f.max("at").alias("high")).first()
    assert ends is not None
    proven = sum(one["messages"] for one in fates if one["fate"] is not None)
    unproven = max(sum(one["messages"] for one in fates if one["fate"] is None) - bad, 0)
    with run.connection.transaction():
        row = run.connection.execute(
            "INSERT INTO surety.pipeline_audit (shard, run, from_number, to_number, from_at, to_at, since, destination, complete, proven, unproven, "
            "violations, kinds, fates, discards, gaps, state, milliseconds) "
            "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) RETURNING audit",
            [
                run.shard, run.number, after + 1, upto, _utc(ends.low), _utc(ends.high), scope.since, scope.destination, matter.complete, proven, unproven,
                ranges, json.dumps(kinds), json.dumps(fates), json.dumps(discards), json.dumps(matter.gaps), state, int((time.monotonic() - began) * 1000),
            ],
        ).fetchone()  # fmt: skip
        assert row is not None
        findings.write_violations(run.connection, row[0], wrong, addresses)
        if rolled is not None:
            findings.add_counts(run.connection, run.shard, rolled)
    if state:
        lake.keep_only("audit", [state, *([before["state"]] if before is not None else [])])
    report = Report(row[0], after, upto, proven, unproven, ranges)
    run.says("audited", audit=row[0], proven=proven, unproven=unproven, violations=ranges)
    tell(str(report))
    return report


def _utc(at: datetime | None) -> datetime | None:
    """Spark gives instants without a zone, in that of the session, which is UTC, turned into that of the process."""
    return at.astimezone(UTC) if at is not None else None


def _kept(lake: Lake, run: Run, examination: Examination) -> str:
    """Where the next audit finds it: beside that of the last one, which counts until this one is in the database. No other audit's has its name, so that what
    an older copy of the lake has is not taken for it."""
    path = f"audit/run={run.number:09d}"
    examination.state.coalesce(FILES).write.mode("overwrite").parquet(f"{lake.root}/{path}")
    lake.to_disk(path)
    return path
