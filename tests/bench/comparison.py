"""One load at ours and at the peer in turn, and what it must show: the rows that have a ratio."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

from tests.bench.peer import QUORUM, RabbitMQ
from tests.bench.run import MIB, Bench, Row
from tests.support.service import Service


def header_of(broker: Service | RabbitMQ) -> dict[str, str]:
    """What makes the peer's queue as safe as ours."""
    return {"header": QUORUM} if isinstance(broker, RabbitMQ) else {}


def compare(
    bench: Bench,
    title: str,
    options: dict[str, object],
    *,
    ratio: float,
    aim: str,
    assured: bool,
    figure: Callable[[dict[str, Any]], float],
    unit: str = "msg/s",
    lower_is_better: bool = False,
    of_peer: dict[str, object] | None = None,
) -> list[Row]:
    """`of_peer`: what the peer does instead."""
    notes: list[str] = []
    real = True

    def measure(broker: Service | RabbitMQ) -> float:
        nonlocal real
        # The peer may deliver a message twice (RabbitMQ 3.10 does now and then when each is acknowledged singly); ours may not.
        if isinstance(broker, RabbitMQ):
            asked = options if of_peer is None else of_peer
            return figure(bench.timed(broker, **asked | (header_of(broker) if assured else {}) | {"exact": 0}))
        chosen = options | (header_of(broker) if assured else {})
        report, durability = bench.measured(lambda: bench.timed(broker, **chosen))
        if assured:
            real = real and durability.flushes >= durability.commits > 0
            notes[:] = [str(durability)]
            if report["confirm_ms"]:
                notes.append(f"confirm p50 {report['confirm_ms']['p50']:.2f} ms, p99 {report['confirm_ms']['p99']:.2f} ms")
        return figure(report)

    ours, peer = bench.alternate(measure)
    notes.append(f"node {bench.ours.resident_octets('node', peak=True) / MIB:.0f} MiB at most")
    reached = None
    if peer:
        part = statistics.median(ours) / statistics.median(peer)
        reached = (1 / part if lower_is_better else part) >= ratio
    must = "not slower" if lower_is_better else f"{ratio:g} x"
    return [Row(title, unit, ours, must, reached if real else False, aim, peer, notes, decimals=2 if lower_is_better else 0)]
