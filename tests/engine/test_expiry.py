"""Messages end with their time to live, wherever they are; what is delivered is left alone."""

from __future__ import annotations

import json

import pytest

from broker_core.engine import commands as c
from broker_core.engine.effects import Outcome
from tests.engine.rig import DEAD, EXPRESS, START, Bench


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
