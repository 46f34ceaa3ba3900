"""A console on a real PostgreSQL. Django is configured here, before any test module imports a model; the database comes with the first test."""

import os
from collections.abc import Iterator
from dataclasses import replace
from unittest.mock import patch

import django
import pytest
from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import setup_test_environment

from broker_core.viewing import page
from console.launch import spark
from console.rates import Rates
from console.static_files import StaticFiles
from tests.console import facts
from tests.console.store_node import StoreNode
from tests.support.postgres import Server

_OURS = {name: value for name, value in os.environ.items() if not name.startswith(("SURETY_", "DATABASE_URL"))}
with patch.dict(
    os.environ,
    {**_OURS, "DJANGO_SETTINGS_MODULE": "console.settings", "SURETY_SECRET_KEY": "only for tests", "DATABASE_URL": "postgresql://nobody@/none"},
    clear=True,
):
    django.setup()
setup_test_environment()
settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # the real one takes 0.3 s on purpose


def _find_once(middleware: StaticFiles) -> None:
    """The files of all packages, which every client of a test would look for anew: a fifth of the time that tests of calls take."""
    if not _files:
        _found(middleware)
        _files.update(middleware.files)
    middleware.files = dict(_files)


_files: dict[str, object] = {}
_found, StaticFiles.add_files_from_finders = StaticFiles.add_files_from_finders, _find_once

OPERATOR, PASSWORD = "olga", "correct horse 9"
EMPTIED = (
    *(f"surety.{name}" for name in (
        "control_request", "destination", "subscription", "destination_statistics", "node_status", "administered", "foreign_link", "alias", "policy",
        "prepared", "prepared_item", "inbox", "operation", "undo", "undo_range", "pipeline_run", "pipeline_audit", "pipeline_violation", "pipeline_rollup",
        "pipeline_replay", "archive", "archive_gap", "archive_reader",
    )),
    "console_loginattempt", "console_apitoken", "console_idempotentcall", "console_totalsreset", "django_session",
)  # fmt: skip
"""Tables that are empty at first."""
# To truncate makes new files for a table and its indexes, which takes longer than most tests; of many rows to delete them does.
EMPTY = f"""
    CREATE FUNCTION empty() RETURNS void LANGUAGE plpgsql AS $$
    DECLARE emptied text; numbered text;
    BEGIN
        FOREACH emptied IN ARRAY '{{{", ".join(EMPTIED)}}}'::text[] LOOP
            IF pg_relation_size(emptied) > 1 << 18 THEN
                EXECUTE 'TRUNCATE ' || emptied;
            ELSE
                EXECUTE 'DELETE FROM ' || emptied;
            END IF;
            FOR numbered IN SELECT pg_get_serial_sequence(emptied, attname) FROM pg_attribute WHERE attrelid = emptied::regclass AND attidentity <> '' LOOP
                PERFORM setval(numbered, 1, false);
            END LOOP;
        END LOOP;
    END $$"""


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    server = Server()
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def migrated(server: Server) -> Iterator[str]:
    """The dsn of a database as `manage.py migrate` leaves it, with one operator and the account guest."""
    server.execute("CREATE DATABASE console")
    connection.close()
    connection.settings_dict |= {"NAME": "console", "USER": "postgres", "HOST": str(server.sockets), "PORT": "", "OPTIONS": {}}
    settings.BROKER = replace(settings.BROKER, database_url=f"postgresql://postgres@/console?host={server.sockets}")
    settings.ADMIN_USER, settings.ADMIN_PASSWORD = OPERATOR, PASSWORD
    call_command("migrate", interactive=False, verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE at_first AS SELECT role, pattern, verbs FROM console_grant ORDER BY id")
        cursor.execute(EMPTY)
        cursor.execute("CREATE TABLE alerts_at_first AS SELECT * FROM console_alertrule")
        cursor.execute("CREATE TABLE access_at_first AS SELECT * FROM surety.access_rule")
    dsn = server.dsn("console")
    facts.empty_audit(dsn)  # of the first start: a process's first test begins as those after it do
    yield dsn
    facts.release()
    connection.close()


@pytest.fixture(autouse=True)
def replays_begun(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Their numbers: no Spark is started for those that a test asks for."""
    begun: list[int] = []
    monkeypatch.setattr(spark, "begin_replay", lambda _log, number, _by: begun.append(number))
    return begun


@pytest.fixture
def database(migrated: str) -> Iterator[str]:
    """The same, as the first start left it; what a test writes is removed after it."""
    apps.get_app_config("console").rates = Rates()
    yield migrated
    facts.release()
    with connection.cursor() as cursor:
        cursor.execute(
            """SET session_replication_role = replica; DELETE FROM surety.audit; SELECT empty(); RESET session_replication_role;
               SELECT setval('surety.audit_entry_seq', 1, false), setval('console_grant_id_seq', 1, false), setval('console_alertrule_id_seq', 100),
                      setval('surety.access_rule_rule_seq', 5, false);
               DELETE FROM surety.account WHERE name <> 'guest'; DELETE FROM auth_user_user_permissions;
               DELETE FROM console_operatorrole; DELETE FROM console_provideridentity; DELETE FROM console_taskrun; DELETE FROM console_grant;
               DELETE FROM console_alert; DELETE FROM console_alertevent; DELETE FROM console_alertrule;
               INSERT INTO console_alertrule SELECT * FROM alerts_at_first;
               DELETE FROM surety.access_rule; INSERT INTO surety.access_rule SELECT * FROM access_at_first;
               INSERT INTO console_grant (role, pattern, verbs) SELECT * FROM at_first;
               DELETE FROM auth_user WHERE username <> %s;
               UPDATE surety.lease SET epoch = 0, holder_pid = NULL, node = NULL, acquired_at = NULL, heartbeat_at = NULL""",
            [OPERATOR],
        )


@pytest.fixture
def node(database: str) -> Iterator[StoreNode]:
    """One that serves, with nothing in it."""
    with StoreNode(database) as running:
        yield running


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of messages ends with what it has found, however busy the machine is."""
    monkeypatch.setattr(page, "SECONDS", 30.0)
    monkeypatch.setattr(page, "GRACE", 30.0)


@pytest.fixture
def stranger(database: str) -> Client:
    return Client()


@pytest.fixture
def viewer(database: str) -> Client:
    """Logged in, without any permission."""
    from django.contrib.auth.models import User

    from tests.console.api import logged_in

    return logged_in(User.objects.create_user("vera"))


@pytest.fixture
def operator(database: str) -> Client:
    """Logged in, with every permission."""
    from django.contrib.auth.models import User

    from tests.console.api import logged_in

    return logged_in(User.objects.get(username=OPERATOR))
