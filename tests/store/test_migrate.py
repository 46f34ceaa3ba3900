"""Migrations: each once, whoever runs them, and none half."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from broker_core.store import migrate
from broker_core.store.queries import QUERIES
from tests.support.postgres import Server


@pytest.fixture
def empty(server: Server) -> Iterator[str]:
    name = server.create_database()
    yield server.dsn(name)
    server.drop_database(name)


def names(dsn: str) -> list[str]:
    with psycopg.connect(dsn) as connection:
        return [name for (name,) in connection.execute("SELECT name FROM surety.migration ORDER BY name")]


def test_a_migration_that_fails_leaves_nothing_behind_and_those_before_it_stand(empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = migrate.migrations()
    broken = ("9999_broken.sql", "CREATE TABLE surety.half (n int); SELECT 1 / 0;")
    monkeypatch.setattr(migrate, "migrations", lambda: [*found, broken])
    with pytest.raises(psycopg.errors.DivisionByZero):
        migrate.migrate(empty)
    assert names(empty) == [name for name, _ in found]
    with psycopg.connect(empty) as connection:
        assert connection.execute("SELECT to_regclass('surety.half'), to_regclass('surety.lease')").fetchone() == (None, "surety.lease")


def test_running_them_again_does_nothing(empty: str) -> None:
    assert migrate.migrate(empty) == [name for name, _ in migrate.migrations()] != []
    assert migrate.migrate(empty) == []


def test_runners_side_by_side_apply_each_once(empty: str) -> None:
    with ThreadPoolExecutor(4) as runners:
        applied = [name for names in runners.map(migrate.migrate, [empty] * 4) for name in names]
    assert sorted(applied) == names(empty)


@pytest.mark.parametrize("earlier", ["", "ALTER TABLE surety.operation ADD results jsonb NOT NULL DEFAULT '[]'"])
def test_a_home_of_an_earlier_version_gets_what_recovery_reads(empty: str, monkeypatch: pytest.MonkeyPatch, earlier: str) -> None:
    """One version has made the column together with the table."""
    first, *later = migrate.migrations()
    with monkeypatch.context() as before:
        before.setattr(migrate, "migrations", lambda: [(first[0], first[1] + earlier)])
        migrate.migrate(empty)
    assert migrate.migrate(empty) == [name for name, _ in later]
    with psycopg.connect(empty) as connection:
        assert connection.execute(QUERIES["operations_read"], {"shard": 0}).fetchall() == []


def test_every_key_carries_the_shard(dsn: str) -> None:
    """R18; but for accounts, rules of access, administered objects, links, the audit, what the pipeline did and found, the installation's name and the
    migrations themselves."""
    with psycopg.connect(dsn) as connection:
        rows = connection.execute(
            """
            SELECT i.indrelid::regclass::text, i.indexrelid::regclass::text, a.attname
            FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid JOIN pg_namespace n ON n.oid = t.relnamespace
            JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
            WHERE n.nspname = 'surety'
            """
        ).fetchall()
    names = ("account", "access_rule", "administered", "foreign_link", "audit", "migration", "installation")
    names += ("pipeline_run", "pipeline_audit", "pipeline_violation", "pipeline_replay")
    global_tables = {f"surety.{name}" for name in names}
    assert {(table, index) for table, index, first in rows if table not in global_tables and first != "shard"} == set()
    assert len(rows) > 15
