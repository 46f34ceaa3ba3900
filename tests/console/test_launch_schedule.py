"""Scheduled tasks against a real database: they file requests like operators, never pile up, and clear what is spent."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.support.postgres import Server
from tests.tidy.rules import REPOSITORY


class Installation:
    """A migrated database of its own; scripts run in a process of their own, as Django's settings are those of a process."""

    def __init__(self, server: Server, home: Path) -> None:
        self.dsn = server.dsn(server.create_database())
        url = f"postgresql://postgres@/{psycopg.conninfo.conninfo_to_dict(self.dsn)['dbname']}?host={server.sockets}"
        self._environment = {"PATH": os.environ["PATH"], "SURETY_HOME": str(home), "DATABASE_URL": url}
        self._python("-m", "broker_core.transport")
        self._python("manage.py", "migrate", "--verbosity", "0")

    def run(self, script: str) -> str:
        return self._python("-c", textwrap.dedent(script))

    def _python(self, *arguments: str) -> str:
        done = subprocess.run([sys.executable, *arguments], cwd=REPOSITORY, env=self._environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def tasks(self, *names: str) -> None:
        """Run tasks as the worker does, by name."""
        calls = "\n".join(f"app.tasks['console.{name}'].apply(throw=True)" for name in names)
        self.run(f"from console.celery import app\napp.loader.import_default_modules()\nimport django\ndjango.setup()\n{calls}")

    def ask(self, statement: str) -> list[tuple]:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    running = Server()
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def migrated(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    return Installation(server, tmp_path_factory.mktemp("home"))


@pytest.fixture
def installation(migrated: Installation) -> Installation:
    migrated.ask("TRUNCATE surety.control_request; DELETE FROM kombu_message")
    return migrated


def requests(installation: Installation) -> list[tuple]:
    return installation.ask("SELECT verb, requested_by FROM surety.control_request ORDER BY request")


def test_each_task_files_the_request_of_its_name(installation: Installation) -> None:
    installation.tasks("expire", "reap", "retain", "ledger")
    assert requests(installation) == [(verb, "scheduler") for verb in ("expire", "reap", "retain", "ledger")]


def test_requests_do_not_pile_up_while_no_node_answers(installation: Installation) -> None:
    installation.tasks("expire", "expire", "expire", "reap")
    assert [verb for verb, _ in requests(installation)] == ["expire", "reap"]


def test_an_answered_or_late_request_is_followed_by_another(installation: Installation) -> None:
    installation.tasks("expire", "reap")
    installation.ask("UPDATE surety.control_request SET answered_at = now(), done = true WHERE verb = 'expire'")
    installation.ask("UPDATE surety.control_request SET deadline = 1 WHERE verb = 'reap'")
    installation.tasks("expire", "reap")
    assert sorted(verb for verb, _ in requests(installation)) == ["expire", "expire", "reap", "reap"]


def test_delivered_messages_of_the_transport_are_deleted_and_waiting_ones_are_not(installation: Installation) -> None:
    queue = installation.ask("SELECT id FROM kombu_queue LIMIT 1")[0][0]
    for visible in ("true", "false", "false"):
        installation.ask(
            "INSERT INTO kombu_message (id, visible, payload, version, queue_id)"
            f" VALUES (nextval('message_id_sequence'), {visible}, '{{}}', 1, {queue})"
        )
    installation.tasks("purge_spent")
    assert installation.ask("SELECT visible FROM kombu_message") == [(True,)]


def test_old_answered_requests_of_the_schedule_are_deleted_and_those_of_operators_are_not(installation: Installation) -> None:
    for who, age, answered in (("scheduler", "2 days", "now()"), ("scheduler", "1 hour", "now()"), ("admin", "2 days", "now()")):
        installation.ask(
            "INSERT INTO surety.control_request (verb, requested_by, created_at, answered_at)"
            f" VALUES ('expire', '{who}', now() - interval '{age}', {answered})"
        )
    installation.tasks("purge_spent")
    assert [who for _, who in requests(installation)] == ["scheduler", "admin"]


def test_everything_on_the_schedule_is_a_task_and_is_superseded_in_time(installation: Installation) -> None:
    listed = installation.run(
        """
        from console.celery import app
        for name, entry in sorted(app.conf.beat_schedule.items()):
            assert entry["task"] in app.tasks, name
            assert entry["options"]["expires"] == entry["schedule"], name
            print(name, entry["schedule"])
        """
    )
    assert listed.split() == ["expire", "10", "ledger", "60", "purge_spent", "60", "reap", "30", "retain", "60"]
