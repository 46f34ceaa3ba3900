"""Samples for the charts: what is not known is not noted, nothing piles up, and rates are those of the counters."""

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from console.models import Sample
from console.selectors import history as told
from console.services import history
from console.services.history import SPANS
from tests.console import facts
from tests.console.api import call, problem
from tests.console.terminal import mq

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTES = SPANS[0]


@pytest.fixture
def busy(database):
    Sample.objects.all().delete()
    facts.well(database)
    facts.destination(database, 1, "queue/busy", depth=5, accepted=100, settled=95)
    facts.destination(database, 2, "queue/idle", depth=1, accepted=1)
    yield database
    Sample.objects.all().delete()


def passes(monkeypatch, seconds):
    """What is noted now is from so long after noon; what is told is told then."""
    now = NOON + timedelta(seconds=seconds)

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return now

    monkeypatch.setattr(told, "datetime", Clock)
    return now


def accepts(database, count):
    with psycopg.connect(database, autocommit=True) as node:
        node.execute("UPDATE surety.destination_statistics SET accepted_total = accepted_total + %s, at = clock_timestamp() WHERE destination = 1", [count])


def test_nothing_is_noted_of_what_nobody_knows(database):
    facts.lease(database, heartbeat_seconds=60)
    facts.destination(database, 1, "queue/busy", depth=5)
    assert history.sample(NOON) == 0
    assert told.of_all(MINUTES).depth == [None] * 180


def test_rates_are_differences_over_time(busy, monkeypatch):
    history.sample(NOON)
    accepts(busy, 50)
    history.sample(NOON + timedelta(seconds=5))
    passes(monkeypatch, 10.1)
    shown = told.of_all(MINUTES)
    assert shown.times[-1] == NOON + timedelta(seconds=5)
    assert shown.accepted[-2:] == [None, 10.0]
    assert (shown.depth[-1], len(shown.times)) == (6, 180)


def test_a_sample_that_was_missed_is_bridged_and_more_are_a_gap(busy, monkeypatch):
    for seconds, accepted in ((0, 0), (15, 150), (60, 450)):
        accepts(busy, accepted)
        history.sample(NOON + timedelta(seconds=seconds))
    passes(monkeypatch, 65.1)
    assert told.of_all(MINUTES).accepted[-12:] == [10.0, 10.0, 10.0, *[None] * 9]


def test_a_counter_that_began_anew_is_no_rate(busy, monkeypatch):
    history.sample(NOON)
    accepts(busy, -50)
    history.sample(NOON + timedelta(seconds=5))
    passes(monkeypatch, 10.1)
    assert told.of_all(MINUTES).accepted[-1] is None


def test_a_step_is_noted_once_whoever_does_it(busy):
    assert history.sample(NOON) == 9, "three spans, each of the sums and of two destinations"
    assert history.sample(NOON + timedelta(seconds=1)) == 0
    assert history.sample(NOON + timedelta(seconds=5)) == 1


def test_a_destination_at_rest_has_no_gap(busy, monkeypatch):
    history.sample(NOON)
    with psycopg.connect(busy, autocommit=True) as node:
        node.execute("UPDATE surety.destination_statistics SET at = '2025-12-31' WHERE destination = 2")
        node.execute("UPDATE surety.lease SET acquired_at = '2025-12-30'")
    for seconds in range(5, 61, 5):
        history.sample(NOON + timedelta(seconds=seconds))
    passes(monkeypatch, 66)
    shown = told.of_destination(2, MINUTES)
    assert shown.accepted[-3:] == [0.0, 0.0, 0.0]
    assert shown.depth[-3:] == [1, 1, 1]
    assert set(told.sparks([1, 2, 3])) == {1, 2, 3}
    assert told.sparks([3])[3][-1] == 0.0, "a destination that was never noted has not changed while others were"


def test_what_is_older_than_its_span_is_deleted(busy):
    history.sample(NOON - timedelta(hours=30))
    assert Sample.objects.count() == 9
    history.sample(NOON)
    assert set(Sample.objects.values_list("at", flat=True)) == {NOON}


def test_the_api_tells_what_the_charts_show(busy, operator, monkeypatch):
    for seconds in (0, 15, 30):
        history.sample(NOON + timedelta(seconds=seconds))
        accepts(busy, 30)
    passes(monkeypatch, 30)
    rows = call(operator, "GET", "destinations/1/history").document
    shown = told.of_destination(1, MINUTES)
    assert [row["accepted"] for row in rows] == shown.accepted
    assert (len(rows), rows[-1]["accepted"], rows[-1]["depth"]) == (60, 2.0, 5)
    assert len(call(operator, "GET", "totals/history?span=3h").document) == 180
    assert "15min, 3h, 24h" in problem(call(operator, "GET", "totals/history?span=1h"), 400, "invalid")
    [*_, last] = mq("metrics", "dst", "queue/busy", "--json").document
    assert last["at"] == rows[-1]["at"]
