"""Octets and the time that producers waited, rolled up of what a ledger tells."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from broker_core.pipeline.examination import examine
from broker_core.pipeline.transforms.rollups import EVERY, MINUTE_MS, rolled_up
from tests.pipeline.told import DEAD, QUEUE, START, TOPIC, begins, matter, quick, row, wrongs

MINUTE = START - START % MINUTE_MS
"""In which the commits are made, and the hour's 14th."""

Counts = dict[tuple[str, int, int], dict[str, int]]


@pytest.fixture(scope="module")
def counts(spark: SparkSession) -> Iterator[Counts]:
    """By grain, minutes since MINUTE, and destination; only of destinations as a whole."""
    rows = [
        begins(),
        row(2, octets=[(QUEUE, 100, 100), (DEAD, 7, 7)]),
        row(3, octets=[(QUEUE, -60, 40), (TOPIC, 5, None)], blocked=[(QUEUE, MINUTE - 30_000, MINUTE + 70_000), (DEAD, MINUTE, MINUTE + 1000)]),
        row(4, octets=[(QUEUE, 0, 9)], blocked=[(DEAD, MINUTE + 2000, MINUTE + MINUTE_MS)]),
    ]
    with quick(spark):
        asked = matter(spark, rows)
        found = examine(asked)
        assert wrongs(found) == [], "what concerns no message is no matter of the audit"
        rolled = rolled_up(asked.events, found.verdict, 0).where("subscription IS NULL").withColumn("start", f.unix_millis("start"))
        yield {(one.grain, (one.start - MINUTE) // MINUTE_MS, one.destination): one.counts for one in rolled.collect()}
        found.release()


def test_what_came_and_what_left_is_summed_up_apart(counts: Counts) -> None:
    told = {name: counts["minute", 0, QUEUE][name] for name in ("octets", "octets_in", "octets_out")}
    assert told == {"octets": 40, "octets_in": 149, "octets_out": 109}
    assert (counts["minute", 0, EVERY]["octets_in"], counts["minute", 0, EVERY]["octets_out"]) == (156, 109)


def test_what_no_commit_tells_is_in_no_sum(counts: Counts) -> None:
    assert counts["minute", 0, TOPIC] == {"octets": 5}


def test_a_time_of_several_minutes_is_split_among_them_and_adds_up_by_hour_and_day(counts: Counts) -> None:
    by_minute = {minute: told["blocked_ms"] for (grain, minute, of), told in counts.items() if (grain, of) == ("minute", QUEUE)}
    assert by_minute == {-1: 30_000, 0: 60_000, 1: 10_000}
    sums = {grain: told["blocked_ms"] for (grain, _, of), told in counts.items() if grain != "minute" and of == QUEUE}
    assert sums == {"hour": 100_000, "day": 100_000}


def test_the_sum_over_destinations_is_the_time_of_all_of_them_together(counts: Counts) -> None:
    assert counts["minute", 0, DEAD]["blocked_ms"] == 59_000
    assert counts["minute", 0, EVERY]["blocked_ms"] == 119_000
