"""Topics with more consumers than one flush has time for: what is published goes out portion by portion, in order, and others are served in between."""

from __future__ import annotations

from random import Random

import pytest

from broker_core.engine import commands as c
from broker_core.engine.effects import Effects
from broker_core.engine.message import Header, Message
from broker_core.engine.refusal import Refusal
from broker_core.engine.selector import compile_selector
from broker_core.engine.subscription import Filter
from tests.engine.rig import ASSURED, BEST_EFFORT, EXPRESS, QUEUE, RELIABLE, START, Bench, deliveries, received

TOPIC = "topic/prices"


def bench(subscriptions: int, *, durable: bool = False, credit: int = 1_000, **how) -> Bench:
    """A topic with so many consumers of client `two`, links 1 and on."""
    made = Bench(slow=True, **how)
    made.apply(c.Open(2, "guest", "two"))
    for number in range(1, subscriptions + 1):
        made.apply(c.Attach(2, number, TOPIC, credit=credit, name=f"s{number}" if durable else "", durable=durable))
    settle_down(made)
    return made


def message(body: str, *, level=RELIABLE, expires: int = 0, priority: int = 4) -> Message:
    return Message(Header(b"", priority, level, expires), body.encode(), 10)


def settle_down(b: Bench) -> list[Effects]:
    """Flush until nothing is left to do. What each came to."""
    before = len(b.effects)
    for _ in range(100_000):
        shard = b.engine.shard
        b.flush()
        b.read()
        if not (b.reads or shard.handing or shard.unserved or shard.batch.dirty):
            return b.effects[before:]
    raise AssertionError("it never ends")


def commit(b: Bench, sends: int, *, level=RELIABLE, address: str = TOPIC) -> None:
    """A transaction of so many sends."""
    b.apply(c.Begin(1, b"t"))
    for number in range(sends):
        b.apply(c.Transacted(1, b"t", c.Send(1, None, address, message(f"m{number}", level=level))))
    b.apply(c.End(1, b"t", commit=True, token="done"))


class Given:
    """Counts the pairs of a message and a cursor that one engine call puts together: what has been loaded into cursors, whoever did it."""

    def __init__(self, b: Bench) -> None:
        self._bench = b
        self._before = self._loaded()

    def _loaded(self) -> int:
        return sum(cursor.loaded for s in self._bench.destination(TOPIC).subscriptions for cursor in s.order)

    def since(self) -> int:
        before, self._before = self._before, self._loaded()
        return self._before - before


@pytest.mark.parametrize("level", [BEST_EFFORT, EXPRESS, RELIABLE, ASSURED])
@pytest.mark.parametrize("durable", [False, True], ids=["volatile", "durable"])
def test_a_transaction_to_a_topic_with_many_consumers_goes_out_portion_by_portion_and_in_order(level, durable: bool) -> None:
    b = bench(30, durable=durable, deliveries=100, fan_out=100)
    given = Given(b)
    commit(b, 20, level=level)
    assert given.since() <= 100
    effects: list[Effects] = []
    while not effects or b.engine.shard.handing or b.engine.shard.unserved:
        b.flush()
        effects.append(b.effects[-1])
        assert given.since() <= 100
    assert max(deliveries(each) for each in effects) <= 100
    assert sum(deliveries(each) for each in effects) == 30 * 20
    assert len(effects) < 30
    expected = [f"m{number}" for number in range(20)]
    assert all(bodies == expected for bodies in received(b, effects).values())
    assert b.reads == []


def test_all_of_the_transaction_is_in_one_commit_and_its_outcome_leaves_with_it() -> None:
    b = bench(30, durable=True, deliveries=60, fan_out=60)
    commit(b, 20)
    outputs = b.flush()
    assert b.effects[-1].commit is not None
    assert len(b.effects[-1].commit.messages) == 20
    assert "done" in b.confirmed(outputs)
    settle_down(b)
    assert all(not each.commit.messages for each in b.effects[-5:] if each.commit is not None)


def test_a_read_full_of_sends_goes_out_portion_by_portion() -> None:
    b = bench(25, deliveries=60, fan_out=60)
    given = Given(b)
    for number in range(50):
        b.apply(c.Send(1, None, TOPIC, message(f"m{number}")))
    assert given.since() <= 60
    effects = settle_down(b)
    assert max(deliveries(each) for each in effects) <= 60
    assert received(b, effects) == {link: [f"m{number}" for number in range(50)] for link in range(1, 26)}


def test_few_consumers_get_everything_with_the_flush_that_follows() -> None:
    b = bench(10)
    commit(b, 100)
    b.flush()
    assert deliveries(b.effects[-1]) == 1_000
    assert not b.engine.shard.handing


