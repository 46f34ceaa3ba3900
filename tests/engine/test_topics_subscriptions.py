"""Whose a subscription is, how many there may be, and how long one without consumers lasts."""

from __future__ import annotations

import sys

import pytest

from broker_core.engine import commands as c
from broker_core.engine.outputs import Refused
from broker_core.engine.refusal import Refusal
from broker_core.engine.selector import compile_selector
from broker_core.engine.subscription import Filter
from tests.engine.rig import DEAD, EXPRESS, Bench
from tests.engine.topic_rig import TOPIC, bench, durable, plain, publish, restart

OTHER = "topic/others"
DAY = 86_400_000


def refusal(b: Bench) -> tuple[Refusal, str]:
    (refused,) = [output for output in b.flush() if isinstance(output, Refused)]
    return refused.refusal, refused.detail


# -- owners -------------------------------------------------------------------------------------------------------------------------------
def eve(b: Bench, client_id: str) -> None:
    """Another account, with somebody's client identifier, as peer 4."""
    b.apply(c.Open(4, "eve", client_id))


@pytest.fixture(params=[False, True], ids=["at once", "after a restart"])
def kept(request: pytest.FixtureRequest) -> Bench:
    """A durable subscription `s` of client `two` that holds a message, without its consumer."""
    b = bench()
    durable(b, 1)
    b.apply(c.Detach(2, 1))
    publish(b, "m")
    if request.param:
        b.flush(report=True)
        restart(b)
    eve(b, "two")
    return b


def test_another_account_does_not_consume_from_a_subscription_whatever_its_client_identifier(kept: Bench) -> None:
    kept.apply(c.Attach(4, 1, TOPIC, credit=10, name="s", durable=True))
    assert refusal(kept) == (Refusal.SUBSCRIPTION_OF_ANOTHER, "s")
    assert durable(kept, 1) == ["m"]


def test_another_account_does_not_share_it(kept: Bench) -> None:
    kept.apply(c.Attach(4, 1, TOPIC, credit=10, name="s", durable=True, shared=True))
    assert refusal(kept) == (Refusal.SUBSCRIPTION_OF_ANOTHER, "s")


@pytest.mark.parametrize(
    "how", [{"address": OTHER}, {"address": TOPIC, "wanted": Filter(compile_selector("a = 1"))}], ids=["topic", "selector"]
)
def test_another_account_does_not_redefine_it(kept: Bench, how) -> None:
    kept.apply(c.Attach(4, 1, credit=10, name="s", durable=True, **how))
    assert refusal(kept) == (Refusal.SUBSCRIPTION_OF_ANOTHER, "s")
    assert OTHER not in kept.engine.shard.destinations
    assert durable(kept, 1) == ["m"]


def test_another_account_does_not_end_it(kept: Bench) -> None:
    kept.apply(c.Unsubscribe(4, "s", "done"))
    assert refusal(kept) == (Refusal.SUBSCRIPTION_OF_ANOTHER, "s")
    assert durable(kept, 1) == ["m"]


@pytest.mark.parametrize("durably", [False, True])
def test_a_shared_subscription_of_no_client_has_an_owner_too(durably) -> None:
    b = bench()
    b.apply(c.Open(5, "guest"))
    eve(b, "")
    plain(b, 1, name="v", shared=True, durable=durably)
    b.apply(c.Attach(4, 9, TOPIC, credit=10, name="v", shared=True, durable=durably))
    assert refusal(b) == (Refusal.SUBSCRIPTION_OF_ANOTHER, "v")
    assert plain(b, 2, peer=5, name="v", shared=True, durable=durably) == []
    if durably:
        b.apply(c.Unsubscribe(4, "v"))
        assert refusal(b) == (Refusal.SUBSCRIPTION_OF_ANOTHER, "v")


def test_when_its_owner_has_ended_it_the_name_is_anybodys() -> None:
    b = bench()
    durable(b, 1)
    b.apply(c.Detach(2, 1), c.Unsubscribe(2, "s"))
    eve(b, "two")
    assert durable(b, 1, peer=4) == []
    assert b.destination(TOPIC).subscriptions[0].account == "eve"


# -- how many -----------------------------------------------------------------------------------------------------------------------------
def test_a_topic_has_no_more_subscriptions_than_it_may() -> None:
    b = bench(topic_subscriptions_max=2)
    durable(b, 1)
    plain(b, 2)
    b.apply(c.Attach(1, 3, TOPIC))
    assert refusal(b) == (Refusal.TOO_MANY_SUBSCRIPTIONS, f"{TOPIC} has 2")
    assert b.attach(3, address=OTHER) == []
    b.apply(c.Detach(1, 2))
    assert plain(b, 4) == []


def test_all_topics_together_have_no_more_subscriptions_than_they_may() -> None:
    b = bench(subscriptions_max=2)
    durable(b, 1)
    b.attach(2, address=OTHER)
    b.attach(3)
    b.apply(c.Attach(1, 4, TOPIC))
    assert refusal(b) == (Refusal.TOO_MANY_SUBSCRIPTIONS, "the topics have 2 together")


