"""The bootstep that hosts a node, in a real Celery worker whose database cannot be reached: it starts, drains, breaks and gives up as told.

The room behind it is replaced by a few lines: what is under test is who tells whom to stop, and what the process's end says.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_core.worker import FAILED
from tests.tidy.rules import REPOSITORY

PATIENCE_SECONDS = 20
WORKER = """
import asyncio, sys, types
async def serve(config, stop, ready):
{body}
room = types.ModuleType("broker_core.server.supervisor")
room.serve = serve
sys.modules[room.__name__] = room
from broker_core.worker import app
app.worker_main(["worker", "--pool", "solo", "--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "INFO"])
"""
WAITS = "    ready()\n    print('SERVES', flush=True)\n    await stop.wait()\n    print('DRAINED', flush=True)"


class Worker:
    def __init__(self, body: str, home: Path, drain_seconds: int) -> None:
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONUNBUFFERED": "1",
            "SURETY_HOME": str(home),
            "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
            "SURETY_DRAIN_SECONDS": str(drain_seconds),
            "DJANGO_SETTINGS_MODULE": "console.settings",  # as `manage.py run` leaves it
        }
        self.log = home / "log"
        with self.log.open("wb") as log:
            command = [sys.executable, "-c", WORKER.format(body=body)]
            self.process = subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=log, stderr=subprocess.STDOUT)

    def said(self) -> str:
        return self.log.read_text()

    def await_said(self, words: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while words not in self.said():
            assert self.process.poll() is None and time.monotonic() < deadline, self.said()
            time.sleep(0.02)

    def end(self) -> int:
        return self.process.wait(PATIENCE_SECONDS)


@pytest.fixture
def worker(tmp_path: Path) -> Iterator:
    started: list[Worker] = []

    def start(body: str, drain_seconds: int = 10) -> Worker:
        started.append(Worker(body, tmp_path, drain_seconds))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.wait()


def test_sigterm_drains_and_ends_with_code_0_though_the_database_is_away(worker) -> None:
    node = worker(WAITS)
    node.await_said("SERVES")
    node.await_said("Cannot connect to surety+postgresql")
    node.process.send_signal(signal.SIGTERM)
    assert node.end() == 0, node.said()
    assert "DRAINED" in node.said()


def test_a_node_that_breaks_ends_the_process_with_its_reason(worker) -> None:
    node = worker("    raise RuntimeError('the reason')")
    assert node.end() == FAILED
    assert "RuntimeError: the reason" in node.said()


def test_a_node_that_just_returns_ends_the_process_too(worker) -> None:
    node = worker("    return")
    assert node.end() == FAILED
    assert "returned without being told to stop" in node.said()


def test_a_node_that_breaks_while_draining_is_no_orderly_end(worker) -> None:
    node = worker(WAITS + "\n    raise RuntimeError('while draining')")
    node.await_said("SERVES")
    node.process.send_signal(signal.SIGTERM)
    assert node.end() == FAILED
    assert "RuntimeError: while draining" in node.said()


def test_a_node_that_does_not_drain_in_time_is_given_up(worker) -> None:
    node = worker(WAITS + "\n    await asyncio.sleep(60)", drain_seconds=1)
    node.await_said("SERVES")
    began = time.monotonic()
    node.process.send_signal(signal.SIGTERM)
    assert node.end() == FAILED
    assert time.monotonic() - began < 8
    assert "did not drain within 1 s" in node.said()


def test_the_node_loads_neither_django_nor_the_console(worker) -> None:
    loaded = "[name for name in sys.modules if name.split('.')[0] == 'console' or name in ('django.apps', 'django.db', 'django.conf')]"
    node = worker(f"    print('LOADED %s' % {loaded}, flush=True)\n" + WAITS)
    node.await_said("SERVES")
    assert "LOADED []" in node.said()


def test_the_node_takes_no_task() -> None:
    ours = "[name for name in app.tasks if not name.startswith('celery.')]"
    listed = f"from broker_core.worker import app; print({ours}, app.conf.task_default_queue)"
    done = subprocess.run([sys.executable, "-c", listed], cwd=REPOSITORY, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert done.stdout.strip() == "[] surety-node", done.stderr
