"""What others do to the database meanwhile: a dump, a session that holds a snapshot open, a careless setting."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.acceptance.healthy import HealthyTraffic
from tests.support.clients import Connection
from tests.support.service import NotServing, Service, await_true

pytestmark = pytest.mark.alone

STANDSTILL_SECONDS_MAX = 2.0
"""No round of healthy traffic may take longer while somebody reads the tables."""
HELD_SECONDS = 6
NOTICE_SECONDS_MAX = 15


@pytest.fixture(scope="module")
def small_segments() -> Iterator[Service]:
    """Segments of 2,000 rows: they are created and dropped all the time, which a reader must not stop (R4)."""
    with Service(environment={"SURETY_SEGMENT_ROWS_MAX": "2000"}) as service:
        yield service


def program(service: Service, name: str) -> Path:
    """A program beside the one that the server runs."""
    return Path(f"/proc/{service.await_pid('postgres')}/exe").resolve().with_name(name)


def move(service: Service, queue: str, count: int) -> None:
    """Send and consume, so that segments come and go."""
    with Connection(service.stomp_port) as connection:
        connection.subscribe(queue, ack="auto", prefetch=1_000)
        for first in range(0, count, 100):
            for number in range(first, first + 100):
                connection.send(queue, b"%d" % number, {"receipt": "r"} if number == first + 99 else {})
            frames = [connection.receive(15) for _ in range(101)]
            assert None not in frames


def test_a_dump_under_load_stops_nothing_and_is_whole(small_segments: Service, tmp_path: Path) -> None:
    service, dump = small_segments, tmp_path / "dump"
    with HealthyTraffic(service.stomp_port, "/queue/dump.healthy") as healthy:
        with dump.open("wb") as output:
            dumping = subprocess.Popen([program(service, "pg_dump"), "--dbname", service.dsn()], stdout=output, stderr=subprocess.PIPE)
        move(service, "/queue/dump", 10_000)
        _, complaint = dumping.communicate(timeout=120)
        assert dumping.returncode == 0, complaint.decode()
        healthy.unharmed()
        assert healthy.slowest < STANDSTILL_SECONDS_MAX
    assert b"PostgreSQL database dump complete" in dump.read_bytes()[-300:]


def test_a_snapshot_held_open_stops_nothing(small_segments: Service) -> None:
    service = small_segments
    with HealthyTraffic(service.stomp_port, "/queue/snapshot.healthy") as healthy, psycopg.connect(service.dsn()) as idle:
        idle.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        tables = [row[0] for row in idle.execute("SELECT oid::regclass::text FROM pg_class WHERE relkind = 'r' AND relnamespace = 'surety'::regnamespace")]
        for table in tables:
            idle.execute(f"SELECT FROM {table} LIMIT 1")  # locks it against DROP until the transaction ends
        until = time.monotonic() + HELD_SECONDS
        while time.monotonic() < until:
            move(service, "/queue/snapshot", 2_000)
        assert healthy.slowest < STANDSTILL_SECONDS_MAX
        healthy.unharmed()
        idle.rollback()


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_a_database_that_does_not_flush_is_not_ready(small_segments: Service, setting: str) -> None:
    """It is what a confirmation rests on."""
    service = small_segments
    set_by_superuser(service, setting, "off")
    try:
        await_true(lambda: setting in not_ready_because(service), NOTICE_SECONDS_MAX, f"health is green with {setting} = off")
    finally:
        set_by_superuser(service, setting, "on")
    service.await_ready(NOTICE_SECONDS_MAX)


def set_by_superuser(service: Service, setting: str, value: str) -> None:
    with psycopg.connect(service.dsn(superuser=True), autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM SET {setting} = {value}")
        connection.execute("SELECT pg_reload_conf()")


def not_ready_because(service: Service) -> str:
    status, text = service.get("/health/ready")
    if status not in (200, 503):
        raise NotServing(f"/health/ready answers {status} {text}")
    return text if status == 503 else ""
