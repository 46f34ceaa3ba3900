"""Active and backup consumers of a queue (checklist items 28 to 30, 32, 36 and 37), and the destination's limit on prefetch."""

from __future__ import annotations

import pytest

from broker_core.engine import commands as c
from broker_core.engine.outcome import Outcome
from broker_core.engine.outputs import Attached, Confirmed, Delivered, Output, Refused
from broker_core.engine.refusal import Refusal
from tests.engine.rig import QUEUE, Bench
from tests.engine.test_selective_consumers import wants


def queue(active: int = 1, backups: int = 1, **limits: int) -> Bench:
    bench = Bench(**limits)
    bench.control("create", QUEUE, max_active_consumers=active, max_backup_consumers=backups)
    return bench


def who(bench: Bench, outputs: list[Output]) -> list[tuple[int, str]]:
    return [(output.link, bench.body(message)) for output in outputs if isinstance(output, Delivered) for message in output.messages]


def close(bench: Bench, link: int) -> list[tuple[int, str]]:
    bench.apply(c.Detach(1, link))
    return who(bench, bench.flush())


# -- refused ----------------------------------------------------------------------------------------------------------------------------
def test_a_consumer_beyond_the_sum_is_refused_precisely_until_another_closes() -> None:
    bench = queue(1, 1)
    bench.attach(1)
    bench.attach(2)
    bench.apply(c.Attach(1, 3, QUEUE, "asks"))
    (refused,) = bench.flush()
    assert isinstance(refused, Refused)
    assert (refused.token, refused.refusal) == ("asks", Refusal.TOO_MANY_CONSUMERS)
    assert "has 2, max_active_consumers is 1, max_backup_consumers 1" in refused.detail
    close(bench, 2)
    bench.apply(c.Attach(1, 3, QUEUE, "asks"))
    assert bench.confirmed(bench.flush()) == ["asks"]


def test_an_edition_of_two_active_consumers_and_one_backup_is_a_policy_of_all_queues() -> None:
    """Checklist item 30: three consumers to a queue."""
    bench = Bench()
    bench.control("set_policy", "queue/**", max_active_consumers=2, max_backup_consumers=1)
    for link in (1, 2, 3):
        bench.attach(link, credit=1)
    bench.apply(c.Attach(1, 4, QUEUE, "asks"))
    (refused,) = bench.flush()
    assert isinstance(refused, Refused) and refused.refusal is Refusal.TOO_MANY_CONSUMERS
    assert "has 3, max_active_consumers is 2, max_backup_consumers 1" in refused.detail
    assert who(bench, bench.send("a", "b", "c")) == [(1, "a"), (2, "b")]
    assert close(bench, 1) == [(3, "a")]
    bench.apply(c.Attach(1, 4, QUEUE, "asks"))
    assert bench.confirmed(bench.flush()) == ["asks"]


@pytest.mark.parametrize(("active", "backups"), [(-1, 0), (1, -1)])
def test_where_either_is_unlimited_nobody_is_refused(active: int, backups: int) -> None:
    bench = queue(active, backups)
    for link in range(1, 20):
        bench.attach(link)
    assert bench.destination().consumers == 19


def test_a_browser_is_no_consumer() -> None:
    bench = queue(1, 0)
    bench.attach(1, credit=0)
    bench.send("a")
    assert bench.browse(2) == ["a"]


def test_a_topic_has_no_active_consumers_and_a_queue_at_least_one() -> None:
    bench = Bench()
    assert "for queues" in bench.control("create", "topic/t", max_active_consumers=1)["detail"]
    assert "at least 1" in bench.control("create", QUEUE, max_active_consumers=0)["detail"]


# -- served -----------------------------------------------------------------------------------------------------------------------------
def test_only_the_active_ones_are_served_though_they_have_no_room() -> None:
    bench = queue(2, 1)
    for link in (1, 2, 3):
        bench.attach(link, credit=1)
    assert who(bench, bench.send("a", "b", "c")) == [(1, "a"), (2, "b")]
    assert who(bench, bench.settle(1, link=2)) == [(2, "c")]


def test_the_first_backup_takes_over_and_gets_what_the_failed_one_held_first_and_in_order() -> None:
    bench = queue(1, 2)
    for link in (1, 2, 3):
        bench.attach(link, credit=2)
    bench.send("a", "b", "c", "d")
    assert close(bench, 1) == [(2, "a"), (2, "b")]
    assert [message.redelivered for message in bench.delivered(bench.outputs)][-2:] == [True, True]
    assert who(bench, bench.settle(1, 2, link=2)) == [(2, "c"), (2, "d")]
    assert close(bench, 2) == [(3, "c"), (3, "d")]


def test_a_backup_that_closes_changes_nothing() -> None:
    bench = queue(1, 2)
    for link in (1, 2, 3):
        bench.attach(link)
    assert close(bench, 2) == []
    bench.send("a")
    assert close(bench, 1) == [(3, "a")]


