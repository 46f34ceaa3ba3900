"""A million dead messages sent back by selector, and what other traffic notices meanwhile."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import psycopg

from broker_core import control
from tests.bench.hypervisor import Stolen
from tests.bench.run import Bench, Row
from tests.bench.unharmed import TRAFFIC, beside_a_loop, unharmed

MESSAGES = 1_000_000
RATE_MUST = 30_000
QUEUE, DEAD = "queue/bench.operations", "queue/mq.sys.dmq"
SELECTOR = "colour = 'blue' AND JMS_SUN_DMQ_UNDELIVERED_REASON = 'EXPIRED'"
PATIENCE_SECONDS = 900
POLL_SECONDS = 0.1
MARGIN_SECONDS = 5


@dataclass(slots=True)
class Operated:
    done: int
    seconds: float
    pause: float
    """The longest time in which nobody saw progress, in s."""

    @property
    def rate(self) -> float:
        return self.done / self.seconds


def operations(bench: Bench) -> list[Row]:
    """No peer: RabbitMQ moves messages with a shovel, and has no selectors."""
    count = bench.count(MESSAGES)
    bench.load(bench.ours, dest=f"/{QUEUE}", n=count, consumers=0, window=500, header="colour:blue")
    died = _operate(bench, QUEUE, {"verb": "expire"})
    _checkpoint(bench)
    alone = bench.timed(bench.ours, **TRAFFIC)
    with Stolen() as stolen, ThreadPoolExecutor(1) as operating:
        beginning = threading.Timer(MARGIN_SECONDS / 2, lambda: None)
        beginning.start()
        retried = operating.submit(_after, beginning, bench, DEAD, {"verb": "retry", "filter": {"selector": SELECTOR}})
        seconds = int(count / RATE_MUST) + MARGIN_SECONDS
        beside = bench.timed(bench.ours, **TRAFFIC, seconds=seconds)
        back = retried.result()
    if (died.done, back.done) != (count, count):
        raise RuntimeError(f"of {count} messages {died.done} died and {back.done} came back")
    notes = [f"beside {beside['delivered_rate']:,.0f} msg/s of another queue", f"progress every {back.pause:.1f} s at least"]
    title = f"retry {count:,} dead messages by selector"
    kept = back.rate >= RATE_MUST and back.pause < 1
    rows = [
        Row(f"have {count:,} messages expire", "msg/s", [died.rate], "-", None),
        Row(title, "msg/s", [back.rate], f">= {RATE_MUST:,}; progress every second", kept, notes=notes),
        unharmed("p99 of 1 KiB traffic at 5,000/s meanwhile", [alone], [beside], [str(stolen)]),
        beside_a_loop(bench, [alone]),
    ]
    bench.load(bench.ours, dest=f"/{QUEUE}", n=count, producers=0, prefetch=1000, ackevery=200, exact=0)
    return rows


def _checkpoint(bench: Bench) -> None:
    """As every five minutes: what follows finds log files that can be used again. In an installation's first gigabytes PostgreSQL makes and zeroes one
    after the other, which holds up every commit for 20 to 50 ms."""
    with psycopg.connect(bench.ours.dsn(superuser=True), autocommit=True) as connection:
        connection.execute("CHECKPOINT")


def _after(timer: threading.Timer, bench: Bench, address: str, arguments: dict[str, object]) -> Operated:
    timer.join()
    return _operate(bench, address, arguments)


def _operate(bench: Bench, address: str, arguments: dict[str, object]) -> Operated:
    """Begin it as operators do, and look until it has ended. Raises RuntimeError."""
    with bench.ours.database() as connection, connection.cursor() as cursor:
        number = control.request(cursor, "operate", address, arguments, requested_by="bench")
        seen, seen_at, pauses = -1, time.monotonic(), [0.0]
        deadline = seen_at + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
            cursor.execute("SELECT state, looked_at, done, started_at, ended_at, error FROM surety.operation WHERE operation = %s", [number])
            row = cursor.fetchone()
            if row is None:
                continue
            state, looked_at, done, started_at, ended_at, error = row
            if looked_at != seen or ended_at is not None:
                pauses.append(time.monotonic() - seen_at)
                seen, seen_at = looked_at, time.monotonic()
            if ended_at is not None:
                if state != "done":
                    raise RuntimeError(f"the operation {state}: {error}")
                return Operated(done, max(ended_at - started_at, 1) / 1000, max(pauses))
    raise RuntimeError(f"operation {number} on {address} did not end")
