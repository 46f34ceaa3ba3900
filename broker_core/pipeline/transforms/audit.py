"""The delivery audit: every stored message has exactly one fate in every subscription of its destination, and what led to it happened in the right order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from broker_core.engine.outcome import Outcome

from .lives import CLOSED, KEYS, LANE, OPEN, STATE, SUBSCRIPTION
from .spans import of_segments

FATES = ACKNOWLEDGED, NOT_MATCHED, EXPIRED, DEAD, DISCARDED, MOVED, ENDED, HELD, STORED = (
    "acknowledged", "not matched", "expired", "dead", "discarded", "moved", "subscription ended", "held", "stored",
)  # fmt: skip
"""What may become of a message in a subscription; of the last two more is to come: a prepared transaction holds it, or it waits."""
LOST, DOUBLED, UNFLAGGED, PREMATURE, UNACCEPTED, UNRECORDED, GAP = KINDS = (
    "lost", "doubled", "redelivered without flag", "delivered before durable", "never accepted", "dead without record", "audit gap",
)  # fmt: skip
"""Of violations."""
_FATE_OF = {
    Outcome.ACCEPTED: ACKNOWLEDGED, Outcome.EXCLUDED: NOT_MATCHED, Outcome.EXPIRED: EXPIRED, Outcome.REJECTED: DEAD, Outcome.UNDELIVERABLE: DEAD,
    Outcome.OLDEST: DEAD, Outcome.LOW_PRIORITY: DEAD, Outcome.PURGED: DISCARDED, Outcome.MOVED: MOVED, Outcome.DROPPED: DISCARDED,
}  # fmt: skip
CONSUMED = tuple(outcome.name.lower() for outcome in (Outcome.ACCEPTED, Outcome.REJECTED, Outcome.UNDELIVERABLE))
"""Only who got a message can end it so."""
DYING = tuple(outcome.name.lower() for outcome in (Outcome.EXPIRED, Outcome.REJECTED, Outcome.UNDELIVERABLE, Outcome.OLDEST, Outcome.LOW_PRIORITY))
GAPS_MAX = 64
"""So many are told apart; of more only where they begin and end."""

Gaps = Sequence[tuple[int, int]]
"""Commits, first to last, that are not there."""


def judged(found: DataFrame, subscriptions: DataFrame, lanes: DataFrame, gaps: Gaps, *, complete: bool) -> DataFrame:
    """The segments with `begun` and `ended` of their subscription, `fate`, `violation` and its `reason`, and `unproven`: true where a commit that is missing
    may have the fact that is missing.
    `lanes`: (destination, lane, low), from which position on messages are known; what lies before is not spoken of. `complete`: the events begin with the
    ledger, so that everything is known."""
    lows = f.broadcast(lanes.select("destination", "lane", "low"))
    known = found.join(f.broadcast(subscriptions), "subscription", "left").join(lows, ["destination", "lane"], "left")
    scoped = (f.col("acceptances") + f.col("closings") > 0) | f.lit(complete) | (f.col("first") >= f.col("low"))
    # A purge that was undone takes an end back; so does one of an earlier audit, of which it is not known any more when the message came.
    verdict = known.where(scoped).withColumn("ends", f.col("settlements") + f.col("closings") - f.col("restorals"))
    back = (f.col("restorals") > 0) & (f.col("closings") > 0) & (f.col("acceptances") == 0)
    verdict = verdict.withColumns({"acceptances": f.when(back, 1).otherwise(f.col("acceptances")), "closings": f.when(back, 0).otherwise(f.col("closings"))})
    verdict = verdict.withColumn("unproven", f.lit(False))
    verdict = verdict.withColumn("fate", _fate()).withColumns(_violation(gaps))
    return verdict.withColumns(
        {
            "violation": f.when(~f.col("unproven"), f.col("told.kind")),
            "reason": f.col("told.reason"),
        }
    ).drop("told", "low")


def _fate() -> Column:
    settled = reduce(lambda chain, pair: chain.when(f.col("outcome") == pair[0].name.lower(), pair[1]), _FATE_OF.items(), f.when(f.lit(False), ""))
    still = f.when(f.col("reservations") > 0, HELD).when(f.col("ended").isNotNull(), ENDED).when(f.col("rows") > 0, STORED)
    return f.when(f.col("acceptances") == 0, None).when((f.col("settlements") > 0) & (f.col("ends") > 0), settled).otherwise(still)


def _violation(gaps: Gaps) -> dict[str, Column]:
    """In the order of their weight: a segment has one violation."""
    acceptances, settlements, offers, closings = (f.col(name) for name in ("acceptances", "settlements", "offers", "closings"))
    accepted, settled, offered, offered_last = (f.col(name) for name in ("accepted", "settled", "offered", "offered_last"))
    consumed = f.col("outcome").isin(*CONSUMED)
    anew = (acceptances == 0) & (closings == 0)
    ends, plain = f.col("ends"), f.col("restorals") == 0
    excluded = f.coalesce(f.col("outcome") == Outcome.EXCLUDED.name.lower(), f.lit(False))
    rules = [
        (DOUBLED, "accepted more than once", acceptances + closings > 1, False),
        (DOUBLED, "it has ended more than once", ends > 1, False),
        (DOUBLED, "its end was taken back, and it had none", (ends < 0) & ~anew, True),
        (DOUBLED, "it was delivered after it had ended", plain & (((closings > 0) & (offers > 0)) | (offered_last >= settled)), False),
        (UNACCEPTED, "it was delivered or has ended, and was never accepted", anew & ((offers > 0) | ((settlements > 0) & ~excluded)), bool(gaps)),
        (UNACCEPTED, "its row is there, and it was never accepted", anew & (settlements == 0) & (f.col("rows") > 0), bool(gaps)),
        (PREMATURE, "it was offered to a consumer before it was durable", offered < accepted, False),
        (PREMATURE, "it ended before it was durable", settled < accepted, False),
        (UNFLAGGED, "a consumer ended it, and it was offered to none before", consumed & (ends > 0) & ((offers == 0) | (offered >= settled)), True),
        (LOST, "it has no fate, and its row is gone", (acceptances > 0) & (ends <= 0) & f.col("fate").isNull(), True),
        (LOST, "its row is there, and the broker counts it as over, which no commit says", plain & (f.col("fate") == STORED) & (f.col("passages") > 0), True),
    ]  # fmt: skip
    told, unproven = f.when(f.lit(False), _told("", "")), f.when(f.lit(False), f.lit(True))
    doubtful = _in_doubt(f.coalesce(accepted, f.lit(0)), f.coalesce(settled, f.lit(1 << 62)), gaps)
    for kind, reason, wrong, may_be_missing in rules:
        told = told.when(wrong, _told(kind, reason))
        unproven = unproven.when(wrong, doubtful if may_be_missing else f.lit(False))
    return {"told": told, "unproven": f.coalesce(unproven, f.lit(False))}


def _told(kind: str, reason: str) -> Column:
    return f.struct(f.lit(kind).alias("kind"), f.lit(reason).alias("reason"))


def _in_doubt(after: Column, before: Column, gaps: Gaps) -> Column:
    """A commit between the two is missing."""
    if len(gaps) > GAPS_MAX:
        gaps = [(min(first for first, _ in gaps), max(last for _, last in gaps))]
    between = [(f.lit(last) > after) & (f.lit(first) < before) for first, last in gaps]
    return reduce(Column.__or__, between, f.lit(False))


# -- what it comes to -----------------------------------------------------------------------------------------------------------------
def tally(verdict: DataFrame) -> DataFrame:
    """(destination, subscription, fate, messages): of what is proven; fate null: of what is not."""
    proven = f.col("violation").isNull() & ~f.col("unproven")
    counted = verdict.where((f.col("acceptances") > 0) | f.col("violation").isNotNull())
    return counted.groupBy("destination", "subscription", f.when(proven, f.col("fate")).alias("fate")).agg(f.sum("messages").alias("messages"))


def violations(verdict: DataFrame) -> DataFrame:
    """(violation, reason, destination, subscription, lane, first, last, messages, accepted, offered, offered_last, settled, outcome)."""
    columns = ["violation", "reason", "destination", *KEYS, "first", "last", "messages", "accepted", "offered", "offered_last", "settled", "outcome"]
    return verdict.where(f.col("violation").isNotNull()).select(*columns)


def evidence(wrong: DataFrame, events: DataFrame, most: int = 20) -> DataFrame:
    """The violations with `evidence`: the first events of the ledger that concern them, in order. Of a bounded number of violations: each is compared
    with all events of its lane."""
    told = events.where(f.col("lane").isNotNull()).select(
        "destination", "lane", f.col("subscription").alias("of"), f.col("first").alias("low"), f.col("last").alias("high"),
        f.struct("number", f.unix_millis("at").alias("at"), "kind", "first", "last", "link", "outcome", "epoch", "to", "to_first").alias("event"),
    )  # fmt: skip
    key = [*[name for name in wrong.columns if name != "reason"], "reason"]
    concerned = (f.col("of").isNull() | f.col("subscription").isNull() | (f.col("of") == f.col("subscription"))) & (
        (f.col("low") <= f.col("last")) & (f.col("high") >= f.col("first"))
    )
    met = told.join(f.broadcast(wrong), ["destination", "lane"]).where(concerned).select(*key, "event")
    every = met.unionByName(wrong.select(*key).withColumn("event", f.lit(None)))  # no event may concern it
    gathered = every.groupBy(*key).agg(f.slice(f.array_sort(f.collect_list("event")), 1, most).alias("events"))
    return gathered.withColumn("evidence", f.to_json("events")).drop("events")


# -- what goes on ---------------------------------------------------------------------------------------------------------------------
def next_state(verdict: DataFrame, state: DataFrame, subscriptions: DataFrame, lanes: DataFrame) -> DataFrame:
    """Of the audit that follows: see lives.STATE. A message with a violation counts as one that has ended, so that it is told of once; so does one that is gone
    and may have ended in a commit that is missing; and what an earlier audit saw accepted, and a subscription that is new excludes."""
    living = verdict.where(f.col("ended").isNull())
    is_open = (f.col("acceptances") == 1) & (f.col("ends") == 0) & f.col("violation").isNull() & ~(f.col("unproven") & f.col("fate").isNull())
    still = living.where(is_open).select(
        f.lit(OPEN).alias("kind"), *KEYS, "first", "last", "accepted", "accepted_at", f.col("offers").cast("bigint"),
        "offered", "offered_at", "offered_last", "offered_last_at",
    )  # fmt: skip
    over = of_segments(living.where(~is_open & (f.col("acceptances") + f.col("closings") + f.col("settlements") > 0)), KEYS).withColumn("kind", f.lit(CLOSED))
    going_on = subscriptions.where(f.col("ended").isNull()).withColumnRenamed("begun", "first").withColumn("kind", f.lit(SUBSCRIPTION))
    known = lanes.select(f.lit(LANE).alias("kind"), "destination", "lane", f.col("low").alias("first"), f.col("high").alias("last"))
    parts = [_as_state(part) for part in (still, over, going_on, known)]
    return reduce(DataFrame.unionByName, parts)


def _as_state(part: DataFrame) -> DataFrame:
    there = set(part.columns)
    columns = [tuple(column.split()) for column in STATE.split(", ")]
    return part.select(*[(f.col(name) if name in there else f.lit(None)).cast(kind).alias(name) for name, kind in columns])
