"""Exclusive consumers and the priority of consumers: who is served, who stands by, who takes over."""

from __future__ import annotations

from broker_core.engine import commands as c
from broker_core.engine.outcome import Outcome
from broker_core.engine.outputs import Delivered, Drained, Output
from tests.engine.rig import Bench

TOPIC = "topic/prices"


def shared_out(bench: Bench, outputs: list[Output]) -> list[tuple[int, str]]:
    """Who got what, in order."""
    return [(output.link, bench.body(message)) for output in outputs if isinstance(output, Delivered) for message in output.messages]


# -- exclusive consumers ----------------------------------------------------------------------------------------------------------------
def test_of_exclusive_consumers_only_the_first_receives() -> None:
    bench = Bench()
    for link in (1, 2, 3):
        bench.attach(link, exclusive=True)
    assert shared_out(bench, bench.send("a", "b", "c")) == [(1, "a"), (1, "b"), (1, "c")]


def test_while_there_is_an_exclusive_consumer_the_others_stand_by() -> None:
    bench = Bench()
    bench.attach(1)
    bench.attach(2, exclusive=True)
    assert shared_out(bench, bench.send("a", "b")) == [(2, "a"), (2, "b")]


def test_an_exclusive_consumer_without_room_keeps_its_turn() -> None:
    bench = Bench()
    bench.attach(1, credit=1, exclusive=True)
    bench.attach(2, exclusive=True)
    bench.attach(3)
    assert shared_out(bench, bench.send("a", "b")) == [(1, "a")]
    assert shared_out(bench, bench.settle(1)) == [(1, "b")]


def test_when_the_exclusive_consumer_closes_the_next_takes_over_and_gets_what_it_held_first() -> None:
    bench = Bench()
    bench.attach(1, credit=2, exclusive=True)
    bench.attach(2, exclusive=True)
    bench.attach(3, exclusive=True)
    bench.send("a", "b", "c")
    bench.apply(c.Detach(1, 1))
    outputs = bench.flush()
    assert shared_out(bench, outputs) == [(2, "a"), (2, "b"), (2, "c")]
    assert [message.redelivered for message in bench.delivered(outputs)] == [True, True, False]


def test_one_that_stands_by_takes_over_though_the_one_before_it_held_nothing() -> None:
    bench = Bench()
    bench.attach(1, credit=0, exclusive=True)
    bench.attach(2, exclusive=True)
    bench.send("a")
    bench.apply(c.Detach(1, 1))
    assert shared_out(bench, bench.flush()) == [(2, "a")]


def test_a_lost_connection_hands_over_as_a_closed_consumer_does() -> None:
    bench = Bench()
    bench.apply(c.Open(2, "guest"))
    bench.attach(1, peer=2, exclusive=True)
    bench.attach(2, exclusive=True)
    bench.send("a")
    bench.apply(c.PeerLost(2))
    assert shared_out(bench, bench.flush()) == [(2, "a")]


def test_of_exclusive_consumers_the_highest_priority_is_served_then_the_first_registered() -> None:
    bench = Bench()
    bench.attach(1, exclusive=True, priority=1)
    bench.attach(2, exclusive=True, priority=5)
    bench.attach(3, exclusive=True, priority=5)
    assert shared_out(bench, bench.send("a")) == [(2, "a")]
    bench.apply(c.Detach(1, 2))
    assert shared_out(bench, bench.flush()) == [(3, "a")]
    bench.apply(c.Detach(1, 3))
    assert shared_out(bench, bench.flush()) == [(1, "a")]


def test_after_the_last_exclusive_consumer_all_are_served_again() -> None:
    bench = Bench()
    bench.attach(1)
    bench.attach(2)
    bench.attach(3, credit=0, exclusive=True)
    bench.send("a", "b")
    bench.apply(c.Detach(1, 3))
    assert sorted(shared_out(bench, bench.flush())) == [(1, "a"), (2, "b")]
    assert bench.destination().subscriptions[0].eligibility is None