def test_much_that_comes_back_comes_before_the_backup_is_served() -> None:
    bench = queue(1, 1, returns=2)
    bench.attach(1, credit=6)
    bench.attach(2)
    bench.send(*"abcdef")
    bench.send("g")
    assert close(bench, 1) == [(2, body) for body in "abcdefg"]


def test_exclusive_ones_and_priorities_count_among_the_active_ones_only() -> None:
    bench = queue(2, 2)
    bench.attach(1)
    bench.attach(2, priority=5)
    bench.attach(3, exclusive=True)
    bench.attach(4, priority=9)
    assert who(bench, bench.send("a", "b")) == [(2, "a"), (2, "b")]
    close(bench, 1)
    assert who(bench, bench.send("c")) == [(3, "c")]
    close(bench, 3)
    assert who(bench, bench.send("d"))[-1] == (4, "d")


def test_selective_consumers_stand_by_as_others_do() -> None:
    bench = queue(1, 1)
    bench.attach(1, wanted=wants("colour = 'red'"))
    bench.attach(2)
    assert who(bench, bench.send("a", properties={"colour": "red"})) == [(1, "a")]
    assert who(bench, bench.send("b", properties={"colour": "blue"})) == []
    assert sorted(close(bench, 1)) == [(2, "a"), (2, "b")]


def test_message_groups_are_owned_by_active_ones() -> None:
    bench = queue(1, 1)
    bench.attach(1, credit=1)
    bench.attach(2)
    bench.send("a", "b", group="g")
    assert close(bench, 1) == [(2, "a"), (2, "b")]


def test_a_new_limit_counts_at_once() -> None:
    bench = queue(-1, -1)
    for link in (1, 2, 3):
        bench.attach(link)
    bench.control("update", QUEUE, max_active_consumers=1)
    assert {link for link, _ in who(bench, bench.send(*"abcdef"))} == {1}
    bench.control("update", QUEUE, max_active_consumers=-1)
    assert {link for link, _ in who(bench, bench.send(*"ghijkl"))} == {1, 2, 3}


def test_an_owner_of_a_message_group_that_becomes_a_backup_gives_it_up() -> None:
    bench = queue(-1, -1)
    bench.attach(1, credit=0)
    bench.attach(2)
    bench.send("a", group="g")
    bench.control("update", QUEUE, max_active_consumers=1)
    bench.apply(c.Grant(1, 5))
    assert who(bench, bench.send("b", group="g")) == [(1, "b")]


# -- prefetch ---------------------------------------------------------------------------------------------------------------------------
def test_prefetch_is_what_the_destination_allows_at_most() -> None:
    bench = Bench()
    bench.control("create", QUEUE, consumer_flow_limit=2)
    bench.attach(1)
    bench.send(*"abcd")
    assert who(bench, bench.outputs) == [(1, "a"), (1, "b")]
    assert who(bench, bench.settle(1)) == [(1, "c")]
    bench.attach(2, credit=1)
    assert who(bench, bench.outputs)[-1] == (2, "d")


def test_who_asks_for_more_is_told_what_it_has() -> None:
    bench = Bench()
    bench.control("create", QUEUE, consumer_flow_limit=2)
    for link, credit in ((1, 3), (2, 2), (3, 1)):
        bench.apply(c.Attach(1, link, QUEUE, "asks", credit=credit))
    assert bench.flush() == [Attached(1, "asks", 2), Confirmed(1, "asks"), Confirmed(1, "asks")]


@pytest.mark.parametrize("threshold", [100, 50])
def test_another_limit_counts_at_once_for_who_is_there_up_and_down(threshold: int) -> None:
    bench = Bench()
    bench.control("create", QUEUE, consumer_flow_limit=4)
    bench.attach(1, credit=10, threshold=threshold)
    bench.send(*"abcdefghijklmnop")
    before = len(bench.outputs)
    bench.control("update", QUEUE, consumer_flow_limit=6)
    assert who(bench, bench.outputs[before:]) == [(1, "e"), (1, "f")]
    bench.control("update", QUEUE, consumer_flow_limit=2)
    assert who(bench, bench.settle(upto=4)) == [], "two are outstanding"
    assert len(who(bench, bench.settle(upto=6))) == 2
    bench.control("update", QUEUE, consumer_flow_limit=-1)
    assert len(bench.engine.shard.links[1].unsettled) == 10, "as many as it asked for"


def test_another_limit_takes_nothing_from_who_settles_nothing_or_counts_himself() -> None:
    bench = Bench()
    bench.attach(1, credit=3, replenish=False)
    bench.attach(2, credit=3, presettled=True)
    bench.control("update", QUEUE, consumer_flow_limit=1)
    assert [bench.engine.shard.links[link].credit for link in (1, 2)] == [3, 3]


