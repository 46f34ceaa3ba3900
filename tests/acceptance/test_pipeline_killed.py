"""A replay, and a program that reads a queue as a stream, killed as processes beside a running broker: begun again, each message is sent, or read, once."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from broker_core.client import Queue
from tests.acceptance.operators import ask
from tests.acceptance.python_client import factory, fill, left
from tests.acceptance.replayed import DAY_MS, forget_lakes, received
from tests.support.service import REPOSITORY, Service

SECONDS_MAX = 240
COUNT = 60
pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("java") is None, reason="there is no Java")]


class Program:
    """Begun again after each kill, with the same words."""

    def __init__(self, service: Service, log: Path, *command: str) -> None:
        self._command, self._log = [sys.executable, *command], log
        self._environment = service.environment() | {"SURETY_SPARK_MEMORY_MIB": "1024", "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}
        self._chance = random.Random(7)

    def killed(self, reached: Callable[[], bool], *, java_too: bool) -> None:
        """As soon as it has come so far, or up to a tenth of a second later; without its Java, that ends by itself."""
        process = self._begin()
        ends = time.monotonic() + SECONDS_MAX
        while not reached():
            assert process.poll() is None and time.monotonic() < ends, self._log.read_text()[-4000:]
            time.sleep(0.005)
        time.sleep(self._chance.uniform(0, 0.1))
        assert process.poll() is None, "it ended before it could be killed"
        if java_too:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        assert process.wait() == -signal.SIGKILL

    def finishes(self) -> None:
        assert self._begin().wait(SECONDS_MAX) == 0, self._log.read_text()[-4000:]

    def _begin(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as written:
            return subprocess.Popen(self._command, cwd=REPOSITORY, env=self._environment, stdout=written, stderr=written, start_new_session=True)


def test_a_replay_that_is_killed_while_it_counts_and_while_it_sends_has_sent_everything_once_in_the_end(service: Service, tmp_path: Path) -> None:
    ask(service, "create", "queue/killed", archive_ms=DAY_MS)
    wanted = [f"message {number}" for number in range(COUNT)]
    with factory(service).create_connection() as connection:
        fill(connection, Queue("killed"), *wanted)
    left(service, Queue("killed"))
    forget_lakes(service)
    with psycopg.connect(service.dsn(), autocommit=True) as connection:
        def is_at(condition: str) -> bool:
            statement = f"SELECT count(*) FROM surety.pipeline_replay WHERE address = 'queue/killed' AND {condition}"
            return connection.execute(statement.encode()).fetchone() == (1,)

        options = ("--destination", "queue/killed", "--into", "queue/killed.again", "--rate", "4", "--lake", str(tmp_path / "lake"), "--waits")
        program = Program(service, tmp_path / "log", "manage.py", "pipeline", "replay", *options)
        program.killed(lambda: is_at("state = 'running'"), java_too=True)  # nothing is in the lake
        program.killed(lambda: is_at("sent >= 10"), java_too=False)
        program.killed(lambda: is_at("sent >= 30"), java_too=True)
        found = connection.execute("SELECT state, total, sent < total, sent FROM surety.pipeline_replay WHERE address = 'queue/killed'").fetchone()
        assert found is not None
        assert found[:3] == ("running", COUNT, True), found
        program.finishes()
        assert is_at(f"state = 'done' AND sent = {COUNT}")
    assert [body for body, _ in received(service, "killed.again", COUNT)] == wanted


def test_a_stream_whose_driver_is_killed_between_batches_and_in_one_has_each_message_once(service: Service, tmp_path: Path) -> None:
    wanted = [f"message {number}" for number in range(COUNT)]
    with factory(service).create_connection() as connection:
        fill(connection, Queue("spark.killed"), *wanted)

    def count(what: str) -> int:
        return len([each for each in (tmp_path / "checkpoint" / what).glob("[0-9]*") if each.name.isdigit()])

    broker = f"stomp://127.0.0.1:{service.stomp_port}"
    program = Program(service, tmp_path / "log", "-m", "tests.acceptance.streaming_program", broker, "queue/spark.killed", str(tmp_path))
    program.killed(lambda: count("commits") >= 1, java_too=True)
    program.killed(lambda: count("offsets") > count("commits") >= 2, java_too=False)
    program.finishes()
    assert left(service, Queue("spark.killed")) == []
    # The sink's own log names the files that count: a batch that died may have left others.
    logged = [json.loads(line) for each in (tmp_path / "out" / "_spark_metadata").glob("[0-9]*") for line in each.read_text().splitlines()[1:]]
    files = [Path(each["path"].removeprefix("file://")) for each in logged if each["action"] == "add"]
    found = [json.loads(line)["text"] for each in set(files) for line in each.read_text().splitlines()]
    assert sorted(found) == sorted(wanted)
    assert count("commits") >= 3, "it was killed in the midst of it"