def test_what_a_consumer_held_when_it_lost_its_turn_it_may_still_settle_and_what_it_gives_back_goes_to_the_exclusive_one() -> None:
    bench = Bench()
    bench.attach(1)
    bench.send("a", "b")
    bench.attach(2, exclusive=True)
    assert shared_out(bench, bench.settle(1)) == []
    assert shared_out(bench, bench.settle(2, outcome=Outcome.RELEASED)) == [(2, "b")]


def test_a_shared_subscription_of_a_topic_has_its_own_exclusive_consumer() -> None:
    bench = Bench()
    for link, name in ((1, "s"), (2, "s"), (3, "t")):
        bench.attach(link, address=TOPIC, name=name, shared=True, exclusive=link == 1)
    assert sorted(shared_out(bench, bench.send("a", "b", address=TOPIC))) == [(1, "a"), (1, "b"), (3, "a"), (3, "b")]


def test_one_that_stands_by_and_asks_to_be_drained_is_told_at_once_that_nothing_comes() -> None:
    bench = Bench()
    bench.attach(1, credit=0, exclusive=True)
    bench.attach(2, credit=0, replenish=False)
    bench.send("a")
    bench.apply(c.Grant(2, 10, drain=True))
    assert Drained(1, 2) in bench.flush()


def test_one_that_stands_by_is_served_from_disk_when_its_turn_comes() -> None:
    bench = Bench(window_rows=1, page_rows=2)
    bench.attach(1, credit=0, exclusive=True)
    bench.attach(2, exclusive=True)
    bench.send("a", "b", "c", "d", "e")
    bench.apply(c.Detach(1, 1))
    assert shared_out(bench, bench.flush()) == [(2, body) for body in "abcde"]


# -- priority ---------------------------------------------------------------------------------------------------------------------------
def test_the_consumer_of_higher_priority_receives_while_it_has_room() -> None:
    bench = Bench()
    bench.attach(1)
    bench.attach(2, priority=1)
    bench.attach(3, priority=-1)
    assert shared_out(bench, bench.send("a", "b", "c")) == [(2, "a"), (2, "b"), (2, "c")]


def test_a_lower_priority_gets_what_no_higher_one_has_room_for() -> None:
    bench = Bench()
    bench.attach(1, credit=1, priority=-5)
    bench.attach(2, credit=1, priority=5)
    bench.attach(3, credit=1)
    assert shared_out(bench, bench.send("a", "b", "c", "d")) == [(2, "a"), (3, "b"), (1, "c")]
    assert shared_out(bench, bench.settle(1, link=3)) == [(3, "d")]


def test_a_stopped_consumer_of_higher_priority_keeps_nothing_from_the_others() -> None:
    bench = Bench()
    bench.apply(c.Open(2, "guest"))
    bench.attach(1)
    bench.attach(2, peer=2, priority=1)
    bench.apply(c.Stop(2))
    assert shared_out(bench, bench.send("a")) == [(1, "a")]
    bench.apply(c.Start(2))
    assert shared_out(bench, bench.send("b")) == [(2, "b")]


def test_consumers_of_equal_priority_share_evenly() -> None:
    bench = Bench()
    bench.attach(1)
    bench.attach(2, priority=7)
    bench.attach(3, priority=7)
    bench.send(*[f"m{number}" for number in range(20)])
    assert [len(bench.engine.shard.links[link].unsettled) for link in (1, 2, 3)] == [0, 10, 10]


def test_a_presettled_consumer_of_higher_priority_is_served_again_when_its_deliveries_have_left() -> None:
    bench = Bench()
    bench.attach(1)
    bench.attach(2, credit=1, presettled=True, priority=1)
    assert shared_out(bench, bench.send("a")) == [(2, "a")]
    assert shared_out(bench, bench.send("b")) == [(2, "b")]


def test_when_the_last_of_a_priority_goes_the_rest_go_on() -> None:
    bench = Bench()
    bench.attach(1)
    bench.attach(2, priority=7)
    bench.send("a")
    bench.apply(c.Detach(1, 2))
    assert shared_out(bench, bench.flush()) == [(1, "a")]
    assert bench.destination().subscriptions[0].eligibility is None
