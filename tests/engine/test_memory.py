"""Levels of the memory for messages: each begins where the engine does something else."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core.engine import commands as c
from broker_core.engine.memory import SMALL, MemoryLevel, memory_level
from broker_core.engine.message import Header, Message, Reliability
from broker_core.engine.placing import has_room_for_volatile
from broker_core.engine.selector import compile_selector
from broker_core.engine.subscription import Filter
from tests.engine.rig import ASSURED, BEST_EFFORT, EXPRESS, QUEUE, Bench

GREEN, YELLOW, ORANGE, RED = MemoryLevel


def full(bench: Bench, level: MemoryLevel, *, body: int = 20) -> None:
    """Until it is that full."""
    for number in range(1000):
        if memory_level(bench.engine.shard) >= level:
            return
        bench.send(f"m{number}", level=ASSURED, address=f"queue/other{number % 9}", size=body)
    raise AssertionError(f"it never was {level.name}")


def of(bench: Bench) -> MemoryLevel:
    return memory_level(bench.engine.shard)


@pytest.mark.parametrize(("memory", "level"), [(0, GREEN), (749, GREEN), (750, YELLOW), (900, YELLOW), (901, ORANGE), (999, ORANGE), (1000, RED), (1100, RED)])
def test_the_levels_are_three_quarters_all_but_a_page_and_all(memory: int, level: MemoryLevel) -> None:
    bench = Bench(memory_octets=1000, page_octets=100)
    bench.engine.shard.memory = memory
    assert of(bench) is level


@pytest.mark.parametrize("level", [YELLOW, ORANGE])
def test_from_yellow_on_what_is_not_persistent_goes_to_disk_and_best_effort_is_dropped(level: MemoryLevel) -> None:
    bench = Bench(memory_octets=4000, page_octets=400)
    bench.send("before", level=EXPRESS)
    full(bench, level)
    bench.effects.clear()
    bench.send("spilled", level=EXPRESS)
    bench.send("dropped", level=BEST_EFFORT)
    assert sum(len(effects.commit.spilled) for effects in bench.effects if effects.commit) == 1
    assert bench.depth() == 2
    taken = bench.attach(1)
    bench.read()
    assert [*taken, *bench.bodies(bench.flush())] == ["before", "spilled"]


def test_below_it_nothing_is_written_that_need_not_be() -> None:
    bench = Bench(memory_octets=4000, page_octets=400)
    bench.send("express", "and again", level=EXPRESS)
    bench.send("best effort", level=BEST_EFFORT)
    assert of(bench) is GREEN
    assert not any(effects.commit.spilled for effects in bench.effects if effects.commit)
    assert bench.depth() == 3


def test_whatever_the_level_nobody_is_left_without_his_messages() -> None:
    bench = Bench(memory_octets=2000, page_octets=200)
    full(bench, ORANGE)
    names = [f"late{number}" for number in range(50)]
    bench.send(*names, level=ASSURED)
    taken = bench.attach(1, credit=1000)
    for _ in range(60):
        bench.read()
        taken += bench.bodies(bench.flush())
    assert taken == names and bench.depth(QUEUE) == 50


# -- consumers that wait --------------------------------------------------------------------------------------------------------------
TOPIC, PATTERN = "topic/news.a", "topic/news.*"
COLOUR = {"wanted": Filter(compile_selector("colour = 'red'"))}
WAITING: dict[str, tuple[str, str, dict[str, Any]]] = {
    "a consumer of a queue": (QUEUE, QUEUE, {}),
    "a selective consumer of a queue": (QUEUE, QUEUE, COLOUR),
    "an exclusive consumer": (QUEUE, QUEUE, {"exclusive": True}),
    "a volatile subscription": (TOPIC, TOPIC, {}),
    "a volatile subscription with a selector": (TOPIC, TOPIC, COLOUR),
    "a durable subscription": (TOPIC, TOPIC, {"name": "s", "durable": True, "shared": True, "of_any_client": True}),
    "a subscription of a pattern": (PATTERN, TOPIC, {}),
}


SIZE = 40


def full_of(bench: Bench, what: str) -> None:
    """Of messages that nobody consumes; of volatile ones only as much as they may have."""
    levels = {"volatile": (EXPRESS,), "stored": (ASSURED,), "both": (EXPRESS, ASSURED)}[what]
    shard = bench.engine.shard
    for level in levels:
        rows = [str(number) for number in range(shard.limits.memory_octets // SIZE)]
        bench.send(*rows, level=level, address=f"queue/{level.name.lower()}", size=SIZE)
    for number in range(3 if ASSURED in levels else 0):
        bench.send("again", "and again", address=f"queue/more{number}", size=1200)
    assert not has_room_for_volatile(shard, SIZE) and of(bench) is (RED if ASSURED in levels else of(bench))
    bench.effects.clear()


def spilled(bench: Bench) -> int:
    return sum(len(effects.commit.spilled) for effects in bench.effects if effects.commit)


@pytest.mark.parametrize("what", ["volatile", "stored", "both"])
@pytest.mark.parametrize("who", WAITING)
def test_who_waits_gets_what_comes_whatever_memory_is_full_of_and_nothing_is_written(who: str, what: str) -> None:
    bench = Bench(memory_octets=4000, page_octets=640, window_octets=4000)
    subscribed, sent_to, how = WAITING[who]
    bench.attach(address=subscribed, **how)
    full_of(bench, what)
    before = bench.engine.shard.memory
    for level in (BEST_EFFORT, EXPRESS, Reliability.RELIABLE_NONPERSISTENT):
        assert bench.bodies(bench.send("comes", level=level, address=sent_to, size=SIZE, properties={"colour": "red"})) == ["comes"]
    assert spilled(bench) == 0 and bench.engine.shard.memory == before


NOT_WAITING: dict[str, dict[str, Any]] = {"has no credit": {"credit": 0}, "wants something else": COLOUR, "stands by": {}, "is paused": {}}


@pytest.mark.parametrize("who", NOT_WAITING)
def test_what_nobody_waits_for_goes_to_disk_and_best_effort_is_dropped(who: str) -> None:
    bench = Bench(memory_octets=4000, page_octets=640)
    bench.send("behind", level=EXPRESS)
    if who == "stands by":
        bench.attach(2, credit=1, exclusive=True)
    bench.attach(**NOT_WAITING[who])
    if who == "is paused":
        bench.control("pause", QUEUE, direction="CONSUMERS")
    full_of(bench, "volatile")
    depth = bench.depth()
    bench.send("spilled", level=EXPRESS, size=SIZE, properties={"colour": "blue"})
    bench.send("dropped", level=BEST_EFFORT, size=SIZE, properties={"colour": "blue"})
    assert spilled(bench) == 1 and bench.depth() == depth + 1


def test_of_what_comes_at_once_no_more_than_a_small_page_is_kept_for_who_waits() -> None:
    """He may have no room for all of it, and then the rest would be in memory for long."""
    bench = Bench(memory_octets=40_000, page_octets=100 * SMALL)
    bench.attach(credit=2)
    full_of(bench, "volatile")
    before = bench.engine.shard.memory
    for number in range(20):
        bench.apply(c.Send(1, number, QUEUE, Message(Header(b"", reliability=EXPRESS), b"%d" % number, SIZE)))
    assert bench.engine.shard.memory - before == 2 * SIZE
    taken = bench.bodies(bench.flush())
    assert spilled(bench) == 18
    for tag in range(1, 21):
        taken += bench.bodies(bench.settle(tag))
    assert taken == [str(number) for number in range(20)]
