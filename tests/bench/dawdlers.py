"""One consumer that does not keep up: the others' rate beside it, against theirs without it."""

from __future__ import annotations

import statistics

from tests.bench.run import Bench, Row
from tests.bench.topics import KEPT_UP, SUBSCRIBERS

PART = 0.9
CONSUMERS = 4
KINDS = {"deaf": "never reads", "slow": "acknowledges once a second"}


def dawdlers(bench: Bench, kind: str) -> list[Row]:
    """One row for each way not to keep up. No peer."""
    if kind == "topic":
        title, options, number = f"topic with {SUBSCRIBERS} durable subscribers, one of whom", KEPT_UP, SUBSCRIBERS
    else:
        title, options, number = f"queue with {CONSUMERS} consumers, one of whom", {}, CONSUMERS
    rates: dict[str, list[float]] = {"": [], **{way: [] for way in KINDS}}
    for _ in range(bench.runs):
        rates[""].append(bench.timed(bench.ours, **options | {"consumers": number - 1})["delivered_rate"])
        for way in KINDS:
            rates[way].append(bench.timed(bench.ours, **options | {"consumers": number, way: 1})["delivered_rate"])
    without = statistics.median(rates[""])
    rows = []
    for way, sentence in KINDS.items():
        part = statistics.median(rates[way]) / without
        notes = [f"the others; without it {without:,.0f}/s: {part:.0%}"]
        rows.append(Row(f"{title} {sentence}", "deliveries/s", rates[way], f">= {PART:.0%} of those without it", part >= PART, notes=notes))
    return rows
