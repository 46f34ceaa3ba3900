"""A run of the pipeline, as a process of its own, is killed at any moment: the next ones finish, and no event is there twice or missing."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from pyspark.sql import SparkSession
from pyspark.sql.functions import expr

from broker_core.pipeline.lake import Lake
from broker_core.store.ledger import RANGES
from tests.pipeline.generator import Shape, fill
from tests.pipeline.ledgers import LedgerDatabase

REPOSITORY = Path(__file__).resolve().parents[2]
KILLS = 6
RUN_SECONDS_MAX = 240


def begin(database: LedgerDatabase, home: Path, log: Path) -> subprocess.Popen[bytes]:
    environment = os.environ | {"DATABASE_URL": uri(database.url), "SURETY_HOME": str(home), "SURETY_SPARK_MEMORY_MIB": "1024"}
    with log.open("ab") as written:
        command = [sys.executable, "manage.py", "pipeline", "run"]
        return subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=written, stderr=written, start_new_session=True)


def uri(dsn: str) -> str:
    """As the service wants to be told."""
    parts = conninfo_to_dict(dsn)
    return f"postgresql://{parts['user']}@/{parts['dbname']}?host={quote(str(parts['host']), safe='')}"


def sums_of_database(url: str) -> dict[str, tuple[int, ...]]:
    """By kind: events, and sums that no event twice, missing or changed leaves as they are."""
    found = {}
    with psycopg.connect(url) as connection:
        tables = [name for (name,) in connection.execute("SELECT 'surety.ledger_0_' || segment FROM surety.ledger_segment").fetchall()]
        for name, columns in RANGES:
            first, last = ("position", "position") if name == "failures" else ("change", "change") if name == "octets" else ("first", "last")
            if not {first, last} <= {column for column, _ in columns}:
                continue
            arrays = ", ".join(f"l.{name}_{column}" for column, _ in columns)
            names = ", ".join(f'"{column}"' for column, _ in columns)
            unnested = f"CROSS JOIN ROWS FROM (unnest({arrays})) AS r ({names})"
            whole = " UNION ALL ".join(f"SELECT l.number, r.{first} AS a, r.{last} AS b FROM {table} l {unnested}" for table in tables)
            sums = "count(*), sum(number)::int8, sum(a * (number % 97))::int8, sum(b * (number % 89))::int8"
            row = connection.execute(f"SELECT {sums} FROM ({whole})").fetchone()
            found["failed" if name == "failures" else name] = tuple(value or 0 for value in row or ())
    return found


def sums_of_lake(lake: Lake) -> dict[str, tuple[int, ...]]:
    a, b = "coalesce(first, octets)", "coalesce(last, octets)"
    sums = (f"sum({a} * (number % 97))", f"sum({b} * (number % 89))")
    rows = lake.frame("events").groupBy("kind").agg(*map(expr, ("count(*)", "sum(number)", *sums))).collect()
    return {row[0]: tuple(value or 0 for value in row[1:]) for row in rows}


@pytest.mark.slow
def test_killed_at_any_moment_the_next_run_finishes_and_every_event_is_there_once(spark: SparkSession, database: LedgerDatabase, tmp_path: Path) -> None:
    home, log, chance = tmp_path / "home", tmp_path / "log", random.Random(7)
    home.mkdir()
    fill(database, Shape(destinations=40), 60_000)
    began = time.monotonic()
    process = begin(database, home, log)
    assert process.wait(RUN_SECONDS_MAX) == 0, log.read_text()[-4000:]
    whole = time.monotonic() - began
    for kill in range(KILLS):
        fill(database, Shape(destinations=40), 20_000)
        process = begin(database, home, log)
        time.sleep(whole * chance.uniform(0.3, 1.0))
        if kill % 2:
            os.killpg(process.pid, signal.SIGKILL)  # Java and the workers too
        else:
            process.kill()
        process.wait()
    process = begin(database, home, log)
    assert process.wait(RUN_SECONDS_MAX) == 0, log.read_text()[-4000:]
    lake = Lake(spark, home / "lake")
    assert sums_of_lake(lake) == {kind: sums for kind, sums in sums_of_database(database.url).items() if sums[0]}
    with psycopg.connect(database.url) as connection:
        states = {state for (state,) in connection.execute("SELECT state FROM surety.pipeline_run").fetchall()}
        mark = connection.execute("SELECT number FROM surety.ledger_reader").fetchone()
    assert mark == (lake.manifest().upto,) == (database.number,)
    assert "done" in states and states <= {"done", "died", "failed"}
