"""Running a load against ours and the peer in turn, and what comes of it."""

from __future__ import annotations

import contextlib
import itertools
import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.bench.machine import Durability, durability_now
from tests.bench.peer import RabbitMQ
from tests.support.service import REPOSITORY, Service

MIB = 1 << 20
MESSAGES_ENDLESS = 60_000_000
"""More than any broker here passes in the time; the load's table of arrivals takes one octet each."""
_numbers = itertools.count()


@dataclass(slots=True)
class Row:
    """One line of the table."""

    title: str
    unit: str
    ours: list[float]
    must: str
    kept: bool | None
    """The figure is what it must be; None: unknown, because the peer did not run."""
    aim: str = ""
    peer: list[float] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    decimals: int = 0

    @property
    def ratio(self) -> float | None:
        return statistics.median(self.ours) / statistics.median(self.peer) if self.peer else None


@dataclass(slots=True)
class Bench:
    ours: Service
    peer: RabbitMQ | None
    runs: int
    seconds: int
    """Of each run that is bounded by time."""
    scale: float
    """1: the counts and minutes of the table; less for a try."""

    def load(self, broker: Service | RabbitMQ, **options: object) -> dict[str, Any]:
        """One run of tests.bench.load on a new queue or topic, unless `dest` names one. Raises RuntimeError with what it said if it fails."""
        with self.beside(broker, stopped=False, **options) as report:
            pass
        return report

    @contextlib.contextmanager
    def beside(self, broker: Service | RabbitMQ, *, stopped: bool = True, **options: object) -> Iterator[dict[str, Any]]:
        """The same while something else is done; what is given has its figures afterwards. `stopped`: it ends with that, and not by itself."""
        kind = "topic" if options.get("durable") or options.get("selectors") else "queue"
        chosen = {"port": broker.stomp_port, "dest": f"/{kind}/bench.{next(_numbers)}", "json": 1} | options
        arguments = [f"--{name}={value}" for name, value in chosen.items()]
        command = [sys.executable, "-m", "tests.bench.load", *arguments]
        report: dict[str, Any] = {}
        with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                yield report
            finally:
                if stopped:
                    process.terminate()
                said, complained = process.communicate()
        if process.returncode != 0:
            raise RuntimeError(f"load {' '.join(arguments)}\n{said[-2000:]}{complained[-4000:]}\n{broker.evidence()[-6000:]}")
        report |= json.loads(said.splitlines()[-1])

    def timed(self, broker: Service | RabbitMQ, **options: object) -> dict[str, Any]:
        return self.load(broker, **({"n": MESSAGES_ENDLESS, "seconds": self.seconds} | options))

    def alternate(self, measure: Callable[[Service | RabbitMQ], float]) -> tuple[list[float], list[float]]:
        """Ours and the peer in turn, so that what else the machine does hits both."""
        ours: list[float] = []
        peer: list[float] = []
        for _ in range(self.runs):
            ours.append(measure(self.ours))
            if self.peer is not None:
                peer.append(measure(self.peer))
        return ours, peer

    def measured(self, run: Callable[[], dict[str, Any]]) -> tuple[dict[str, Any], Durability]:
        """A run of ours and what it cost the database."""
        flushes, commits = durability_now(self.ours)
        report = run()
        flushes_after, commits_after = durability_now(self.ours)
        return report, Durability(flushes_after - flushes, commits_after - commits, report["messages"])

    def count(self, messages: int) -> int:
        return max(1_000, int(messages * self.scale))
