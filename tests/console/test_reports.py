"""What the data pipeline has found out, as operators read it."""

import json
from datetime import UTC, datetime, timedelta
from io import StringIO
from types import SimpleNamespace

import psycopg
import pytest

from broker_core.config import BrokerConfig
from console.launch import spark
from console.management.commands.pipeline import Command
from console.permissions import Sight
from console.selectors import over_time, pipeline, reports
from console.services import scheduled
from tests.console import facts
from tests.console.api import call, problem

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


def test_percentiles_are_read_from_a_histogram_and_nothing_measured_is_unknown() -> None:
    counts = {"wait/0": 50, "wait/40": 45, "wait/60": 5, "held/4": 1}
    assert reports.percentiles(counts, "wait") == {50: 0, 95: 1023, 99: 32767}
    assert reports.percentiles(counts, "life") is None


HOURS = over_time.span("hour", timedelta(hours=1), timedelta(hours=4), NOW)


def test_the_backlog_is_what_waits_now_less_what_arrived_and_what_left_before_unless_something_between_is_unknown() -> None:
    moved = {NOW - timedelta(hours=2): {"arrived": 5}, NOW - timedelta(hours=1): {"left": 3}}
    known = over_time.Covered([(NOW - timedelta(hours=9), NOW - timedelta(hours=4)), (NOW - timedelta(hours=3), NOW - timedelta(hours=1))])
    assert over_time.backlog(HOURS, moved, known, 4) == [None, 2, 7, 4, None]
    assert over_time.backlog(HOURS, moved, known, None) == [None] * 5
    assert over_time.backlog(HOURS, moved, known, 1) == [None, None, 4, 1, None], "fewer than none cannot have waited"


def _audited(database, first: int, last: int, begin: int, end: int, **more: str) -> None:
    """Commits `first` to `last`, made from `begin` to `end` hours before now."""
    told = {"state": "audit/run=1", "gaps": "[]", "fates": "[]", **more}
    facts.execute(
        database,
        f"""INSERT INTO surety.pipeline_audit (shard, run, from_number, to_number, from_at, to_at, complete, proven, unproven, violations, fates, discards,
                   gaps, state, milliseconds)
            VALUES (0, 1, {first}, {last}, now() - interval '{begin} hours', now() - interval '{end} hours', true, 0, 0, 0, %s, '[]', %s, %s, 1)""",
        [told["fates"], told["gaps"], told["state"]],
    )


def test_audits_know_the_time_between_them_if_they_go_on_from_each_other_and_the_time_after_if_nothing_came(database) -> None:
    now = datetime.now(UTC)

    def known() -> list[tuple[int, int]]:
        found = over_time.covered(now - timedelta(days=2), now)
        return [(round((now - begin) / timedelta(hours=1)), round((now - end) / timedelta(hours=1))) for begin, end in found.times]

    assert known() == []
    facts.execute(database, "UPDATE surety.checkpoint SET number = 41")
    _audited(database, 1, 10, 30, 25)
    _audited(database, 11, 20, 20, 19)
    _audited(database, 25, 40, 10, 5, gaps='[[31, 32, "the size cap"]]')
    _audited(database, 1, 41, 40, 1, state="")
    assert known() == [(30, 19), (10, 5)], "21 to 24 are in no audit; and one of a part only tells nothing of the whole"
    assert over_time.covered(now - timedelta(days=2), now).has_gaps
    facts.execute(database, "UPDATE surety.checkpoint SET number = 40")
    assert known() == [(30, 19), (10, 0)]
    facts.execute(database, "UPDATE surety.checkpoint SET number = 0")


def test_what_waits_is_what_the_last_audit_found_stored_or_held_where_one_may_look(database) -> None:
    assert over_time.waiting() is None
    fates = [
        {"destination": 1, "address": "queue/a", "fate": "stored", "messages": 5}, {"destination": 1, "address": "queue/a", "fate": "dead", "messages": 50},
        {"destination": 2, "address": "queue/b", "fate": "held", "messages": 7}, {"destination": 2, "address": "queue/b", "fate": None, "messages": 70},
    ]  # fmt: skip
    _audited(database, 1, 10, 30, 25, fates=json.dumps(fates))
    assert (over_time.waiting(), over_time.waiting(2), over_time.waiting(within=Sight((("^queue/a$",),)))) == (12, 7, 5)


