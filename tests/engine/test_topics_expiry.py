"""Messages of topics that expire for thousands of subscriptions: portion by portion, in ranges, dead once."""

from __future__ import annotations

import pytest

from broker_core.engine import commands as c
from broker_core.engine.message import Header, Message
from broker_core.engine.outcome import Outcome
from broker_core.engine.subscription import Filter
from tests.engine.rig import ASSURED, DEAD, EXPRESS, RELIABLE, Bench

TOPIC = "topic/prices"


def bench(subscriptions: int, **how) -> Bench:
    """A topic with so many durable subscriptions of client `two`, none of them active."""
    made = Bench(**how)
    made.apply(c.Open(2, "guest", "two"))
    for number in range(subscriptions):
        made.apply(c.Attach(2, 1, TOPIC, name=f"s{number}", durable=True), c.Detach(2, 1))
    made.flush()
    return made


def publish(b: Bench, messages: int, *, level=RELIABLE, lives=lambda number: 10) -> None:
    for number in range(messages):
        expires = b.now + lives(number) if lives(number) else 0
        b.apply(c.Send(1, None, TOPIC, Message(Header(b"", 4, level, expires), b"m", 10)))
    b.flush()


def portions(b: Bench) -> list[int]:
    """Ranges settled by each flush since the last time."""
    effects, b.effects = b.effects, []
    return [len(each.commit.settled) for each in effects if each.commit is not None]


def attach(b: Bench, name: str) -> list[str]:
    return b.attach(1, peer=2, address=TOPIC, name=name, durable=True)


def test_what_expires_for_many_subscriptions_is_ended_by_many_flushes() -> None:
    b = bench(300)
    publish(b, 40, lives=lambda number: number % 2 * 10)
    portions(b)
    b.now += 10
    b.control("expire")
    assert (b.depth(TOPIC), b.depth(DEAD)) == (300 * 20, 20)
    ended = portions(b)
    assert max(ended) <= b.engine.shard.limits.expiry_steps
    assert sum(ended) == 300 * 20
    assert sum(count > 0 for count in ended) > 3


def test_neighbours_expire_as_one_range_for_each_subscription() -> None:
    b = bench(200)
    publish(b, 500)
    portions(b)
    b.now += 10
    b.control("expire")
    assert (b.depth(TOPIC), b.depth(DEAD)) == (0, 500)
    assert sum(portions(b)) == 200
    assert (b.destination(TOPIC).octets, b.destination(TOPIC).expired) == (0, 200 * 500)


def test_five_thousand_subscriptions_lose_a_thousand_messages_in_a_few_short_flushes() -> None:
    b = bench(5_000)
    publish(b, 1_000)
    portions(b)
    b.now += 10
    b.control("expire")
    ended = portions(b)
    assert b.depth(TOPIC) == 0
    assert (max(ended) <= b.engine.shard.limits.expiry_steps, sum(ended), len(ended) < 20) == (True, 5_000, True)


def test_between_two_portions_clients_are_served() -> None:
    b = bench(2_500, slow=True)
    publish(b, 1)
    b.now += 10
    b.control("expire")
    b.read()
    b.flush()
    assert 0 < b.depth(TOPIC) < 2_500
    assert b.engine.next_deadline() == b.now
    b.apply(c.Attach(2, 1, TOPIC, credit=10, name="s2499", durable=True))
    b.send("fresh", address=TOPIC)
    b.read()
    b.flush()
    assert b.bodies(b.outputs) == ["fresh"]
    assert b.depth(TOPIC) == 2_500
    assert b.engine.next_deadline() is None


def test_a_subscription_that_ends_between_two_portions_takes_nothing_with_it() -> None:
    b = bench(2_500, slow=True)
    publish(b, 1)
    b.now += 10
    b.control("expire")
    b.read()
    b.flush()
    b.apply(c.Unsubscribe(2, "s2499"), c.Unsubscribe(2, "s0"))
    b.flush()
    b.flush()
    assert (b.depth(TOPIC), b.depth(DEAD), b.destination(TOPIC).octets) == (0, 1, 0)


def test_a_topic_destroyed_between_two_portions_is_left_alone() -> None:
    b = bench(2_500, slow=True)
    publish(b, 1)
    b.now += 10
    b.control("expire")
    b.read()
    b.flush()
    b.control("destroy", TOPIC)
    b.slow = False
    b.flush()
    assert TOPIC not in b.engine.shard.destinations
    assert not b.engine.shard.expiring


def test_the_next_page_of_a_sweep_is_read_when_this_one_is_worked_off() -> None:
    b = bench(2_500, slow=True, expiry_rows=1)
    publish(b, 3)
    b.now += 10
    b.control("expire")
    b.control("expire")
    wanted = []
    for _ in range(12):
        wanted.append(len(b.reads))
        b.read()
        b.flush()
    assert max(wanted) == 1
    assert (b.depth(TOPIC), b.depth(DEAD)) == (0, 3)


