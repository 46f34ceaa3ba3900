"""Refused logins on their way to the audit: bounded, whoever tries."""

from __future__ import annotations

from broker_core.server.refused_logins import MINUTE, PER_MINUTE, RefusedLogin, RefusedLogins


def test_each_account_and_address_is_named_once_a_minute_and_the_rest_is_counted() -> None:
    refused = RefusedLogins()
    for now in (100.0, 101.0, 102.0):
        refused.note("olga", "10.0.0.1", "wrong", now)
    refused.note("olga", "10.0.0.2", "wrong", 103.0)
    assert refused.take(104.0) == [RefusedLogin("olga", "10.0.0.1", "wrong"), RefusedLogin("olga", "10.0.0.2", "wrong")]
    assert refused.take(105.0) == []
    [rest] = refused.take(100.0 + MINUTE)
    assert (rest.login, rest.sentence.split()[:2]) == ("", ["2", "more"])
    refused.note("olga", "10.0.0.1", "wrong", 101.0 + MINUTE)
    assert refused.take(101.0 + MINUTE) == [RefusedLogin("olga", "10.0.0.1", "wrong")]


def test_however_many_names_are_tried_the_audit_is_not_filled() -> None:
    refused = RefusedLogins()
    for number in range(10_000):
        refused.note(f"guess {number}", "10.0.0.1", "wrong", 100.0 + number / 1_000)
    assert len(refused.take(111.0)) == PER_MINUTE
    [rest] = refused.take(100.0 + MINUTE)
    assert rest.sentence.startswith(f"{10_000 - PER_MINUTE} more")


def test_while_nothing_can_be_written_no_more_wait_than_those_of_a_minute_and_all_others_are_counted() -> None:
    refused = RefusedLogins()
    for number in range(10 * PER_MINUTE):
        refused.note(f"guess {number}", "10.0.0.1", "wrong", 100.0 + number * MINUTE / PER_MINUTE)
    waited = refused.take(99.0 + 10 * MINUTE)
    assert len(waited) <= PER_MINUTE + 1
    rows = waited + refused.take(100.0 + 10 * MINUTE)
    assert sum(1 if row.login else int(row.sentence.split()[0]) for row in rows) == 10 * PER_MINUTE


def test_what_a_stranger_says_can_be_kept() -> None:
    refused = RefusedLogins()
    refused.note("a\0" + "b" * 1_000, "10.0.0.1", "wrong", 100.0)
    [row] = refused.take(100.0)
    assert row.login == "a\N{REPLACEMENT CHARACTER}" + "b" * 78
