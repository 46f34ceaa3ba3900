"""The audit as a job: from a broker's database by the lake to what operators read."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from shutil import rmtree

import pytest
from pyspark.sql import SparkSession

from broker_core.engine.definitions import SubscriptionDefined
from broker_core.engine.outcome import Outcome
from broker_core.engine.progress import BLOCK
from broker_core.pipeline import auditing, examination, findings
from broker_core.pipeline.auditing import WHOLE, Report, Scope, run_audit
from broker_core.pipeline.holdings import HoldingsUnsteady, holdings
from broker_core.pipeline.ingest import ingest
from broker_core.pipeline.jobs import Place
from broker_core.pipeline.lake import Lake
from broker_core.pipeline.runs import Run
from broker_core.pipeline.session import SparkSettings
from tests.pipeline.ledgers import AT, LedgerDatabase
from tests.pipeline.told import quick

QUEUE = 7


def audited(
    spark: SparkSession, database: LedgerDatabase, folder: Path, scope: Scope = WHOLE, *, meanwhile: Callable[[], object] = int, anew: bool = False
) -> Report | None:
    told: list[str] = []
    with Run(database.url, "audit") as run:
        lake = Lake(spark, folder)
        held = holdings(database.url, 0)
        meanwhile()
        ingest(lake, run, database.url, tell=told.append, anew=anew)
        return run_audit(lake, run, held, tell=told.append, scope=scope)


def stored(database: LedgerDatabase, *positions: int) -> None:
    """Their rows, and no others."""
    database.connection.execute("DELETE FROM surety.retained")
    for position in positions:
        database.connection.execute(
            "INSERT INTO surety.retained (shard, segment, sequence, position, accepted_at, expiration, destination, size, priority, reliability, encoding, "
            "headers) VALUES (0, 1, %s, %s, 0, 0, %s, 1, 4, 4, 0, '')",
            [position, position, QUEUE],
        )


def an_order_is_lost(database: LedgerDatabase) -> None:
    """Of ten messages one is offered and then nowhere."""
    database.commit(offered=[(3, 4, 3, 9, 78)])
    database.commit(settled=[(3, 4, 3, 8, Outcome.ACCEPTED)])
    stored(database)


def checkpoint(database: LedgerDatabase, floor: int, *settled: int) -> None:
    """After the last commit: it has settled what lies below the floor, and some positions above."""
    database.connection.execute("UPDATE surety.checkpoint SET number = %s", [database.number])
    database.connection.execute("INSERT INTO surety.cursor VALUES (0, 3, 4, %s, -1)", [floor])
    bits = sum(1 << position for position in settled).to_bytes(BLOCK // 8, "little")
    database.connection.execute("INSERT INTO surety.block VALUES (0, 3, 4, 0, %s)", [bits])


def loss_of(database: LedgerDatabase, audit: int) -> tuple[str, str, int, int, list[int]]:
    rows = database.connection.execute("SELECT kind, address, first, last, evidence FROM surety.pipeline_violation WHERE audit = %s", [audit]).fetchall()
    ((kind, address, low, high, evidence),) = rows
    return kind, address, low, high, [event["number"] for event in evidence]


@pytest.fixture
def orders(database: LedgerDatabase) -> LedgerDatabase:
    """Ten were accepted, three of them consumed, two more are with the consumer."""
    database.queue(QUEUE, 3, "queue/orders")
    database.commit(definitions=[SubscriptionDefined(3, QUEUE)])
    database.commit(accepted=[(QUEUE, 4, 0, 9)])
    database.commit(offered=[(3, 4, 0, 4, 77)])
    database.commit(settled=[(3, 4, 0, 2, Outcome.ACCEPTED)])
    stored(database, *range(10))
    return database


def test_a_loss_is_told_with_its_evidence_and_what_happened_is_rolled_up(spark: SparkSession, orders: LedgerDatabase, tmp_path: Path) -> None:
    an_order_is_lost(orders)
    with quick(spark):
        report = audited(spark, orders, tmp_path / "lake")
        assert report is not None and (report.after, report.upto, report.proven, report.violations) == (0, 6, 9, 1)
        assert audited(spark, orders, tmp_path / "lake") is None, "nothing is new"
    assert loss_of(orders, report.audit) == ("lost", "queue/orders", 9, 9, [2, 5])
    _are_rolled_up(orders)


@pytest.mark.slow
def test_what_is_stored_and_what_the_checkpoint_has_passed_is_lost(spark: SparkSession, orders: LedgerDatabase, tmp_path: Path) -> None:
    checkpoint(orders, 4, 8)
    with quick(spark):
        report = audited(spark, orders, tmp_path / "lake", Scope(destination=QUEUE))
    assert report is not None and (report.proven, report.violations) == (8, 2)
    rows = orders.connection.execute("SELECT kind, reason, first, last FROM surety.pipeline_violation ORDER BY first").fetchall()
    reason = "its row is there, and the broker counts it as over, which no commit says"
    assert rows == [("lost", reason, 3, 3), ("lost", reason, 8, 8)]
    old = holdings(orders.url, 0)
    assert old.frame(spark, orders.number, None).where("kind = 'settled'").count() == 2
    assert old.frame(spark, orders.number + 1, None).where("kind = 'settled'").count() == 0, "of a checkpoint that may be undone since"


def test_what_the_checkpoint_has_settled_before_the_first_row_is_history(orders: LedgerDatabase) -> None:
    checkpoint(orders, 4, 8)
    orders.connection.execute("INSERT INTO surety.block SELECT shard, subscription, lane, n, bits FROM surety.block, generate_series(1, 3) AS n")
    stored(orders, 2 * BLOCK + 5)
    assert [number for *_, number, _ in holdings(orders.url, 0).blocks] == [2, 3]
    stored(orders)
    assert holdings(orders.url, 0).blocks == []


@pytest.mark.slow
def test_what_is_new_is_proven_once_and_all_of_it_again_when_asked_for(spark: SparkSession, orders: LedgerDatabase, tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    with quick(spark):
        first = audited(spark, orders, folder, meanwhile=partial(orders.subscription, 9, QUEUE, "of later"))
        assert first is not None and (first.upto, first.proven, first.unproven, first.violations) == (4, 10, 0, 0)
        orders.connection.execute("DELETE FROM surety.subscription WHERE subscription = 9")
        an_order_is_lost(orders)
        # A node whose database's clock is behind.
        orders.connection.execute("UPDATE surety.ledger_0_1 SET at = at - 86400000, epoch = 2 WHERE number > 4")
        second = audited(spark, orders, folder)
        assert second is not None and (second.after, second.upto, second.proven, second.violations) == (4, 6, 6, 1)
        whole = audited(spark, orders, folder, Scope(since=datetime.fromtimestamp(AT / 1000, UTC) - timedelta(2), destination=QUEUE))
        assert whole is not None and (whole.after, whole.proven, whole.violations) == (0, 9, 1)
        rmtree(folder)
        anew = audited(spark, orders, folder, anew=True)
        assert anew is not None and (anew.after, anew.proven, anew.violations) == (0, 9, 1), "nothing is left of what the last one handed on"
        assert len(list((folder / "audit").iterdir())) == 1
    assert loss_of(orders, second.audit) == ("lost", "queue/orders", 9, 9, [5])
    _are_rolled_up(orders)


@pytest.mark.slow
def test_many_violations_of_one_kind_hide_none_of_another_and_all_are_counted(
    spark: SparkSession, orders: LedgerDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examination, "EVIDENCE_MAX", 1)
    orders.commit(settled=[(3, 4, 0, 0, Outcome.ACCEPTED), (3, 4, 2, 2, Outcome.ACCEPTED)])
    stored(orders, *range(9))
    with quick(spark):
        report = audited(spark, orders, tmp_path / "lake")
    assert report is not None and report.violations == 3
    told = orders.connection.execute("SELECT kind, first FROM surety.pipeline_violation ORDER BY violation").fetchall()
    assert told == [("lost", 9), ("doubled", 0)], "by their weight, and of each kind the first"
    kinds = orders.connection.execute("SELECT kinds FROM surety.pipeline_audit").fetchone()
    assert kinds == ({"lost": {"ranges": 1, "messages": 1}, "doubled": {"ranges": 2, "messages": 2}},)


@pytest.mark.slow
def test_what_was_discarded_is_told_request_by_request_with_who_asked(
    spark: SparkSession, orders: LedgerDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "DISCARDS_MAX", 2)
    _asked(orders, "operate", "dora", 4_900, {"verb": "delete"})
    _asked(orders, "operate", "mona", 4_950, {"verb": "move"})
    for position in (5, 6, 7):
        orders.commit(settled=[(3, 4, position, position, Outcome.PURGED)])
    _asked(orders, "purge", "paul", 7_500)
    orders.commit(settled=[(3, 4, 8, 9, Outcome.PURGED)])
    _asked(orders, "operate", "carl", 7_990, {"verb": "purge", "dry_run": True})
    _asked(orders, "purge", "nora", 8_001)
    stored(orders, 3, 4)
    with quick(spark):
        audited(spark, orders, tmp_path / "lake")
    row = orders.connection.execute("SELECT discards FROM surety.pipeline_audit").fetchone()
    assert row is not None
    assert [(one["by"], one["verb"], one["number"], one["last"], one["messages"]) for one in row[0]] == [
        ("dora", "operate", 5, 7, 3), ("paul", "purge", 8, 8, 2),
    ]  # fmt: skip


def _asked(database: LedgerDatabase, verb: str, by: str, after: int, arguments: dict[str, str | bool] | None = None) -> None:
    """So many ms after the ledger began."""
    database.connection.execute(
        "INSERT INTO surety.control_request (verb, address, arguments, requested_by, created_at) "
        "VALUES (%s, 'queue/orders', %s, %s, to_timestamp(%s / 1000.0))",
        [verb, json.dumps(arguments or {}), by, AT + after],
    )


def test_of_requests_the_newest_before_counts_and_the_clocks_may_differ(orders: LedgerDatabase) -> None:
    _asked(orders, "purge", "anna", 1_000)
    _asked(orders, "destroy", "ben", 2_000)
    with Run(orders.url, "audit") as run:
        asked = findings.Asked(run, ["queue/orders"], AT + 3_000)
    found = [asked.before("queue/orders", AT + after)["by"] for after in (-1, 0, 999, 1_999, 2_000, 9_000)]
    assert found == [None, "anna", "anna", "anna", "ben", "ben"]
    assert asked.before("queue/others", AT)["by"] is None


def test_the_ledger_does_not_wait_for_an_audit_that_cannot_look(
    spark: SparkSession, orders: LedgerDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsteady(*_: object) -> None:
        raise HoldingsUnsteady("tables were dropped")

    monkeypatch.setattr(auditing, "holdings", unsteady)
    monkeypatch.setattr(auditing, "session", lambda _: spark)
    place = Place(orders.url, str(tmp_path / "lake"), SparkSettings(tmp_path, "local[2]"))
    with quick(spark), pytest.raises(HoldingsUnsteady):
        auditing.begin(place, tell=lambda _: None)
    assert orders.connection.execute("SELECT number FROM surety.ledger_reader").fetchone() == (4,)


def _are_rolled_up(database: LedgerDatabase) -> None:
    sums = (
        "SELECT sum((counts ->> 'accepted')::int) FILTER (WHERE subscription = 0), "
        "sum((counts ->> 'offered')::int), sum((counts ->> 'delivered')::int), sum((counts ->> 'left')::int) "
        "FROM surety.pipeline_rollup WHERE grain = 'day' AND "
    )
    points = database.connection.execute(f"{sums} destination = 7".encode()).fetchone()
    assert points == (10, 12, 9, 9), "3 and 4 were delivered again; of 9, which is lost, nothing is counted but its delivery"
    assert database.connection.execute(f"{sums} destination = 0".encode()).fetchone() == points, "of all destinations together"
    assert database.connection.execute("SELECT count(*) FROM surety.pipeline_run WHERE state <> 'done'").fetchone() == (0,)
