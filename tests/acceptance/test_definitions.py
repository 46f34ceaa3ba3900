"""Definitions that are being applied when what applies them is killed: what was done stays whole, and applying again does what is left and nothing twice."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.acceptance.commands import COMMAND_SECONDS_MAX, done
from tests.support.service import REPOSITORY, Service, await_true

COUNT = 200
LIMIT = 1_000


def document(name: str) -> str:
    """Destinations and rules for names: some are made by the node, the others in the database."""
    queues = "".join(f"  queue/{name}.{number:03}: {{max_messages: {LIMIT + number}}}\n" for number in range(COUNT))
    policies = "".join(f"  queue/{name}.{number:03}.*: {{redelivery_max: 3}}\n" for number in range(20))
    return f"destinations:\n{queues}policies:\n{policies}"


def made(service: Service, name: str) -> dict[str, int]:
    """The limits of those that are there."""
    with service.database() as session:
        query = "SELECT address, (settings->>'max_messages')::int FROM surety.destination WHERE address LIKE %s AND destroyed_at IS NULL"
        return dict(session.execute(query, (f"queue/{name}.%",)).fetchall())


def applying(service: Service, file: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "manage.py", "mq", "apply", "definitions", "--file", str(file)]
    return subprocess.Popen(command, cwd=REPOSITORY, env=service.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


@pytest.mark.slow
def test_definitions_whose_command_and_then_whose_node_is_killed_are_applied_by_applying_them_again(mortal: Service, tmp_path: Path) -> None:
    name = f"applied.{time.time_ns()}"
    file = tmp_path / "definitions.yaml"
    file.write_text(document(name))
    first = applying(mortal, file)
    await_true(lambda: len(made(mortal, name)) >= COUNT // 10, COMMAND_SECONDS_MAX, "nothing is applied")
    first.kill()
    first.wait()
    after_first = len(made(mortal, name))
    second = applying(mortal, file)
    await_true(lambda: len(made(mortal, name)) >= after_first + COUNT // 10, COMMAND_SECONDS_MAX, "nothing more is applied")
    mortal.kill_and_await_another("node")
    second.wait(COMMAND_SECONDS_MAX)
    after_second = len(made(mortal, name))
    assert COUNT // 10 <= after_first < after_second, (after_first, after_second)
    if second.returncode:
        done(mortal, "mq", "apply", "definitions", "--file", str(file))
    assert made(mortal, name) == {f"queue/{name}.{number:03}": LIMIT + number for number in range(COUNT)}
    again = json.loads(done(mortal, "mq", "apply", "definitions", "--file", str(file), "--dry-run", "--json"))
    assert again["steps"] == [], again
