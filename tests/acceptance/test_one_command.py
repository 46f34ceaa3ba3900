"""One command runs everything: a second one is refused, SIGTERM loses nothing, a restart finds it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.acceptance.reading import read_all
from tests.support.clients import Connection, ConnectionLost, reconnect
from tests.support.service import REPOSITORY, STOP_SECONDS_MAX, Service, is_running

pytestmark = pytest.mark.alone

ROLES = ("postgres", "node", "worker", "beat", "web")


def test_every_role_runs_and_says_so(service: Service) -> None:
    assert all(service.pid(role) for role in ROLES), {role: service.pid(role) for role in ROLES}
    assert service.get("/health/live")[0] == 200
    assert service.get("/health/ready")[0] == 200
    status, metrics = service.get("/metrics")
    assert status == 200 and "# TYPE" in metrics


def test_a_second_run_in_the_same_home_is_refused_in_a_sentence(service: Service) -> None:
    second = subprocess.run(
        [sys.executable, "manage.py", "run"],
        cwd=REPOSITORY,
        env=service.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=30,
    )
    assert second.returncode not in (0, -signal.SIGKILL)
    assert str(service.home) in second.stdout and "Traceback" not in second.stdout, second.stdout
    assert len(second.stdout.strip().splitlines()) <= 2, second.stdout
    assert service.is_ready()


def test_what_dies_is_restarted_and_the_service_is_ready_only_when_it_serves(mortal: Service) -> None:
    for role in reversed(ROLES):
        mortal.kill_and_await_another(role)
        with Connection(mortal.stomp_port) as connection:
            connection.confirmed("SEND", {"destination": f"/queue/after.{role}", "persistent": "true"}, b"x")


def test_a_node_that_is_killed_as_soon_as_it_serves_is_started_again_at_once_each_time(mortal: Service) -> None:
    log = mortal.home / "log" / "node.log"
    told_before = log.read_text().count("starting again in")
    for _ in range(4):
        mortal.kill("node")
        reconnect(mortal.stomp_port).close()
    assert log.read_text().count("starting again in") == told_before
    mortal.await_ready()


LEVELS = ("best-effort", "express", "reliable-np", "reliable", "assured")
KEPT = ("reliable", "assured")
"""The levels retained beyond a planned shutdown; the others must not come back (the table of the five levels, R25)."""
OF_EACH = 100


def send_of_each_level(service: Service) -> None:
    with Connection(service.stomp_port) as connection:
        for level in LEVELS:
            for number in range(OF_EACH):
                body = f"{level}-{number}"
                connection.command("SEND", {"destination": "/queue/levels", "reliability": level, "receipt": body}, body.encode())
        for _ in range(OF_EACH * len(LEVELS)):
            connection.expect("RECEIPT")
        connection.disconnect()


def test_sigterm_under_load_ends_with_status_0_in_time_and_a_restart_finds_what_was_promised(mortal: Service) -> None:
    send_of_each_level(mortal)
    pids = [mortal.await_pid(role) for role in ROLES]
    connection, confirmed = Connection(mortal.stomp_port), []
    for number in range(5_000):
        connection.send("/queue/load", b"%d" % number, {"receipt": str(number)})
    began = time.monotonic()
    assert mortal.process is not None
    mortal.process.send_signal(signal.SIGTERM)
    with connection, contextlib.suppress(ConnectionLost):
        while (frame := connection.receive(STOP_SECONDS_MAX)) is not None:
            confirmed.append(int(frame.headers["receipt-id"]))
    assert mortal.stop() == 0, mortal.evidence()
    assert time.monotonic() - began < STOP_SECONDS_MAX
    assert [pid for pid in pids if is_running(pid)] == [], "nothing outlives the supervisor"
    mortal.start()
    with Connection(mortal.stomp_port) as reader:
        frames = read_all(reader, "/queue/levels")
        found = [int(frame.body) for frame in read_all(reader, "/queue/load")]
    assert sorted(frame.body.decode() for frame in frames) == sorted(f"{level}-{number}" for level in KEPT for number in range(OF_EACH))
    assert all(frame.headers.get("redelivered", "false") == "false" for frame in frames), "none of them was ever delivered"
    assert set(confirmed) <= set(found), f"confirmed {len(confirmed)}, found {len(found)}"
    assert len(found) == len(set(found)), "none twice"


def test_a_supervisor_that_is_killed_leaves_a_home_that_starts_again(mortal: Service) -> None:
    with Connection(mortal.stomp_port) as connection:
        connection.confirmed("SEND", {"destination": "/queue/kept", "persistent": "true"}, b"kept")
    assert mortal.process is not None
    for role in ROLES:
        mortal.await_pid(role)
    os.kill(mortal.process.pid, signal.SIGKILL)
    mortal.process.wait()
    mortal.start()
    with Connection(mortal.stomp_port) as connection:
        connection.subscribe("/queue/kept")
        assert connection.expect("MESSAGE").body == b"kept"