def test_filters_that_have_to_be_asked_one_by_one_are_bounded_and_those_that_are_found_by_a_value_are_not() -> None:
    b = bench(topic_filters_max=2)
    for number in range(4):
        plain(b, number + 1, wanted=Filter(compile_selector(f"part = {number}")))
    for number in range(2):
        plain(b, number + 5, wanted=Filter(compile_selector(f"part > {number}")))
    plain(b, 7, wanted=Filter(compile_selector("part > 1")))
    b.apply(c.Attach(1, 8, TOPIC, wanted=Filter(compile_selector("part > 2"))))
    assert refusal(b) == (Refusal.TOO_MANY_SUBSCRIPTIONS, f"{TOPIC} has 2 different filters")
    b.control("destroy", OTHER)
    assert plain(b, 5) == []


def test_an_account_has_no_more_durable_subscriptions_than_it_may_whatever_its_clients() -> None:
    b = bench(account_subscriptions_max=2)
    durable(b, 1)
    durable(b, 2, peer=3)
    b.apply(c.Attach(2, 3, TOPIC, name="more", durable=True))
    assert refusal(b) == (Refusal.TOO_MANY_SUBSCRIPTIONS, "account guest has 2 durable ones")
    assert plain(b, 4) == []
    eve(b, "four")
    assert durable(b, 5, peer=4) == []


def test_where_there_is_no_room_a_subscription_may_still_be_attached_to_and_redefined() -> None:
    b = bench(topic_subscriptions_max=1, subscriptions_max=1, account_subscriptions_max=1)
    for wanted in (Filter(), Filter(), Filter(compile_selector("a = 1"))):
        assert durable(b, 1, wanted=wanted) == []
        b.apply(c.Detach(2, 1))
    b.flush()
    assert len(b.engine.shard.named) == 1


def test_after_a_restart_the_subscriptions_that_survived_count() -> None:
    b = bench(account_subscriptions_max=1)
    durable(b, 1)
    plain(b, 2)
    restart(b)
    assert b.engine.shard.topic_subscriptions == 1
    b.apply(c.Attach(3, 1, TOPIC, name="t", durable=True))
    assert refusal(b)[0] is Refusal.TOO_MANY_SUBSCRIPTIONS


# -- how long -----------------------------------------------------------------------------------------------------------------------------
def test_a_durable_subscription_nobody_has_consumed_from_for_too_long_is_ended_and_what_it_kept_is_discarded() -> None:
    b = bench(subscription_inactive_ms=DAY)
    durable(b, 1)
    durable(b, 2, peer=3)
    b.apply(c.Detach(2, 1))
    publish(b, "m")
    b.passes(DAY - 1)
    assert b.control("reap") == {"reaped": 0, "subscriptions": 0}
    b.passes(1)
    assert b.control("reap") == {"reaped": 0, "subscriptions": 1}
    assert [s.client_id for s in b.destination(TOPIC).subscriptions] == ["three"]
    assert (b.depth(TOPIC), b.depth(DEAD)) == (1, 0)
    b.settle(1, link=2, peer=3)
    assert b.destination(TOPIC).octets == 0
    restart(b)
    assert len(b.engine.shard.named) == 1


def test_without_a_limit_it_is_kept_for_ever() -> None:
    b = bench()
    durable(b, 1)
    b.apply(c.Detach(2, 1))
    b.passes(1000 * DAY)
    assert b.control("reap") == {"reaped": 0, "subscriptions": 0}
    assert len(b.engine.shard.named) == 1


def test_a_restart_does_not_prolong_the_life_of_an_inactive_subscription() -> None:
    b = bench(subscription_inactive_ms=DAY)
    durable(b, 1)
    durable(b, 2, peer=3)
    b.apply(c.Detach(2, 1))
    b.flush(report=True)
    b.now += DAY // 2
    restart(b)
    b.flush(report=True)
    b.now += DAY // 2
    assert b.control("reap")["subscriptions"] == 1
    assert [s.client_id for s in b.destination(TOPIC).subscriptions] == ["three"]
    restart(b)
    b.now += DAY // 2
    assert b.control("reap")["subscriptions"] == 1


def test_a_consumer_between_two_absences_is_remembered_over_a_restart() -> None:
    b = bench(subscription_inactive_ms=DAY)
    durable(b, 1)
    b.apply(c.Detach(2, 1))
    b.flush(report=True)
    b.now += DAY - 1
    durable(b, 1)
    b.flush(report=True)
    b.now += DAY
    restart(b)
    assert b.control("reap")["subscriptions"] == 0


def test_a_topic_whose_last_subscription_was_ended_is_reaped_in_its_turn() -> None:
    b = bench(subscription_inactive_ms=DAY)
    durable(b, 1)
    b.apply(c.Detach(2, 1))
    b.passes(DAY)
    assert b.control("reap")["subscriptions"] == 1
    b.passes(200_000)
    assert b.control("reap") == {"reaped": 1, "subscriptions": 0}


