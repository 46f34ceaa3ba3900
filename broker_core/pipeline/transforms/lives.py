"""The lives of messages: for every subscription and lane segments of positions of which the same is known: accepted, offered and settled in which commit, how
often, and whether their rows are there."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from broker_core.engine.message import VOLATILE
from broker_core.engine.outcome import Outcome
from broker_core.pipeline.schema import ACCEPTED, BEGUN, ENDED, OFFERED, OUTCOMES, SETTLED

from .spans import overlay, pieces

KEYS = ["subscription", "lane"]
RESTORED = Outcome.RESTORED.name.lower()
_BITS = {"acceptances": 8, "settlements": 8, "offers": 16, "rows": 8, "restorals": 8, "reservations": 4, "closings": 4, "passages": 4}
"""How often ranges of each kind cover a segment, as one number: so much less to be sorted. Nothing lawful comes near what fits."""
_UNITS = {name: 1 << sum(list(_BITS.values())[:place]) for place, name in enumerate(_BITS)}
_MEASURES = ["accepted", "accepted_at", "offered", "offered_at", "settled", "settled_at"]
_OUTCOME_CODES = 16
FINE = 256
"""Positions of a bucket in which offers of the same message are looked for."""
FEW = 100_000
"""Segments that came again, of which every task may have all in memory, some 10 MiB."""
STATE = (
    "kind string, subscription int, destination int, lane smallint, first bigint, last bigint, accepted bigint, accepted_at bigint, offers bigint, "
    "offered bigint, offered_at bigint, offered_last bigint, offered_last_at bigint"
)
"""What one audit hands to the next. `kind`: open, messages without an end, with what is known of them; closed, those that have one; lane, of a destination,
the positions that are known; subscription, one that goes on, since commit `first`."""
OPEN, CLOSED, LANE, SUBSCRIPTION = "open", "closed", "lane", "subscription"


def stored(events: DataFrame) -> DataFrame:
    """Events of lanes whose messages have rows."""
    return events.where(f.col("lane") < VOLATILE)


# -- subscriptions --------------------------------------------------------------------------------------------------------------------
def subscriptions_of(events: DataFrame, state: DataFrame, defined: DataFrame, missing: int | None = None) -> DataFrame:
    """(subscription, destination, begun, ended): durable ones and the commits of their beginning (0: before all that is known) and end (null: they go on).
    `defined`: as the database has them, for those that began before the ledger's first row; what began later than the events is not among these.
    `missing`: the first of commits that are not there, which have the end of those that are gone and of whose end nothing is told."""
    begun = events.where(f.col("kind") == BEGUN).groupBy("subscription", "destination").agg(f.min("number").alias("begun"))
    known = state.where(f.col("kind") == SUBSCRIPTION).select("subscription", "destination", f.col("first").alias("begun"))
    held = events.where(f.col("kind").isin(OFFERED, SETTLED) & f.col("destination").isNotNull()).select("subscription", "destination").distinct()
    before = defined.where((f.col("destination") > 0) & f.col("destroyed_at").isNull()).select("subscription", "destination")
    told = begun.unionByName(known).unionByName(held.unionByName(before).distinct().withColumn("begun", f.lit(None).cast("bigint")))
    every = told.groupBy("subscription", "destination").agg(f.min("begun").alias("began"))
    ends = events.where(f.col("kind") == ENDED)
    one = ends.where(f.col("subscription").isNotNull()).groupBy("subscription").agg(f.min("number").alias("left"))
    all_of = ends.where(f.col("subscription").isNull()).groupBy("destination").agg(f.min("number").alias("destroyed"))
    joined = every.join(f.broadcast(one), "subscription", "left").join(f.broadcast(all_of), "destination", "left")
    if missing is not None:
        gone = defined.where(f.col("destroyed_at").isNotNull()).select("subscription", f.lit(missing).cast("bigint").alias("lost")).distinct()
        joined = joined.join(f.broadcast(gone), "subscription", "left").withColumn("left", f.coalesce(f.least("left", "destroyed"), "lost"))
    return joined.select("subscription", "destination", f.coalesce("began", f.lit(0)).alias("begun"), f.least("left", "destroyed").alias("ended"))


# -- segments -------------------------------------------------------------------------------------------------------------------------
def segments(events: DataFrame, state: DataFrame, subscriptions: DataFrame, holdings: DataFrame) -> DataFrame:
    """Per subscription and lane. `holdings`: (kind, destination, subscription, lane, first, last), of kind row: there is a row of the message; reserved:
    a prepared transaction has acknowledged it; settled: the checkpoint counts it as over (`passages`). Of what was offered more than once `offered` means
    nothing yet: see `with_offers`."""
    events = stored(events)
    millis = f.unix_millis("at")
    number = f.col("number")
    of = f.broadcast(subscriptions)
    accepted = events.where(f.col("kind") == ACCEPTED).select("destination", "lane", "first", "last", "number", millis.alias("ms")).join(of, "destination")
    parts = [
        _part(accepted.where(f.col("ended").isNull() | (f.col("number") <= f.col("ended"))), "acceptances", accepted=number, accepted_at=f.col("ms")),
        _part(events.where(f.col("kind") == OFFERED), "offers", offered=number, offered_at=millis),
        _part(events.where((f.col("kind") == SETTLED) & (f.col("outcome") == RESTORED)), "restorals"),
        _part(ended(events), "settlements", settled=number * _OUTCOME_CODES + _code(f.col("outcome")), settled_at=millis),
        _part(holdings.where(f.col("kind") == "row").drop("subscription").join(of, "destination").where(f.col("ended").isNull()), "rows"),
        _part(holdings.where(f.col("kind") == "reserved"), "reservations"),
        _part(holdings.where(f.col("kind") == "settled"), "passages"),
        _part(state.where(f.col("kind") == CLOSED), "closings"),
    ]
    still = state.where(f.col("kind") == OPEN)
    since = {name: f.coalesce(name, f.lit(0)) for name in ("accepted", "accepted_at")}  # of what came back nobody knows any more
    parts.append(_part(still, "acceptances", **since))
    often = f.when(f.col("offers") > 1, 2).otherwise(1)
    parts.append(_part(still.where(f.col("offers") > 0), "offers", times=often, offered=f.col("offered"), offered_at=f.col("offered_at")))
    covered = overlay(reduce(DataFrame.unionByName, parts), KEYS, "counts", _MEASURES)
    counted = {name: f.shiftright(f.col("counts"), unit.bit_length() - 1).bitwiseAND((1 << _BITS[name]) - 1) for name, unit in _UNITS.items()}
    found = covered.withColumns(counted).withColumn("outcome", f.when(f.col("settlements") == 1, _named(f.col("settled") % _OUTCOME_CODES)))
    settled = f.when(f.col("settlements") == 1, f.expr(f"settled div {_OUTCOME_CODES}"))
    return found.withColumns(
        {
            "settled": settled,
            "settled_at": f.when(f.col("settlements") == 1, f.col("settled_at")),
            "accepted": f.when(f.col("acceptances") == 1, f.col("accepted")),
            "accepted_at": f.when(f.col("acceptances") == 1, f.col("accepted_at")),
            "messages": f.col("last") - f.col("first") + 1,
        }
    ).drop("counts")


def ended(events: DataFrame) -> DataFrame:
    """What is over. That a purge was undone is told as an outcome, too."""
    return events.where((f.col("kind") == SETTLED) & (f.col("outcome") != RESTORED))


def with_endings(found: DataFrame, events: DataFrame) -> DataFrame:
    """The segments with the last of several ends: what a purge had ended came back and has ended anew. Only if anything was restored is there need for it."""
    several = (f.col("restorals") > 0) & (f.col("settlements") > 1)
    asked = found.where(several).select(*KEYS, f.col("first").alias("start"), f.expr(f"first div {FINE}").alias("bucket"))
    ends = pieces(ended(stored(events)).select(*KEYS, "first", "last", f.struct("number", f.unix_millis("at").alias("at"), "outcome").alias("end")), FINE)
    met = asked.join(ends, [*KEYS, "bucket"]).where((f.col("first") <= f.col("start")) & (f.col("start") <= f.col("last")))
    told = met.groupBy(*KEYS, f.col("start").alias("first")).agg(f.max("end").alias("end"))
    joined = found.join(told, [*KEYS, "first"], "left")
    return joined.withColumns(
        {
            "settled": f.coalesce("end.number", "settled"),
            "settled_at": f.coalesce("end.at", "settled_at"),
            "outcome": f.coalesce("end.outcome", "outcome"),
        }
    ).drop("end")


def _part(ranges: DataFrame, counted: str, times: Column | None = None, **measures: Column) -> DataFrame:
    unit = f.lit(_UNITS[counted]).cast("bigint")
    summed = [measures.get(name, f.lit(0)).cast("bigint").alias(name) for name in _MEASURES]
    return ranges.select(*KEYS, "first", "last", (unit if times is None else unit * times).alias("counts"), *summed)


def _code(outcome: Column) -> Column:
    return f.array_position(f.array(*[f.lit(name) for name in OUTCOMES]), outcome) - 1


def _named(code: Column) -> Column:
    return f.element_at(f.array(*[f.lit(name) for name in OUTCOMES]), code.cast("int") + 1)


# -- offers ---------------------------------------------------------------------------------------------------------------------------
def with_offers(found: DataFrame, events: DataFrame, state: DataFrame) -> DataFrame:
    """The segments with the first and the last commit in which each was offered. Most were once, and are known by now; those that came again are looked
    for in fine buckets. Evaluates `found` twice: keep it. As long as they are few they go to where the others are, so that these need not be sorted again."""
    often = found.where(f.col("offers") > 1).select(*KEYS, f.col("first").alias("start"), f.expr(f"first div {FINE}").alias("bucket"))
    few = often.limit(FEW + 1).count() <= FEW
    columns = [*KEYS, "first", "last", "offers", "offered", "offered_at", "offered_last", "offered_last_at"]
    new = stored(events).where(f.col("kind") == OFFERED).withColumns(
        {
            "offers": f.lit(1).cast("bigint"), "offered": f.col("number"), "offered_at": f.unix_millis("at"),
            "offered_last": f.col("number"), "offered_last_at": f.unix_millis("at"),
        }
    )  # fmt: skip
    old = state.where((f.col("kind") == OPEN) & (f.col("offers") > 0))
    offers = pieces(new.select(*columns).unionByName(old.select(*columns)), FINE)
    asked = f.broadcast(often) if few else often
    met = offers.join(asked, [*KEYS, "bucket"]).where((f.col("first") <= f.col("start")) & (f.col("start") <= f.col("last")))
    told = met.groupBy(*KEYS, f.col("start").alias("first")).agg(
        f.sum("offers").alias("times"), f.min("offered").alias("low"), f.min("offered_at").alias("low_at"),
        f.max("offered_last").alias("high"), f.max("offered_last_at").alias("high_at"),
    )  # fmt: skip
    once = f.col("offers") == 1
    return found.join(f.broadcast(told) if few else told, [*KEYS, "first"], "left").withColumns(
        {
            "offers": f.coalesce("times", "offers"),
            "offered_last": f.when(once, f.col("offered")).otherwise(f.col("high")),
            "offered_last_at": f.when(once, f.col("offered_at")).otherwise(f.col("high_at")),
            "offered": f.when(once, f.col("offered")).otherwise(f.col("low")),
            "offered_at": f.when(once, f.col("offered_at")).otherwise(f.col("low_at")),
        }
    ).drop("times", "low", "low_at", "high", "high_at")  # fmt: skip
