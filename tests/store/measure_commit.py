"""Measures the store by itself: commits and rows per second by batch size, page reads, recovery. Not a test.

python -m tests.store.measure_commit [--seconds 2] [--loop asyncio]
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import time

import psycopg
import uvloop

from broker_core.engine.definitions import DestinationDefined, SegmentClosed, SubscriptionDefined
from broker_core.engine.message import Header, Message
from broker_core.engine.outcome import Outcome
from broker_core.engine.reads import PageWanted
from broker_core.engine.writes import Checkpoint, Commit
from broker_core.store.lease import Lease
from broker_core.store.migrate import migrate
from broker_core.store.postgres import PostgresStore
from broker_core.store.rows import RowPacker
from tests.support.postgres import Server

BODY = bytes(1024)
HEADER = Header(b"destination:/queue/a\npersistent:true\ncontent-type:text/plain\n", 4, 4)
SEGMENT_ROWS = 200_000
BATCHES = (1, 2, 3, 4, 10, 100, 500)


class Traffic:
    """Commits as the engine makes them: n messages in, offered, and the ones before settled."""

    def __init__(self, store: PostgresStore) -> None:
        self.store = store
        self.number = self.position = self.first = 0
        self.segment = 1
        self.closed: list[SegmentClosed] = []

    def commit(self, rows: int, *, synchronous: bool) -> Commit:
        first, last = self.position + 1, self.position + rows
        self.position, self.number = last, self.number + 1
        messages = [_message(position) for position in range(first, last + 1)]
        commit = Commit(
            self.number, 1_700_000_000_000, last, synchronous, self.segment, messages, accepted=[(1, 4, first, last)],
            offered=[(1, 4, first, last, 1)], settled=[(1, 4, first - rows, first - 1, Outcome.ACCEPTED)] if first > rows else [],
        )  # fmt: skip
        if last - self.first >= SEGMENT_ROWS:
            self.closed.append(SegmentClosed(self.segment, last, {(1, 4): (self.first + 1, last)}))
            commit.definitions.append(self.closed[-1])
            self.segment, self.first = self.segment + 1, last
        return commit

    async def run(self, rows: int, seconds: float, *, synchronous: bool = True) -> None:
        latencies = []
        began = time.perf_counter()
        while time.perf_counter() - began < seconds:
            commit = self.commit(rows, synchronous=synchronous)
            sent = time.perf_counter()
            await self.store.commit(commit)
            latencies.append(time.perf_counter() - sent)
        took = time.perf_counter() - began
        latencies.sort()
        median, high = latencies[len(latencies) // 2] * 1e3, latencies[int(len(latencies) * 0.99)] * 1e3
        kind = "synchronous" if synchronous else "asynchronous"
        print(
            f"{rows:4} rows, {kind}: {len(latencies) / took:7.0f} commits/s {len(latencies) * rows / took:8.0f} rows/s, p50 {median:.3f} ms, p99 {high:.3f} ms"
        )

    async def read(self, rows: int) -> None:
        began, after, count = time.perf_counter(), 0, 0
        while after < self.position:
            segments = [closed.segment for closed in self.closed if closed.last_sequence > after][:2] or [self.segment]
            found, _ = await self.store.read(PageWanted(1, 1, 4, after, self.position, rows, 16 << 20, segments))
            if not found:
                segments = [self.segment]
                found, _ = await self.store.read(PageWanted(1, 1, 4, after, self.position, rows, 16 << 20, segments))
            after, count = found[-1].position, count + len(found)
        took = time.perf_counter() - began
        print(f"pages of {rows}: {count / took:.0f} rows/s, {took / count * 1e6:.2f} us a row")


def _message(position: int) -> Message:
    message = Message(HEADER, BODY, len(BODY) + len(HEADER.octets))
    message.destination, message.sequence, message.position, message.accepted_at = 1, position, position, 1_700_000_000_000
    return message


async def measure(dsn: str, seconds: float) -> None:
    rows = [_message(position) for position in range(1000)]
    packer = RowPacker()
    began = time.perf_counter()
    for _ in range(20):
        for _piece in packer.pieces(rows):
            pass
    print(f"packing: {(time.perf_counter() - began) / 20_000 * 1e6:.2f} us a row")
    lease = await Lease.acquire(dsn, "measure")
    store = await PostgresStore.open(lease)
    await store.recover()
    traffic = Traffic(store)
    traffic.number = 1
    await store.commit(Commit(1, 0, 0, True, 1, definitions=[DestinationDefined(1, "queue/a", 0, True, 0, {}), SubscriptionDefined(1, 1)]))
    for synchronous in (True, False):
        for batch in BATCHES:
            await traffic.run(batch, seconds, synchronous=synchronous)
    await store.checkpoint(Checkpoint(traffic.number - 500, 1, traffic.position - 500, lanes=[(1, 4, traffic.position - 500)]))
    for limit in (1000, 100):
        await traffic.read(limit)
    await store.close()
    await lease.release()
    began = time.perf_counter()
    lease = await Lease.acquire(dsn, "measure")
    store = await PostgresStore.open(lease)
    opened = time.perf_counter()
    found = await store.recover()
    took = (time.perf_counter() - opened) * 1e3
    print(f"lease {(opened - began) * 1e3:.0f} ms, recovery with {traffic.position} rows stored, {len(found.ledger)} ledger rows: {took:.0f} ms")
    await store.close()
    await lease.release()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=2.0)
    arguments.add_argument("--loop", choices=("uvloop", "asyncio"), default="uvloop")
    chosen = arguments.parse_args()
    server = Server()
    server.start()
    try:
        dsn = server.dsn(server.create_database())
        migrate(dsn)
        with psycopg.connect(dsn) as connection:
            version = connection.execute("SHOW server_version").fetchone()
        load = subprocess.run(["uptime"], capture_output=True, text=True, check=True).stdout.strip()
        print(f"PostgreSQL {version}, {chosen.loop}; {load}")
        runner = uvloop.run if chosen.loop == "uvloop" else asyncio.run
        runner(measure(dsn, chosen.seconds))
    finally:
        server.stop()


if __name__ == "__main__":
    main()
