"""`python -m tests.bench pipeline`: how long the data pipeline takes for a ledger of millions of events.

    python -m tests.bench pipeline                              2,000,000 and 20,000,000 events, on one processor and on two
    python -m tests.bench pipeline --events 2000000 --masters local[2]

A broker under load (queues shared by consumers, single and cumulative acknowledgements, transactions, a topic with durable subscribers) writes a ledger. It is
multiplied: copy after copy of the same commits, with destinations, subscriptions and instants of its own, so that each copy is as true as the first and has
its statistics. Then a run of `manage.py pipeline run` is measured as a process: wall time, and processor seconds of Spark, its workers and PostgreSQL.
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
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from broker_core.store.ledger import RANGES, ROWS_MAX, SCALARS, create_table
from broker_core.store.migrate import migrate
from tests.support.postgres import Server
from tests.support.service import Service

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


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m tests.bench pipeline", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, nargs="+", default=[2_000_000, 20_000_000])
    parser.add_argument("--masters", nargs="+", default=["local[1]", "local[2]"])
    parser.add_argument("--messages", type=int, default=20_000, help="of each of the loads that make the ledger")
    parser.add_argument("--memory-mib", type=int, default=2048)
    chosen = parser.parse_args(arguments)
    server = Server(shared_buffers="256MB", max_wal_size="4GB")
    server.start()
    try:
        _measure(server, chosen)
    finally:
        server.stop()
    return 0


def _measure(server: Server, chosen: argparse.Namespace) -> None:
    seed = server.dsn(server.create_database())
    migrate(seed)
    commits, ranges = record(seed, chosen.messages)
    print(f"the broker's ledger: {ranges} events in {commits} commits\n", flush=True)
    print("| events | commits | Spark | seconds | events/s | processor seconds of Spark | of PostgreSQL |\n|---|---|---|---|---|---|---|", flush=True)
    for events in chosen.events:
        dsn = server.dsn(server.create_database())
        migrate(dsn)
        made = multiply(seed, dsn, -(-events // ranges))
        for master in chosen.masters:
            with psycopg.connect(dsn, autocommit=True) as connection:
                connection.execute("TRUNCATE surety.ledger_reader, surety.pipeline_run")
            seconds, of_spark, of_postgres = ingest(server, dsn, master, chosen.memory_mib)
            counts = f"{made * ranges:,} | {made * commits:,} | {master} | {seconds:.0f} | {made * ranges / seconds:,.0f}"
            print(f"| {counts} | {of_spark:.0f} | {of_postgres:.0f} |", flush=True)


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
def ingest(server: Server, dsn: str, master: str, memory_mib: int) -> tuple[float, float, float]:
    """Seconds of a run into a new lake, and processor seconds of what it started and of PostgreSQL. Raises RuntimeError if it fails."""
    home = Path(tempfile.mkdtemp(prefix="surety-bench-"))
    told = conninfo_to_dict(dsn)
    url = f"postgresql://{told['user']}@/{told['dbname']}?host={quote(str(told['host']), safe='')}"
    settings = {"DATABASE_URL": url, "SURETY_HOME": str(home), "SURETY_SPARK_MASTER": master, "SURETY_SPARK_MEMORY_MIB": str(memory_mib)}
    try:
        with _processor(server.process_id) as of_postgres:
            began = time.monotonic()
            command = [sys.executable, "manage.py", "pipeline", "run"]
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