def test_between_two_portions_queues_and_other_topics_are_served() -> None:
    b = bench(50, deliveries=40, fan_out=40)
    b.apply(c.Attach(1, 901, QUEUE, credit=10), c.Attach(1, 902, "topic/other", credit=10))
    b.flush()
    commit(b, 30)
    b.flush()
    for number in range(5):
        b.apply(c.Send(1, None, QUEUE, message(f"q{number}")), c.Send(1, None, "topic/other", message(f"t{number}")))
        b.flush()
        assert received(b, b.effects[-1:]).get(901) == [f"q{number}"]
    assert b.engine.shard.handing
    late = received(b, settle_down(b))
    assert len(late[50]) > 20


def test_two_such_topics_take_turns() -> None:
    b = bench(30, deliveries=40, fan_out=40)
    for number in range(1001, 1031):
        b.apply(c.Attach(2, number, "topic/other", credit=1_000))
    settle_down(b)
    commit(b, 10)
    commit(b, 10, address="topic/other")
    effects = [b.flush() and b.effects[-1] for _ in range(8)]
    came = received(b, effects)
    assert min(sum(len(bodies) for link, bodies in came.items() if (link > 1_000) is other) for other in (False, True)) > 50
    settle_down(b)
    assert (b.depth(TOPIC), b.depth("topic/other")) == (300, 300)


def test_what_is_published_meanwhile_comes_behind_it() -> None:
    b = bench(20, deliveries=30, fan_out=30)
    commit(b, 10)
    before = len(b.effects)
    for number in range(10, 40):
        b.apply(c.Send(1, None, TOPIC, message(f"m{number}", level=EXPRESS if number % 2 else RELIABLE)))
        b.flush()
    settle_down(b)
    for bodies in received(b, b.effects[before:]).values():
        assert bodies == [f"m{number}" for number in range(40)]


def test_consumers_come_and_go_while_it_goes_out() -> None:
    b = bench(40, durable=True, deliveries=20, fan_out=20)
    commit(b, 20)
    b.flush()
    b.apply(*(c.Detach(2, link) for link in range(20, 41)))
    b.apply(c.Attach(2, 901, TOPIC, credit=1_000, name="late", durable=True))
    before = len(b.effects)
    b.flush()
    b.apply(*(c.Attach(2, 1_000 + number, TOPIC, credit=1_000, name=f"s{number}", durable=True) for number in range(20, 30)))
    settle_down(b)
    came = received(b, b.effects)
    expected = [f"m{number}" for number in range(20)]
    assert 901 not in received(b, b.effects[before:])
    assert all(came[link] == expected for link in [*range(1, 20), *range(1_020, 1_030)])
    b.apply(*(c.Attach(2, 1_000 + number, TOPIC, credit=1_000, name=f"s{number}", durable=True) for number in range(30, 41)))
    came = received(b, settle_down(b))
    assert all(came[link] == expected for link in range(1_030, 1_041))


def test_what_expires_before_its_turn_is_not_delivered() -> None:
    b = bench(40, durable=True, deliveries=20, fan_out=20)
    for number in range(10):
        b.apply(c.Send(1, None, TOPIC, message(f"m{number}", expires=START + 5 if number % 2 else 0)))
    b.flush()
    b.now += 10
    came = received(b, settle_down(b))
    assert all(came[link][-5:] == [f"m{number}" for number in range(0, 10, 2)] for link in range(20, 41))


def test_a_topic_that_is_destroyed_meanwhile_hands_out_nothing_more_and_frees_its_memory() -> None:
    b = bench(40, deliveries=20, fan_out=20)
    commit(b, 20)
    b.flush()
    b.control("destroy", TOPIC)
    b.flush(report=True)
    assert (len(b.engine.shard.handing), b.engine.shard.memory) == (0, 0)


def test_after_a_crash_durable_subscriptions_get_what_was_not_handed_out_yet() -> None:
    b = bench(40, durable=True, deliveries=20, fan_out=20)
    commit(b, 5)
    b.flush()
    had = received(b, b.effects[-1:])
    b.start()
    b.apply(c.Open(2, "guest", "two"))
    b.apply(*(c.Attach(2, number, TOPIC, credit=1_000, name=f"s{number}", durable=True) for number in range(1, 41)))
    came = received(b, settle_down(b))
    assert 0 < len(had) < 40
    assert all(came[link] == [f"m{number}" for number in range(5)] for link in range(1, 41))


def test_what_finds_no_room_in_memory_is_read_from_disk_by_everybody() -> None:
    b = bench(20, durable=True, deliveries=30, fan_out=30, memory_octets=300, page_rows=8, page_octets=80)
    b.apply(*(c.Send(1, None, TOPIC, message(f"m{number}")) for number in range(60)))
    came = received(b, settle_down(b))
    assert came == {link: [f"m{number}" for number in range(60)] for link in range(1, 21)}
    b.apply(*(c.Settle(2, link, upto=60) for link in range(1, 21)))
    settle_down(b)
    assert (b.depth(TOPIC), b.engine.shard.memory) == (0, 0)


