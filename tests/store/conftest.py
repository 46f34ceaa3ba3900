"""A PostgreSQL server for the session, and a migrated database for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker_core.store.migrate import migrate
from tests.support.postgres import Server


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    running = Server()
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def template(server: Server) -> str:
    """A database with the schema in it, to be copied."""
    name = server.create_database()
    migrate(server.dsn(name))
    return name


@pytest.fixture
def dsn(server: Server, template: str) -> Iterator[str]:
    name = server.create_database(template)
    yield server.dsn(name)
    server.drop_database(name)
