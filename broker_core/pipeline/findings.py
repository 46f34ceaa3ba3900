"""What an audit has found, as rows of the broker's database: violations, what happened over time, and what was discarded with who asked for it."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice
from typing import Any

import psycopg
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from broker_core.engine.outcome import Outcome

from .runs import Run
from .transforms import audit

DISCARDS_MAX = 100
"""So many requests are told of, those that discarded most; of the others how many messages it was."""
REQUESTS_MAX = 10_000
"""So many of those that may have discarded something are looked at, the newest."""
CLOCKS_MS = 1_000
"""The node's clock, which dates commits, and the database's, which dates requests, may have come apart by so much."""
_PURGED = Outcome.PURGED.name.lower()
PORTION = 10_000
"""Rows that are in memory at once on their way to the database."""
_ASKED = """
SELECT address, request, requested_by, verb, floor(extract(epoch FROM created_at) * 1000)::int8
FROM surety.control_request
WHERE shard = %s AND address = ANY (%s) AND created_at <= to_timestamp(%s / 1000.0)
  AND (verb IN ('purge', 'destroy') OR verb = 'operate' AND arguments ->> 'verb' IN ('purge', 'delete') AND coalesce(arguments ->> 'dry_run', '') <> 'true')
ORDER BY created_at DESC, request DESC LIMIT %s
"""


class Asked:
    """Who asked for what to be discarded, by address and instant."""

    def __init__(self, run: Run, addresses: Sequence[str], until: int) -> None:
        """`until`: in ms. Raises psycopg.Error."""
        found = run.connection.execute(_ASKED, [run.shard, list(addresses), until + CLOCKS_MS, REQUESTS_MAX]).fetchall()
        self._instants: dict[str, list[int]] = {}
        self._requests: dict[str, list[dict[str, Any]]] = {}
        for address, request, by, verb, at in reversed(found):
            self._instants.setdefault(address, []).append(at)
            self._requests.setdefault(address, []).append({"by": by, "verb": verb, "request": request})

    def before(self, address: str, at: int) -> dict[str, Any]:
        """The newest that was made before then; the first after it if none was, and the clocks may be the reason."""
        instants = self._instants.get(address, [])
        place = max(bisect_right(instants, at) - 1, 0)
        if not instants or instants[place] > at + CLOCKS_MS:
            return {"by": None, "verb": None, "request": None}
        return self._requests[address][place]


def discards(run: Run, verdict: DataFrame, addresses: dict[int, str]) -> list[dict[str, Any]]:
    """What operators discarded, request by request, most messages first; of more than DISCARDS_MAX the rest together, without an address. `number` to `last`
    are commits, `at` is in ms."""
    thrown = verdict.where((f.col("fate") == audit.DISCARDED) & f.col("violation").isNull() & (f.col("outcome") == _PURGED))
    commits = thrown.groupBy("destination", "settled", "settled_at").agg(f.sum("messages").alias("messages")).localCheckpoint()
    until = commits.agg(f.max("settled_at")).first()
    if until is None or until[0] is None:
        return []
    of = [addresses[row.destination] for row in commits.select("destination").distinct().collect() if row.destination in addresses]
    asked = Asked(run, of, until[0])
    found: dict[tuple[int, Any], dict[str, Any]] = {}
    for row in commits.orderBy("settled").toLocalIterator():
        address = addresses.get(row.destination)
        by = asked.before(address or "", row.settled_at)
        new = {"destination": row.destination, "address": address, "number": row.settled, "at": row.settled_at, "messages": 0} | by
        one = found.setdefault((row.destination, by["request"]), new)
        one["messages"] += row.messages
        one["last"] = row.settled
    every = sorted(found.values(), key=lambda one: -one["messages"])
    rest = sum(one["messages"] for one in every[DISCARDS_MAX:])
    more = {"destination": None, "address": None, "requests": len(every) - DISCARDS_MAX, "messages": rest}
    return [*every[:DISCARDS_MAX], *([more] if rest else [])]


def write_violations(connection: psycopg.Connection[Any], number: int, wrong: Sequence[Any], addresses: dict[int, str]) -> None:
    """By the weight of their kinds, so that they are listed so."""
    weighed = sorted(wrong, key=lambda one: (audit.KINDS.index(one.violation), *(one[name] or 0 for name in ("destination", "subscription", "lane", "first"))))
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO surety.pipeline_violation (audit, kind, reason, destination, address, subscription, lane, first, last, messages, accepted, offered, "
            "settled, outcome, evidence) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            [
                (
                    number, one.violation, one.reason, one.destination, addresses.get(one.destination), one.subscription, one.lane, one["first"], one["last"],
                    one.messages, one.accepted, one.offered, one.settled, one.outcome, one.evidence or "[]",
                )
                for one in weighed
            ],
        )  # fmt: skip


def add_counts(connection: psycopg.Connection[Any], shard: int, rolled: DataFrame) -> None:
    """To what earlier audits have found for the same time. `rolled`: of rollups.rolled_up; it is read in portions, as there may be millions of rows."""
    told = rolled.withColumn("start", f.unix_seconds("start")).toLocalIterator()
    with connection.cursor() as cursor:
        while portion := list(islice(told, PORTION)):
            cursor.executemany(
                "INSERT INTO surety.pipeline_rollup AS r (shard, grain, start, destination, subscription, counts) "
                "VALUES (%s, %s, to_timestamp(%s), %s, %s, %s) ON CONFLICT (shard, grain, start, destination, subscription) "
                "DO UPDATE SET counts = surety.add_counts(r.counts, excluded.counts)",
                [(shard, row.grain, row.start, row.destination, row.subscription or 0, json.dumps(row.counts)) for row in portion],
            )
