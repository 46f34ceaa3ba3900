"""`python -m tests.bench pipeline`: how long the data pipeline takes for a ledger of millions of events.

    python -m tests.bench pipeline                              2,000,000 and 20,000,000 events, on one processor and on two
    python -m tests.bench pipeline --events 2000000 --masters local[2]
    python -m tests.bench pipeline --write                      and put the figures into docs/benchmarks.md
    python -m tests.bench pipeline --beside                     instead: what a broker's traffic notices of an audit

A broker under load (queues shared by consumers, single and cumulative acknowledgements, transactions, a topic with durable subscribers) writes a ledger. It is
multiplied: copy after copy of the same commits, with destinations, subscriptions and instants of its own, so that each copy is as true as the first and has
its statistics. Then `manage.py pipeline audit` is measured as a process, which brings the ledger into the lake, examines it and rolls it up: wall time, and
processor seconds of Spark, its workers and PostgreSQL. Every message must be proven, and there must be no violation.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from broker_core.store.ledger import RANGES, ROWS_MAX, SCALARS, create_table
from broker_core.store.migrate import migrate
from tests.bench import report
from tests.bench.run import Bench, Row
from tests.bench.unharmed import beside_an_audit
from tests.support.postgres import Server
from tests.support.service import Service

EVENTS_ASKED, SECONDS_MUST = 20_000_000, 600
GAIN_MUST, EACH_MUST = 1.6, 1.1
REPOSITORY = Path(__file__).resolve().parents[2]
LOADS = (
    "--dest /queue/bench.shared --queues 50 --n {n} --ackevery 1 --producers 2 --consumers 4",
    "--dest /queue/bench.single --n {n} --ack client-individual --producers 2 --consumers 2",
    "--dest /queue/bench.transactions --n {n} --transaction 10 --producers 2 --consumers 2",
    "--dest /topic/bench.prices --durable 1 --n {n} --producers 1 --consumers 3",
)
SHIFTED = ("destination", "subscription", "to")
"""Columns of ranges that number destinations and subscriptions."""
_SHIFT = "CREATE FUNCTION pg_temp.shifted(a int4[], d int4) RETURNS int4[] LANGUAGE sql IMMUTABLE AS 'SELECT array_agg(x + d) FROM unnest(a) AS x'"


@dataclass(slots=True)
class Measured:
    """Of one run."""

    events: int
    commits: int
    master: str
    seconds: float
    audit_seconds: float
    """Of these, for the audit and the roll-ups."""
    of_spark: float
    """Processor seconds."""
    of_postgres: float
    proven: int

    def __str__(self) -> str:
        took = f"{self.seconds:.0f} | {self.seconds - self.audit_seconds:.0f} | {self.audit_seconds:.0f} | {self.events / self.seconds:,.0f}"
        return f"| {self.events:,} | {self.commits:,} | {self.master} | {took} | {self.of_spark:.0f} | {self.of_postgres:.0f} | {self.proven:,} |"


HEAD = """\
| events | commits | Spark | seconds | of these to the lake | audit and roll-ups | events/s | processor seconds of Spark | of PostgreSQL | fates proven |
|---|---|---|---|---|---|---|---|---|---|"""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m tests.bench pipeline", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, nargs="+", default=[2_000_000, 20_000_000])
    parser.add_argument("--masters", nargs="+", default=["local[1]", "local[2]"])
    parser.add_argument("--messages", type=int, default=20_000, help="of each of the loads that make the ledger")
    parser.add_argument("--memory-mib", type=int, default=2048)
    parser.add_argument("--beside", action="store_true", help="what 5,000 messages a second notice of an audit on one processor")
    parser.add_argument("--runs", type=int, default=3, help="of that (default 3)")
    parser.add_argument("--seconds", type=int, default=60, help="of the traffic alone (default 60)")
    parser.add_argument("--scale", type=float, default=1.0, help="part of the messages that were sent before (default 1)")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/benchmarks.md")
    chosen = parser.parse_args(arguments)
    rows = _beside(chosen) if chosen.beside else rows_of(_of_runs(chosen))
    print("", *report.HEAD, *report.lines(rows), sep="\n")
    if chosen.write:
        report.write(rows)
    return int(any(row.kept is False for row in rows))


def _beside(chosen: argparse.Namespace) -> list[Row]:
    with Service() as service:
        return beside_an_audit(Bench(service, None, chosen.runs, chosen.seconds, chosen.scale), chosen.memory_mib)


def _of_runs(chosen: argparse.Namespace) -> list[Measured]:
    server = Server(shared_buffers="256MB", max_wal_size="4GB")
    server.start()
    try:
        return list(_measured(server, chosen))
    finally:
        server.stop()


def _measured(server: Server, chosen: argparse.Namespace) -> Iterator[Measured]:
    seed = server.dsn(server.create_database())
    migrate(seed)
    commits, ranges = record(seed, chosen.messages)
    print(f"the broker's ledger: {ranges} events in {commits} commits\n\n{HEAD}", flush=True)
    for events in chosen.events:
        name = server.create_database()
        dsn = server.dsn(name)
        migrate(dsn)
        made = multiply(seed, dsn, -(-events // ranges))
        for master in chosen.masters:
            with psycopg.connect(dsn, autocommit=True) as connection:
                connection.execute("TRUNCATE surety.ledger_reader, surety.pipeline_run, surety.pipeline_audit, surety.pipeline_rollup CASCADE")
            seconds, of_spark, of_postgres = run(server, dsn, master, chosen.memory_mib)
            with psycopg.connect(dsn) as connection:
                row = connection.execute("SELECT milliseconds / 1000.0, proven, violations, unproven FROM surety.pipeline_audit").fetchone()
            if row is None or row[2:] != (0, 0):
                raise RuntimeError(f"the audit found what is not there: {row}")
            measured = Measured(made * ranges, made * commits, master, seconds, float(row[0]), of_spark, of_postgres, row[1])
            print(measured, flush=True)
            yield measured
        server.drop_database(name)


def rows_of(found: list[Measured]) -> list[Row]:
    """What the figures must be, as far as these runs tell."""
    rows, by = [], {(one.events, one.master): one for one in found}
    for one in found:
        title = f"pipeline: {one.events / 1e6:,.3g} million events of the ledger to the lake, audited, rolled up, {one.master}"
        asked = one.events >= EVENTS_ASKED and one.master == "local[2]"
        notes = [
            f"{one.seconds - one.audit_seconds:.0f} s to the lake, {one.audit_seconds:.0f} s audit and roll-ups; {one.events / one.seconds:,.0f} events/s",
            f"processor {one.of_spark:.0f} s of Spark, {one.of_postgres:.0f} s of PostgreSQL; {one.proven:,} fates proven",
        ]
        rows.append(Row(title, "s", [one.seconds], f"< {SECONDS_MUST} s" if asked else "-", one.seconds < SECONDS_MUST if asked else None, notes=notes))
    for one in found:
        other = by.get((one.events, "local[1]"))
        if one.master == "local[2]" and other is not None:
            gain = other.seconds / one.seconds
            title = f"the same of {one.events / 1e6:,.3g} million, local[1] to local[2]"
            rows.append(Row(title, "x", [gain], f">= {GAIN_MUST}", gain >= GAIN_MUST, decimals=2))
    for master in sorted({one.master for one in found}):
        ordered = sorted((one for one in found if one.master == master), key=lambda one: one.events)
        few, many = ordered[0], ordered[-1]
        if many.events > few.events:
            each = (many.seconds / many.events) / (few.seconds / few.events)
            title = f"the time of an event among {many.events / 1e6:,.3g} million to that among {few.events / 1e6:,.3g} million, {master}"
            rows.append(Row(title, "x", [each], f"<= {EACH_MUST}", each <= EACH_MUST, decimals=2))
    return rows


# -- the ledger -------------------------------------------------------------------------------------------------------------------------
def record(dsn: str, messages: int) -> tuple[int, int]:
    """Have a broker carry the loads, and copy its ledger and definitions. Its commits and events."""
    with Service() as service:
        for load in LOADS:
            command = [sys.executable, "-m", "tests.bench.load", "--port", str(service.stomp_port), *load.format(n=messages).split()]
            subprocess.run(command, cwd=REPOSITORY, check=True, stdout=subprocess.DEVNULL)
        with psycopg.connect(service.dsn()) as source, psycopg.connect(dsn) as target:
            segments = [segment for (segment,) in source.execute("SELECT segment FROM surety.ledger_segment ORDER BY segment").fetchall()]
            target.execute((create_table(0, 1) + "; INSERT INTO surety.ledger_segment (shard, segment) VALUES (0, 1)").encode())
            for segment in segments:
                _copy(source, target, f"surety.ledger_0_{segment}", "surety.ledger_0_1")
            for table in ("surety.destination", "surety.subscription"):
                _copy(source, target, table, table)
            counts = " + ".join(f"coalesce(sum(cardinality({name}_{columns[0][0]})), 0)" for name, columns in RANGES)
            row = target.execute(f"SELECT count(*), ({counts})::int8 FROM surety.ledger_0_1").fetchone()
            assert row is not None
            return row


def _copy(source: psycopg.Connection[Any], target: psycopg.Connection[Any], there: str, here: str) -> None:
    with source.cursor().copy(f"COPY {there} TO STDOUT (FORMAT binary)") as out, target.cursor().copy(f"COPY {here} FROM STDIN (FORMAT binary)") as into:
        for octets in out:
            into.write(octets)


def multiply(seed: str, dsn: str, times: int) -> int:
    """So many copies of the ledger, one behind the other, in tables as large as the broker's. Their number."""
    with psycopg.connect(seed) as source, psycopg.connect(dsn) as target:
        target.execute(create_table(0, 0).encode())
        _copy(source, target, "surety.ledger_0_1", "surety.ledger_0_0")
        for table in ("destination", "subscription"):
            target.execute(f"CREATE TEMP TABLE {table} (LIKE surety.{table})")
            _copy(source, target, f"surety.{table}", f"pg_temp.{table}")
        target.execute(_SHIFT)
        row = target.execute(
            "SELECT max(number) - min(number) + 1, min(number) - 1, max(at) - min(at) + 1, (SELECT max(destination) FROM pg_temp.destination), "
            "(SELECT max(subscription) FROM pg_temp.subscription) FROM surety.ledger_0_0"
        ).fetchone()
        assert row is not None
        numbers, before, duration, *highest = row
        for copy in range(times):
            segment = 1 + copy * numbers // ROWS_MAX
            if copy == 0 or segment > 1 + (copy - 1) * numbers // ROWS_MAX:
                target.execute(create_table(0, segment).encode())
                target.execute("INSERT INTO surety.ledger_segment (shard, segment) VALUES (0, %s)", [segment])
            _append(target, segment, copy * numbers - before, copy * duration, copy * max(highest))
            target.commit()
        target.execute("DROP TABLE surety.ledger_0_0")
    return times


