"""Two million messages of mixed priorities on one queue: they leave highest first, and about as fast as those of one priority."""

from __future__ import annotations

import statistics

from tests.bench.run import Bench, Row

MESSAGES = 2_000_000
PRIORITIES = 10
PART = 0.8


def priorities(bench: Bench) -> list[Row]:
    """The load itself refuses a run in which a lower priority comes before a higher one."""
    count = bench.count(MESSAGES)
    one = [_drain(bench, "one", count, 0) for _ in range(bench.runs)]
    mixed = [_drain(bench, "mixed", count, PRIORITIES) for _ in range(bench.runs)]
    part = statistics.median(mixed) / statistics.median(one)
    notes = [f"of one priority {statistics.median(one):,.0f} msg/s: {part:.0%}", "no message came after one of a lower priority"]
    return [Row(f"drain {count:,} of mixed priorities, highest first", "msg/s", mixed, f">= {PART:.0%} of one priority", part >= PART, notes=notes)]


def _drain(bench: Bench, name: str, count: int, number: int) -> float:
    queue = {"dest": f"/queue/bench.priorities.{name}", "n": count, "priorities": number}
    bench.load(bench.ours, **queue, consumers=0, window=500)
    return bench.load(bench.ours, **queue, producers=0, prefetch=1000, ackevery=200)["delivered_rate"]
