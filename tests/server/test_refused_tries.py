"""What clients are refused, on its way to the audit: bounded, whoever tries."""

from __future__ import annotations

from broker_core.engine.refusal import Refusal
from broker_core.server.refused_tries import LOGIN, MINUTE, PER_ACCOUNT, PER_MINUTE, USE, RefusedTries, RefusedTry


def logins() -> RefusedTries:
    return RefusedTries("a stranger", LOGIN)


def row(login: str, remote: str, sentence: str) -> RefusedTry:
    return RefusedTry("a stranger", "client login", login, remote, sentence)


def test_each_account_and_address_is_named_once_a_minute_and_the_rest_is_counted() -> None:
    refused = logins()
    for now in (100.0, 101.0, 102.0):
        refused.login("olga", "10.0.0.1", "wrong", now)
    refused.login("olga", "10.0.0.2", "wrong", 103.0)
    assert refused.take(104.0) == [row("olga", "10.0.0.1", "wrong"), row("olga", "10.0.0.2", "wrong")]
    assert refused.take(105.0) == []
    [rest] = refused.take(100.0 + MINUTE)
    assert (rest.address, rest.sentence.split()[:2]) == ("", ["2", "more"])
    refused.login("olga", "10.0.0.1", "wrong", 101.0 + MINUTE)
    assert refused.take(101.0 + MINUTE) == [row("olga", "10.0.0.1", "wrong")]


def test_however_many_names_are_tried_the_audit_is_not_filled() -> None:
    refused = logins()
    for number in range(10_000):
        refused.login(f"guess {number}", "10.0.0.1", "wrong", 100.0 + number / 1_000)
    assert len(refused.take(111.0)) == PER_MINUTE
    [rest] = refused.take(100.0 + MINUTE)
    assert rest.sentence.startswith(f"{10_000 - PER_MINUTE} more")


def test_while_nothing_can_be_written_no_more_wait_than_those_of_a_minute_and_all_others_are_counted() -> None:
    refused = logins()
    for number in range(10 * PER_MINUTE):
        refused.login(f"guess {number}", "10.0.0.1", "wrong", 100.0 + number * MINUTE / PER_MINUTE)
    waited = refused.take(99.0 + 10 * MINUTE)
    assert len(waited) <= PER_MINUTE + 1
    rows = waited + refused.take(100.0 + 10 * MINUTE)
    assert sum(1 if row.address else int(row.sentence.split()[0]) for row in rows) == 10 * PER_MINUTE


def test_what_a_stranger_says_can_be_kept() -> None:
    refused = logins()
    refused.login("a\0" + "b" * 1_000, "10.0.0.1", "wrong", 100.0)
    [kept] = refused.take(100.0)
    assert kept.address == "a\N{REPLACEMENT CHARACTER}" + "b" * 78


def test_what_a_rule_refuses_is_told_once_a_minute_for_each_account_operation_and_destination() -> None:
    refused = RefusedTries("clients", USE)
    for now in range(3):
        refused.use("shop", "10.0.0.1", "produce queue/a", 100.0 + now)
        refused.use("shop", "10.0.0.2", "consume queue/a", 100.0 + now)
        refused.use("till", "10.0.0.1", "produce queue/a", 100.0 + now)
        refused.use("shop", "10.0.0.1", "produce queue/b", 100.0 + now)
    rows = refused.take(104.0)
    assert [(each.who, each.what, each.address, each.remote, each.sentence.partition(":")[0]) for each in rows] == [
        ("client shop", "client access", "queue/a", "10.0.0.1", "produce"),
        ("client shop", "client access", "queue/a", "10.0.0.2", "consume"),
        ("client till", "client access", "queue/a", "10.0.0.1", "produce"),
        ("client shop", "client access", "queue/b", "10.0.0.1", "produce"),
    ]
    assert rows[0].sentence.endswith(Refusal.ACCESS_DENIED.value)
    [rest] = refused.take(100.0 + MINUTE)
    assert (rest.who, rest.what, rest.sentence.split()[:2]) == ("clients", "client access", ["8", "more"])


def test_one_account_that_tries_everything_keeps_nobody_elses_refusals_out() -> None:
    refused = RefusedTries("clients", USE)
    for number in range(PER_MINUTE):
        refused.use("scout", "10.0.0.1", f"produce queue/{number}", 100.0)
    refused.use("shop", "10.0.0.2", "produce queue/a", 101.0)
    assert [each.who for each in refused.take(102.0)] == ["client scout"] * PER_ACCOUNT + ["client shop"]
    [rest] = refused.take(100.0 + MINUTE)
    assert rest.sentence.startswith(f"{PER_MINUTE - PER_ACCOUNT} more")
