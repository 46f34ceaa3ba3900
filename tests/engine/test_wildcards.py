"""Subscriptions of patterns: all topics that match, those of today and those to come, each message once."""

from __future__ import annotations

import pytest

from broker_core.engine import commands as c
from broker_core.engine.message import VOLATILE, Encoding, Header, Message
from broker_core.engine.outcome import Outcome
from broker_core.engine.selector import compile_selector
from broker_core.engine.subscription import Filter
from tests.engine.rig import ASSURED, DEAD, EXPRESS
from tests.engine.wildcards import PATTERN, A, B, C, bench, durable, held, members, plain, publish


# -- who gets what ----------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("subscribe", [plain, durable])
def test_topics_of_today_and_those_to_come_are_all_meant(subscribe) -> None:
    b = bench()
    publish(b, A, "before")
    subscribe(b)
    assert publish(b, A, "1") == ["1"]
    assert publish(b, B, "2") == ["2"]
    assert publish(b, C, "3") == []


def test_the_message_that_creates_its_topic_is_delivered_too() -> None:
    b = bench()
    plain(b)
    b.send("first", address=A)
    assert held(b) == ["first"]


def test_no_topic_is_created_by_a_pattern() -> None:
    b = bench()
    durable(b)
    assert set(b.engine.shard.destinations) == {DEAD}


def test_a_message_comes_once_a_subscription_however_many_patterns_match() -> None:
    b = bench()
    plain(b, 1)
    plain(b, 2, address="topic/>")
    plain(b, 3, address=A)
    durable(b, 4)
    assert publish(b, A, "m") == ["m"] * 4
    assert publish(b, C, "n") == ["n"]


def test_a_message_of_a_pattern_is_the_one_that_was_sent_to_its_topic() -> None:
    b = bench()
    plain(b)
    (message,) = b.delivered(b.send("m", address=B))
    assert message.destination == b.destination(B).number


def test_temporary_topics_are_meant_by_no_pattern() -> None:
    b = bench()
    plain(b, address="topic/>")
    b.apply(c.CreateTemporary(2, "temp-topic/s2.p"))
    b.flush()
    assert members(b, "temp-topic/s2.p") == 0


def test_selector_and_no_local_hold_in_every_topic() -> None:
    b = bench()
    durable(b, wanted=Filter(compile_selector("JMSPriority > 4"), "two"))
    for address in (A, B):
        assert publish(b, address, "low", priority=1) == []
        assert publish(b, address, "high", priority=9) == ["high"]
    b.apply(c.Send(2, None, A, Message(Header(b"", 9, ASSURED, 0, Encoding.STOMP, client_id="two"), b"own", 10)))
    assert b.bodies(b.flush()) == []


def test_consumers_of_a_shared_pattern_share_the_messages_of_every_topic() -> None:
    b = bench()
    durable(b, 1, shared=True)
    durable(b, 2, shared=True)
    for address in (A, B):
        publish(b, address, "a", "b", "c", "d")
    assert sorted(held(b, 1) + held(b, 2)) == sorted("aabbccdd")
    assert len(held(b, 1)) == len(held(b, 2)) == 4


def test_no_topic_starves_however_little_room_the_consumer_has() -> None:
    b = bench()
    durable(b, credit=1)
    for _ in range(20):
        publish(b, A, "a")
    publish(b, B, "b")
    tag, seen = 0, []
    while held(b):
        seen += held(b)
        tag += 1
        b.settle(tag, peer=2)
    assert seen.index("b") <= 2
    assert len(seen) == 21


def test_a_member_that_takes_the_last_room_of_a_flush_from_its_lane_hands_out_no_more_than_there_is_credit_for() -> None:
    b = bench(slow=True, deliveries=8)
    durable(b)
    b.apply(c.Detach(2, 1))
    publish(b, A, *[f"m{number}" for number in range(20)], level=EXPRESS)
    durable(b, 2, credit=2)
    while b.engine.shard.unserved or b.engine.shard.batch.dirty:
        b.flush()
    assert held(b, 2) == ["m0", "m1"]


def test_within_a_topic_the_highest_priority_comes_first() -> None:
    b = bench()
    durable(b, credit=0)
    publish(b, A, "low", priority=1)
    publish(b, A, "high", priority=9)
    b.apply(c.Grant(1, 10))
    assert b.bodies(b.flush()) == ["high", "low"]


# -- settling -----------------------------------------------------------------------------------------------------------------------------
def test_an_acknowledgement_up_to_a_delivery_covers_all_topics() -> None:
    b = bench()
    durable(b)
    for number in range(4):
        publish(b, (A, B)[number % 2], str(number))
    b.settle(upto=3, peer=2)
    assert held(b) == ["3"]
    assert (b.depth(A), b.depth(B)) == (0, 1)
    assert (b.destination(A).settled, b.destination(B).settled) == (2, 1)


