"""Who gets what, in which order, and how much of it."""

from __future__ import annotations

from broker_core.engine import commands as c
from broker_core.engine.message import Reliability
from broker_core.engine.outputs import Drained
from tests.engine.rig import ASSURED, EXPRESS, QUEUE, Bench, received


def test_a_link_never_holds_more_deliveries_than_the_cap() -> None:
    bench = Bench(link_unsettled=3)
    bench.send("a", "b", "c", "d", "e")
    assert bench.attach() == ["a", "b", "c"]
    assert bench.bodies(bench.settle(1)) == ["d"]


def test_a_link_without_credit_gets_nothing() -> None:
    bench = Bench()
    bench.send("a")
    assert bench.attach(credit=0) == []


def test_credit_is_given_back_by_settlement_where_the_link_says_so() -> None:
    bench = Bench()
    bench.send("a", "b", "c")
    assert bench.attach(credit=2) == ["a", "b"]
    assert bench.bodies(bench.settle(1)) == ["c"]


def test_credit_is_spent_for_good_where_only_a_grant_gives_it() -> None:
    bench = Bench()
    bench.send("a", "b", "c")
    assert bench.attach(credit=2, replenish=False) == ["a", "b"]
    assert bench.bodies(bench.settle(1, 2)) == []
    bench.apply(c.Grant(1, 5))
    assert bench.bodies(bench.flush()) == ["c"]


def test_a_drained_link_gets_what_there_is_and_loses_the_rest_of_its_credit() -> None:
    bench = Bench()
    bench.send("a")
    bench.attach(credit=0, replenish=False)
    bench.apply(c.Grant(1, 10, drain=True))
    outputs = bench.flush()
    assert bench.bodies(outputs) == ["a"]
    assert outputs[-1] == Drained(1, 1)
    assert bench.bodies(bench.send("b")) == []


def test_a_link_is_drained_only_after_what_is_on_disk_was_read() -> None:
    bench = Bench(slow=True, window_rows=1, page_rows=2)
    bench.send("a", "b", "c")
    bench.attach(credit=0, replenish=False)
    bench.apply(c.Grant(1, 10, drain=True))
    outputs = bench.flush()
    assert not [output for output in outputs if isinstance(output, Drained)]
    while bench.reads:
        bench.read()
        outputs = bench.flush()
    assert outputs[-1] == Drained(1, 1)
    assert len(bench.engine.shard.links[1].unsettled) == 3


def test_the_higher_priority_goes_first_and_equals_in_their_order() -> None:
    bench = Bench()
    for body, priority in (("low", 1), ("first", 4), ("high", 9), ("second", 4)):
        bench.send(body, priority=priority)
    assert bench.attach() == ["high", "first", "second", "low"]


def test_of_one_priority_stored_and_volatile_messages_go_in_the_order_of_arrival_when_both_wait() -> None:
    bench = Bench()
    bench.send("a", level=EXPRESS)
    bench.send("b", level=ASSURED)
    bench.send("c", level=EXPRESS)
    assert bench.attach(credit=1) == ["a"]
    assert bench.bodies(bench.settle(1)) == ["b"]
    assert bench.bodies(bench.settle(2)) == ["c"]


def test_several_links_share_evenly() -> None:
    bench = Bench()
    for link in (1, 2, 3):
        bench.attach(link)
    bench.send(*[f"m{number}" for number in range(30)])
    assert [len(bench.engine.shard.links[link].unsettled) for link in (1, 2, 3)] == [10, 10, 10]


def test_links_take_turns_with_single_messages() -> None:
    bench = Bench()
    bench.attach(1)
    bench.attach(2)
    for number in range(6):
        bench.send(f"m{number}")
    assert [len(bench.engine.shard.links[link].unsettled) for link in (1, 2)] == [3, 3]


def test_who_came_first_is_served_first_and_equals_share_what_there_is_each_up_to_its_flow_limit() -> None:
    bench = Bench()
    bench.control("create", QUEUE, consumer_flow_limit=10)
    for link in (1, 2):
        bench.attach(link, credit=1000)
    bench.effects.clear()
    bench.send(*map(str, range(10)))
    assert received(bench, bench.effects) == {1: ["0", "1", "2", "3", "4"], 2: ["5", "6", "7", "8", "9"]}
    bench.send(*map(str, range(10, 40)))
    assert [len(bench.engine.shard.links[link].unsettled) for link in (1, 2)] == [10, 10]


def test_further_messages_go_in_a_run_to_who_becomes_available_and_no_more_than_it_has_room_for() -> None:
    bench = Bench()
    for link in (1, 2):
        bench.attach(link, credit=10, replenish=True)
    bench.send(*map(str, range(40)))
    bench.effects.clear()
    bench.settle(*range(1, 7), link=2)
    assert received(bench, bench.effects) == {2: ["20", "21", "22", "23", "24", "25"]}


def test_a_link_with_little_credit_leaves_the_rest_to_the_others() -> None:
    bench = Bench()
    bench.attach(1, credit=1)
    bench.attach(2, credit=100)
    bench.send(*[f"m{number}" for number in range(10)])
    assert [len(bench.engine.shard.links[link].unsettled) for link in (1, 2)] == [1, 9]


def test_what_is_outstanding_on_a_link_is_bounded_in_octets() -> None:
    bench = Bench(link_octets=100)
    bench.send("a", "b", "c", size=60)
    assert bench.attach() == ["a", "b"]
    assert bench.bodies(bench.settle(1)) == ["c"]


def test_one_message_is_delivered_however_large() -> None:
    bench = Bench(link_octets=16 << 20)
    bench.send("huge", "small", size=17 << 20)
    assert bench.attach() == ["huge"]
    assert bench.bodies(bench.settle(1)) == ["small"]


def test_tags_of_a_link_are_consecutive() -> None:
    bench = Bench()
    bench.attach()
    for number in range(5):
        bench.send(f"m{number}")
    assert list(bench.engine.shard.links[1].unsettled) == [1, 2, 3, 4, 5]


def test_what_leaves_is_in_the_ledger_as_offered_before_it_leaves() -> None:
    bench = Bench()
    bench.attach()
    bench.send("a", "b")
    commit = bench.effects[-1].commit
    assert commit is not None
    assert commit.offered == [(bench.destination().subscriptions[0].number, 4, 0, 1, 1)]


def test_deliveries_of_volatile_messages_need_no_commit() -> None:
    bench = Bench()
    bench.attach()
    assert bench.bodies(bench.send("a", level=EXPRESS)) == ["a"]
    assert bench.effects[-1].commit is None


def test_only_assured_messages_wait_for_the_disk() -> None:
    bench = Bench()
    bench.send("first")
    for level, synchronous in ((Reliability.RELIABLE, False), (Reliability.ASSURED, True)):
        bench.send("a", level=level)
        commit = bench.effects[-1].commit
        assert commit is not None and commit.synchronous is synchronous


def test_a_stopped_peer_gets_nothing_until_it_is_started() -> None:
    bench = Bench()
    bench.attach()
    bench.apply(c.Stop(1))
    assert bench.bodies(bench.send("a")) == []
    bench.apply(c.Start(1))
    assert bench.bodies(bench.flush()) == ["a"]


def test_a_stopped_peer_keeps_nothing_from_the_others() -> None:
    bench = Bench()
    bench.apply(c.Open(2, "guest"))
    bench.attach(1)
    bench.attach(2, peer=2)
    bench.apply(c.Stop(1))
    bench.send("a", "b", address=QUEUE)
    assert len(bench.engine.shard.links[2].unsettled) == 2
