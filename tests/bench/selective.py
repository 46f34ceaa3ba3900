"""A selective consumer whose first match lies under two million others: how long it takes, and what its neighbours notice."""

from __future__ import annotations

import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from tests.bench.run import Bench, Row
from tests.support.clients import Connection

MESSAGES = 2_000_000
SECONDS_MAX = 10.0
PART = 0.8
QUEUE = "/queue/bench.selective"
PATIENCE_SECONDS = 300
"""After it a search has failed, whatever the bar."""
WAYS = ("another queue", "the same queue")
TAKING_SECONDS = 8
"""Of the same queue the neighbours take the oldest messages, at most some 120,000 a second, so that they do not get as far as what is searched. What is
missing then is added: its depth stays."""


def selective(bench: Bench) -> list[Row]:
    """One row for the search by itself, and for each kind of neighbours two: theirs and its. No peer: RabbitMQ's queues have no selectors."""
    count = bench.count(MESSAGES)
    bench.load(bench.ours, dest=QUEUE, n=count, consumers=0, window=500, header="colour:blue")
    rows = [_seconds([_search(bench.ours.stomp_port) for _ in range(bench.runs)], count, "alone")]
    for where in WAYS:
        without: list[float] = []
        beside: list[float] = []
        took: list[float] = []
        for _ in range(bench.runs):
            without.append(_traffic(bench, where))
            with ThreadPoolExecutor(1) as searching:
                ended = threading.Event()
                searches = searching.submit(_search_on, bench.ours.stomp_port, ended)
                try:
                    beside.append(_traffic(bench, where))
                finally:
                    ended.set()
                took += searches.result()
        part = statistics.median(beside) / statistics.median(without)
        notes = [f"without it {statistics.median(without):,.0f} msg/s: {part:.0%}", "search follows search all the time"]
        title = f"assured traffic of {where} while a selector searches {count:,}"
        rows.append(Row(title, "msg/s", beside, f">= {PART:.0%} of that without it", part >= PART, notes=notes))
        rows.append(_seconds(took, count, f"beside traffic of {where}"))
    return rows


def _traffic(bench: Bench, where: str) -> float:
    if where == "another queue":
        return bench.timed(bench.ours)["delivered_rate"]
    report = bench.timed(bench.ours, dest=QUEUE, exact=0, seconds=TAKING_SECONDS)
    missing = report["delivered"] - report["messages"]
    if missing > 0:
        bench.load(bench.ours, dest=QUEUE, n=missing, consumers=0, window=500, header="colour:blue")
    return report["delivered_rate"]


def _seconds(took: list[float], count: int, how: str) -> Row:
    title = f"first match of a selective consumer under {count:,}, {how}"
    notes = [f"median of {len(took)} searches, {max(took):.1f} s at most"]
    return Row(title, "s", [statistics.median(took)], f"< {SECONDS_MAX:g} s", max(took) < SECONDS_MAX, notes=notes, decimals=1)


def _search(port: int) -> float:
    """A new match behind all that is there; seconds from SUBSCRIBE to MESSAGE. Acknowledged, so that the next search is as long."""
    connection = Connection(port)
    connection.confirmed("SEND", {"destination": QUEUE, "persistent": "true", "colour": "red"}, b"match")
    began = time.monotonic()
    connection.command("SUBSCRIBE", {"id": "0", "destination": QUEUE, "ack": "client", "selector": "colour = 'red'"})
    found = connection.expect("MESSAGE", PATIENCE_SECONDS)
    took = time.monotonic() - began
    assert found.body == b"match", found.headers
    connection.confirmed("ACK", {"id": found.headers["ack"]})
    connection.disconnect()
    return took


def _search_on(port: int, ended: threading.Event) -> list[float]:
    """One search after the other."""
    took = []
    while not ended.is_set():
        took.append(_search(port))
    return took
