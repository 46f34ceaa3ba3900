"""What the data pipeline has found out, as operators read it."""

from datetime import UTC, datetime, timedelta

from console.selectors import reports
from tests.console import facts

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


def test_percentiles_are_read_from_a_histogram_and_nothing_measured_is_unknown() -> None:
    counts = {"wait/0": 50, "wait/40": 45, "wait/60": 5, "held/4": 1}
    assert reports.percentiles(counts, "wait") == {50: 0, 95: 1023, 99: 32767}
    assert reports.percentiles(counts, "life") is None


def test_the_backlog_is_what_arrived_less_what_left() -> None:
    points = [reports.Point(NOW + timedelta(hours=hour), "queue/a", 1, 1, counts) for hour, counts in enumerate([{"arrived": 5}, {"left": 3}, {}])]
    assert [waiting for _, waiting in reports.backlog(points, before=2)] == [7, 4, 4]


def test_an_audit_tells_its_fates_and_points_what_was_redelivered(database, operator) -> None:
    facts.destination(database, 1, "queue/a")
    facts.one_of_each(database)
    (audit,), following = reports.audits()
    assert (audit.by_fate, audit.violations, following) == ({"acknowledged": 5}, 1, 0)
    assert [(one.kind, one.first) for one in reports.violations(audit.number)[0]] == [("lost", 3)]
    now = datetime.now(UTC)
    (point,) = reports.points("hour", now - timedelta(hours=2), now)
    assert (point.address, point.redelivered, point.percentiles("wait"), point.flow_control_ms) == ("queue/a", 2, {50: 3, 95: 3, 99: 3}, None)


def test_counts_of_two_runs_are_added(database) -> None:
    (added,) = facts.rows(database, """SELECT surety.add_counts('{"a": 1, "b": 2}', '{"b": 3, "c": -4}')""")
    assert added == ({"a": 1, "b": 5, "c": -4},)
