"""What Spark reads of a broker's database."""

from __future__ import annotations

from datetime import UTC, datetime

import psycopg
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from broker_core.engine.definitions import DestinationDestroyed, SubscriptionDefined, SubscriptionDestroyed
from broker_core.engine.outcome import Outcome
from broker_core.engine.writes import BulkCopy
from broker_core.pipeline import ledger
from broker_core.pipeline.database import snapshot
from broker_core.pipeline.extents import Interval, intervals
from broker_core.pipeline.ledger import LedgerDropped, events_of
from tests.pipeline.ledgers import AT, LedgerDatabase
from tests.store.rows import as_of_earlier_version

Rows = list[tuple[object, ...]]


def read(spark: SparkSession, url: str, table: str, **options: object) -> DataFrame:
    return spark.read.format("surety").option("url", url).option("table", table).options(**options).load()


def rows(frame: DataFrame, *columns: str) -> Rows:
    return sorted(tuple(row) for row in frame.select(*columns).collect())


def filled(database: LedgerDatabase, tables: int = 2, commits: int = 5) -> None:
    database.queue(7, 3, "queue/orders")
    for table in range(tables):
        if table:
            database.roll()
        for _ in range(commits):
            at = database.number
            database.commit(accepted=[(7, 4, at, at)], offered=[(3, 4, at, at, 9)], settled=[(3, 4, at, at, Outcome.ACCEPTED)])


def test_each_range_of_a_commit_is_an_event_with_what_the_ledger_says_of_it(spark: SparkSession, database: LedgerDatabase) -> None:
    database.queue(7, 3, "queue/orders")
    database.commit(accepted=[(7, 4, 0, 9), (7, 9, 0, 0)], octets=[(7, 500, 510)], blocked=[(7, AT - 90, AT + 5)])
    database.commit(
        offered=[(3, 9, 0, 0, 77)], settled=[(3, 4, 0, 1, Outcome.EXPIRED), (3, 4, 4, 4, Outcome.MOVED)], failures=[(3, 9, 0, 2)], octets=[(7, -150, 0)]
    )
    events = read(spark, database.url, "events")
    places = ("number", "kind", "ordinal", "destination", "subscription", "lane", "priority", "mode", "first", "last", "messages")
    assert rows(events.where(~col("kind").isin("octets", "blocked")), *places) == [
        (1, "accepted", 0, 7, None, 4, 4, "persistent", 0, 9, 10),
        (1, "accepted", 1, 7, None, 9, 9, "persistent", 0, 0, 1),
        (2, "failed", 0, 7, 3, 9, 9, "persistent", 0, 0, 1),
        (2, "offered", 0, 7, 3, 9, 9, "persistent", 0, 0, 1),
        (2, "settled", 0, 7, 3, 4, 4, "persistent", 0, 1, 2),
        (2, "settled", 1, 7, 3, 4, 4, "persistent", 4, 4, 1),
    ]
    settled = events.where(col("kind") == "settled")
    assert rows(settled, "first", "outcome") == [(0, "expired"), (4, "moved")]
    assert rows(events.where(col("kind").isin("offered", "failed")), "kind", "link", "count") == [("failed", None, 2), ("offered", 77, None)]
    octets = events.where(col("kind") == "octets")
    assert rows(octets, "number", "destination", "octets", "arrived", "messages") == [(1, 7, 500, 510, 0), (2, 7, -150, 0, 0)]
    blocked = events.where(col("kind") == "blocked").selectExpr("number", "destination", "unix_millis(since)", "unix_millis(until)", "lane", "messages")
    assert [tuple(row) for row in blocked.collect()] == [(1, 7, AT - 90, AT + 5, None, 0)]
    at = events.where(col("number") == 1).selectExpr("unix_millis(at)", "epoch").first()
    assert at is not None and tuple(at) == (AT + 1000, 1)


def test_of_a_commit_of_an_earlier_version_nobody_knows_what_came(database: LedgerDatabase) -> None:
    database.queue(7, 3, "queue/orders")
    database.commit(octets=[(7, 500, 510), (7, -1, 0)])
    database.connection.execute(as_of_earlier_version("surety.ledger_0_1"))
    database.roll()
    database.commit(octets=[(7, 9, 10)])
    (told,), (later,) = [[batch.to_pylist() for batch in events_of(database.url, Interval(0, table, table - 1, table))] for table in (1, 2)]
    assert [(event["octets"], event["arrived"]) for event in told + later] == [(500, None), (-1, None), (9, 10)]


def test_what_died_or_was_moved_tells_where_it_is_and_subscriptions_tell_when_they_began_and_ended(spark: SparkSession, database: LedgerDatabase) -> None:
    database.queue(7, 3, "queue/orders")
    defined = [SubscriptionDefined(3, 7), SubscriptionDestroyed(3), DestinationDestroyed(8)]
    database.commit(definitions=defined, traces=[(7, 4, 0, 1, 0, 0, 0), (0, 0, 0, 0, 9, 4, 5)], bulk_copies=[BulkCopy(1, (7, 4), [4, 5], 9, 2, 0, 6, 0, 0, "")])
    events = read(spark, database.url, "events")
    traced = events.where(col("kind") == "traced")
    assert rows(traced, "destination", "lane", "first", "last", "cause", "to", "to_lane", "to_first", "messages") == [
        (0, 0, 0, 0, "died", 9, 4, 5, 1), (7, 4, 0, 1, "died", None, None, None, 2), (7, 4, 4, 5, "operated", 9, 2, 6, 2),
    ]  # fmt: skip
    began_and_ended = events.where(col("kind").isin("begun", "ended")).orderBy("kind", "ordinal")
    assert [tuple(row) for row in began_and_ended.select("kind", "subscription", "destination", "messages").collect()] == [
        ("begun", 3, 7, 0), ("ended", 3, 7, 0), ("ended", None, 8, 0),
    ]  # fmt: skip


