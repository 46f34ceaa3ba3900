"""Topics: durable subscribers against the peer's, thousands of subscriptions that nobody uses, a thousand selectors."""

from __future__ import annotations

import statistics

from tests.bench.comparison import compare
from tests.bench.machine import processor_seconds
from tests.bench.run import Bench, Row

SUBSCRIBERS = 10
SUBSCRIPTIONS = 5_000
KEPT_UP = {"durable": 1, "consumers": SUBSCRIBERS, "prefetch": 1000, "ackevery": 100}
"""A prefetch that outlasts the turn of ten subscribers on two cores: with 200 they wait for each other's acknowledgements, not for the broker."""
SELECTORS = (1, 10, 100, 1_000)
LINEAR = 1.25
"""What a selector may cost among a thousand of what it costs among a hundred."""
INDEXED = 0.1
"""Microseconds that are as good as nothing: what is looked up is not asked one by one."""
MICROSECONDS = 1e6


def topic(bench: Bench) -> list[Row]:
    return compare(
        bench,
        "topic with 10 durable subscribers, assured, cumulative ACK every 100",
        dict(KEPT_UP),
        ratio=5,
        aim="200,000",
        assured=True,
        figure=lambda report: report["delivered_rate"],
        unit="deliveries/s",
    )


def inactive(bench: Bench) -> list[Row]:
    """The same ten subscribers, alone and among 4,990 who are away; no peer."""
    alone: list[float] = []
    among: list[float] = []
    away = bench.count(SUBSCRIPTIONS) - SUBSCRIBERS
    for _ in range(bench.runs):
        alone.append(bench.timed(bench.ours, **KEPT_UP)["sent_rate"])
        among.append(bench.timed(bench.ours, **KEPT_UP, inactive=away)["sent_rate"])
    part = statistics.median(among) / statistics.median(alone)
    notes = [f"{away + SUBSCRIBERS:,} subscriptions; with {SUBSCRIBERS} alone {statistics.median(alone):,.0f} msg/s: {part:.0%}"]
    return [Row("publish to a topic with 5,000 durable subscriptions, 10 of them active", "msg/s", among, ">= 50% of 10 alone", part >= 0.5, notes=notes)]


def selectors(bench: Bench) -> list[Row]:
    """What one more distinct selector costs a message that it leaves out, in the node's processor time; every message is for one of them."""
    rows = []
    for kind, selector in (("equality", "part = 'p{n}'"), ("range", "weight >= {n} AND weight <= {n}")):
        costs = {number: _message_cost(bench, number, selector) for number in SELECTORS}
        each = {number: (costs[number] - costs[1]) / (number - 1) for number in SELECTORS[1:]}
        notes = [f"a message costs {', '.join(f'{cost:,.1f} us among {number:,}' for number, cost in costs.items())}"]
        notes.append(f"a selector {', '.join(f'{cost:.2f} us among {number:,}' for number, cost in each.items())}; {selector.format(n=17)}")
        last = each[SELECTORS[-1]]
        title = f"a message and a selector, 1,000 distinct ones on one topic, {kind}"
        linear = last <= max(LINEAR * each[SELECTORS[-2]], INDEXED)
        rows.append(Row(title, "us", [last], "linear at most", linear, notes=notes, decimals=2))
    return rows


def _message_cost(bench: Bench, number: int, selector: str) -> float:
    """Microseconds of the node's processor time a message."""
    before = processor_seconds(bench.ours)
    report = bench.timed(bench.ours, durable=1, selectors=number, selector=selector, consumers=min(number, 2))
    return (processor_seconds(bench.ours) - before) / report["messages"] * MICROSECONDS