def test_a_day_of_a_hundred_queues_is_summed_up_whoever_looks(database) -> None:
    """100 queues, 24 hours of minutes: 144,000 rows would be more than a page could read."""
    facts.execute(
        database,
        """INSERT INTO surety.destination (shard, destination, address, created_at, automatic, state, settings)
           SELECT 0, n, 'queue/q' || n, 0, false, 0, '{}' FROM generate_series(1, 100) AS n""",
    )
    facts.execute(
        database,
        """INSERT INTO surety.pipeline_rollup
           SELECT 0, 'minute', date_trunc('hour', now()) - make_interval(mins => m), n, 0, jsonb_build_object('accepted', CASE n WHEN 0 THEN 100 ELSE 1 END)
             FROM generate_series(0, 600) AS m, generate_series(0, 100) AS n""",
    )
    facts.execute(database, "ANALYZE surety.pipeline_rollup, surety.destination")  # as autovacuum does: without it the join takes seconds
    over = over_time.span("minute", timedelta(minutes=10), timedelta(hours=24), datetime.now(UTC))
    totals = over_time.sums(over)
    assert sum(one["accepted"] for one in totals.values()) == 601 * 100
    newest = max(totals)
    assert newest == datetime.now(UTC).replace(minute=0, second=0, microsecond=0), "nothing is cut off at the end"
    assert sum(one["accepted"] for one in over_time.sums(over, within=Sight((("^queue/q[12]$",),))).values()) == 601 * 2
    assert sum(one["accepted"] for one in over_time.sums(over, destination=7).values()) == 601
    assert over_time.sums(over, subscriptions=True) == {}


def test_points_come_page_by_page_and_none_is_left_out(database, operator) -> None:
    facts.destination(database, 1, "queue/a")
    facts.destination(database, 2, "queue/b")
    facts.execute(
        database,
        """INSERT INTO surety.pipeline_rollup SELECT 0, 'minute', date_trunc('minute', now()) - make_interval(mins => m), n, 0, '{"accepted": 1}'
             FROM generate_series(1, 5) AS m, generate_series(0, 2) AS n""",
    )
    found, after = [], ""
    while True:
        told = call(operator, "GET", f"pipeline/points?grain=minute&limit=3&after={after}").document
        found += [(one["start"], one["address"]) for one in told["items"]]
        after = told["next"]
        if after is None:
            break
    assert len(set(found)) == len(found) == 10, "those of all destinations together are no points of one"
    assert found == sorted(found)
    problem(call(operator, "GET", "pipeline/points?after=yesterday"), 400, "invalid")


def test_old_reports_are_deleted_and_what_the_next_audit_goes_on_from_is_not(database, monkeypatch) -> None:
    monkeypatch.setattr(scheduled, "COUNTS_ROWS", 2)
    facts.execute(
        database,
        """INSERT INTO surety.pipeline_rollup SELECT 0, grain, now() - make_interval(days => day), 1, 0, '{}'
             FROM unnest(ARRAY['minute', 'hour', 'day']) AS grain, unnest(ARRAY[1, 5, 6, 7, 70, 1200]) AS day""",
    )
    for age in (9_700, 9_650, 9_601):
        _audited(database, 1, 10, age + 1, age)
    _audited(database, 1, 10, 9_602, 9_600, state="")
    facts.execute(database, "UPDATE surety.pipeline_audit SET at = to_at")
    facts.execute(database, "INSERT INTO surety.pipeline_violation (audit, kind, reason, evidence) SELECT audit, 'lost', '', '[]' FROM surety.pipeline_audit")
    assert scheduled.forget_reports(BrokerConfig()) == 5 + 2 + 1 + 3
    kept = facts.rows(database, "SELECT grain, count(*) FROM surety.pipeline_rollup GROUP BY grain ORDER BY grain")
    assert kept == [("day", 5), ("hour", 4), ("minute", 1)]
    assert facts.rows(database, "SELECT round(extract(epoch FROM now() - at) / 3600) FROM surety.pipeline_audit") == [(9601,)]
    assert facts.rows(database, "SELECT count(*) FROM surety.pipeline_violation") == [(1,)]