def test_what_a_transaction_has_acknowledged_is_not_outstanding_when_a_limit_changes() -> None:
    bench = Bench()
    bench.attach(1, credit=4)
    bench.send(*"abcdefgh")
    bench.apply(c.Begin(1, b"t"), c.Transacted(1, b"t", c.Settle(1, 1, upto=3)))
    bench.flush()
    bench.control("update", QUEUE, consumer_flow_limit=2)
    assert who(bench, bench.settle(4)) == who(bench, bench.settle(5)) == []
    bench.apply(c.End(1, b"t", commit=True))
    assert who(bench, bench.settle(6)) == [(1, "h")]


@pytest.mark.parametrize("pattern", [False, True])
def test_another_limit_of_a_topic_counts_for_its_subscriptions_but_not_for_those_of_patterns(pattern: bool) -> None:
    bench = Bench()
    bench.attach(1, address="topic/*" if pattern else "topic/a", credit=4)
    bench.send(*"abcd", address="topic/a")
    bench.control("update", "topic/a", consumer_flow_limit=1)
    bench.settle(upto=3)
    assert len(who(bench, bench.send(*"ef", address="topic/a"))) == (2 if pattern else 0)


# -- the consumer flow threshold (checklist item 34) ----------------------------------------------------------------------------------------
def test_a_consumer_that_had_all_its_limit_is_available_again_when_it_has_consumed_a_percentage_of_it() -> None:
    bench = Bench()
    bench.attach(1, credit=4, threshold=50)
    bench.send(*"abcdefgh")
    assert who(bench, bench.outputs) == [(1, body) for body in "abcd"]
    assert who(bench, bench.settle(1)) == []
    assert who(bench, bench.settle(2)) == [(1, "e"), (1, "f")]
    assert who(bench, bench.settle(3)) == []
    assert who(bench, bench.settle(upto=6)) == [(1, "g"), (1, "h")]


def test_one_that_still_has_room_is_served_whatever_it_holds() -> None:
    bench = Bench()
    bench.attach(1, credit=4, threshold=25)
    bench.send(*"abc")
    bench.settle(1)
    assert who(bench, bench.send(*"def")) == [(1, "d"), (1, "e")]
    assert who(bench, bench.settle(2)) == who(bench, bench.settle(3)) == []
    assert who(bench, bench.settle(4)) == [(1, "f")]


def test_meanwhile_others_are_served() -> None:
    bench = Bench()
    bench.attach(1, credit=2, threshold=50)
    bench.attach(2, credit=2, threshold=1)
    bench.send(*"abcd")
    assert who(bench, bench.send("e", "f")) == []
    assert who(bench, bench.settle(1, link=2)) == []
    assert who(bench, bench.settle(1, link=1)) == [(1, "e")]
    assert who(bench, bench.settle(2, link=2)) == [(2, "f")]


@pytest.mark.parametrize(("credit", "threshold", "consumed"), [(1, 50, 1), (3, 99, 1), (3, 66, 2), (3, 1, 3), (10, 90, 1), (10, 50, 5), (10, 25, 8)])
def test_the_percentage_is_of_the_limit_and_what_may_remain_is_rounded_down(credit: int, threshold: int, consumed: int) -> None:
    bench = Bench()
    bench.attach(1, credit=credit, threshold=threshold)
    bench.send(*[str(number) for number in range(2 * credit)])
    for tag in range(1, consumed):
        assert bench.delivered(bench.settle(tag)) == []
    assert len(bench.delivered(bench.settle(consumed))) == consumed


def test_of_a_limit_that_the_destination_lowers_it_is_a_percentage_too() -> None:
    bench = Bench()
    bench.control("create", QUEUE, consumer_flow_limit=2)
    bench.attach(1, credit=1000, threshold=50)
    bench.send(*"abcd")
    assert who(bench, bench.settle(1)) == [(1, "c")]


@pytest.mark.parametrize("outcome", [Outcome.RELEASED, Outcome.REJECTED, Outcome.ACCEPTED])
def test_what_is_given_back_counts_as_consumed(outcome: Outcome) -> None:
    bench = Bench()
    bench.attach(1, credit=2, threshold=1)
    bench.send(*"abcd")
    bench.settle(1, outcome=outcome)
    assert len(bench.delivered(bench.settle(2, outcome=outcome))) == 2


def test_what_is_acknowledged_in_a_transaction_counts_at_once() -> None:
    bench = Bench()
    bench.attach(1, credit=4, threshold=50)
    bench.send(*"abcdef")
    bench.apply(c.Begin(1, b"t"), c.Transacted(1, b"t", c.Settle(1, 1, (), 2, Outcome.ACCEPTED)))
    assert who(bench, bench.flush()) == [(1, "e"), (1, "f")]


def test_where_a_link_is_acknowledged_as_it_is_served_there_is_none() -> None:
    bench = Bench()
    bench.attach(1, credit=2, threshold=1, presettled=True)
    assert bench.bodies(bench.send(*"abcd")) == ["a", "b"]
    assert bench.bodies(bench.flush()) == ["c", "d"]
