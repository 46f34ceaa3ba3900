"""Scheduled tasks against a real database: they file requests like operators, never pile up, and clear what is spent."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from datetime import timedelta
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
    migrated.ask("SET session_replication_role = replica; TRUNCATE surety.control_request, surety.audit; DELETE FROM kombu_message")
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
    installation.tasks("forget")
    assert [who for _, who in requests(installation)] == ["scheduler", "admin"]


def test_a_request_of_the_schedule_that_may_still_be_answered_is_kept(installation: Installation) -> None:
    installation.ask(
        "INSERT INTO surety.control_request (verb, requested_by, created_at, deadline)"
        " VALUES ('expire', 'scheduler', now() - interval '2 days', extract(epoch FROM now() + interval '1 minute') * 1000)"
    )
    installation.tasks("forget")
    assert len(requests(installation)) == 1


def test_audit_entries_go_after_400_days_with_the_requests_they_tell_of(installation: Installation) -> None:
    installation.ask(
        "INSERT INTO surety.audit (who, what, at) SELECT 'admin', 'purge', now() - make_interval(days => age) FROM unnest(ARRAY[401, 399]) age"
    )
    installation.ask(
        "INSERT INTO surety.control_request (verb, requested_by, created_at, answered_at)"
        " SELECT 'purge', 'admin ' || age, now() - make_interval(days => age), now() FROM unnest(ARRAY[401, 399]) age"
    )
    installation.tasks("forget")
    assert installation.ask("SELECT date_trunc('day', now() - at) FROM surety.audit WHERE who = 'admin'") == [(timedelta(days=399),)]
    assert requests(installation) == [("purge", "admin 399")]


def test_old_entries_go_in_batches_whatever_their_number(installation: Installation) -> None:
    installation.ask("INSERT INTO surety.audit (who, what, at) SELECT 'admin', 'purge', now() - interval '2 days' FROM generate_series(1, 2500)")
    deleted = installation.run(
        """
        from console.celery import app
        import django
        django.setup()
        from django.db import connection
        from console.services import scheduled
        rows = []
        def watch(execute, sql, params, *more):
            result = execute(sql, params, *more)
            rows.append(params["most"] if "forget_audit" in sql else more[-1]["cursor"].rowcount)
            return result
        with connection.execute_wrapper(watch):
            print(scheduled.forget(1), max(rows))
        """
    )
    assert deleted.split() == ["2500", "1000"]
    assert installation.ask("SELECT count(*) FROM surety.audit WHERE who = 'admin'") == [(0,)]


def test_old_entries_are_found_by_their_index(installation: Installation) -> None:
    installation.ask("INSERT INTO surety.audit (who, what, at) SELECT 'admin', 'purge', now() FROM generate_series(1, 20000)")
    installation.ask("ANALYZE surety.audit")
    [(source,)] = installation.ask("SELECT prosrc FROM pg_proc WHERE proname = 'forget_audit'")
    statement = source[source.index("DELETE") : source.index(";", source.index("DELETE"))]
    plan = str(installation.ask("EXPLAIN " + statement.replace("greatest(days, 1)", "400").replace("LIMIT most", "LIMIT 1000")))
    assert "audit_at" in plan and "audit_pkey" in plan and "Seq Scan" not in plan, plan


def test_everything_on_the_schedule_is_a_task_and_is_superseded_in_time(installation: Installation) -> None:
    registered = installation.run("from console.celery import NAMES, app\nprint(*NAMES, *(name for name in app.tasks if name.startswith('console.')))").split()
    planned = installation.ask("SELECT name, task, enabled, expire_seconds, every, period FROM django_celery_beat_periodictask t"
                               " JOIN django_celery_beat_intervalschedule i ON i.id = t.interval_id WHERE task LIKE 'console.%' ORDER BY name")  # fmt: skip
    expected = {"alerts": 15, "expire": 10, "forget": 3600, "ledger": 60, "pipeline": 3600, "purge_spent": 60, "reap": 30, "retain": 60, "sample": 5}
    assert planned == [(name, f"console.{name}", name != "pipeline", seconds, seconds, "seconds") for name, seconds in expected.items()]
    assert sorted(registered) == sorted([*expected, *(f"console.{name}" for name in expected)])


def test_what_an_administrator_has_changed_stays_at_the_next_start(installation: Installation) -> None:
    installation.ask("UPDATE django_celery_beat_periodictask SET enabled = false WHERE name = 'reap'")
    installation.run("import os\nos.environ['DJANGO_SETTINGS_MODULE'] = 'console.settings'\nimport django\ndjango.setup()\n"
                     "from console.services.schedule import establish\nestablish()")  # fmt: skip
    assert installation.ask("SELECT count(*) FILTER (WHERE NOT enabled), count(*) FROM django_celery_beat_periodictask WHERE task LIKE 'console.%'") == [(2, 9)]
    installation.ask("UPDATE django_celery_beat_periodictask SET enabled = name <> 'pipeline'")


def test_each_run_is_noted_with_what_came_of_it(installation: Installation) -> None:
    installation.tasks("expire")
    [(by, ended, result, problem)] = installation.ask("SELECT by, ended_at >= started_at, result, problem FROM console_taskrun WHERE name = 'expire'")
    assert (by, ended, problem) == ("scheduler", True, "")
    assert [(result,)] == installation.ask("SELECT request FROM surety.control_request WHERE verb = 'expire'")