def _append(target: psycopg.Connection[Any], segment: int, numbers: int, instants: int, shift: int) -> None:
    columns = [(f"{name}_{column}", column) for name, ranges in RANGES for column, _ in ranges]
    values = [f"pg_temp.shifted({column}, {shift})" if field in SHIFTED and shift else column for column, field in columns]
    target.execute(
        f"INSERT INTO surety.ledger_0_{segment} ({SCALARS}, {', '.join(column for column, _ in columns)}) "
        f"SELECT number + {numbers}, at + {instants}, epoch, sequence, segment, weight, {', '.join(values)} FROM surety.ledger_0_0 ORDER BY number"
    )
    target.execute(
        f"INSERT INTO surety.destination SELECT shard, destination + {shift}, address || '.{shift}', created_at, automatic, state, settings, destroyed_at "
        "FROM pg_temp.destination"
    )
    owner = f"CASE WHEN destination = 0 THEN 0 ELSE destination + {shift} END"
    target.execute(
        f"INSERT INTO surety.subscription SELECT shard, subscription + {shift}, {owner}, name, client_id, shared, selector, no_local, account, idle_since, "
        "pattern, destroyed_at FROM pg_temp.subscription"
    )


# -- the run ----------------------------------------------------------------------------------------------------------------------------
def run(server: Server, dsn: str, master: str, memory_mib: int) -> tuple[float, float, float]:
    """Seconds of a run into a new lake, and processor seconds of what it started and of PostgreSQL. Raises RuntimeError if it fails."""
    home = Path(tempfile.mkdtemp(prefix="surety-bench-"))
    told = conninfo_to_dict(dsn)
    url = f"postgresql://{told['user']}@/{told['dbname']}?host={quote(str(told['host']), safe='')}"
    settings = {"DATABASE_URL": url, "SURETY_HOME": str(home), "SURETY_SPARK_MASTER": master, "SURETY_SPARK_MEMORY_MIB": str(memory_mib)}
    try:
        with _processor(server.process_id) as of_postgres:
            began = time.monotonic()
            command = [sys.executable, "manage.py", "pipeline", "audit"]
            given: dict[str, Any] = {"cwd": REPOSITORY, "env": os.environ | settings, "start_new_session": True}
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **given)
            seen: dict[int, float] = {}
            while process.poll() is None:
                seen |= _of_session(process.pid)
                time.sleep(0.5)
            seconds = time.monotonic() - began
        if process.returncode:
            raise RuntimeError(process.stderr.read().decode()[-2000:] if process.stderr else "")
        return seconds, sum(seen.values()), of_postgres[0]
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _of_session(session: int) -> dict[int, float]:
    """Processor seconds by process, of those of a session."""
    ticks, found = os.sysconf("SC_CLK_TCK"), {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, IndexError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split() if entry.name.isdigit() else []
            if fields and int(fields[3]) == session:
                found[int(entry.name)] = (int(fields[11]) + int(fields[12])) / ticks
    return found


@contextlib.contextmanager
def _processor(postmaster: int) -> Iterator[list[float]]:
    """What a server's processes use meanwhile: those that end are counted by their parent."""
    found: list[float] = []
    before = _with_children(postmaster)
    yield found
    found.append(_with_children(postmaster) - before)


def _with_children(pid: int) -> float:
    ticks = os.sysconf("SC_CLK_TCK")
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15]) / ticks
