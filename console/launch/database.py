"""Whether there is a database to work with, and whether it is as this version needs it; asked before anything is started: whoever typed the command gets a
sentence, not a trace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.apps import apps
from django.db import Error, connection

from broker_core.config import BrokerConfig
from broker_core.store.migrate import migrations

from .postgres import SOCKET_NAME
from .refusal import CannotStart

POSTGRES_LEAST = 16
"""The first version with pg_input_is_valid, which selective consumers need."""
HINT = "Is the server running"
"""With these words libpq begins a second sentence, which asks what ours tells."""


def check_database(config: BrokerConfig) -> None:
    """Connect once, for at most the three seconds of the settings' connect_timeout for each address, and look at the server's version. Raises
    CannotStart."""
    if config.embedded and not (config.sockets / SOCKET_NAME).exists():
        raise CannotStart(f"No database runs on {config.home}: `make run` starts one, or set DATABASE_URL.")
    probe = _unpooled()  # a pool would try again, and say only that it gave up
    where = f"The database of {config.home}" if config.embedded else "The database that DATABASE_URL names"
    try:
        probe.ensure_connection()
    except Error as error:
        raise CannotStart(f"{where} cannot be used ({_reason(error)}): start it, or correct the setting, and try again.") from error
    version = probe.connection.info.server_version // 10_000
    probe.close()
    if version < POSTGRES_LEAST:
        raise CannotStart(f"{where} is on a server of PostgreSQL {version}: upgrade it to {POSTGRES_LEAST} or later, or name another one, and try again.")


def is_up_to_date() -> bool:
    """The tables are those of this version, and the queues of Celery's transport are there: there is nothing to migrate. At most starts it is so, and to be
    told that by the programs that would do it takes two seconds of processor time. False also if the database does not say: they tell why."""
    found = """SELECT app || '.' || name FROM django_migrations UNION ALL SELECT 'surety.' || name FROM surety.migration
               UNION ALL SELECT 'queue.' || name FROM kombu_queue"""
    try:
        with own_session() as session, session.cursor() as cursor:
            cursor.execute(found)
            return _needed() <= {name for (name,) in cursor.fetchall()}
    except CannotStart:
        return False


def _needed() -> set[str]:
    from broker_core.transport import NODE_QUEUE, TASKS_QUEUE  # Celery and SQLAlchemy: a fifth of what a command costs that only asks if there is a database

    files = {(app.label, file.stem) for app in apps.get_app_configs() for file in Path(app.path, "migrations").glob("[!_]*.py")}
    files |= {("surety", name) for name, _ in migrations()} | {("queue", name) for name in (NODE_QUEUE, TASKS_QUEUE)}
    return {".".join(each) for each in files}


@contextmanager
def own_session() -> Iterator[Any]:
    """A connection that is in no pool: it may end in the middle of a transaction. Raises CannotStart for what the database refuses."""
    session = _unpooled()
    try:
        yield session
    except Error as error:
        raise CannotStart(f"The database refuses: {str(error).strip()}") from error
    finally:
        session.close()


def _unpooled() -> Any:
    session = connection.copy()
    session.settings_dict["OPTIONS"].pop("pool", None)
    return session


def _reason(error: Error) -> str:
    lines = [line.strip() for line in str(error).splitlines()]
    return " ".join(line for line in lines if line and not line.startswith(HINT)).removeprefix("connection failed: ").rstrip(".")
