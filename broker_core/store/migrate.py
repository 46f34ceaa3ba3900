"""Brings a database's schema `surety` up to date: migrations/*.sql in order of name, each once, each in its own transaction. Run by whoever starts a node."""

from __future__ import annotations

import importlib.resources

import psycopg

MIGRATIONS = "broker_core.store.migrations"
LOCK = 0x5355_5245_5459
"""Key of the advisory lock that makes concurrent runners queue: "SURETY" in ASCII."""


def migrations() -> list[tuple[str, str]]:
    """(name, SQL) of every migration, in order."""
    files = importlib.resources.files(MIGRATIONS).iterdir()
    return sorted((file.name, file.read_text("utf-8")) for file in files if file.name.endswith(".sql"))


def migrate(dsn: str) -> list[str]:
    """Apply what is missing; the names applied. Raises psycopg.Error; a migration that fails leaves nothing behind."""
    applied = []
    with psycopg.connect(dsn, autocommit=True, application_name="surety migrate") as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", (LOCK,))
        connection.execute("CREATE SCHEMA IF NOT EXISTS surety")
        connection.execute("CREATE TABLE IF NOT EXISTS surety.migration (name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT clock_timestamp())")
        known = {name for (name,) in connection.execute("SELECT name FROM surety.migration")}
        for name, statements in migrations():
            if name not in known:
                with connection.transaction():
                    connection.execute(statements.encode())
                    connection.execute("INSERT INTO surety.migration (name) VALUES (%s)", (name,))
                applied.append(name)
    return applied
