"""A database that cannot be used is told in one sentence, with exit code 1, before anything was started."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection

from broker_core.config import BrokerConfig
from console.launch import database
from console.launch.database import check_database, is_up_to_date
from console.launch.refusal import CannotStart
from tests.console import facts
from tests.support.postgres import Server
from tests.support.service import free_ports
from tests.tidy.rules import REPOSITORY

SECRET = "sesame-4711"


def manage(home: Path, url: str, command: str, **more: str) -> subprocess.CompletedProcess[str]:
    http, stomp, amqp = free_ports(3)
    ports = {"SURETY_HTTP_PORT": str(http), "SURETY_STOMP_PORT": str(stomp), "SURETY_AMQP_PORT": str(amqp)}
    environment = {"PATH": os.environ["PATH"], "SURETY_HOME": str(home), "DATABASE_URL": url, **ports, **more}
    asked = [sys.executable, "manage.py", command]
    return subprocess.run(asked, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)


@pytest.mark.parametrize("command", ["run", "migrate", "node"])
def test_a_server_that_is_down_is_one_sentence(command: str, tmp_path: Path) -> None:
    [port] = free_ports(1)
    done = manage(tmp_path, f"postgresql://surety:{SECRET}@127.0.0.1:{port}/surety", command)
    assert done.returncode == 1
    [line] = done.stdout.splitlines()
    assert "DATABASE_URL" in line
    assert f"port {port} failed: Connection refused" in line
    assert SECRET not in line


def test_a_database_that_does_not_exist_is_named(server: Server, tmp_path: Path) -> None:
    done = manage(tmp_path, f"postgresql://postgres@/nowhere?host={server.sockets}", "run")
    assert done.returncode == 1
    [line] = done.stdout.splitlines()
    assert 'database "nowhere" does not exist' in line


@pytest.mark.parametrize("url", [f"postgresql://surety:{SECRET}@tail@db.example/surety", f"postgresql://surety:{SECRET}@db.example:port/%zz"])
def test_a_uri_that_libpq_cannot_read_is_refused_without_its_password(url: str, tmp_path: Path) -> None:
    done = manage(tmp_path, url, "run")
    assert done.returncode == 1
    [line] = done.stdout.splitlines()
    assert line.startswith("DATABASE_URL is no URI")
    assert SECRET not in line and "tail" not in line


def test_a_setting_of_the_console_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    done = manage(tmp_path, "postgresql://surety@db.example/surety", "run", SURETY_HTTPS="perhaps")
    assert (done.returncode, done.stdout) == (1, "SURETY_HTTPS is 'perhaps', but must be true or false.\n")


def test_a_database_that_answers_is_no_trouble(migrated: str) -> None:
    check_database(settings.BROKER)
    assert connection.settings_dict["NAME"] == "console", "the console's own connection is as it was"


def test_a_server_that_is_too_old_is_told_with_the_version_that_is_needed(migrated: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "POSTGRES_LEAST", 99)
    with pytest.raises(CannotStart, match=r"is on a server of PostgreSQL \d\d: upgrade it to 99 or later"):
        check_database(settings.BROKER)


@pytest.fixture(scope="module")
def complete(migrated: str) -> Iterator[str]:
    """With the queues of Celery's transport, too."""
    environment = {"PATH": os.environ["PATH"], "DATABASE_URL": settings.BROKER.database_url}
    subprocess.run([sys.executable, "-m", "broker_core.transport"], cwd=REPOSITORY, env=environment, timeout=60, check=True)
    yield migrated
    facts.execute(migrated, "DROP TABLE kombu_message, kombu_queue")


def test_a_database_is_up_to_date_when_all_is_applied_and_the_queues_are_there(complete: str) -> None:
    assert is_up_to_date()


@pytest.mark.parametrize(
    ("table", "name"),
    [("django_migrations", "0009_loginattempt_told"), ("django_migrations", "0001_initial"), ("surety.migration", "0002_%"), ("kombu_queue", "surety-tasks")],
)
def test_without_one_of_them_it_is_not(complete: str, table: str, name: str) -> None:
    facts.execute(complete, f"UPDATE {table} SET name = '?' || name WHERE name LIKE '{name}'")
    try:
        assert not is_up_to_date()
    finally:
        facts.execute(complete, f"UPDATE {table} SET name = substr(name, 2) WHERE name LIKE '?%'")
    assert is_up_to_date()


@pytest.mark.parametrize("name", ["postgres", "nowhere"], ids=["has no tables", "does not answer"])
def test_a_database_that_does_not_say_is_not(complete: str, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(connection.settings_dict, "NAME", name)
    assert not is_up_to_date()


def test_without_the_embedded_server_a_command_says_who_starts_it(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="No database runs on"):
        check_database(BrokerConfig(home=tmp_path))
