"""Connections of the pipeline to the broker's database: they read, in one snapshot, and wait for nobody long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

TIMEOUT_S = 10
"""To connect."""


@contextmanager
def snapshot(url: str) -> Iterator[psycopg.Connection[Any]]:
    """A transaction that only reads and sees one instant. A table that it has read is not dropped before it ends; the janitor does not wait, it comes again.
    Raises psycopg.Error."""
    with psycopg.connect(url, application_name="surety pipeline", connect_timeout=TIMEOUT_S) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        # Plans of short scans, in order, one process each: Spark is what does several at a time.
        connection.execute("SET LOCAL max_parallel_workers_per_gather = 0; SET LOCAL jit = off")
        yield connection


def ledger_table(shard: int, segment: int) -> str:
    return f"surety.ledger_{int(shard)}_{int(segment)}"


def is_there(connection: psycopg.Connection[Any], table: str) -> bool:
    """Whether the table can be read until the transaction ends: looking at it takes the lock that keeps it."""
    return columns_of(connection, table) is not None


def columns_of(connection: psycopg.Connection[Any], table: str) -> frozenset[str] | None:
    """Those that the table has, which may be of an earlier version; None: it is not there. Otherwise it is until the transaction ends."""
    try:
        with connection.transaction():
            found = connection.execute(f"SELECT * FROM {table} LIMIT 0".encode()).description
    except psycopg.errors.UndefinedTable:
        return None
    return frozenset(column.name for column in found or ())