def test_a_page_that_many_wait_for_is_shared_portion_by_portion() -> None:
    b = bench(40, durable=True, deliveries=100, fan_out=100, page_rows=20)
    b.apply(*(c.Detach(2, link) for link in range(1, 41)))
    commit(b, 20)
    settle_down(b)
    b.apply(*(c.Attach(2, link, TOPIC, credit=1_000, name=f"s{link}", durable=True) for link in range(1, 41)))
    b.flush()
    assert len(b.reads) == 1
    given = Given(b)
    b.read()
    assert given.since() <= 100 + 21
    effects: list[Effects] = []
    while not effects or b.engine.shard.handing or b.engine.shard.unserved:
        b.flush()
        effects.append(b.effects[-1])
        assert given.since() <= 100 + 21
    assert max(deliveries(each) for each in effects) <= 100
    assert received(b, effects) == {link: [f"m{number}" for number in range(20)] for link in range(1, 41)}
    assert (b.reads, b.engine.shard.memory) == ([], 0)


def test_bodies_leave_memory_when_the_last_one_has_got_them() -> None:
    b = bench(30, durable=True, deliveries=15, fan_out=15)
    commit(b, 3)
    settle_down(b)
    b.flush()
    held = [m for link in b.engine.shard.links.values() for m in link.unsettled.values()]
    assert len(held) == 90
    assert all(m.body is None for m in held)


@pytest.mark.parametrize("seed", range(4))
def test_whatever_comes_when_everybody_gets_what_he_takes_once_and_in_order(seed: int) -> None:
    random = Random(seed)
    b = Bench(slow=True, deliveries=7, fan_out=5, page_rows=4, window_rows=6, memory_octets=random.choice((400, 100_000)), page_octets=100)
    b.apply(c.Open(2, "guest", "two"))
    filters = [Filter(compile_selector(text)) if text else Filter() for text in ("", "n = 0", "n <> 1", "JMSPriority > 4")]
    for number in range(1, 21):
        b.apply(c.Attach(2, number, TOPIC, credit=5, name=f"s{number}", durable=number % 3 > 0, shared=True, wanted=filters[number % 4]))
    settle_down(b)
    owed: dict[int, list[str]] = {number: [] for number in range(1, 21)}
    before = len(b.effects)
    for step in range(80):
        n, priority, level = random.randrange(3), random.choice((4, 5)), random.choice((RELIABLE, EXPRESS))
        sent = Message(Header(f"n:{n}".encode(), priority, level), f"{priority}{level} m{step}".encode(), 10)
        b.apply(c.Send(1, None, TOPIC, sent))
        for number, mine in owed.items():
            if (True, n == 0, n != 1, priority > 4)[number % 4]:
                mine.append(f"{priority}{level} m{step}")
        if random.random() < 0.3:
            b.flush()
        if random.random() < 0.3:
            b.read(1)
        if random.random() < 0.3:
            b.apply(*(c.Settle(2, link.number, upto=link.tag) for link in list(b.engine.shard.links.values()) if link.unsettled))
    for _ in range(200):
        if not b.depth(TOPIC):
            break
        settle_down(b)
        b.apply(*(c.Settle(2, link.number, upto=link.tag) for link in list(b.engine.shard.links.values()) if link.unsettled))
    came = received(b, b.effects[before:])
    for number, mine in owed.items():
        for kind in {each.split()[0] for each in mine}:
            assert [each for each in came[number] if each.startswith(kind)] == [each for each in mine if each.startswith(kind)], number
        if number % 3 == 0:  # volatile: persistent or not, what one producer sends with one priority keeps its order within its mode
            assert sorted(came[number]) == sorted(mine)
    assert (b.depth(TOPIC), b.engine.shard.handing, b.engine.shard.unserved) == (0, type(b.engine.shard.handing)(), {})


def test_a_durable_subscription_is_in_use_while_its_portion_is_to_come() -> None:
    b = bench(50, durable=True, deliveries=20, fan_out=20)
    commit(b, 3)
    b.flush()
    b.apply(c.Unsubscribe(2, "s50", "x"))
    assert b.refused(b.flush()) == [Refusal.SUBSCRIPTION_IN_USE]


def test_best_effort_that_finds_no_memory_is_dropped_for_all_who_have_not_had_it_and_what_follows_arrives() -> None:
    b = bench(20, memory_octets=2_000, deliveries=50, fan_out=50)
    commit(b, 3, level=EXPRESS)
    commit(b, 400, level=BEST_EFFORT)
    efforts = settle_down(b)
    assert not any(message.header.reliability == BEST_EFFORT for effects in efforts if effects.commit for message in effects.commit.spilled)
    b.apply(c.Send(1, None, TOPIC, message("last", level=EXPRESS)))
    assert sum(map(deliveries, settle_down(b))) == 20
    assert b.depth(TOPIC) == sum(len(link.unsettled) for link in b.engine.shard.links.values())
