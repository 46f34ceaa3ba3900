"""Subscriptions of patterns as they begin, are recovered, are refused and end, and as topics come and go under them."""

from __future__ import annotations

import pytest

from broker_core.engine import commands as c
from broker_core.engine.definitions import SubscriptionDefined, SubscriptionDestroyed
from broker_core.engine.message import Encoding, Header, Message, StoredBody
from broker_core.engine.refusal import Refusal
from broker_core.engine.selector import compile_selector
from broker_core.engine.subscription import Filter
from tests.engine.rig import DEAD, EXPRESS
from tests.engine.wildcards import PATTERN, A, B, C, bench, durable, held, members, plain, publish, restart


# -- kept and recovered ---------------------------------------------------------------------------------------------------------------------
def test_a_durable_one_keeps_what_its_client_missed_from_new_topics_too() -> None:
    b = bench()
    publish(b, A, "before")
    durable(b)
    b.apply(c.Detach(2, 1))
    publish(b, A, "1")
    publish(b, B, "2")
    restart(b)
    publish(b, B, "3")
    publish(b, "topic/p.new", "4")
    restart(b)
    assert sorted(durable(b)) == ["1", "2", "3", "4"]


def test_what_was_acknowledged_and_what_had_left_is_known_after_a_restart() -> None:
    b = bench()
    durable(b)
    publish(b, A, "1", "2")
    publish(b, B, "3")
    b.settle(1, 3, peer=2)
    restart(b)
    b.apply(c.Attach(2, 1, PATTERN, credit=10, name="s", durable=True))
    assert [(b.body(m), m.redelivered) for m in b.delivered(b.flush())] == [("2", True)]


@pytest.mark.parametrize("shared", [True, False])
def test_whether_it_is_shared_is_known_after_a_restart_whatever_it_was_before(shared: bool) -> None:
    b = bench()
    for now in (not shared, shared):
        durable(b, shared=now)
        publish(b, A, "m")
        b.apply(c.Detach(2, 1))
    restart(b)  # the invariants look at it
    assert durable(b, shared=shared) == ["m", "m"]


def test_selector_and_no_local_are_known_after_a_restart() -> None:
    b = bench()
    wanted = Filter(compile_selector("JMSPriority > 4"), "two")
    durable(b, wanted=wanted)
    restart(b)
    assert publish(b, A, "low", priority=1) == []
    publish(b, A, "high", priority=9)
    assert durable(b, wanted=wanted) == ["high"]
    assert members(b, A) == 1


def test_a_topic_and_those_who_wait_for_it_begin_in_one_commit() -> None:
    b = bench()
    durable(b)
    b.send("m", address=A)
    (commit,) = [effects.commit for effects in b.effects if effects.commit and effects.commit.messages]
    defined = [d for d in commit.definitions if isinstance(d, SubscriptionDefined)]
    assert [(d.destination, d.name, d.client_id, d.pattern) for d in defined] == [(b.destination(A).number, "s", "two", "")]


def test_what_only_volatile_ones_want_is_not_stored() -> None:
    b = bench()
    plain(b)
    publish(b, A, "m")
    assert not list(b.database.tables.rows())
    assert not [d for effects in b.effects if effects.commit for d in effects.commit.definitions if isinstance(d, SubscriptionDefined) and d.name]


def test_numbers_of_volatile_ones_are_not_taken_from_those_that_are_stored() -> None:
    b = bench()
    for address in (A, B):
        b.send("m", address=address)
    before = b.engine.shard.last_subscription
    for link in range(50):
        plain(b, link + 1)
    assert b.engine.shard.last_subscription == before


def test_deep_topics_are_read_in_pages_and_none_is_left_out() -> None:
    b = bench(page_rows=2, window_rows=3, segment_rows=10)
    durable(b)
    b.apply(c.Detach(2, 1))
    for number in range(12):
        publish(b, (A, B)[number % 2], f"m{number}")
    restart(b)
    assert sorted(durable(b)) == sorted(f"m{number}" for number in range(12))


def test_volatile_messages_that_found_no_room_come_as_well() -> None:
    b = bench(memory_octets=300, page_rows=2)
    plain(b, credit=0)
    for number in range(12):
        publish(b, (A, B)[number % 2], f"m{number}", level=EXPRESS, size=50)
    assert any(effects.commit and effects.commit.spilled for effects in b.effects)
    b.apply(c.Grant(1, 100))
    assert sorted(b.bodies(b.flush())) == sorted(f"m{number}" for number in range(12))


# -- the end ------------------------------------------------------------------------------------------------------------------------------
def test_a_volatile_one_ends_with_its_last_consumer() -> None:
    b = bench()
    plain(b)
    publish(b, A, "a")
    b.apply(c.PeerLost(1))
    b.flush()
    assert (members(b, A), b.depth(A), b.engine.shard.patterns, b.engine.shard.memory) == (0, 0, {}, 0)


def test_unsubscribing_ends_all_of_it_for_good() -> None:
    b = bench()
    durable(b)
    publish(b, A, "a")
    publish(b, B, "b")
    b.apply(c.Unsubscribe(2, "s", "t"))
    assert b.refused(b.flush()) == [Refusal.SUBSCRIPTION_IN_USE]
    b.apply(c.Detach(2, 1), c.Unsubscribe(2, "s", "t"))
    assert b.confirmed(b.flush()) == ["t"]
    ended = [d for effects in b.effects if effects.commit for d in effects.commit.definitions if isinstance(d, SubscriptionDestroyed)]
    assert len(ended) == 3
    assert (b.depth(A), members(b, A), members(b, B)) == (0, 0, 0)
    restart(b)
    assert members(b, A) == 0
    assert not b.engine.shard.subscriptions.keys() - {b.destination(DEAD).subscriptions[0].number}