@pytest.mark.parametrize("level", [ASSURED, EXPRESS])
def test_what_failed_comes_back_from_its_own_topic(level) -> None:
    b = bench()
    durable(b)
    publish(b, A, "a", level=level)
    publish(b, B, "b", level=level)
    (again,) = b.delivered(b.settle(1, peer=2, outcome=Outcome.FAILED))
    assert (b.body(again), again.redelivered, again.failures) == ("a", True, 1)
    b.settle(2, 3, peer=2)
    assert (b.depth(A), b.depth(B)) == (0, 0)


def test_what_is_refused_too_often_dies_with_its_own_topic_for_origin() -> None:
    b = bench()
    durable(b)
    publish(b, B, "b")
    b.settle(1, peer=2, outcome=Outcome.REJECTED)
    assert b.depth(DEAD) == 1
    assert b.destination(B).dead == 1


def test_what_a_consumer_held_comes_back_to_the_next_one() -> None:
    b = bench()
    durable(b)
    publish(b, A, "a")
    publish(b, B, "b")
    b.apply(c.Detach(2, 1))
    b.flush()
    b.apply(c.Attach(2, 2, PATTERN, credit=10, name="s", durable=True))
    assert sorted((b.body(m), m.redelivered) for m in b.delivered(b.flush())) == [("a", True), ("b", True)]


def test_presettled_deliveries_of_all_topics_are_over_when_they_have_left() -> None:
    b = bench()
    plain(b, presettled=True, credit=c.UNLIMITED_CREDIT)
    for address in (A, B):
        assert publish(b, address, "m") == ["m"]
    b.flush()
    assert (b.depth(A), b.depth(B), held(b)) == (0, 0, [])


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_settles_messages_of_several_topics(commit) -> None:
    b = bench()
    durable(b, credit=2)
    publish(b, A, "a")
    publish(b, B, "b")
    b.apply(c.Begin(2, b"t"), c.Transacted(2, b"t", c.Settle(2, 1, [1, 2])), c.End(2, b"t", commit))
    b.flush()
    assert b.depth(A) == b.depth(B) == (0 if commit else 1)


def test_a_topic_that_is_destroyed_while_a_transaction_holds_its_message_is_over_in_it() -> None:
    b = bench()
    durable(b)
    publish(b, A, "a")
    publish(b, B, "b")
    b.apply(c.Begin(2, b"t"), c.Transacted(2, b"t", c.Settle(2, 1, [1, 2])))
    b.flush()
    b.control("destroy", A)
    b.apply(c.End(2, b"t", True, "done"))
    assert b.confirmed(b.flush()) == ["done"]
    assert b.depth(B) == 0


# -- operators ------------------------------------------------------------------------------------------------------------------------------
def test_operators_see_what_each_topic_has() -> None:
    b = bench()
    durable(b, credit=3)
    publish(b, A, "1", "2")
    publish(b, B, "3", "4")
    b.flush(report=True)
    rows = {row.address: row for effects in b.effects for row in effects.statistics}
    assert [(rows[a].depth, rows[a].unsettled, rows[a].consumers) for a in (A, B)] == [(2, 2, 1), (2, 1, 1)]


def test_a_paused_topic_waits_and_the_others_go_on() -> None:
    b = bench()
    plain(b)
    publish(b, A, "0")
    b.control("pause", A, direction="CONSUMERS")
    assert publish(b, A, "a") == []
    assert publish(b, B, "b") == ["b"]
    b.control("resume", A)
    assert held(b) == ["0", "b", "a"]


def test_a_purge_leaves_what_is_delivered_and_other_topics() -> None:
    b = bench()
    durable(b, credit=1)
    publish(b, A, "a1", "a2")
    publish(b, B, "b1")
    assert b.control("purge", A) == {"purged": 1, "outstanding": 1}
    assert (b.depth(A), b.depth(B)) == (1, 1)


def test_when_a_consumer_is_drained_nothing_of_any_topic_is_left() -> None:
    b = bench(page_rows=1, window_rows=1)
    durable(b, credit=0, replenish=False)
    for address in (A, B):
        publish(b, address, "1", "2", "3")
    b.apply(c.Grant(1, 10, drain=True))
    outputs = b.flush()
    assert sorted(b.bodies(outputs)) == sorted("123123")
    assert type(outputs[-1]).__name__ == "Drained"


def test_lanes_of_both_modes_are_served() -> None:
    b = bench()
    durable(b)
    publish(b, A, "stored")
    publish(b, A, "volatile", level=EXPRESS)
    assert {message.header.lane for message in b.engine.shard.links[1].unsettled.values()} == {4, VOLATILE + 4}


def test_a_lower_priority_that_waited_for_a_higher_one_is_delivered_when_that_is_over() -> None:
    """The last of the higher priority expires on disk while the one before it is unsettled: with that one all of them are over."""
    b = bench(slow=True, memory_octets=120, page_octets=10)
    plain(b, credit=1)
    publish(b, A, "a", level=EXPRESS, priority=9)
    b.send("fills the memory", level=EXPRESS, size=70)
    publish(b, A, "on disk", level=EXPRESS, priority=9, expires=b.now + 10, size=50)
    publish(b, A, "low", level=EXPRESS, priority=1)
    b.now += 20
    b.control("expire")
    b.read()
    b.flush()
    assert held(b) == ["a"]
    b.settle(1)
    assert held(b) == ["low"]