@pytest.mark.parametrize("as_json", [False, True])
def test_the_command_line_tells_what_found_no_room_in_the_archive(database, as_json) -> None:
    def told() -> str:
        out = StringIO()
        Command(stdout=out)._status(SimpleNamespace(database_url=database), {"json": as_json})
        return out.getvalue()

    assert "archive are not" not in told()
    facts.execute(database, "INSERT INTO surety.archive_gap (shard, segment, destination, first_sequence, last_sequence, messages) VALUES (0, 4, 1, 1, 9, 400)")
    assert ('"unarchived": 400' if as_json else "400 messages that should be in the archive are not") in told()


def test_the_schedule_begins_an_audit_and_no_second_one(database, monkeypatch, tmp_path) -> None:
    begun = []

    class Process:
        pid = 77

        def __init__(self, command, **_) -> None:
            begun.append(command[1:])

    monkeypatch.setattr(spark.subprocess, "Popen", Process)
    monkeypatch.setattr(pipeline, "problem", lambda: "")
    assert scheduled.begin_pipeline(tmp_path / "log" / "pipeline.log") == 77
    assert begun == [[str(spark.REPOSITORY / "manage.py"), "pipeline", "audit", "--requested-by", "scheduler"]], "it brings the lake up to date first"
    facts.execute(database, "INSERT INTO surety.pipeline_run (shard, kind, state, requested_by, process) VALUES (0, 'audit', 'running', 'olga', 'host:1')")
    with psycopg.connect(database) as holder:
        holder.execute("SELECT pg_advisory_lock(%s, 0)", [pipeline.LOCK])
        assert scheduled.begin_pipeline(tmp_path / "log" / "pipeline.log") is None
    assert len(begun) == 1


def test_an_audit_tells_its_fates_and_points_what_was_redelivered(database, operator) -> None:
    facts.destination(database, 1, "queue/a")
    facts.one_of_each(database)
    (audit,), following = reports.audits()
    assert (audit.by_fate, audit.violations, following) == ({"acknowledged": 5}, 1, 0)
    assert [(one.kind, one.first) for one in reports.violations(audit.number)[0]] == [("lost", 3)]
    now = datetime.now(UTC)
    (point,), following = reports.points("hour", now - timedelta(hours=2), now)
    assert following == ""
    assert (point.address, point.redelivered, point.percentiles("wait"), point.flow_control_ms) == ("queue/a", 2, {50: 3, 95: 3, 99: 3}, None)


def test_octets_and_flow_control_are_unknown_before_audits_told_of_them_and_none_is_0_since(database, operator) -> None:
    facts.destination(database, 1, "queue/a")
    told_of = {"octets": -4, "octets_in": 1, "octets_out": 5}
    hours = [
        (4, 0, {"octets": 9}), (4, 1, {"octets": 9}), (3, 0, told_of), (3, 1, told_of), (2, 1, {"offered": 1}), (1, 1, {"octets": 8}),
        (1, 0, {"octets": 8, "blocked_ms": 70}),
    ]  # fmt: skip
    for ago, destination, counts in hours:
        facts.execute(
            database,
            f"INSERT INTO surety.pipeline_rollup VALUES (0, 'hour', date_trunc('hour', now()) - interval '{ago} hours', {destination}, 0, %s)",
            [json.dumps(counts)],
        )
    told = call(operator, "GET", "pipeline/points?grain=hour&destination=1").document["items"]
    assert [(one["octets_in"], one["octets_out"], one["flow_control_ms"]) for one in told] == [(None, None, None), (1, 5, 0), (0, 0, 0), (None, None, None)]


def test_counts_of_two_runs_are_added(database) -> None:
    (added,) = facts.rows(database, """SELECT surety.add_counts('{"a": 1, "b": 2}', '{"b": 3, "c": -4}')""")
    assert added == ({"a": 1, "b": 5, "c": -4},)
