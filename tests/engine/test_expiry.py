"""Messages end with their time to live, wherever they are; what is delivered is left alone."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from broker_core.engine import commands as c
from broker_core.engine.settings import Settings
from broker_core.engine.outcome import Outcome
from broker_core.engine.paging import evict
from tests.engine.rig import DEAD, EXPRESS, QUEUE, START, Bench


def reasons(bench: Bench) -> list[str]:
    bench.attach(9, address=DEAD)
    return [json.loads(m.header.annotations)["JMS_SUN_DMQ_UNDELIVERED_REASON"] for m in bench.engine.shard.links[9].unsettled.values()]


@pytest.mark.parametrize("level", [EXPRESS, 4])
def test_a_message_that_is_expired_on_arrival_is_never_delivered(level: int) -> None:
    bench = Bench()
    bench.attach()
    assert bench.bodies(bench.send("late", expires=START - 1, level=level)) == []  # type: ignore[arg-type]
    assert bench.depth() == 0
    assert reasons(bench) == ["EXPIRED"]


def test_a_volatile_message_in_memory_expires_on_time() -> None:
    bench = Bench()
    bench.send("a", expires=START + 10, level=EXPRESS)
    bench.passes(9)
    assert bench.depth() == 1
    bench.passes(1)
    assert (bench.depth(), bench.depth(DEAD)) == (0, 1)
    assert bench.attach() == []


def test_a_stored_message_that_expired_in_memory_is_not_delivered() -> None:
    bench = Bench()
    bench.send("a", expires=START + 10)
    bench.send("b")
    bench.now += 10
    assert bench.attach() == ["b"]
    assert bench.depth(DEAD) == 1


def test_a_sweep_ends_what_expired_on_disk_page_by_page() -> None:
    bench = Bench(window_rows=1, expiry_rows=2)
    bench.send("kept", *[f"m{number}" for number in range(7)], expires=0)
    bench.send(*[f"x{number}" for number in range(7)], expires=START + 10)
    bench.now += 10
    bench.control("expire")
    assert (bench.depth(), bench.depth(DEAD)) == (8, 7)
    assert bench.destination().expired == 7


def test_a_sweep_finds_nothing_twice() -> None:
    bench = Bench()
    bench.send("a", expires=START + 10)
    bench.now += 10
    bench.control("expire")
    bench.control("expire")
    assert bench.depth(DEAD) == 1


def test_what_a_sweep_ends_while_it_waits_in_memory_is_skipped() -> None:
    bench = Bench()
    bench.send("a", "b", expires=START + 10)
    bench.send("c")
    bench.now += 10
    bench.control("expire")
    assert bench.depth() == 1
    assert bench.attach() == ["c"]


@pytest.mark.parametrize("level", [EXPRESS, 4])
def test_a_delivered_message_does_not_expire_under_its_consumer(level: int) -> None:
    bench = Bench()
    bench.send("a", expires=START + 10, level=level)  # type: ignore[arg-type]
    bench.attach()
    bench.passes(20)
    bench.control("expire")
    assert bench.depth() == 1
    bench.settle(1)
    assert (bench.depth(), bench.depth(DEAD)) == (0, 0)


def test_a_message_that_comes_back_after_its_time_is_dead() -> None:
    bench = Bench()
    bench.send("a", expires=START + 10)
    bench.attach()
    bench.now += 20
    bench.apply(c.PeerLost(1), c.Open(2, "guest"))
    bench.flush()
    assert bench.attach(2, peer=2) == []
    assert (bench.depth(), bench.depth(DEAD)) == (0, 1)


def test_what_a_page_brings_after_it_was_swept_is_dropped() -> None:
    bench = Bench(slow=True, window_rows=1, page_rows=8)
    bench.send("a", expires=0)
    bench.send("b", "c", expires=START + 10)
    bench.now += 10
    bench.attach(credit=0)
    assert [type(read).__name__ for read in bench.reads] == ["PageWanted"]
    bench.control("expire")
    pages, bench.reads = bench.reads[:1], bench.reads[1:]
    bench.read()
    bench.flush()
    bench.reads = [*pages, *bench.reads]
    bench.read()
    bench.flush()
    assert bench.depth() == 1
    bench.apply(c.Grant(1, 10))
    bench.slow = False
    assert bench.bodies(bench.flush()) == ["a"]


def test_in_the_dead_message_queue_the_end_of_the_retention_is_the_end() -> None:
    bench = Bench(dead_retention_ms=1000)
    bench.send("a")
    bench.attach()
    bench.settle(1, outcome=Outcome.REJECTED)
    assert bench.depth(DEAD) == 1
    bench.now += 1000
    bench.control("retain")
    assert bench.depth(DEAD) == 0
    assert bench.destination(DEAD).octets == 0


# -- messages that came back ------------------------------------------------------------------------------------------------------------
def lost(bench: Bench, level: int) -> None:
    """Its consumer was lost: a volatile message waits with its body in memory, the body of a stored one is on disk."""
    bench.send("a", expires=START + 10, level=level)  # type: ignore[arg-type]
    bench.attach()
    bench.apply(c.PeerLost(1), c.Open(1, "guest"))
    bench.flush()


def lost_and_read_again(bench: Bench, level: int) -> None:
    """For a consumer that has no credit."""
    lost(bench, level)
    bench.attach(2, credit=0)


def refused(bench: Bench, level: int) -> None:
    """It waits for its back-off, longer than it lives."""
    bench.control("create", QUEUE, redelivery_delay_ms=1000)
    bench.send("a", expires=START + 10, level=level)  # type: ignore[arg-type]
    bench.attach()
    bench.settle(1, outcome=Outcome.FAILED)
    bench.apply(c.Detach(1, 1))
    bench.flush()


COMING_BACK = pytest.mark.parametrize("comes_back", [lost, lost_and_read_again, refused], ids=lambda how: how.__name__)


@COMING_BACK
@pytest.mark.parametrize("level", [EXPRESS, 4])
def test_a_message_that_came_back_expires_on_time_though_nobody_consumes(comes_back: Callable[[Bench, int], None], level: int) -> None:
    bench = Bench()
    comes_back(bench, level)
    assert bench.depth() == 1
    bench.passes(10)
    bench.control("expire")
    assert (bench.depth(), bench.depth(DEAD)) == (0, 1)
    assert (bench.destination().expired, bench.destination().octets) == (1, 0)
    assert reasons(bench) == ["EXPIRED"]
    bench.passes(5000)
    assert (bench.depth(), bench.engine.shard.memory) == (0, 0)


@COMING_BACK
@pytest.mark.parametrize("level", [EXPRESS, 4])
def test_a_message_that_came_back_and_expired_is_dropped_where_the_dead_are_not_kept(comes_back: Callable[[Bench, int], None], level: int) -> None:
    bench = Bench()
    comes_back(bench, level)
    bench.control("update", QUEUE, use_dead=False)
    bench.passes(10)
    bench.control("expire")
    assert (bench.depth(), bench.depth(DEAD), bench.destination().expired) == (0, 0, 1)
    assert bench.engine.shard.memory == 0
    bench.start()
    assert bench.attach() == []


@pytest.mark.parametrize("outcome", [Outcome.RELEASED, Outcome.FAILED])
@pytest.mark.parametrize("level", [EXPRESS, 4])
def test_what_is_given_back_after_its_time_is_dead_at_once(level: int, outcome: Outcome) -> None:
    bench = Bench()
    bench.send("a", expires=START + 10, level=level)  # type: ignore[arg-type]
    bench.control("update", QUEUE, redelivery_delay_ms=1000)
    bench.attach()
    bench.passes(20)
    bench.control("expire")
    bench.apply(c.Settle(1, 1, [1], 0, outcome))
    bench.flush()
    assert (bench.depth(), bench.depth(DEAD), bench.destination().expired) == (0, 1, 1)


def test_what_a_lost_consumer_held_beyond_its_time_is_dead_without_another_consumer() -> None:
    bench = Bench()
    bench.send("a", "b", expires=START + 10)
    bench.attach()
    bench.now += 20
    bench.control("expire")
    bench.apply(c.PeerLost(1))
    bench.flush()
    assert (bench.depth(), bench.depth(DEAD), bench.destination().expired) == (0, 2, 2)


def test_a_body_read_again_for_a_message_that_expired_meanwhile_brings_nothing_back() -> None:
    bench = Bench(slow=True)
    bench.send("a", expires=START + 10)
    bench.send("b")
    bench.attach()
    bench.apply(c.PeerLost(1), c.Open(1, "guest"))
    bench.flush()
    bench.attach(2, credit=0)
    bodies, bench.reads = bench.reads, []
    bench.now += 10
    bench.control("expire")
    bench.read()
    bench.flush()
    assert bench.depth() == 1
    bench.reads += bodies
    bench.read()
    bench.flush()
    bench.apply(c.Grant(2, 10))
    assert bench.bodies(bench.flush()) == ["b"]


def test_of_several_that_came_back_only_those_past_their_time_end_and_the_others_keep_their_order() -> None:
    bench = Bench()
    lives = {"a": 0, "b": 10, "c": 0, "d": 10, "e": 20, "f": 10, "g": 0, "h": 0}
    for body, life in lives.items():
        bench.send(body, level=EXPRESS, expires=START + life if life else 0)
    bench.attach()
    bench.apply(c.PeerLost(1), c.Open(1, "guest"))
    bench.flush()
    bench.passes(10)
    assert bench.destination().expired == 3
    assert bench.attach(2) == ["a", "c", "e", "g", "h"]
    assert bench.depth(DEAD) == 3


def test_failures_before_a_message_expired_are_told_of_the_dead() -> None:
    bench = Bench()
    bench.send("a", expires=START + 10)
    bench.attach(credit=1)
    bench.settle(1, outcome=Outcome.FAILED)
    bench.settle(2, outcome=Outcome.FAILED)
    bench.apply(c.Detach(1, 1))
    bench.flush()
    bench.passes(10)
    bench.control("expire")
    bench.attach(9, address=DEAD)
    (dead,) = bench.engine.shard.links[9].unsettled.values()
    assert json.loads(dead.header.annotations)["JMS_SUN_DMQ_DELIVERY_COUNT"] == 2


@pytest.mark.parametrize("back", [False, True])
def test_what_expired_in_memory_leaves_it_though_nobody_consumes(back: bool) -> None:
    bench = Bench(settings=Settings(use_dead=False))
    bench.send("first", level=EXPRESS)
    bench.send(*map(str, range(100)), level=EXPRESS, expires=START + 10)
    bench.send("last", level=EXPRESS)
    if back:
        bench.attach()
        bench.apply(c.PeerLost(1), c.Open(1, "guest"))
        bench.flush()
    bench.passes(10)
    assert bench.depth() == 2
    assert bench.engine.shard.memory < 40
    assert bench.attach(2) == ["first", "last"]


def test_a_window_that_is_given_up_leaves_what_expired_after_it_came_back() -> None:
    bench = Bench(window_rows=100, page_rows=64, page_octets=600, memory_octets=1600)
    for number in range(100):
        bench.send(str(number), expires=START + 10 if number in (1, 2) else 0)
    bench.attach(credit=4)
    bench.apply(c.PeerLost(1), c.Open(1, "guest"))
    bench.flush()
    bench.attach(2, credit=0)
    bench.apply(c.Detach(1, 2))
    bench.flush()
    bench.passes(10)
    bench.control("expire")
    evict(bench.engine.shard, bench.cursor())
    assert bench.attach(3, credit=5) == ["0", "3", "4", "5", "6"]