def test_a_topic_that_is_destroyed_takes_its_own_messages_along_and_the_consumer_goes_on() -> None:
    b = bench()
    durable(b, credit=2)
    publish(b, A, "a")
    publish(b, B, "b", "c")
    assert held(b) == ["a", "b"]
    b.control("destroy", A)
    assert held(b) == ["b", "c"]
    assert publish(b, A, "again") == []
    b.settle(upto=9, peer=2)
    assert held(b) == ["again"]


def test_large_bodies_of_a_destroyed_topic_are_discarded() -> None:
    b = bench()
    plain(b, credit=1)
    for body in (1, 2):
        b.apply(c.Send(1, None, A, Message(Header(b"", 4, EXPRESS, 0, Encoding.STOMP), StoredBody(body, 100), 110)))
    b.flush()
    b.control("destroy", A)
    assert sorted(body for effects in b.effects for body in effects.discarded) == [1, 2]


def test_another_pattern_under_the_same_name_takes_the_place_of_the_first() -> None:
    b = bench()
    durable(b)
    publish(b, A, "a")
    b.apply(c.Detach(2, 1))
    assert durable(b, address="topic/p.**") == []
    assert publish(b, C, "c") == ["c"]
    b.apply(c.Detach(2, 1))
    assert durable(b, address=A) == []
    assert b.engine.shard.patterns == {}
    assert publish(b, B, "b") == []


def test_one_that_is_opened_again_as_it_was_goes_on() -> None:
    b = bench()
    durable(b)
    publish(b, A, "a")
    b.apply(c.Detach(2, 1))
    assert durable(b) == ["a"]


def test_idle_topics_are_reaped_under_a_pattern_and_come_back_with_it() -> None:
    b = bench()
    durable(b)
    publish(b, A, "a")
    b.settle(1, peer=2)
    publish(b, B, "held")
    b.passes(121_000)
    assert b.control("reap")["reaped"] == 1
    assert set(b.engine.shard.destinations) == {DEAD, B}
    assert publish(b, A, "again") == ["again"]


def test_a_topic_that_is_in_use_is_not_reaped_under_a_pattern() -> None:
    b = bench()
    plain(b, presettled=True, credit=c.UNLIMITED_CREDIT)
    for _ in range(3):
        b.now += 100_000
        publish(b, A, "m")
        b.flush()
        assert b.control("reap")["reaped"] == 0


def test_inactive_ones_end_as_a_whole() -> None:
    b = bench(subscription_inactive_ms=1000)
    durable(b)
    publish(b, A, "a")
    b.apply(c.Detach(2, 1))
    b.flush()
    b.passes(2000)
    assert b.control("reap")["subscriptions"] == 1
    assert (members(b, A), b.engine.shard.topic_subscriptions) == (0, 0)


# -- refused ------------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("address", ["queue/p.*", "temp-topic/s2.*", "topic/p*", "topic/**.a.**"])
def test_what_is_no_pattern_of_topics_is_refused_with_a_sentence(address: str) -> None:
    b = bench()
    b.apply(c.Attach(2, 1, address, "t", credit=1))
    assert b.refused(b.flush()) == [Refusal.INVALID_PATTERN]


def test_nobody_sends_to_a_pattern() -> None:
    b = bench()
    assert b.refused(b.send("m", address=PATTERN)) == [Refusal.INVALID_DESTINATION]


def test_only_its_own_client_has_a_pattern_that_is_not_shared() -> None:
    b = bench()
    b.apply(c.Attach(1, 1, PATTERN, "t", credit=1, name="s", durable=True))
    assert b.refused(b.flush()) == [Refusal.CLIENT_ID_REQUIRED]
    durable(b)
    b.apply(c.Attach(2, 2, PATTERN, "t", credit=1, name="s", durable=True))
    assert b.refused(b.flush()) == [Refusal.SUBSCRIPTION_IN_USE]


@pytest.mark.parametrize(("limit", "most"), [("subscriptions_max", 2), ("account_subscriptions_max", 2), ("topic_subscriptions_max", 0), ("patterns_max", 0)])
def test_members_count_as_subscriptions_do(limit: str, most: int) -> None:
    b = bench(**{limit: most})
    for address in (A, B):
        b.send("m", address=address)
    b.apply(c.Attach(2, 1, PATTERN, "t", credit=1, name="s", durable=True))
    assert b.refused(b.flush()) == [Refusal.TOO_MANY_SUBSCRIPTIONS]
    assert b.engine.shard.patterns == {}


def test_a_topic_that_would_bring_too_many_members_is_not_created() -> None:
    b = bench(subscriptions_max=2)
    plain(b)
    publish(b, A, "a")
    assert b.refused(b.send("b", address=B)) == [Refusal.TOO_MANY_SUBSCRIPTIONS]
    assert b.control("create", B)["refusal"] == "TOO_MANY_SUBSCRIPTIONS"
    assert publish(b, "topic/other", "c") == []
    assert B not in b.engine.shard.destinations
