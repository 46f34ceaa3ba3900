"""Traffic of a steady rate, alone and beside something else: what it notices."""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.bench.hypervisor import Stolen
from tests.bench.run import MESSAGES_ENDLESS, Bench, Row
from tests.support.service import REPOSITORY, Service

TRAFFIC: Mapping[str, Any] = {"rate": 5_000, "ack": "client-individual"}
"""1 KiB messages a second, through one queue."""
FACTOR_MUST = 2
HISTORY = 400_000
"""Messages whose lives the first audit has to examine, beside those of the traffic."""


def unharmed(title: str, alone: Sequence[Mapping[str, Any]], beside: Sequence[Mapping[str, Any]], notes: Sequence[str] = ()) -> Row:
    """The row that says so, of the reports of the traffic's runs."""
    before, meanwhile = ([report["end_to_end_ms"]["p99"] for report in reports] for reports in (alone, beside))
    confirmed = [statistics.median([report["confirm_ms"]["p99"] for report in reports]) for reports in (beside, alone)]
    kept = statistics.median(meanwhile) < FACTOR_MUST * statistics.median(before)
    told = [f"alone {statistics.median(before):.1f} ms", "confirm p99 {:.1f} ms, alone {:.1f} ms".format(*confirmed), *notes]
    return Row(title, "ms", meanwhile, f"< {FACTOR_MUST} x that without", kept, notes=told, decimals=1)


def beside_a_loop(bench: Bench, alone: Sequence[Mapping[str, Any]]) -> Row:
    """What the traffic notices of any work at all, for comparison: a process that counts and does nothing else, of the lowest priority that there is, on the
    last processor. Where two processors are threads of one core, either is slower while the other is busy."""
    with _looping(), Stolen() as stolen:
        report = bench.timed(bench.ours, **TRAFFIC)
    title = "p99 of 1 KiB traffic at 5,000/s beside a loop that does nothing, lowest priority, one processor"
    row = unharmed(title, alone, [report], [str(stolen)])
    row.must, row.kept = "-", None
    return row


@contextlib.contextmanager
def _looping() -> Iterator[None]:
    code = f"import os; os.sched_setaffinity(0, [{max(os.sched_getaffinity(0))}]); os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))\nwhile True: pass"
    process = subprocess.Popen([sys.executable, "-c", code])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def beside_an_audit(bench: Bench, memory_mib: int) -> list[Row]:
    """The traffic while the data pipeline brings the broker's ledger into its lake and audits it, on one processor, niced: once for each run, each of what is
    new since the one before."""
    bench.load(bench.ours, n=bench.count(HISTORY), ack="client-individual")
    alone, beside, took, taken = [], [], [], []
    for _ in range(bench.runs):
        alone.append(bench.timed(bench.ours, **TRAFFIC))
        with Stolen() as stolen, bench.beside(bench.ours, n=MESSAGES_ENDLESS, **TRAFFIC) as report:
            took.append(_audit(bench.ours, memory_mib))
        beside.append(report)
        taken.append(str(stolen))
    with bench.ours.database() as connection:
        row = connection.execute("SELECT sum(proven), sum(unproven), sum(violations) FROM surety.pipeline_audit").fetchone()
    if row is None or row[1:] != (0, 0):
        raise RuntimeError(f"the audits found what is not there: {row}")
    carried = statistics.median([report["delivered_rate"] for report in beside])
    notes = [f"audits of {', '.join(f'{seconds:.0f}' for seconds in took)} s, {row[0]:,} fates proven", f"beside {carried:,.0f} msg/s", *taken]
    return [unharmed("p99 of 1 KiB traffic at 5,000/s beside an audit, local[1]", alone, beside, notes), beside_a_loop(bench, alone)]


def _audit(service: Service, memory_mib: int) -> float:
    """Seconds. Raises RuntimeError."""
    began = time.monotonic()
    given = service.environment() | {"SURETY_SPARK_MASTER": "local[1]", "SURETY_SPARK_MEMORY_MIB": str(memory_mib)}
    done = subprocess.run([sys.executable, "manage.py", "pipeline", "audit"], cwd=REPOSITORY, env=given, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the audit ended with {done.returncode}: {done.stdout[-1000:]}{done.stderr[-2000:]}")
    return time.monotonic() - began
