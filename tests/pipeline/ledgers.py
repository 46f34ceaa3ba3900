"""A broker's database with a ledger that a test writes commit by commit, in the store's own words."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

import psycopg

from broker_core.engine.writes import Commit
from broker_core.store.ledger import Ledger, create_table

AT = 1_790_000_000_000
"""When the first commit was made, in ms; each is one second later than the one before."""


class LedgerDatabase:
    """`commit` appends a row; `roll` goes on in the next table, `drop` removes one as the size cap does."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.number = 0
        self.connection: psycopg.Connection[Any] = psycopg.connect(url, autocommit=True)
        self._ledger = Ledger(0, 1, 0)
        self.roll()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.connection.close()

    def roll(self) -> int:
        """The number of the new table."""
        self._ledger.roll()
        segment = self._ledger.segment
        self.connection.execute(create_table(0, segment).encode())
        self.connection.execute("INSERT INTO surety.ledger_segment (shard, segment) VALUES (0, %s)", [segment])
        return segment

    def drop(self, segment: int, *, reason: str = "the ledger exceeded its size cap") -> None:
        table = f"surety.ledger_0_{segment}"
        ends = self.connection.execute(f"SELECT min(number), max(number) FROM {table}".encode()).fetchone()
        assert ends is not None
        if reason:
            self.connection.execute("INSERT INTO surety.ledger_gap (shard, first_number, last_number, reason) VALUES (0, %s, %s, %s)", [*ends, reason])
        self.connection.execute(f"DROP TABLE {table}".encode())
        self.connection.execute("DELETE FROM surety.ledger_segment WHERE segment = %s", [segment])

    def commit(self, **told: Any) -> int:
        """`accepted`, `offered`, `settled`, `failures`, `octets`: as engine.writes.Commit has them. Its number."""
        self.number += 1
        commit = Commit(self.number, AT + 1000 * self.number, 10 * self.number, True, 1, **told)
        self.connection.execute(self._ledger.statement(commit, weight=100))
        return self.number

    def queue(self, destination: int, subscription: int, address: str) -> None:
        """A queue and the subscription that is built in."""
        self.destination(destination, address)
        self.subscription(subscription, destination)

    def destination(self, destination: int, address: str) -> None:
        self.connection.execute(
            "INSERT INTO surety.destination (shard, destination, address, created_at, automatic, state, settings) VALUES (0, %s, %s, %s, true, 0, '{}')",
            [destination, address, AT],
        )

    def subscription(self, subscription: int, destination: int, name: str = "") -> None:
        self.connection.execute(
            "INSERT INTO surety.subscription (shard, subscription, destination, name, client_id, shared, selector, no_local, account) "
            "VALUES (0, %s, %s, %s, '', true, '', false, '')",
            [subscription, destination, name],
        )
