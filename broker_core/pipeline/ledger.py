"""The ledger as partitions that are read beside each other: each an interval of commits of one of its tables, in one snapshot, batch by batch."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa

from broker_core.engine.message import VOLATILE as VOLATILE_LANES

from . import schema
from .columns import Frame, Numbers, arrays_stay_octets, instants, numbers, words
from .database import columns_of, is_there, ledger_table, snapshot
from .extents import Interval, is_told

BATCH_EVENTS = 65_536
"""About so many at a time, about 10 MiB in memory."""
COMMITS_FIRST = 256
"""Of the first batch; from what it brings follows how many the next has."""

_SIZES = {"int2": 2, "int4": 4, "int8": 8}
_RANGES: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    schema.ACCEPTED: ("accepted", (("destination", "int4"), ("lane", "int2"), ("first", "int8"), ("last", "int8"))),
    schema.OFFERED: ("offered", (("subscription", "int4"), ("lane", "int2"), ("first", "int8"), ("last", "int8"), ("link", "int8"))),
    schema.SETTLED: ("settled", (("subscription", "int4"), ("lane", "int2"), ("first", "int8"), ("last", "int8"), ("outcome", "int2"))),
    schema.FAILED: ("failures", (("subscription", "int4"), ("lane", "int2"), ("position", "int8"), ("count", "int4"))),
    schema.OCTETS: ("octets", (("destination", "int4"), ("change", "int8"), ("arrived", "int8"))),
    schema.TRACED: (
        "traced",
        (
            ("destination", "int4"), ("lane", "int2"), ("first", "int8"), ("last", "int8"), ("kind", "int2"),
            ("to", "int4"), ("to_lane", "int2"), ("to_first", "int8"),
        ),
    ),
    schema.BEGUN: ("begun", (("subscription", "int4"), ("destination", "int4"))),
    schema.ENDED: ("ended", (("subscription", "int4"), ("destination", "int4"))),
    schema.BLOCKED: ("blocked", (("destination", "int4"), ("since", "int8"), ("until", "int8"))),
}  # fmt: skip
_UNKNOWN = {"arrived": -1}
"""What stands for NULL in columns that rows of earlier versions do not have."""
_COMMITS = (("number", "int8"), ("at", "int8"), ("epoch", "int8"), ("sequence", "int8"), ("segment", "int4"), ("weight", "int8"))


class LedgerDropped(RuntimeError):
    """Commits that were to be read are gone: the ledger was trimmed meanwhile. The message says which."""


# -- reading --------------------------------------------------------------------------------------------------------------------------
def commits_of(url: str, interval: Interval) -> Iterator[pa.RecordBatch]:
    """Batches of schema.COMMITS. Raises LedgerDropped, psycopg.Error."""
    frame = Frame(schema.COMMITS)
    with snapshot(url) as connection:
        for _, commits in _steps(connection, interval):
            told = {name: instants(values) if name == "at" else values for name, values in commits.items()}
            yield frame.batch(len(commits["number"]), {"shard": interval.shard, **told})


def events_of(url: str, interval: Interval, kinds: Collection[str] = schema.KINDS) -> Iterator[pa.RecordBatch]:
    """Batches of schema.EVENTS, each of one kind. Raises LedgerDropped, psycopg.Error."""
    frame = Frame(schema.EVENTS)
    with snapshot(url) as connection:
        steps = _steps(connection, interval)
        owners, there = None, frozenset[str]()
        for step, commits in steps:
            if owners is None:
                owners = _owners(connection, interval.shard)
                there = columns_of(connection, ledger_table(interval.shard, interval.segment)) or there
            events = 0
            for kind in schema.KINDS:
                if kind not in kinds:
                    continue
                ranges = _ranges(connection, interval, step, kind, there)
                if rows := len(ranges["number"]):
                    events += rows
                    yield frame.batch(rows, {"shard": interval.shard, "kind": kind, **_event(ranges, commits, owners)})
            step.events = events


@dataclass(slots=True)
class _Step:
    after: int
    upto: int
    events: int = 0
    """What it came to, told by who reads them; from that follows the next one."""


def _steps(connection: psycopg.Connection[Any], interval: Interval) -> Iterator[tuple[_Step, dict[str, Numbers]]]:
    """The interval's commits in bounded steps."""
    table = ledger_table(interval.shard, interval.segment)
    if not is_there(connection, table):
        if is_told(connection, interval):
            return
        raise LedgerDropped(
            f"commits {interval.after + 1} to {interval.upto} were dropped from the ledger before they were read: they were older than it is kept; "
            "read again from a later commit, or have a pipeline run regularly, which the ledger waits for"
        )
    arrays_stay_octets(connection)
    after, commits = interval.after, COMMITS_FIRST
    while after < interval.upto:
        step = _Step(after, min(after + commits, interval.upto))
        found = _aggregated(connection, table, step, _COMMITS, "l")
        if len(found["number"]):
            yield step, found
        after = step.upto
        commits = min(max(commits * BATCH_EVENTS // max(step.events, 1), 1), commits * 4, BATCH_EVENTS)


def _ranges(connection: psycopg.Connection[Any], interval: Interval, step: _Step, kind: str, there: Collection[str]) -> dict[str, Numbers]:
    """`there`: the columns of the table; NULL stands for those that an earlier version has not made."""
    name, columns = _RANGES[kind]
    arrays = ", ".join(f"l.{name}_{column}" if f"{name}_{column}" in there else f"NULL::{of}[]" for column, of in columns)
    names = ", ".join(f'"{column}"' for column, _ in columns)
    source = f"LATERAL ROWS FROM (unnest({arrays})) AS r ({names})"
    return _aggregated(connection, ledger_table(interval.shard, interval.segment), step, columns, "r", source)


def _aggregated(
    connection: psycopg.Connection[Any], table: str, step: _Step, columns: Sequence[tuple[str, str]], alias: str, source: str = ""
) -> dict[str, Numbers]:
    """Columns of the commits of a step as one array each: of a range the number of its commit is with them."""
    wanted = (("number", "int8"), *columns) if source else columns
    told = {name: f'{"l" if name == "number" else alias}."{name}"' for name, _ in wanted}
    told |= {name: f"coalesce({told[name]}, {number})" for name, number in _UNKNOWN.items() if name in told}
    lists = ", ".join(f"array_agg({told[name]})" for name, _ in wanted)
    # The inner one orders commits by their index; unnest keeps the order within each.
    statement = (
        f"SELECT {lists} FROM (SELECT * FROM {table} WHERE number > {step.after} AND number <= {step.upto} ORDER BY number) AS l"
        + (f", {source}" if source else "")
    )
    row = connection.cursor(binary=True).execute(statement.encode()).fetchone()
    assert row is not None
    return {name: numbers(octets, _SIZES[kind]) for (name, kind), octets in zip(wanted, row, strict=True)}


def _owners(connection: psycopg.Connection[Any], shard: int) -> Numbers:
    """By the number of a subscription its destination; 0: there is none."""
    row = connection.cursor(binary=True).execute(
        "SELECT array_agg(subscription), array_agg(destination) FROM surety.subscription WHERE shard = %s", [shard]
    ).fetchone()  # fmt: skip
    assert row is not None
    subscriptions, destinations = (numbers(octets, 4) for octets in row)
    owners = np.zeros(int(subscriptions.max(initial=0)) + 1, "i4")
    owners[subscriptions] = destinations
    return owners


def _event(ranges: dict[str, Numbers], commits: dict[str, Numbers], owners: Numbers) -> dict[str, Any]:
    """The columns that follow from what the ledger has."""
    number = ranges["number"]
    place = np.searchsorted(commits["number"], number)
    starts = np.flatnonzero(np.diff(number, prepend=number[0] - 1))
    ordinal = np.arange(len(number)) - np.repeat(starts, np.diff(starts, append=len(number)))
    event: dict[str, Any] = {"number": number, "ordinal": ordinal, "at": instants(commits["at"][place]), "epoch": commits["epoch"][place]}
    if "change" in ranges:
        arrived = pa.array(ranges["arrived"], mask=ranges["arrived"] == _UNKNOWN["arrived"])
        return event | {"destination": ranges["destination"], "octets": ranges["change"], "arrived": arrived, "messages": 0}
    if "until" in ranges:
        times = {name: instants(ranges[name]) for name in ("since", "until")}
        return event | {"destination": ranges["destination"], "messages": 0, **times}
    if "lane" not in ranges:
        subscription, destination = ranges["subscription"], ranges["destination"]
        named = np.where(destination > 0, destination, owners[np.where(subscription < len(owners), subscription, 0)])
        return event | {"subscription": _known(subscription), "destination": _known(named), "messages": 0}
    lane = ranges["lane"]
    first = ranges["first"] if "first" in ranges else ranges["position"]
    last = ranges["last"] if "last" in ranges else ranges["position"]
    event |= {"lane": lane, "priority": lane % VOLATILE_LANES, "first": first, "last": last, "messages": last - first + 1}
    event["mode"] = words((lane >= VOLATILE_LANES).astype("i2"), schema.MODES)
    if "subscription" in ranges:
        event["subscription"] = ranges["subscription"]
        event["destination"] = _destinations(ranges["subscription"], owners)
    else:
        event["destination"] = ranges["destination"]
    if "to" in ranges:
        kept = ranges["to"] > 0
        event["cause"] = words(ranges["kind"], schema.CAUSES)
        event |= {name: pa.array(ranges[name], mask=~kept) for name in ("to", "to_lane", "to_first")}
    for name in ("link", "count"):
        if name in ranges:
            event[name] = ranges[name]
    if "outcome" in ranges:
        event["outcome"] = words(ranges["outcome"], schema.OUTCOMES)
    return event


def _known(found: Numbers) -> pa.Array:
    """Null instead of 0."""
    return pa.array(found, pa.int32(), mask=found == 0)


def _destinations(subscriptions: Numbers, owners: Numbers) -> pa.Array:
    return _known(owners[np.where(subscriptions < len(owners), subscriptions, 0)])
