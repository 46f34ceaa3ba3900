"""Two million messages on one queue: filling, memory meanwhile, ready again after a kill, draining."""

from __future__ import annotations

import contextlib
import statistics
import time

from tests.bench.peer import QUORUM
from tests.bench.run import MIB, Bench, Row
from tests.support.clients import ConnectionLost, reconnect

MESSAGES = 2_000_000
MESSAGES_PEER = 300_000
"""The peer keeps every message in memory: 1.9 GB at 0.3 million."""
RESIDENT_MIB_MAX = 400
FILL_RATIO = 2.5
READY_SECONDS_MAX = 5.0
DRAIN_MUST = 45_000
QUEUE, PROBE = "/queue/bench.deep", "/queue/bench.deep.probe"
AGAIN_SECONDS_MAX = 120


def deep(bench: Bench) -> list[Row]:
    """The peer fills and drains a smaller queue. One run each: a fill of two million is its own average."""
    count, count_peer = bench.count(MESSAGES), bench.count(MESSAGES_PEER)
    fill_peer: list[float] = []
    drain_peer: list[float] = []
    notes_peer: list[str] = []
    if bench.peer is not None:
        # The queue must be there before two producers come: RabbitMQ fails when both declare a new quorum queue at once.
        bench.load(bench.peer, dest=QUEUE, n=10, producers=1, consumers=1, ackevery=1, header=QUORUM)
        fill_peer = [bench.load(bench.peer, dest=QUEUE, n=count_peer, consumers=0, window=500, header=QUORUM)["sent_rate"]]
        notes_peer = [f"peer filled {count_peer:,}: {bench.peer.resident_octets() / MIB:,.0f} MiB"]
        drain_peer = [bench.load(bench.peer, dest=QUEUE, n=count_peer, producers=0, prefetch=1000, ackevery=200, header=QUORUM)["delivered_rate"]]
    report, durability = bench.measured(lambda: bench.load(bench.ours, dest=QUEUE, n=count, consumers=0, window=500))
    peak = bench.ours.resident_octets("node", peak=True) / MIB
    fill = Row(
        f"fill {count:,} on one queue; resident memory of the node", "msg/s", [report["sent_rate"]], f"{FILL_RATIO:g} x; < {RESIDENT_MIB_MAX} MB",
        None, peer=fill_peer, notes=[f"node {peak:.0f} MiB at most", str(durability), *notes_peer],
    )  # fmt: skip
    if peak >= RESIDENT_MIB_MAX or durability.flushes < durability.commits:
        fill.kept = False
    elif fill.ratio is not None:
        fill.kept = fill.ratio >= FILL_RATIO
    took = [_seconds_to_ready(bench) for _ in range(bench.runs)]
    ready = Row(
        f"node ready again with {count:,} stored", "s", took, f"< {READY_SECONDS_MAX:g} s", statistics.median(took) < READY_SECONDS_MAX,
        "2 s", notes=["from SIGKILL of the node to a confirmed send, the queue's first message and a green health page"], decimals=2,
    )  # fmt: skip
    drained = bench.load(bench.ours, dest=QUEUE, n=count, producers=0, prefetch=1000, ackevery=200)["delivered_rate"]
    drain = Row(f"drain {count:,}", "msg/s", [drained], f"{DRAIN_MUST:,}/s", drained >= DRAIN_MUST, "60,000", drain_peer)
    drain.notes.append(f"node {bench.ours.resident_octets('node', peak=True) / MIB:.0f} MiB at most since the last kill")
    return [fill, ready, drain]


def _seconds_to_ready(bench: Bench) -> float:
    """Kill the node; until a new connection gets a message confirmed and the deep queue's head, and health is green."""
    began = time.monotonic()
    bench.ours.kill("node")
    while True:
        with contextlib.suppress(ConnectionLost), reconnect(bench.ours.stomp_port, AGAIN_SECONDS_MAX) as connection:
            connection.confirmed("SEND", {"destination": PROBE, "persistent": "true"}, b"probe")
            connection.subscribe(QUEUE, prefetch=1)
            connection.expect("MESSAGE", AGAIN_SECONDS_MAX)
            bench.ours.await_ready()
            took = time.monotonic() - began
            connection.disconnect()
            return took