# -- their end ----------------------------------------------------------------------------------------------------------------------------
def inactive(b: Bench, *names: str) -> None:
    for name in names:
        b.apply(c.Attach(2, 1, TOPIC, name=name, durable=True), c.Detach(2, 1))
    b.flush()


def test_octets_are_never_less_than_nothing_whatever_the_sizes_of_what_an_ended_subscription_kept() -> None:
    b = bench()
    inactive(b, "a", "b", "c")
    publish(b, "huge", size=1_000_000)
    durable(b, 1, name="a")
    durable(b, 2, peer=3, name="d")
    b.settle(1, link=1, peer=2)
    publish(b, *"xyz", size=10)
    for name in "bc":
        b.apply(c.Unsubscribe(2, name))
        b.flush()
    assert b.destination(TOPIC).estimated
    b.settle(upto=9, link=1, peer=2)
    b.settle(upto=9, link=2, peer=3)
    assert (b.depth(TOPIC), b.destination(TOPIC).octets) == (0, 0)
    publish(b, "m", size=7)
    assert b.destination(TOPIC).octets == 2 * 7
    assert not b.destination(TOPIC).estimated


def test_what_an_ended_subscription_had_in_memory_is_given_back_to_the_octet() -> None:
    b = bench()
    plain(b, 1, credit=0)
    plain(b, 2, credit=0)
    publish(b, "small", size=3)
    publish(b, "large", size=4000)
    b.apply(c.Detach(1, 1))
    b.flush()
    assert (b.destination(TOPIC).octets, b.destination(TOPIC).octets_volatile) == (4003, 4003)


def test_octets_of_a_topic_are_whole_again_after_a_restart_and_its_end() -> None:
    b = bench()
    inactive(b, "a", "b")
    publish(b, "m", size=1000)
    publish(b, "n", size=10)
    restart(b)
    b.apply(c.Unsubscribe(2, "b"))
    b.flush()
    assert b.destination(TOPIC).octets == 1010
    durable(b, 1, name="a")
    b.settle(upto=2, link=1, peer=2)
    assert b.destination(TOPIC).octets == 0


def test_thousands_of_subscriptions_that_end_one_after_the_other_cost_no_more_each_than_a_few() -> None:
    def steps(count: int) -> int:
        """Lines of the engine that ran while so many subscriptions ended."""
        b = bench()
        inactive(b, *(f"s{number}" for number in range(count)))
        publish(b, "m")
        for number in range(count):
            b.engine.apply(c.Attach(1, 100 + number, TOPIC), b.now)
        return lines_run(lambda: b.apply(c.PeerLost(1), *(c.Unsubscribe(2, f"s{number}") for number in range(count))))

    assert steps(400) < 4.5 * steps(100)


def test_a_topic_with_thousands_of_subscriptions_is_purged_and_destroyed_in_steps_of_their_number() -> None:
    def steps(count: int) -> int:
        b = bench()
        inactive(b, *(f"s{number}" for number in range(count)))
        publish(b, "m")
        return lines_run(lambda: b.apply(c.Control(1, "purge", TOPIC), c.Control(2, "destroy", TOPIC)))

    assert steps(400) < 4.5 * steps(100)


def lines_run(work) -> int:
    count = 0

    def trace(_frame, event, _argument):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def test_an_estimate_that_was_put_right_while_nothing_was_stored_is_right_after_a_restart() -> None:
    b = bench()
    durable(b, 1, name="first")
    b.apply(c.Detach(2, 1))
    publish(b, "a", size=10)
    durable(b, 2, name="second")
    b.apply(c.Detach(2, 2))
    publish(b, "b", size=20)
    restart(b)
    b.apply(c.Unsubscribe(2, "second"))
    b.flush()
    assert b.destination(TOPIC).octets != 30
    plain(b, 3)
    publish(b, "c", level=EXPRESS)
    durable(b, 1, name="first")
    b.settle(1, 2, 3, link=1, peer=2)
    assert b.destination(TOPIC).octets > 10
    b.settle(1, link=3)
    assert b.destination(TOPIC).octets == 0
    restart(b)
    assert b.destination(TOPIC).octets == 0


def test_nor_does_a_subscription_that_has_ended_stand_for_something_that_is_left() -> None:
    b = bench()
    durable(b, 1, name="first")
    b.apply(c.Detach(2, 1))
    publish(b, "a", size=20)
    durable(b, 2, name="second")
    b.apply(c.Detach(2, 2))
    publish(b, "b", size=10)
    restart(b)
    b.apply(c.Unsubscribe(2, "first"))
    publish(b, "c", size=10)
    assert durable(b, 2, name="second") == ["b", "c"]
    b.settle(1, 2, link=2, peer=2)
    assert b.destination(TOPIC).octets == 0
