"""What a figure depends on: the machine, the versions, the disk's flush, and what the database did meanwhile."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import statistics
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg

from tests.acceptance import ledger
from tests.support.clients import Connection
from tests.support.service import REPOSITORY, Service

FLUSH_SECONDS = 1.0
PAGE = b"\0" * 8192
STATISTICS_SECONDS = 1.2
"""PostgreSQL's sessions hand in their counters at the end of a transaction, at most once a second; an idle one after 10 s."""


def fdatasync_ms(folder: Path) -> float:
    """Median time to overwrite one 8 KiB page and fdatasync it, as a commit does with its log."""
    took = []
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(PAGE * 2048)  # as in the write-ahead log, the file has its size already
        os.fsync(file.fileno())
        until = time.perf_counter() + FLUSH_SECONDS
        while time.perf_counter() < until:
            os.pwrite(file.fileno(), PAGE, len(took) % 2048 * len(PAGE))
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            took.append(time.perf_counter() - began)
    return statistics.median(took) * 1000


def description(service: Service, peer: str) -> str:
    """One paragraph of Markdown."""
    model = next(
        (line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")),
        platform.machine(),
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    with service.database() as connection:
        row = connection.execute("SHOW server_version").fetchone()
    assert row is not None
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("psycopg", "uvloop", "celery")]
    return (
        f"{os.cpu_count()} cores ({model}), {memory:.0f} GiB, Linux {'.'.join(platform.release().split('.')[:2])}; all parts and the load on this machine. "
        f"fdatasync of 8 KiB: {fdatasync_ms(service.home):.3f} ms (median). "
        f"Commit {commit()}; Python {platform.python_version()}, PostgreSQL {row[0]}, {', '.join(versions)}; peer: {peer}."
    )


def commit() -> str:
    done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def processor_seconds(service: Service, role: str = "node") -> float:
    """What the role's process has taken of the processors since its start."""
    fields = Path(f"/proc/{service.await_pid(role)}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Durability:
    """What one run cost the database. The confirmations are real if the log was flushed at least once a group commit."""

    flushes: int
    commits: int
    messages: int

    def __str__(self) -> str:
        per_commit = f", {self.messages / self.commits:.0f} messages each" if self.commits else ""
        return f"{self.commits:,} group commits{per_commit}; {self.flushes:,} flushes of the log"


def durability_now(service: Service) -> tuple[int, int]:
    """Flushes of the write-ahead log by anyone since the server's start, and the number of the last group commit."""
    time.sleep(STATISTICS_SECONDS)
    with Connection(service.stomp_port) as connection:  # one more transaction of the writer, so that it hands in its counters now
        connection.confirmed("SEND", {"destination": "/queue/bench.counters", "persistent": "true"}, b"x")
    time.sleep(STATISTICS_SECONDS / 4)
    with service.database() as connection:
        row = connection.execute("SELECT coalesce(sum(fsyncs), 0)::int8 FROM pg_stat_io WHERE object = 'wal'").fetchone()
        assert row is not None
        return row[0], ledger.commits(connection)


class Storage(threading.Thread):
    """A context manager that samples how much the message tables, the ledger and the node's memory take. Sizes in octets."""

    INTERVAL_SECONDS = 5.0
    SIZES = """
        SELECT coalesce(sum(pg_total_relation_size(oid)) FILTER (WHERE relname ~ '^(message|spill)_|^(retained|body_chunk)$'), 0)::int8,
               coalesce(sum(pg_total_relation_size(oid)) FILTER (WHERE relname ~ '^ledger_[0-9]'), 0)::int8
        FROM pg_class WHERE relkind = 'r' AND relnamespace = 'surety'::regnamespace"""

    def __init__(self, service: Service) -> None:
        super().__init__(daemon=True)
        self.service = service
        self.messages_max = self.messages_last = self.ledger_last = self.resident_max = 0
        self.failure: BaseException | None = None
        self._stopping = threading.Event()

    def run(self) -> None:
        try:
            with self.service.database() as connection:
                while not self._stopping.wait(self.INTERVAL_SECONDS):
                    self._sample(connection)
        except (psycopg.Error, AssertionError) as error:
            self.failure = error

    def _sample(self, connection: psycopg.Connection) -> None:
        row = connection.execute(self.SIZES).fetchone()
        assert row is not None
        self.messages_last, self.ledger_last = row
        self.messages_max = max(self.messages_max, self.messages_last)
        self.resident_max = max(self.resident_max, self.service.resident_octets("node"))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stopping.set()
        self.join()
        if self.failure is not None and kind is None:
            raise self.failure
