"""Whether what died or was moved is where it should be now: the end of a message and its copy are in one commit, and the ledger names both."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from broker_core.engine.address import DEAD_MESSAGE_QUEUE
from broker_core.engine.outcome import Outcome
from broker_core.pipeline.schema import ACCEPTED, DIED, SETTLED, TRACED

from .audit import DYING, LOST, UNRECORDED
from .lives import stored
from .spans import overlay

LANE_KEYS = ["destination", "lane"]
_BITS = 12
_NAMES = ("deaths", "records", "moves", "arrivals")


def misplaced(events: DataFrame, destinations: DataFrame) -> DataFrame:
    """(violation, reason, destination, lane, first, last, messages). A topic's message may also die for subscriptions that are in no ledger, so that it has
    more records than deaths; a queue's has as many, in the same commits."""
    events = stored(events).where(f.col("destination") > 0)
    kind, cause = f.col("kind"), f.col("cause")
    topic = f.broadcast(destinations.select("destination", "is_topic").distinct())
    settled = events.where(kind == SETTLED)
    parts = [
        _part(settled.where(f.col("outcome").isin(*DYING)), 0, f.col("number")),
        _part(events.where((kind == TRACED) & (cause == DIED)), 1, -f.col("number")),
        _part(settled.where(f.col("outcome") == Outcome.MOVED.name.lower()), 2),
        _part(events.where((kind == TRACED) & (cause != DIED)), 3),
    ]
    found = _overlaid(parts).join(topic, "destination", "left")
    deaths, records, moves, arrivals = (_count(place) for place in range(len(_NAMES)))
    exact = ~f.coalesce(f.col("is_topic"), f.lit(False))
    wrong = (
        f.when(deaths > records, _told(UNRECORDED, "it died, and the ledger does not say where its copy is, nor that none is kept"))
        .when(exact & (records > deaths), _told(UNRECORDED, "there is a copy of it among the dead, and it did not die"))
        .when(exact & (f.col("commits") != 0), _told(UNRECORDED, "it died in another commit than its copy was made in"))
        .when(moves > arrivals, _told(LOST, "it was moved, and arrived nowhere"))
    )
    return _violations(found, wrong)


def unfounded(events: DataFrame, destinations: DataFrame) -> DataFrame:
    """The same of copies: (violation, reason, destination, lane, first, last, messages). Each was accepted in the commit that tells of it; what is in the
    broker's dead message queue is one."""
    kind = f.col("kind")
    told = events.where((kind == TRACED) & f.col("to").isNotNull())
    length = f.col("last") - f.col("first")
    there = told.select(
        f.col("to").alias("destination"), f.col("to_lane").alias("lane"), f.col("to_first").alias("first"), (f.col("to_first") + length).alias("last"), "number"
    )
    dead = f.broadcast(destinations.where(f.col("address") == DEAD_MESSAGE_QUEUE).select("destination").distinct().withColumn("is_dead", f.lit(True)))
    targets = there.select("destination").distinct().unionByName(dead.select("destination")).distinct()
    accepted = stored(events).where(kind == ACCEPTED).join(f.broadcast(targets), "destination", "left_semi")
    found = _overlaid([_part(there, 0, f.col("number")), _part(accepted, 1, -f.col("number"))]).join(dead, "destination", "left")
    copies, acceptances = _count(0), _count(1)
    elsewhere = (copies > 0) & ((acceptances != copies) | (f.col("commits") != 0))
    wrong = (
        f.when(elsewhere, _told(UNRECORDED, "the ledger tells of a copy that the same commit did not accept"))
        .when((copies == 0) & f.col("is_dead"), _told(UNRECORDED, "it is in the dead message queue, and nothing says where it died"))
    )  # fmt: skip
    return _violations(found, wrong)


def _part(ranges: DataFrame, place: int, commits: Column | None = None) -> DataFrame:
    """`commits`: what is summed up to nothing where both sides are of the same commits."""
    unit = f.lit(1 << _BITS * place).cast("bigint").alias("counts")
    return ranges.select(*LANE_KEYS, "first", "last", unit, (f.lit(0) if commits is None else commits).cast("bigint").alias("commits"))


def _overlaid(parts: list[DataFrame]) -> DataFrame:
    return overlay(reduce(DataFrame.unionByName, parts), LANE_KEYS, "counts", ["commits"])


def _count(place: int) -> Column:
    return f.shiftright(f.col("counts"), _BITS * place).bitwiseAND((1 << _BITS) - 1)


def _told(violation: str, reason: str) -> Column:
    return f.struct(f.lit(violation).alias("violation"), f.lit(reason).alias("reason"))


def _violations(found: DataFrame, wrong: Column) -> DataFrame:
    told = found.withColumn("told", wrong).where(f.col("told").isNotNull())
    return told.select("told.*", *LANE_KEYS, "first", "last", (f.col("last") - f.col("first") + 1).alias("messages"))
