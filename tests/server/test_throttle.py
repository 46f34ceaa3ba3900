"""Who fails too often is refused for a while."""

from __future__ import annotations

from broker_core.server.throttle import ADDRESS_FAILURES, KEPT_MAX, PAIR_FAILURES, REFUSE_SECONDS_MAX, WINDOW_SECONDS, Throttle

HERE, THERE = "192.0.2.1", "192.0.2.2"


def fail(throttle: Throttle, times: int, now: float, remote: str = HERE, login: str = "shop") -> None:
    for _ in range(times):
        throttle.failed(remote, login, now)


def test_the_fifth_failure_within_a_minute_has_the_next_login_refused() -> None:
    throttle = Throttle()
    fail(throttle, PAIR_FAILURES - 1, 100.0)
    assert throttle.refused_seconds(HERE, "shop", 100.0) == 0
    fail(throttle, 1, 101.0)
    assert throttle.refused_seconds(HERE, "shop", 101.0) == 1
    assert throttle.refused_seconds(HERE, "shop", 102.5) == 0


def test_each_further_failure_is_refused_for_longer_up_to_a_minute() -> None:
    throttle = Throttle()
    fail(throttle, PAIR_FAILURES, 100.0)
    waits = []
    for _ in range(12):
        fail(throttle, 1, 100.0)
        waits.append(throttle.refused_seconds(HERE, "shop", 100.0))
    assert waits == [2, 4, 8, 16, 32, *[REFUSE_SECONDS_MAX] * 7]


def test_a_guesser_who_never_tires_has_no_more_than_his_share() -> None:
    throttle, guesses = Throttle(), 0
    for second in range(3600):
        if not throttle.refused_seconds(HERE, "shop", float(second)):
            fail(throttle, 1, float(second))
            guesses += 1
    assert PAIR_FAILURES * 30 < guesses < PAIR_FAILURES * 70


def test_another_account_and_another_address_are_not_refused() -> None:
    throttle = Throttle()
    fail(throttle, 2 * PAIR_FAILURES, 100.0)
    assert throttle.refused_seconds(HERE, "shop", 100.0) > 0
    assert throttle.refused_seconds(HERE, "bank", 100.0) == 0
    assert throttle.refused_seconds(THERE, "shop", 100.0) == 0


def test_an_address_that_tries_many_accounts_is_refused_them_all() -> None:
    throttle = Throttle()
    for number in range(ADDRESS_FAILURES):
        throttle.failed(HERE, f"account {number}", 100.0)
    assert throttle.refused_seconds(HERE, "shop", 100.0) == 1
    assert throttle.refused_seconds(THERE, "shop", 100.0) == 0


def test_the_addresses_of_one_ipv6_subscriber_count_as_one_and_a_mapped_one_as_ipv4() -> None:
    throttle = Throttle()
    fail(throttle, PAIR_FAILURES, 100.0, "2001:db8::1")
    assert throttle.refused_seconds("2001:db8::ffff:2", "shop", 100.0) == 1
    assert throttle.refused_seconds("2001:db8:0:1::1", "shop", 100.0) == 0
    fail(throttle, PAIR_FAILURES, 100.0, f"::ffff:{HERE}")
    assert throttle.refused_seconds(HERE, "shop", 100.0) == 1
    assert throttle.refused_seconds(f"::ffff:{THERE}", "shop", 100.0) == 0
    assert throttle.refused_seconds("fe80::1%eth0", "shop", 100.0) == 0


def test_a_success_forgets_the_failures_of_the_account_but_not_of_the_address() -> None:
    throttle = Throttle()
    fail(throttle, PAIR_FAILURES - 1, 100.0)
    throttle.succeeded(HERE, "shop")
    fail(throttle, PAIR_FAILURES - 1, 100.0)
    assert throttle.refused_seconds(HERE, "shop", 100.0) == 0
    for number in range(ADDRESS_FAILURES):
        throttle.failed(HERE, f"account {number}", 100.0)
        throttle.succeeded(HERE, "shop")
    assert throttle.refused_seconds(HERE, "shop", 100.0) > 0


def test_failures_are_forgotten_with_time() -> None:
    throttle = Throttle()
    fail(throttle, PAIR_FAILURES, 100.0)
    later = 101.0 + WINDOW_SECONDS
    assert throttle.refused_seconds(HERE, "shop", later) == 0
    assert len(throttle) == 0
    fail(throttle, PAIR_FAILURES - 1, later)
    assert throttle.refused_seconds(HERE, "shop", later) == 0


def test_what_is_remembered_is_bounded_however_many_addresses_and_however_long_names() -> None:
    throttle = Throttle()
    for number in range(KEPT_MAX):
        throttle.failed(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", "x" * 10_000, 100.0)
    assert len(throttle) == KEPT_MAX
    assert all(len(name) < 100 for _, name in throttle._failures)
