"""The delivery audit of an interval of commits, put together of its transforms: what was found, and what the next one needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from .schema import EVENTS
from .transforms import audit, continuity, lineage, lives

HOLDINGS = "kind string, destination int, subscription int, lane smallint, first bigint, last bigint"
"""What the store holds after the last commit. row: first to last have rows; reserved: a prepared transaction has acknowledged them in the subscription;
settled: the checkpoint, which may be of a commit before, counts them as over in the subscription."""
EVIDENCE_MAX = 200
"""Violations of each kind that are shown, with the events they follow from: ranges, not messages; of more there is the number."""
_COLUMNS = ("destination int", "subscription int", "lane smallint", "first bigint", "last bigint", "messages bigint", "accepted bigint", "offered bigint")
_SHAPE = ("violation string", "reason string", *_COLUMNS, "offered_last bigint", "settled bigint", "outcome string")


@dataclass(slots=True, frozen=True)
class Matter:
    """What is examined: frames of schema, of the commits after `after` up to `upto`; `commits` begin with the one before, if there is one."""

    events: DataFrame
    commits: DataFrame
    destinations: DataFrame
    defined: DataFrame
    """schema.SUBSCRIPTIONS."""
    holdings: DataFrame
    """HOLDINGS, after commit `upto`."""
    state: DataFrame
    """lives.STATE: of the audit before."""
    gaps: Sequence[tuple[int, int, str]] = ()
    """(first, last, reason): commits that were dropped unread, as the database says."""
    earlier: Sequence[tuple[int, int]] = ()
    """(first, last): those of the audits that `state` is of. They are told of already, and what they may have said is in doubt for ever."""
    complete: bool = False
    """Nothing happened before these events, and before the state: what it does not know was never there."""


@dataclass(slots=True, frozen=True)
class Examination:
    """Its frames are computed when they are asked for; the segments, their verdict and the violations are kept until `release`."""

    segments: DataFrame
    verdict: DataFrame
    tally: DataFrame
    violations: DataFrame
    """Columns of audit.violations; of a break in the ledger there is no destination, and first to last are commits."""
    state: DataFrame
    subscriptions: DataFrame

    def kinds(self) -> dict[str, dict[str, int]]:
        """Of each kind of violation that there is all of them, as `ranges` and as `messages`."""
        found = self.violations.groupBy("violation").agg(f.count("*").alias("ranges"), f.sum("messages").alias("messages")).collect()
        return {row.violation: {"ranges": row.ranges, "messages": row.messages or 0} for row in found}

    def release(self) -> None:
        self.segments.unpersist()
        self.verdict.unpersist()
        self.violations.unpersist()


def no_state(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([], lives.STATE)


def examine(matter: Matter) -> Examination:
    events, state = matter.events, matter.state
    breaks = continuity.breaks(matter.commits).collect()
    missing = [(row.after + 1, row.number - 1) for row in breaks if row.reason == continuity.MISSING]
    new = {*missing, *[(first, last) for first, last, _ in matter.gaps]}
    gaps = sorted({*new, *matter.earlier})
    subscriptions = lives.subscriptions_of(events, state, matter.defined, max(gaps)[0] if gaps else None).localCheckpoint()
    lanes = continuity.lanes_of(events, state).localCheckpoint()
    covered = lives.segments(events, state, subscriptions, matter.holdings).persist(StorageLevel.MEMORY_AND_DISK)
    found = lives.with_offers(covered, events, state)
    if not events.where(f.col("outcome") == lives.RESTORED).isEmpty():
        found = lives.with_endings(found, events)
    verdict = audit.judged(found, subscriptions, lanes, gaps, complete=matter.complete and not gaps).persist(StorageLevel.MEMORY_AND_DISK)
    parts = [audit.violations(verdict), lineage.misplaced(events, matter.destinations), lineage.unfounded(events, matter.destinations)]
    parts.append(_breaks(events.sparkSession, [(row.reason, row.after, row.number) for row in breaks], matter.gaps))
    if not new:
        # After a commit that is missing nobody knows where a lane had come to.
        holes = continuity.holes(events, state if not gaps else no_state(events.sparkSession)).withColumns(
            {"violation": f.lit(audit.GAP), "reason": f.lit("no commit accepted these positions"), "messages": f.col("last") - f.col("first") + 1}
        )
        parts.append(holes)
    wrong = reduce(DataFrame.unionByName, [_shaped(part) for part in parts]).persist(StorageLevel.MEMORY_AND_DISK)
    return Examination(covered, verdict, audit.tally(verdict), wrong, audit.next_state(verdict, state, subscriptions, lanes), subscriptions)


def with_evidence(examination: Examination, events: DataFrame) -> DataFrame:
    """The first violations of each kind, so that many of one hide none of another, and the events that they follow from."""
    place = f.row_number().over(Window.partitionBy("violation").orderBy("destination", "subscription", "lane", "first"))
    first = examination.violations.withColumn("place", place).where(f.col("place") <= EVIDENCE_MAX).drop("place").localCheckpoint()
    return audit.evidence(first, events)


def no_events(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([], EVENTS)


def _breaks(spark: SparkSession, found: Sequence[tuple[str, int, int]], told: Sequence[tuple[int, int, str]]) -> DataFrame:
    reasons = {(first, last): reason for first, last, reason in told}
    rows = []
    for reason, after, number in found:
        if reason == continuity.MISSING:
            first, last = after + 1, number - 1
            why = [text for (low, high), text in reasons.items() if low <= last and high >= first]
            rows.append((audit.GAP, f"{reason}: {'; '.join(why) or 'nobody says why'}", first, last))
        else:
            rows.append((audit.GAP, reason, after, number))
    return spark.createDataFrame(rows, "violation string, reason string, first bigint, last bigint")


def _shaped(part: DataFrame) -> DataFrame:
    there = set(part.columns)
    pairs = [tuple(column.split()) for column in _SHAPE]
    return part.select(*[(f.col(name) if name in there else f.lit(None)).cast(kind).alias(name) for name, kind in pairs])
