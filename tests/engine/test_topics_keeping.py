"""Volatile messages for subscriptions that are behind: kept once in their topic's lane, or on disk (checklist items 106 to 110)."""

from __future__ import annotations

import pytest

from broker_core.engine import commands as c
from broker_core.engine.message import Encoding, Header, Message, Reliability, StoredBody
from broker_core.engine.outcome import Outcome
from broker_core.engine.selector import compile_selector
from broker_core.engine.subscription import Filter
from tests.engine.rig import ASSURED, BEST_EFFORT, DEAD, EXPRESS, Bench
from tests.engine.topic_rig import TOPIC, bench, durable, plain, publish

NON_PERSISTENT = pytest.mark.parametrize("level", [BEST_EFFORT, EXPRESS, Reliability.RELIABLE_NONPERSISTENT])


def inactive(b: Bench, count: int, **how) -> None:
    for number in range(count):
        b.apply(c.Attach(2, 1, TOPIC, name=f"s{number}", durable=True, **how), c.Detach(2, 1))
    b.flush()


def memory(b: Bench) -> int:
    return b.engine.shard.memory


@NON_PERSISTENT
def test_a_message_for_thousands_of_inactive_subscriptions_is_in_memory_once(level) -> None:
    b = bench()
    inactive(b, 500)
    publish(b, "m", level=level)
    assert (b.depth(TOPIC), memory(b)) == (500, 10)
    assert all(not s.cursors[level // 3 or 14].ready for s in b.destination(TOPIC).subscriptions)
    for name in ("s0", "s499"):
        assert durable(b, 1, name=name) == ["m"]
        b.settle(1, link=1, peer=2)
        b.apply(c.Detach(2, 1))
    assert b.depth(TOPIC) == 498


def test_it_leaves_memory_when_the_last_subscription_has_taken_it() -> None:
    b = bench()
    inactive(b, 3)
    publish(b, *"abc", level=EXPRESS)
    for number in range(3):
        assert durable(b, 1, name=f"s{number}") == [*"abc"]
        b.settle(upto=3, link=1, peer=2)
        b.apply(c.Detach(2, 1))
        b.flush(report=True)
        assert memory(b) == (0 if number == 2 else 30)
    assert not b.engine.shard.keeping


def test_it_leaves_memory_when_the_last_subscription_ends() -> None:
    b = bench()
    inactive(b, 2)
    publish(b, "m", level=EXPRESS)
    b.apply(c.Unsubscribe(2, "s0"), c.Unsubscribe(2, "s1"))
    b.flush(report=True)
    assert (memory(b), b.destination(TOPIC).octets) == (0, 0)


@pytest.mark.parametrize("verb", ["purge", "destroy"])
def test_it_leaves_memory_when_an_operator_discards_it(verb) -> None:
    b = bench()
    inactive(b, 2)
    publish(b, "m", level=EXPRESS)
    b.control(verb, TOPIC)
    b.flush(report=True)
    assert memory(b) == 0
    assert b.depth(DEAD) == 0


def test_it_leaves_memory_when_it_expires() -> None:
    b = bench()
    inactive(b, 3)
    publish(b, "kept", level=EXPRESS)
    publish(b, "short", level=EXPRESS, expires=b.now + 10)
    publish(b, "long", level=EXPRESS)
    b.passes(10)
    assert (b.depth(TOPIC), b.depth(DEAD)) == (6, 1)
    assert memory(b) == 20 + 10  # with the one that is dead
    assert durable(b, 1, name="s1") == ["kept", "long"]


def test_a_consumer_gets_more_than_a_page_of_it_in_order() -> None:
    b = bench(page_rows=4)
    inactive(b, 2)
    bodies = [f"m{number}" for number in range(30)]
    publish(b, *bodies, level=EXPRESS)
    assert durable(b, 1, name="s0", credit=100) == bodies
    assert not b.reads


def test_a_consumer_with_little_credit_takes_page_by_page() -> None:
    b = bench(page_rows=4)
    inactive(b, 2)
    bodies = [f"m{number}" for number in range(30)]
    publish(b, *bodies, level=EXPRESS)
    got = durable(b, 1, name="s0", credit=3)
    for tag in range(1, 31):
        got += b.bodies(b.settle(tag, link=1, peer=2))
    assert got == bodies


@pytest.mark.parametrize("restarts", [False, True])
def test_of_what_is_kept_a_higher_priority_leaves_first_and_a_restart_takes_all(restarts) -> None:
    b = bench()
    inactive(b, 1)
    publish(b, "low", level=EXPRESS, priority=1)
    publish(b, "high", level=EXPRESS, priority=8)
    if restarts:
        publish(b, "stored", level=ASSURED)
        b.start()
        b.apply(c.Open(2, "guest", "two"))
    assert durable(b, 1, name="s0") == (["stored"] if restarts else ["high", "low"])


def test_what_found_no_room_is_read_from_disk_after_what_is_kept() -> None:
    b = bench(memory_octets=200, page_rows=4, page_octets=40)
    inactive(b, 3)
    bodies = [f"m{number}" for number in range(60)]
    publish(b, *bodies, level=EXPRESS)
    assert memory(b) == 150
    assert durable(b, 1, name="s0", credit=100) == bodies
    assert durable(b, 2, peer=2, name="s1", credit=100) == bodies


def test_what_comes_after_something_was_spilled_is_kept_again_when_nothing_is() -> None:
    b = bench(memory_octets=200, page_rows=4, page_octets=40)
    inactive(b, 1)
    publish(b, *[f"a{number}" for number in range(20)], level=EXPRESS)
    assert len(durable(b, 1, name="s0", credit=100)) == 20
    b.settle(upto=20, link=1, peer=2)
    b.apply(c.Detach(2, 1))
    b.flush(report=True)
    assert memory(b) == 0
    publish(b, "b", level=EXPRESS)
    assert memory(b) == 10
    assert durable(b, 1, name="s0") == ["b"]


def test_a_consumer_that_fell_behind_gets_what_was_kept_then_what_spilled_then_what_is_new() -> None:
    b = bench(memory_octets=400, page_rows=3, page_octets=60)
    plain(b, 1, credit=1)
    bodies = [f"m{number}" for number in range(100)]
    got = publish(b, *bodies[:60], level=EXPRESS)
    for tag in range(1, 41):
        got += b.bodies(b.settle(tag))
    got += publish(b, *bodies[60:], level=EXPRESS)
    for tag in range(41, 101):
        got += b.bodies(b.settle(tag))
    assert got == bodies
    b.flush(report=True)
    assert (memory(b), b.destination(TOPIC).octets) == (0, 0)


def test_a_consumer_that_takes_a_whole_page_at_once_gets_what_is_kept_behind_it() -> None:
    b = bench(page_rows=4)
    inactive(b, 1)
    bodies = [f"m{number}" for number in range(10)]
    publish(b, *bodies, level=EXPRESS)
    assert durable(b, 1, name="s0", credit=0, replenish=False) == []
    b.apply(c.Grant(1, 100))
    assert b.bodies(b.flush()) == bodies


def test_a_consumer_that_takes_a_whole_page_at_once_gets_what_spilled_behind_it() -> None:
    b = bench(memory_octets=200, page_rows=4, page_octets=40)
    inactive(b, 1)
    publish(b, *"abcd", level=EXPRESS)
    publish(b, *[f"x{number}" for number in range(11)], level=EXPRESS, expires=b.now + 10)
    publish(b, *"efg", level=EXPRESS)
    assert durable(b, 1, name="s0", credit=0, replenish=False) == []
    b.passes(10)
    b.apply(c.Grant(1, 100))
    assert b.bodies(b.flush()) == [*"abcdefg"]


def test_whoever_had_to_take_what_expired_from_the_lane_reads_what_spilled_when_nothing_is_kept_any_more() -> None:
    b = bench(memory_octets=200, page_rows=4, page_octets=40)
    inactive(b, 2)
    publish(b, *"abcd", level=EXPRESS)
    publish(b, *[f"x{number}" for number in range(11)], level=EXPRESS, expires=b.now + 10)
    publish(b, *"efg", level=EXPRESS)
    assert durable(b, 1, name="s0", credit=4) == [*"abcd"]
    b.control("pause", TOPIC, direction="CONSUMERS")
    b.passes(10)
    b.apply(c.Unsubscribe(2, "s1"))  # for whom alone the first four were kept
    b.flush(report=True)  # a bench looks whether somebody reads
    b.control("resume", TOPIC, direction="CONSUMERS")
    assert b.bodies(b.settle(upto=4, link=1, peer=2)) == [*"efg"]


def test_best_effort_is_dropped_when_memory_is_short_and_never_written() -> None:
    b = bench(memory_octets=200)
    plain(b, 9, credit=0)
    inactive(b, 2)
    publish(b, *[f"m{number}" for number in range(40)], level=BEST_EFFORT)
    assert not any(effects.commit.spilled for effects in b.effects if effects.commit)
    kept = durable(b, 2, name="s0", credit=100)
    assert 0 < len(kept) < 20
    assert kept == durable(b, 3, name="s1", credit=100) == [f"m{number}" for number in range(len(kept))]
    b.apply(c.Grant(9, 100))
    assert len(b.bodies(b.flush())) < 20
    assert publish(b, "later", level=BEST_EFFORT) == ["later"] * 3


def test_best_effort_is_dropped_behind_what_had_to_be_spilled() -> None:
    """Else it would overtake it."""
    b = bench(memory_octets=200)
    inactive(b, 1)
    publish(b, *[f"m{number}" for number in range(20)], level=EXPRESS)
    publish(b, "dropped", level=BEST_EFFORT)
    publish(b, "last", level=EXPRESS)
    assert durable(b, 2, name="s0", credit=100) == [*[f"m{number}" for number in range(20)], "last"]


def test_only_what_a_filter_lets_through_is_kept_for_it() -> None:
    b = bench()
    inactive(b, 2, wanted=Filter(compile_selector("JMSPriority > 5")))
    publish(b, "low", level=EXPRESS, priority=4)
    assert (memory(b), b.depth(TOPIC)) == (0, 0)
    publish(b, "high", level=EXPRESS, priority=7)
    assert (memory(b), b.depth(TOPIC)) == (10, 2)


def test_the_age_of_what_is_kept_is_known() -> None:
    b = bench()
    inactive(b, 2)
    publish(b, "m", level=EXPRESS)
    sent = b.now
    b.passes(5)
    publish(b, "n", level=EXPRESS)
    b.flush(report=True)
    (row,) = [row for row in b.effects[-1].statistics if row.address == TOPIC]
    assert (row.oldest_at, row.depth) == (sent, 4)


# -- large bodies -------------------------------------------------------------------------------------------------------------------------
def send_large(b: Bench, body: int, *, level=EXPRESS, expires: int = 0) -> None:
    message = Message(Header(b"", 4, level, expires, Encoding.STOMP), StoredBody(body, 300_000), 10)
    b.apply(c.Send(1, None, TOPIC, message))
    b.flush()


def discarded(b: Bench) -> list[int]:
    return [body for effects in b.effects for body in effects.discarded]


@pytest.mark.parametrize("octets", [0, 1 << 20], ids=["spilled", "kept"])
def test_a_large_body_is_discarded_when_the_last_of_many_subscriptions_is_done(octets) -> None:
    b = bench(memory_octets=octets)
    inactive(b, 3)
    plain(b, 9, credit=5)
    send_large(b, 77)
    b.settle(1, link=9)
    for number in range(2):
        b.apply(c.Attach(2, 1, TOPIC, name=f"s{number}", durable=True, credit=1))
        assert len(b.delivered(b.flush())) == 1
        b.settle(1, link=1, peer=2)
        b.apply(c.Detach(2, 1))
    b.flush(report=True)
    assert discarded(b) == []
    b.apply(c.Unsubscribe(2, "s2"))
    b.flush()
    assert discarded(b) == [77]


@pytest.mark.parametrize("use_dead", [False, True])
def test_a_large_body_that_expires_for_many_is_discarded_once_or_dead_once(use_dead) -> None:
    b = bench()
    b.control("create", TOPIC, use_dead=use_dead)
    inactive(b, 4)
    send_large(b, 77, expires=b.now + 10)
    b.passes(10)
    assert discarded(b) == ([] if use_dead else [77])
    if use_dead:
        b.apply(c.Attach(1, 5, DEAD, credit=1))
        b.flush()
        b.settle(1, link=5)
        assert discarded(b) == [77]


def test_a_purge_discards_a_large_body_once() -> None:
    b = bench()
    inactive(b, 3)
    plain(b, 9, credit=0)
    send_large(b, 77)
    b.control("purge", TOPIC)
    assert discarded(b) == [77]


def test_a_large_body_that_others_hold_is_not_given_to_a_row_of_the_dead() -> None:
    b = bench()
    b.control("create", TOPIC, redelivery_max=0, redelivery_delay_ms=0)
    plain(b, 1)
    plain(b, 2)
    send_large(b, 77, level=ASSURED)
    b.settle(1, link=1, outcome=Outcome.FAILED)
    assert b.depth(DEAD) == 1
    assert [m for effects in b.effects if effects.commit for m in effects.commit.messages] == []
    b.settle(1, link=2)
    assert discarded(b) == []
    b.apply(c.Attach(1, 5, DEAD, credit=1))
    b.flush()
    b.settle(1, link=5)
    assert discarded(b) == [77]


def test_a_large_body_that_nobody_else_holds_goes_to_the_row_of_the_dead_and_is_its_segments() -> None:
    b = bench()
    b.control("create", TOPIC, redelivery_max=0, redelivery_delay_ms=0)
    plain(b, 1)
    plain(b, 2)
    send_large(b, 77, level=ASSURED)
    b.settle(1, link=1)
    b.settle(1, link=2, outcome=Outcome.FAILED)
    assert [m.body for effects in b.effects if effects.commit for m in effects.commit.messages] == [StoredBody(77, 300_000)]
    b.apply(c.Attach(1, 5, DEAD, credit=1))
    b.flush()
    b.settle(1, link=5)
    assert discarded(b) == []
    assert b.engine.shard.bodies == {}