def test_partitions_together_are_the_ledger_and_share_nothing(database: LedgerDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(database, tables=3, commits=7)
    with snapshot(database.url) as connection:
        parts = intervals(connection, 0, octets=8192)
        assert len(parts) > 3
        assert [part.after for part in parts] == [0, *(part.upto for part in parts[:-1])]
        assert parts[-1].upto == 21
        assert intervals(connection, 0, after=8, upto=13) == [Interval(0, 2, 8, 13)]
    monkeypatch.setattr(ledger, "BATCH_EVENTS", 4)
    monkeypatch.setattr(ledger, "COMMITS_FIRST", 1)
    events = [event for part in parts for batch in events_of(database.url, part) for event in batch.to_pylist()]
    assert sorted((event["number"], event["kind"]) for event in events) == sorted((n + 1, k) for n in range(21) for k in ("accepted", "offered", "settled"))
    assert {event["at"] for event in events} == {datetime.fromtimestamp(AT // 1000 + n + 1, UTC) for n in range(21)}


def test_conditions_on_commits_and_kinds_are_made_use_of_before_anything_is_read(spark: SparkSession, database: LedgerDatabase) -> None:
    filled(database)
    events = read(spark, database.url, "events")
    few = events.where((col("number") > 8) & (col("kind") == "settled"))
    assert rows(few, "number", "kind") == [(9, "settled"), (10, "settled")]
    assert few.rdd.getNumPartitions() == 1
    assert rows(read(spark, database.url, "commits", after=2, upto=4), "number", "sequence", "weight") == [(3, 30, 100), (4, 40, 100)]
    assert events.where(col("number") > 99).count() == 0


def test_what_is_trimmed_while_it_is_read_is_told_and_what_is_being_read_stays(database: LedgerDatabase) -> None:
    filled(database)
    reading = events_of(database.url, Interval(0, 1, 0, 5))
    next(reading)
    with pytest.raises(psycopg.errors.LockNotAvailable):
        database.connection.execute("SET lock_timeout = '50ms'; DROP TABLE surety.ledger_0_1")
    assert sum(batch.num_rows for batch in reading) == 10
    database.drop(1, reason="")
    with pytest.raises(LedgerDropped, match="commits 1 to 5 were dropped"):
        next(events_of(database.url, Interval(0, 1, 0, 5)))
    database.drop(2)
    assert list(events_of(database.url, Interval(0, 2, 5, 10))) == [], "the gap says so already"


def test_definitions_and_gaps_are_tables_too(spark: SparkSession, database: LedgerDatabase) -> None:
    filled(database)
    database.destination(8, "topic/prices")
    database.subscription(4, 8, "mine")
    database.destination(9, "queue/mq.sys.dmq")
    database.connection.execute("UPDATE surety.destination SET destroyed_at = now() WHERE destination = 8")
    database.drop(1)
    found = rows(read(spark, database.url, "destinations"), "destination", "address", "is_topic", "built_in")
    assert found == [(7, "queue/orders", False, False), (8, "topic/prices", True, False), (9, "queue/mq.sys.dmq", False, True)]
    assert read(spark, database.url, "destinations").where("destroyed_at is null").count() == 2
    assert rows(read(spark, database.url, "subscriptions"), "subscription", "destination", "name", "built_in") == [(3, 7, "", True), (4, 8, "mine", False)]
    assert rows(read(spark, database.url, "gaps"), "first_number", "last_number") == [(1, 5)]


def test_what_the_store_holds_is_told_in_ranges(spark: SparkSession, database: LedgerDatabase) -> None:
    filled(database)
    bits = (0b1100 << 100).to_bytes(512, "little")
    database.connection.execute("UPDATE surety.checkpoint SET number = 6")
    database.connection.execute("INSERT INTO surety.lane VALUES (0, 7, 4, 200, 1, 0)")
    database.connection.execute("INSERT INTO surety.cursor VALUES (0, 3, 4, 50, 120), (0, -8, 4, 5, -1)")
    database.connection.execute("INSERT INTO surety.block VALUES (0, 3, 4, 0, %s), (0, 3, 24, 0, %s)", [bits, bits])
    database.connection.execute("INSERT INTO surety.failure VALUES (0, 3, 4, 60, 2)")
    found = read(spark, database.url, "present").orderBy("kind", "first").selectExpr("number", "kind", "destination", "subscription", "first", "last", "count")
    assert [tuple(row) for row in found.collect()] == [
        (6, "buried", 8, None, 0, 4, None),
        (6, "failed", None, 3, 60, 60, 2),
        (6, "offered", None, 3, 0, 120, None),
        (6, "offered", None, 3, 102, 103, None),
        (6, "settled", None, 3, 0, 49, None),
        (6, "settled", None, 3, 102, 103, None),
        (6, "tail", 7, None, 0, 199, None),
    ]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [({"table": "nothing"}, "none of events, commits"), ({"after": "x"}, "option after is 'x', not a number"), ({"url": ""}, "option url is missing")],
)
def test_an_option_that_cannot_be_is_refused_with_a_sentence(spark: SparkSession, database: LedgerDatabase, options: dict[str, str], sentence: str) -> None:
    with pytest.raises(Exception, match=sentence):
        spark.read.format("surety").options(**({"url": database.url} | options)).load().count()
