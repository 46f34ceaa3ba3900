"""The rows of the table: what is loaded, what is measured, what it must show. A case returns one row or several that share their queue."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from tests.bench.amqp import amqp
from tests.bench.client import client
from tests.bench.comparison import compare
from tests.bench.console import console
from tests.bench.dawdlers import dawdlers
from tests.bench.deep import deep
from tests.bench.endurance import endurance
from tests.bench.large import Large
from tests.bench.operations import operations
from tests.bench.priorities import priorities
from tests.bench.run import Bench, Row
from tests.bench.selective import selective
from tests.bench.topics import inactive, selectors, topic

MANY_QUEUES = 10_000
MIXED_RATE = 5_000
MIXED_P99_MS = 100


def assured(bench: Bench) -> list[Row]:
    return compare(
        bench,
        "assured, confirmed, window 100, cumulative ACK every 20",
        {},
        ratio=2.5,
        aim="60,000",
        assured=True,
        figure=lambda report: report["delivered_rate"],
    )


def individual(bench: Bench) -> list[Row]:
    return compare(
        bench,
        "the same, each message acknowledged singly",
        {"ack": "client-individual"},
        ratio=2,
        aim="50,000",
        assured=True,
        figure=lambda report: report["delivered_rate"],
    )


def confirm(bench: Bench) -> list[Row]:
    return compare(
        bench,
        "confirm p50, window 1",
        {"window": 1, "producers": 1, "consumers": 1},
        ratio=1,
        aim="0.4",
        assured=True,
        figure=lambda report: report["confirm_ms"]["p50"],
        unit="ms",
        lower_is_better=True,
    )


def express(bench: Bench) -> list[Row]:
    return compare(
        bench,
        "express non-persistent, no receipts, end to end",
        {"persistent": 0, "receipt": 0, "ack": "auto"},
        ratio=1.5,
        aim="60,000",
        assured=False,
        figure=lambda report: report["delivered_rate"],
    )


def transactions(bench: Bench) -> list[Row]:
    """Message for message: each brings the broker three frames for a send's one in ten, and is confirmed as a whole. Beside the peer's transactions,
    and beside its messages confirmed one by one."""
    rows = []
    for title, of_peer in (("", None), ("; the peer confirms each message", {})):
        rows += compare(
            bench,
            f"transactions of 10 messages, confirmed, window 100{title}",
            {"transaction": 10},
            ratio=1.5,
            aim="",
            assured=True,
            figure=lambda report: report["sent_rate"],
            of_peer=of_peer,
        )
    return rows


def many(bench: Bench) -> list[Row]:
    """Many queues against one, everything else equal; no peer."""
    one, all_queues = [], []
    for _ in range(bench.runs):
        one.append(bench.timed(bench.ours, ack="client-individual")["delivered_rate"])
        all_queues.append(bench.timed(bench.ours, ack="client-individual", queues=bench.count(MANY_QUEUES))["delivered_rate"])
    part = statistics.median(all_queues) / statistics.median(one)
    notes = [f"{bench.count(MANY_QUEUES):,} queues; one queue {statistics.median(one):,.0f} msg/s: {part:.0%}"]
    return [Row("10,000 active queues, evenly loaded", "msg/s", all_queues, ">= 50% of one queue", part >= 0.5, notes=notes)]


def mixed(bench: Bench) -> list[Row]:
    p99s, notes = [], []
    for _ in range(bench.runs):
        large = Large(bench.ours.stomp_port)
        large.start()
        report = bench.timed(bench.ours, rate=MIXED_RATE, ack="client-individual")
        passed = large.stop()
        p99s.append(report["end_to_end_ms"]["p99"])
        notes = [
            f"{report['delivered_rate']:,.0f} msg/s beside {passed} messages of 100 MiB in {report['seconds']:.0f} s",
            f"confirm p99 {report['confirm_ms']['p99']:.1f} ms",
        ]
    kept = statistics.median(p99s) < MIXED_P99_MS
    return [Row("p99 of 1 KiB traffic at 5,000/s while 100 MiB messages pass", "ms", p99s, "< 100 ms", kept, notes=notes, decimals=1)]


CASES: dict[str, Callable[[Bench], list[Row]]] = {
    "assured": assured,
    "individual": individual,
    "confirm": confirm,
    "express": express,
    "transactions": transactions,
    "topic": topic,
    "inactive": inactive,
    "selectors": selectors,
    "dawdlers-queue": lambda bench: dawdlers(bench, "queue"),
    "dawdlers-topic": lambda bench: dawdlers(bench, "topic"),
    "priorities": priorities,
    "selective": selective,
    "client": client,
    "amqp": amqp,
    "operations": operations,
    "deep": deep,
    "many": many,
    "endurance": lambda bench: endurance(bench, "plain"),
    "endurance-snapshot": lambda bench: endurance(bench, "snapshot"),
    # The last three leave much behind, which would count against R5's bound in the others.
    "endurance-stray": lambda bench: endurance(bench, "stray"),
    "mixed": mixed,
    # And this one most of all: it is best run alone, in a home of its own.
    "console": console,
}