@pytest.mark.parametrize("level", [RELIABLE, EXPRESS])
def test_a_message_that_expires_for_thousands_has_one_timer_and_one_copy(level) -> None:
    b = bench(3_000)
    publish(b, 1, level=level)
    assert len(b.engine.shard.timers.entries()) == (level == EXPRESS)
    portions(b)
    b.passes(10)
    b.control("expire")
    assert (b.depth(TOPIC), b.depth(DEAD), b.destination(TOPIC).octets) == (0, 1, 0)


def test_what_one_subscription_holds_does_not_expire_under_it_when_its_neighbours_do() -> None:
    b = bench(3)
    publish(b, 5)
    assert attach(b, "s1") == ["m"] * 5
    b.settle(2, 4, link=1, peer=2)
    b.now += 10
    b.control("expire")
    assert b.depth(TOPIC) == 3
    b.settle(1, 3, 5, link=1, peer=2)
    assert (b.depth(TOPIC), b.depth(DEAD), b.destination(TOPIC).octets) == (0, 5, 0)


def test_what_waits_in_memory_expires_with_what_is_on_disk() -> None:
    b = bench(2, page_rows=4, window_rows=4)
    publish(b, 20)
    b.attach(1, peer=2, address=TOPIC, name="s0", durable=True, credit=0)
    assert len(b.destination(TOPIC).subscriptions[0].cursors[4].ready) == 4
    b.now += 10
    b.control("expire")
    assert (b.depth(TOPIC), b.depth(DEAD), b.destination(TOPIC).octets) == (0, 20, 0)
    assert b.engine.shard.memory == 0


def test_failures_of_one_subscription_are_told_of_the_dead_and_forgotten() -> None:
    b = bench(1)
    publish(b, 3)
    attach(b, "s0")
    b.settle(2, link=1, peer=2, outcome=Outcome.FAILED)
    b.apply(c.PeerLost(2))
    b.flush()
    b.start()
    b.now += 10
    b.control("expire")
    b.attach(9, address=DEAD)
    counts = ['"JMS_SUN_DMQ_DELIVERY_COUNT":1' in m.header.annotations for m in b.engine.shard.links[9].unsettled.values()]
    assert counts == [False, True, False]


def test_a_crash_between_two_portions_leaves_the_rest_to_the_next_sweep() -> None:
    b = bench(2_500, slow=True)
    publish(b, 1, level=ASSURED)
    b.now += 10
    b.control("expire")
    b.read()
    b.flush()
    left = b.depth(TOPIC)
    assert 0 < left < 2_500
    b.start()
    assert b.depth(TOPIC) == left
    b.slow = False
    b.control("expire")
    assert b.depth(TOPIC) == 0


def test_what_a_filter_leaves_out_does_not_expire_for_its_subscription_though_it_came_too_late() -> None:
    b = bench(1)
    b.attach(2, peer=2, address=TOPIC, name="other", durable=True, wanted=Filter(sender="one"), credit=0)
    b.apply(c.Open(3, "guest", "one"))
    publish(b, 1, lives=lambda number: 0)
    late = Message(Header(b"", 4, RELIABLE, b.now - 1, client_id="one"), b"m", 10)
    b.apply(c.Send(3, None, TOPIC, late))
    b.flush()
    assert (b.depth(TOPIC), b.depth(DEAD), b.destination(TOPIC).expired) == (2, 1, 1)


@pytest.mark.parametrize("checkpoint", [False, True])
def test_what_is_among_the_dead_already_is_not_buried_again_after_a_crash_between_two_portions(checkpoint: bool) -> None:
    b = bench(5, slow=True, expiry_steps=3, expiry_rows=3)
    publish(b, 3)
    b.now += 10
    b.control("expire")
    b.read()
    b.flush(report=checkpoint)
    assert (0 < b.depth(TOPIC) < 15, b.depth(DEAD)) == (True, 3)
    b.start()
    b.slow = False
    b.control("expire")
    assert (b.depth(TOPIC), b.depth(DEAD)) == (0, 3)


@pytest.mark.parametrize("level", [RELIABLE, EXPRESS])
def test_what_was_buried_is_remembered_as_long_as_it_is_unsettled_for_somebody(level) -> None:
    b = bench(2)
    b.now += 10
    for number in range(300):
        publish(b, 1, level=level, lives=lambda _, number=number: 10 if number % 2 else 0)
    b.passes(10)
    b.control("expire")
    b.flush(report=True)
    lane = b.destination(TOPIC).lanes[4 if level == RELIABLE else 14]
    assert (lane.buried.floor, lane.buried.ahead) == (0, 150)
    for name in ("s0", "s1"):
        assert len(attach(b, name)) == 150
        b.settle(upto=150, link=1, peer=2)
        b.apply(c.Detach(2, 1))
    b.flush(report=True)
    assert (lane.buried.floor, lane.buried.ahead, lane.buried.dirty) == (300, 0, {})
    assert lane not in b.engine.shard.keeping
    assert b.database.tables.blocks == {}
