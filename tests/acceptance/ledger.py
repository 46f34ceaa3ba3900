"""What the ledger says about a destination, read straight from its tables: the audit that needs no node."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import psycopg
from psycopg import sql

_TABLES = "SELECT shard, segment FROM surety.ledger_segment ORDER BY shard, segment"
_ACCEPTED = """
SELECT r.lane, r.first, r.last
FROM {table} AS l CROSS JOIN LATERAL unnest(l.accepted_destination, l.accepted_lane, l.accepted_first, l.accepted_last)
     AS r(destination, lane, first, last)
WHERE r.destination = %(destination)s"""
_SETTLED = """
SELECT r.lane, r.first, r.last, r.outcome
FROM {table} AS l CROSS JOIN LATERAL unnest(l.settled_subscription, l.settled_lane, l.settled_first, l.settled_last, l.settled_outcome)
     AS r(subscription, lane, first, last, outcome)
WHERE r.subscription = %(subscription)s"""


@dataclass(slots=True)
class Account:
    """Positions of one queue."""

    accepted: int
    settled: dict[int, int]
    """By outcome (broker_core.engine.outcome.Outcome)."""
    open: list[tuple[int, int, int]]
    """Accepted, yet not settled: (lane, first, last)."""


def account(connection: psycopg.Connection, address: str) -> Account:
    """What became of the queue's messages. Asserts that no position was accepted or settled twice, nor settled without being accepted."""
    row = connection.execute(
        "SELECT d.destination, s.subscription FROM surety.destination AS d JOIN surety.subscription AS s USING (shard, destination) "
        "WHERE d.address = %s AND d.destroyed_at IS NULL",
        [address.lstrip("/")],
    ).fetchone()
    assert row is not None, f"{address} is not in the database"
    keys = {"destination": row[0], "subscription": row[1]}
    accepted: list[tuple[int, int, int]] = []
    settled: list[tuple[int, int, int, int]] = []
    for shard, segment in connection.execute(_TABLES).fetchall():
        table = sql.Identifier("surety", f"ledger_{shard}_{segment}")
        accepted += connection.execute(sql.SQL(_ACCEPTED).format(table=table), keys).fetchall()
        settled += connection.execute(sql.SQL(_SETTLED).format(table=table), keys).fetchall()
    _assert_disjoint("accepted", accepted)
    _assert_disjoint("settled", [entry[:3] for entry in settled])
    outcomes: Counter[int] = Counter()
    for _, first, last, outcome in settled:
        outcomes[outcome] += last - first + 1
    left = _difference(accepted, [entry[:3] for entry in settled])
    return Account(sum(last - first + 1 for _, first, last in accepted), dict(outcomes), left)


def _assert_disjoint(what: str, ranges: list[tuple[int, int, int]]) -> None:
    for (lane, first, last), (next_lane, next_first, next_last) in pairwise(sorted(ranges)):
        assert (lane, last) < (next_lane, next_first), f"{what} twice: {lane}:{first}-{last} and {next_lane}:{next_first}-{next_last}"


def _difference(accepted: list[tuple[int, int, int]], settled: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Ranges of `accepted` without those of `settled`, by merging both in order."""
    gone = sorted(settled, reverse=True)
    left = []
    for lane, first, last in sorted(accepted):
        at = first
        while gone and (gone[-1][0], gone[-1][1]) <= (lane, last):
            settled_lane, settled_first, settled_last = gone[-1]
            assert settled_lane == lane and settled_first >= at, f"settled, never accepted: {gone[-1]}"
            if settled_first > at:
                left.append((lane, at, settled_first - 1))
            at = settled_last + 1
            if settled_last > last:  # it reaches into the next range of accepted positions
                gone[-1] = (lane, last + 1, settled_last)
                at = last + 1
                break
            gone.pop()
        if at <= last:
            left.append((lane, at, last))
    assert not gone, f"settled, never accepted: {gone[:5]}"
    return left


def commits(connection: psycopg.Connection) -> int:
    """The number of the last group commit."""
    row = connection.execute("SELECT shard, max(segment) FROM surety.ledger_segment GROUP BY shard ORDER BY shard LIMIT 1").fetchone()
    assert row is not None, "there is no ledger"
    numbers = []
    for segment in (row[1], row[1] - 1):  # the newest may be created ahead of need and empty
        if connection.execute("SELECT to_regclass(%s)", [f"surety.ledger_{row[0]}_{segment}"]).fetchone() == (None,):
            continue
        table = sql.Identifier("surety", f"ledger_{row[0]}_{segment}")
        found = connection.execute(sql.SQL("SELECT max(number) FROM {}").format(table)).fetchone()
        numbers.append(found[0] if found is not None and found[0] is not None else 0)
    return max(numbers, default=0)
