"""Levels of the memory for messages: each begins where the engine does something else."""

from __future__ import annotations

import pytest

from broker_core.engine.memory import MemoryLevel, memory_level
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
