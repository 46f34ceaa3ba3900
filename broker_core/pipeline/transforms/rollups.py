"""What happened, minute by minute, hour by hour, day by day: additive counts, so that what one run finds is added to what earlier ones did. Times are
histograms of messages; percentiles are read from them."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from broker_core.engine.message import VOLATILE
from broker_core.engine.outcome import Outcome
from broker_core.pipeline.schema import ACCEPTED, BLOCKED, ENDED, FAILED, OCTETS, OFFERED, SETTLED

from . import audit
from .lives import stored

GRAINS = ("minute", "hour", "day")
STEPS = 4
"""Buckets of a histogram between a time and twice that time: each is 19% wide, so that a percentile is right to a tenth."""
LINKS_MAX = 20
"""The busiest consumers of an hour in one subscription are told apart."""
KEYS = ["destination", "subscription"]
EVERY, ALL_OF_THEM = 0, 1
FACTS = ("arrived", "left", "delivered", "wait", "held", "life")
COUNTS = 3
"""So many of them have no histogram."""
BUCKETS_MAX = 1024
MINUTE_MS = 60_000


def bucket_of(milliseconds: Column) -> Column:
    """Which bucket of a histogram a time belongs to; the middle of bucket n is 2^(n / STEPS) - 1 ms."""
    return f.round(f.log2(f.greatest(milliseconds, f.lit(0)) + 1) * STEPS).cast("int")


def rolled_up(events: DataFrame, verdict: DataFrame, after: int) -> DataFrame:
    """(grain, start, destination, subscription, counts): `counts` is a map of names to numbers, of what happened after commit `after`. subscription null:
    of the destination as a whole. Destination EVERY has the sums over all destinations, and with subscription ALL_OF_THEM those over all subscriptions, so that
    what is asked of the whole broker costs the same however many it has.

    Names: accepted, octets (the change of what is held), octets_in and octets_out (what of stored messages came and left; of a topic once a durable
    subscription), blocked_ms (how long producers waited for room, in the minutes in which they did; summed over destinations that is the time of all of
    them together), offered, delivered (the first time), failed, settled outcomes, arrived and left (of a subscription),
    and histograms wait/n (accepted to first offered), held/n (last offered to acknowledged), life/n (accepted to acknowledged); link/epoch/number (what a
    consumer was offered, in hours; not in sums)."""
    ends = events.where(f.col("kind") == ENDED).groupBy(f.col("number").alias("ended")).agg(f.max(f.unix_millis("at")).alias("ended_at"))
    proper = verdict.where(f.col("violation").isNull()).join(f.broadcast(ends), "ended", "left")
    new = events.where(f.col("number") > after)
    happened = _of_events(new).unionByName(_of_octets(new)).unionByName(_of_blocked(new)).unionByName(_of_lives(proper, after))
    minutes = happened.where(f.col("name").isNotNull() & f.col("start").isNotNull()).groupBy("start", *KEYS, "name").agg(f.sum("count").alias("count"))
    whole = (f.lit(EVERY).alias("destination"), f.when(f.col("subscription").isNotNull(), ALL_OF_THEM).alias("subscription"))
    places = [(grain, of) for grain in GRAINS for of in ((f.col("destination"), f.col("subscription")), whole)]
    structs = [f.struct(f.lit(grain).alias("grain"), f.date_trunc(grain, "start").alias("start"), *of) for grain, of in places]
    every = minutes.where(f.col("destination").isNotNull()).select(f.explode(f.array(*structs)).alias("at"), "name", "count").select("at.*", "name", "count")
    told = every.unionByName(_links(stored(events).where((f.col("number") > after) & f.col("destination").isNotNull())))
    summed = told.groupBy("grain", "start", *KEYS, "name").agg(f.sum("count").alias("count"))
    return summed.groupBy("grain", "start", *KEYS).agg(f.map_from_entries(f.collect_list(f.struct("name", "count"))).alias("counts"))


def _of_events(events: DataFrame) -> DataFrame:
    """(start, destination, subscription, name, count): what the ledger says by itself."""
    kind = f.col("kind")
    name = f.when(kind.isin(ACCEPTED, OCTETS, FAILED), kind).when(_left(), kind).when(kind == SETTLED, f.col("outcome"))
    count = f.when(kind == OCTETS, f.col("octets")).when(kind == FAILED, f.lit(1)).otherwise(f.col("messages"))
    told = events.where(f.col("lane").isNull() | (f.col("lane") < VOLATILE))
    return told.select(f.date_trunc("minute", "at").alias("start"), *KEYS, name.alias("name"), count.cast("bigint").alias("count"))


def _of_octets(events: DataFrame) -> DataFrame:
    """The same of what came and left. A commit that does not tell what came is in neither."""
    known = events.where((f.col("kind") == OCTETS) & f.col("arrived").isNotNull())
    ways = [("octets_in", f.col("arrived")), ("octets_out", f.col("arrived") - f.col("octets"))]
    told = f.explode(f.array(*[f.struct(f.lit(name).alias("name"), count.alias("count")) for name, count in ways]))
    return known.select(f.date_trunc("minute", "at").alias("start"), *KEYS, told.alias("told")).select("start", *KEYS, "told.*")


def _of_blocked(events: DataFrame) -> DataFrame:
    """The same of the time that producers waited, cut at whole minutes."""
    blocked = events.where(f.col("kind") == BLOCKED).select(*KEYS, f.unix_millis("since").alias("since"), f.unix_millis("until").alias("until"))
    minutes = f.explode(f.expr(f"sequence(since div {MINUTE_MS}, (until - 1) div {MINUTE_MS})"))
    cut = blocked.where(f.col("until") > f.col("since")).select(*KEYS, "since", "until", minutes.alias("minute"))
    begins = f.col("minute") * MINUTE_MS
    within = f.least(f.col("until"), begins + MINUTE_MS) - f.greatest(f.col("since"), begins)
    return cut.select(f.timestamp_millis(begins).alias("start"), *KEYS, f.lit("blocked_ms").alias("name"), within.cast("bigint").alias("count"))


def _of_lives(proper: DataFrame, after: int) -> DataFrame:
    """The same of what is known of each message: when, what, and if so. One that ended with its subscription has left with it. Only what arrived in a
    subscription can leave it: not what was there before that began, nor again what had left, came back as a purge was undone, and nobody knows of any more."""
    known = (f.col("accepted") > 0) & (f.col("accepted") >= f.col("begun"))
    seen = (f.col("offers") > 0) & (f.col("offered") > after)
    consumed = (f.col("outcome") == Outcome.ACCEPTED.name.lower()) & (f.col("settled") > after) & (f.col("accepted") > 0)
    facts = [
        ("accepted_at", _code("arrived"), known & (f.col("accepted") > after)),
        ("settled_at", _code("left"), known & (f.col("ends") > 0) & (f.col("settled") > after)),
        ("ended_at", _code("left"), known & (f.col("fate") == audit.ENDED) & (f.col("ended") > after)),
        ("offered_at", _code("delivered"), seen),
        ("offered_at", _code("wait", "accepted_at", "offered_at"), seen & (f.col("accepted") > 0)),
        ("settled_at", _code("held", "offered_last_at", "settled_at"), consumed),
        ("settled_at", _code("life", "accepted_at", "settled_at"), consumed),
    ]
    told = f.array(*[f.struct(f.expr(f"{at} div {MINUTE_MS}").alias("minute"), f.when(so, code).alias("code")) for at, code, so in facts])
    every = proper.select(*KEYS, "messages", f.explode(told).alias("fact")).select("fact.*", *KEYS, "messages").where(f.col("code").isNotNull())
    counted = every.groupBy("minute", *KEYS, "code").agg(f.sum("messages").alias("count"))
    return counted.select(f.timestamp_millis(f.col("minute") * MINUTE_MS).alias("start"), *KEYS, _named(f.col("code")).alias("name"), "count")


def _code(fact: str, since: str = "", until: str = "") -> Column:
    """A name as a number, with the bucket of a histogram: millions are counted by it."""
    bucket = bucket_of(f.col(until) - f.col(since)) if since else f.lit(0)
    return f.lit(FACTS.index(fact) * BUCKETS_MAX) + bucket


def _named(code: Column) -> Column:
    place, bucket = f.floor(code / BUCKETS_MAX).cast("int"), (code % BUCKETS_MAX).cast("string")
    name = f.element_at(f.array(*[f.lit(fact) for fact in FACTS]), place + 1)
    return f.when(place < COUNTS, name).otherwise(f.concat(name, f.lit("/"), bucket))


def _left() -> Column:
    """For a consumer: what came back with a purge that was undone is told as offered to link 0."""
    return (f.col("kind") == OFFERED) & (f.col("link") > 0)


def _links(kept: DataFrame) -> DataFrame:
    """How evenly consumers were served."""
    name = f.concat_ws("/", f.lit("link"), f.col("epoch").cast("string"), f.col("link").cast("string"))
    hours = kept.where(_left()).groupBy(f.date_trunc("hour", "at").alias("start"), *KEYS, name.alias("name")).agg(f.sum("messages").alias("count"))
    busiest = f.row_number().over(Window.partitionBy("start", *KEYS).orderBy(f.desc("count"), "name"))
    chosen = hours.withColumn("place", busiest).where(f.col("place") <= LINKS_MAX).drop("place")
    return chosen.withColumn("grain", f.lit("hour"))
