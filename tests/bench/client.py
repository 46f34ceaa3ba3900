"""One connection of the Python client: what it sends and receives a second."""

from __future__ import annotations

import subprocess
import sys

from tests.bench.run import Bench, Row
from tests.support.service import REPOSITORY

MESSAGES = 200_000
ROWS = (
    ("send", MESSAGES, "persistent, confirmed asynchronously", 20_000),
    ("receive", MESSAGES, "received, DUPS_OK", 20_000),
    ("one", MESSAGES // 20, "persistent, each waited for", 1_500),
    ("send-aio", MESSAGES, "persistent, confirmed asynchronously, asyncio", None),
)
"""What, how many, in words, and messages a second that it must reach."""


def client(bench: Bench) -> list[Row]:
    """No peer. What is sent is received before the next row: each finds an empty queue."""
    rates: dict[str, list[float]] = {what: [] for what, *_ in ROWS}
    for _ in range(bench.runs):
        for what, messages, *_ in ROWS:
            rates[what].append(_run(bench, what, bench.count(messages)))
            if what not in ("send", "receive"):
                _run(bench, "receive", bench.count(messages))
    return [_row(title, must, rates[what]) for what, _, title, must in ROWS]


def _row(title: str, must: int | None, rates: list[float]) -> Row:
    reached = None if must is None else sorted(rates)[len(rates) // 2] >= must
    return Row(f"one connection of the Python client: {title}", "msg/s", rates, "-" if must is None else f">= {must:,}", reached)


def _run(bench: Bench, what: str, messages: int) -> float:
    command = [sys.executable, "-m", "tests.bench.client_load", f"--what={what}", f"--port={bench.ours.stomp_port}", f"--messages={messages}"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr[-4000:]}\n{bench.ours.evidence()[-6000:]}")
    return float(done.stdout)
