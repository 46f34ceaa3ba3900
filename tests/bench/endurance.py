"""Ten minutes at full rate: plain, with one message in a hundred never consumed, with a snapshot held open; rates and storage."""

from __future__ import annotations

import contextlib

import psycopg

from tests.bench.machine import Storage
from tests.bench.run import MIB, Bench, Row
from tests.support.service import Service

MINUTES = 10
STRAY_EVERY = 100
SEGMENT_OCTETS = 128 * MIB
MESSAGE_OCTETS = 1_300
"""1 KiB of body, 100 octets of headers, the row's columns and its index entry."""
LAST_OF_FIRST = {"plain": 0.95, "stray": 0.90, "snapshot": 0.80}
TITLES = {"plain": "10 minutes at full rate", "stray": "the same with 1% never consumed", "snapshot": "the same with a snapshot held open"}


def endurance(bench: Bench, variant: str) -> list[Row]:
    seconds = max(10, int(MINUTES * 60 * bench.scale))
    every = seconds // MINUTES
    with contextlib.ExitStack() as stack:
        if variant == "snapshot":
            stack.enter_context(_snapshot(bench.ours))
        storage = stack.enter_context(Storage(bench.ours))
        report = bench.timed(bench.ours, seconds=seconds, every=every, stray=STRAY_EVERY if variant == "stray" else 0)
    rates = report["rates"][:MINUTES]
    part = rates[-1] / rates[0]
    live = report["messages"] // STRAY_EVERY * MESSAGE_OCTETS if variant == "stray" else 0
    bound = 2 * live + 4 * SEGMENT_OCTETS
    notes = [
        "by the minute: " + " ".join(f"{rate / 1000:.1f}k" for rate in rates),
        f"last of first {part:.0%}",
        f"messages take {storage.messages_max / MIB:,.0f} MiB at most, R5 allows {bound / MIB:,.0f}",
        f"ledger {storage.ledger_last / MIB:,.0f} MiB",
        f"node {storage.resident_max / MIB:.0f} MiB at most",
    ]
    kept = part >= LAST_OF_FIRST[variant] and storage.messages_max <= bound
    return [Row(TITLES[variant], "msg/s", [rates[-1]], f"last minute >= {LAST_OF_FIRST[variant]:.0%} of the first; R5", kept, notes=notes)]


@contextlib.contextmanager
def _snapshot(service: Service):
    """A session idle in a repeatable read transaction."""
    with psycopg.connect(service.dsn()) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("SELECT count(*) FROM surety.destination")
        yield
        connection.rollback()
