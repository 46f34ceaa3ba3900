"""AMQP 1.0 by clients that nobody here wrote: one python-qpid-proton sender, one receiver, several Qpid JMS producers and consumers together."""

from __future__ import annotations

import itertools
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.bench.machine import processor_seconds
from tests.bench.peer import RabbitMQ
from tests.bench.run import Bench, Row
from tests.support import jms
from tests.support.service import REPOSITORY, Service

PROTON_RATIO, PROTON_AIM = 1.1, "15,000"
JMS_MUST = 20_000
JMS_WAYS = (("receive", "", JMS_MUST), ("listen", ", message listeners", None))
"""A listener costs the client's library one more exchange between its threads a message."""
JMS_PRODUCERS = JMS_CONSUMERS = 4
JMS_WARM_UP_SECONDS = 20
"""Java translates what is used often while it runs, on the same processors: until then a message costs it three times as much."""
LOAD_SECONDS_MAX = 600
_numbers = itertools.count()


def amqp(bench: Bench) -> list[Row]:
    if find_spec("proton") is None:
        raise RuntimeError("python-qpid-proton is not installed: pip install -r tests/compiled.txt")
    if problem := jms.missing():
        raise RuntimeError(problem)
    return _proton(bench) + _jms(bench)


@dataclass(slots=True)
class Side:
    """What one broker did in all its runs."""

    rates: list[float] = field(default_factory=list)
    client: list[float] = field(default_factory=list)
    """Processors' share that the client's process took."""
    node: list[float] = field(default_factory=list)
    """Processor time of our node, in microseconds a message."""

    real: bool = True
    """The log was flushed at least once for each of our group commits."""

    def take(self, report: dict[str, Any]) -> None:
        self.rates.append(report["messages"] / report["seconds"])
        self.client.append(report["processor_seconds"] / report["seconds"])


def _run(bench: Bench, broker: Service | RabbitMQ, command: list[str], side: Side) -> int:
    """One run of a load, a process of its own. How many messages it passed; raises RuntimeError with what it said if it fails."""

    def load() -> dict[str, Any]:
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=LOAD_SECONDS_MAX)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-4000:]}\n{broker.evidence()[-6000:]}")
        report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        side.take(report)
        return report

    if isinstance(broker, RabbitMQ):
        return int(load()["all"])
    before = processor_seconds(broker)
    report, durability = bench.measured(load)
    side.node.append((processor_seconds(broker) - before) / report["all"] * 1e6)
    side.real = side.real and durability.flushes >= durability.commits > 0
    return int(report["all"])


def _alternate(bench: Bench, measure: Callable[[Service | RabbitMQ], None]) -> None:
    for _ in range(bench.runs):
        measure(bench.ours)
        if bench.peer is not None:
            measure(bench.peer)


def _row(title: str, ours: Side, peer: Side, must: str, kept: bool | None, aim: str) -> Row:
    notes = [f"node {statistics.median(ours.node):.1f} us of a processor a message", f"client {_share(ours)} of one"]
    if peer.rates:
        notes[-1] += f", the peer's {_share(peer)}"
    return Row(title, "msg/s", ours.rates, must, kept if ours.real else False, aim, peer.rates, notes)


def _share(side: Side) -> str:
    return f"{statistics.median(side.client):.0%}"


# -- python-qpid-proton -------------------------------------------------------------------------------------------------------------------
def _proton(bench: Bench) -> list[Row]:
    """What one sent the other receives: each finds nothing else on its queue."""
    sides = {(what, kind): Side() for what in ("send", "receive") for kind in (Service, RabbitMQ)}

    def measure(broker: Service | RabbitMQ) -> None:
        # Without more being said the peer makes a durable classic queue; a quorum queue was no faster.
        queue = f"bench.amqp.{next(_numbers)}"
        load = [sys.executable, "-m", "tests.bench.proton_load", f"--port={broker.amqp_port}", f"--queue={queue}"]
        sent = _run(bench, broker, [*load, "--what=send", f"--seconds={bench.seconds}"], sides["send", type(broker)])
        _run(bench, broker, [*load, "--what=receive", f"--messages={sent}"], sides["receive", type(broker)])

    _alternate(bench, measure)
    return [
        _proton_row("one proton sender, persistent, unsettled", sides["send", Service], sides["send", RabbitMQ]),
        _proton_row("one proton receiver, each accepted", sides["receive", Service], sides["receive", RabbitMQ]),
    ]


def _proton_row(title: str, ours: Side, peer: Side) -> Row:
    kept = None
    if peer.rates:
        kept = statistics.median(ours.rates) / statistics.median(peer.rates) >= PROTON_RATIO
    return _row(f"AMQP: {title}", ours, peer, f"{PROTON_RATIO:g} x", kept, PROTON_AIM)


# -- Qpid JMS -----------------------------------------------------------------------------------------------------------------------------
def _jms(bench: Bench) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="surety-bench-") as classes:
        class_path = jms.compiled(Path(__file__).with_name("jms") / "Load.java", Path(classes))
        return [_jms_row(bench, class_path, way, told, must) for way, told, must in JMS_WAYS]


def _jms_row(bench: Bench, class_path: str, way: str, told: str, must: int | None) -> Row:
    ours, peer = Side(), Side()

    def measure(broker: Service | RabbitMQ) -> None:
        command = ["java", "-Xmx1g", "-cp", class_path, "Load", f"amqp://127.0.0.1:{broker.amqp_port}", f"bench.jms.{next(_numbers)}", way]
        numbers = (JMS_PRODUCERS, JMS_CONSUMERS, JMS_WARM_UP_SECONDS, bench.seconds)
        _run(bench, broker, [*command, *map(str, numbers)], ours if isinstance(broker, Service) else peer)

    _alternate(bench, measure)
    title = f"AMQP: {JMS_PRODUCERS} Qpid JMS producers, {JMS_CONSUMERS} consumers, persistent, sent asynchronously, AUTO_ACKNOWLEDGE, end to end{told}"
    if must is None:
        return _row(title, ours, peer, "-", None, "")
    return _row(title, ours, peer, f">= {must:,}", statistics.median(ours.rates) >= must, "")
