"""Quantities as people read them; None is unknown."""

import pytest

from console import quantities


@pytest.mark.parametrize("show", [quantities.count, quantities.octets, quantities.rate, quantities.duration, quantities.milliseconds])
def test_none_is_unknown(show):
    assert "unknown" in show(None)
    assert "unknown" not in show(0)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0 B"), (1023, "1,023 B"), (1024, "1.0 KiB"), (150 << 10, "150 KiB"), (5_000_000, "4.8 MiB"), (3 << 40, "3.0 TiB"), (9 << 60, "9,437,184 TiB")],
)
def test_octets(value, shown):
    assert quantities.octets(value) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0 s"), (0.9, "0 s"), (59, "59 s"), (60, "1 min"), (3725, "1 h 2 min"), (90_061, "1 d 1 h"), (86_400, "1 d"), (86_405, "1 d 5 s")],
)
def test_durations(seconds, shown):
    assert quantities.duration(seconds) == shown


@pytest.mark.parametrize(("value", "shown"), [(0.0, "0"), (0.04, "0.0"), (9.96, "10.0"), (12.3, "12"), (12_345.6, "12,346")])
def test_rates(value, shown):
    assert quantities.rate(value) == shown


def test_states_that_nobody_knows_yet_are_shown_as_they_are():
    assert "state 9" in quantities.paused(9)


def test_particulars_read_like_words_and_not_like_a_program():
    told = {"loopback_only": True, "superuser": False, "depth": 12_345, "state": 3, "direction": "ALL"}
    assert quantities.particulars(told) == "loopback only yes, superuser no, depth 12,345, state paused, direction ALL"
    assert quantities.particulars({}) == ""
    assert quantities.particulars({"state": [1]}) == "state [1]"
