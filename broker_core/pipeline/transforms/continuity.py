"""Whether the ledger is whole: every commit is there, terms follow each other, clocks go forward, and positions of lanes are dense."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from broker_core.pipeline.schema import ACCEPTED

from .lives import LANE, stored
from .spans import coalesced

MISSING, TWICE, TERM, CLOCK = (
    "commits are missing", "there are two commits of one number: the database was restored, or two nodes have written", "the term goes back",
    "the clock goes back",
)  # fmt: skip
"""Reasons of a break."""
RUN = 1 << 18
"""Commits that one task looks at together."""


def breaks(commits: DataFrame) -> DataFrame:
    """(reason, after, number): two commits, neighbours as far as is known, that cannot be so. Numbers that are missing lie between them."""
    cut = commits.select("number", "epoch", f.unix_millis("at").alias("ms"), f.expr(f"number div {RUN}").alias("run"))
    ends = cut.groupBy("run").agg(f.max_by(f.struct("number", "epoch", "ms"), f.struct("number", "epoch")).alias("end"))
    before = ends.select((f.lead("run").over(Window.orderBy("run"))).alias("run"), "end").where(f.col("run").isNotNull())
    along = Window.partitionBy("run").orderBy("number", "epoch")
    told = cut.join(f.broadcast(before), "run", "left").withColumn("previous", f.coalesce(f.lag(f.struct("number", "epoch", "ms")).over(along), f.col("end")))
    after, reason = f.col("previous.number"), (
        f.when(f.col("number") == f.col("previous.number"), TWICE)
        .when(f.col("number") > f.col("previous.number") + 1, MISSING)
        .when(f.col("epoch") < f.col("previous.epoch"), TERM)
        .when((f.col("ms") < f.col("previous.ms")) & (f.col("epoch") == f.col("previous.epoch")), CLOCK)
    )  # fmt: skip
    return told.select(reason.alias("reason"), after.alias("after"), "number").where(f.col("reason").isNotNull())


def lanes_of(events: DataFrame, state: DataFrame) -> DataFrame:
    """(destination, lane, low, high): the first and the last position that is known to have been accepted."""
    new = stored(events).where(f.col("kind") == ACCEPTED).select("destination", "lane", "first", "last")
    known = state.where(f.col("kind") == LANE).select("destination", "lane", "first", "last")
    return new.unionByName(known).groupBy("destination", "lane").agg(f.min("first").alias("low"), f.max("last").alias("high"))


def holes(events: DataFrame, state: DataFrame) -> DataFrame:
    """(destination, lane, first, last): positions that nothing was accepted at, though others were before and after."""
    new = stored(events).where(f.col("kind") == ACCEPTED).select("destination", "lane", "first", "last")
    known = state.where(f.col("kind") == LANE).select("destination", "lane", "first", "last")
    there = coalesced(new.unionByName(known), ["destination", "lane"])
    following = f.lead("first").over(Window.partitionBy("destination", "lane").orderBy("first"))
    between = there.select("destination", "lane", (f.col("last") + 1).alias("first"), (following - 1).alias("last"))
    return between.where(f.col("last").isNotNull())
