"""Rates from successive readings."""

from datetime import UTC, datetime, timedelta

import pytest

from console import rates
from console.rates import Rate, Rates, Reading

START = datetime(2026, 1, 1, tzinfo=UTC)


def _reading(seconds, accepted, settled=0):
    return Reading(START + timedelta(seconds=seconds), accepted, settled)


def test_one_reading_tells_no_rate():
    assert Rates().observe(1, _reading(0, 100)) is None


def test_the_same_reading_twice_tells_no_rate():
    seen = Rates()
    seen.observe(1, _reading(0, 100))
    assert seen.observe(1, _reading(0, 100)) is None


def test_two_readings_tell_a_rate_and_it_stays_until_the_next():
    seen = Rates()
    seen.observe(1, _reading(0, 100, 10))
    assert seen.observe(1, _reading(2, 300, 20)) == Rate(100, 5)
    assert seen.observe(1, _reading(2, 300, 20)) == Rate(100, 5)
    assert seen.observe(1, _reading(3, 300, 20)) == Rate(0, 0)


@pytest.mark.parametrize("later", [_reading(16, 200), _reading(2, 99), _reading(2, 100, -1)], ids=["long ago", "began anew", "began anew"])
def test_readings_that_do_not_belong_together_tell_no_rate(later):
    seen = Rates()
    seen.observe(1, _reading(0, 100))
    assert seen.observe(1, later) is None


def test_an_older_reading_that_comes_late_changes_nothing():
    seen = Rates()
    seen.observe(1, _reading(0, 100))
    seen.observe(1, _reading(2, 300))
    assert seen.observe(1, _reading(1, 200)) == Rate(100, 0)


def test_destinations_do_not_mix():
    seen = Rates()
    seen.observe(1, _reading(0, 100))
    assert seen.observe(2, _reading(2, 300)) is None


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(rates, "SERIES_MAX", 10)
    seen = Rates()
    for destination in range(25):
        seen.observe(destination, _reading(0, 100))
    assert len(seen._series) <= 10
