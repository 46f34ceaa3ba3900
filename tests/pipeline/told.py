"""What a ledger tells, as frames: of rows that a test makes up, and of those that the in-memory store has kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from broker_core.engine.message import VOLATILE
from broker_core.engine.recovered import LedgerRow
from broker_core.pipeline.examination import HOLDINGS, Examination, Matter, examine, no_state
from broker_core.pipeline.schema import CAUSES, COMMITS, DESTINATIONS, EVENTS, OUTCOMES, SUBSCRIPTIONS
from broker_core.pipeline.tables import ranges_of
from broker_core.store.memory_tables import Tables

QUEUE, SUBSCRIPTION, DEAD, DEAD_SUBSCRIPTION, TOPIC = 1, 1, 2, 2, 3
ADDRESSES = {QUEUE: "queue/orders", DEAD: "queue/mq.sys.dmq", TOPIC: "topic/news"}
START = 1_790_000_000_000

_QUICK = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN", "spark.sql.adaptive.enabled": "false"}


@contextmanager
def quick(spark: SparkSession) -> Iterator[None]:
    """Plans are interpreted as they are: of a few rows that is much the quicker way."""
    before = {name: spark.conf.get(name) for name in _QUICK}
    for name, value in _QUICK.items():
        spark.conf.set(name, value)
    yield
    for name, known in before.items():
        spark.conf.set(name, known or "")


Holding = tuple[str, int, int | None, int, int, int]


def row(number: int, **told: Any) -> LedgerRow:
    """A commit each second; what is told as engine.recovered.LedgerRow has it."""
    lists: dict[str, Any] = {name: [] for name in ("accepted", "offered", "settled", "failures")}
    return LedgerRow(number, START + 1000 * number, 10 * number, 1, **(lists | told))


def begins(number: int = 1) -> LedgerRow:
    """The queue and the dead message queue are made."""
    return row(number, begun=[(SUBSCRIPTION, QUEUE), (DEAD_SUBSCRIPTION, DEAD)])


def _at(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def _events(rows: Sequence[LedgerRow], owners: dict[int, int]) -> list[dict[str, Any]]:
    made = []
    for one in rows:
        owners |= dict(one.begun)
        of: dict[str, list[dict[str, Any]]] = {
            "accepted": [{"destination": d, "lane": lane, "first": first, "last": last} for d, lane, first, last in one.accepted],
            "offered": [{"subscription": s, "lane": lane, "first": first, "last": last, "link": link} for s, lane, first, last, link in one.offered],
            "settled": [{"subscription": s, "lane": lane, "first": first, "last": last, "outcome": OUTCOMES[how]} for s, lane, first, last, how in one.settled],
            "failed": [{"subscription": s, "lane": lane, "first": at, "last": at, "count": count} for s, lane, at, count in one.failures],
            "octets": [{"destination": d, "octets": change, "arrived": arrived} for d, change, arrived in one.octets],
            "traced": [
                {
                    "destination": d, "lane": lane, "first": first, "last": last, "cause": CAUSES[kind], "to": to or None,
                    "to_lane": to_lane if to else None, "to_first": to_first if to else None,
                }
                for d, lane, first, last, kind, to, to_lane, to_first in one.traced
            ],
            "begun": [{"subscription": s, "destination": d} for s, d in one.begun],
            "ended": [{"subscription": s or None, "destination": d or owners.get(s)} for s, d in one.ended],
            "blocked": [{"destination": d, "since": _at(since), "until": _at(until)} for d, since, until in one.blocked],
        }  # fmt: skip
        for kind, events in of.items():
            for ordinal, event in enumerate(events):
                if "destination" not in event:
                    event["destination"] = owners.get(event["subscription"])
                event["messages"] = event["last"] - event["first"] + 1 if "first" in event else 0
                made.append({"shard": 0, "number": one.number, "at": _at(one.at), "epoch": 1, "kind": kind, "ordinal": ordinal} | event)
    return made


def events_of(spark: SparkSession, rows: Sequence[LedgerRow], owners: dict[int, int] | None = None) -> DataFrame:
    """schema.EVENTS. `owners`: of subscriptions that no row begins, their destinations."""
    names = [field.name for field in EVENTS]
    made = [tuple(event.get(name) for name in names) for event in _events(rows, dict(owners or {}))]
    return spark.createDataFrame(made, EVENTS, verifySchema=False)


def commits_of(spark: SparkSession, rows: Sequence[LedgerRow], epochs: dict[int, int] | None = None) -> DataFrame:
    made = [(0, one.number, _at(one.at), (epochs or {}).get(one.number, 1), one.sequence, one.segment, 100) for one in rows]
    return spark.createDataFrame(made, COMMITS)


def matter(
    spark: SparkSession, rows: Sequence[LedgerRow], holdings: Sequence[Holding] = (), *, state: DataFrame | None = None, complete: bool = True,
    addresses: dict[int, str] | None = None, owners: dict[int, int] | None = None, **more: Any,
) -> Matter:  # fmt: skip
    now = _at(START)
    known = ADDRESSES if addresses is None else addresses
    destinations = [(0, number, address, address.startswith("topic/"), False, now, True, 0, "{}", None) for number, address in known.items()]
    defined = [(0, s, d, "", "", True, True, "", False, "", "", None, None) for s, d in (owners or {}).items()]
    return Matter(
        events_of(spark, rows, owners), more.pop("commits", None) or commits_of(spark, rows), spark.createDataFrame(destinations, DESTINATIONS),
        spark.createDataFrame(defined, SUBSCRIPTIONS), spark.createDataFrame(list(holdings), HOLDINGS),
        state if state is not None else no_state(spark), complete=complete, **more,
    )  # fmt: skip


def examined(spark: SparkSession, *arguments: Any, **how: Any) -> Examination:
    return examine(matter(spark, *arguments, **how))


def fates(examination: Examination) -> dict[tuple[int, str | None], int]:
    """By destination and fate; None: not proven."""
    return {(one.destination, one.fate): one.messages for one in examination.tally.drop("subscription").collect()}


def wrongs(examination: Examination) -> list[tuple[str, int | None, int, int]]:
    """(violation, destination, first, last)."""
    return sorted((one.violation, one.destination, one["first"], one["last"]) for one in examination.violations.collect())


def held_by(tables: Tables) -> list[Holding]:
    """What the in-memory store holds."""
    found: list[Holding] = []
    for segment in tables.segments.values():
        if segment.compacted:
            continue
        for (destination, lane), rows in segment.lanes.items():
            found += [("row", destination, None, lane, one.position, one.position) for one in rows if lane < VOLATILE]
    found += [("row", destination, None, lane, position, position) for destination, lane, position in tables.retained]
    for branch in tables.prepared.values():
        for subscription, _, message in branch.settled:
            found.append(("reserved", 0, subscription, message.header.lane, message.position, message.position))
    found += [("settled", 0, s, lane, 0, floor - 1) for (s, lane), (floor, _) in tables.cursors.items() if s > 0 and lane < VOLATILE and floor]
    blocks = [(s, lane, ranges_of(block, bits)) for (s, lane, block), bits in tables.blocks.items() if s > 0 and lane < VOLATILE]
    found += [("settled", 0, s, lane, first, last) for s, lane, ranges in blocks for first, last in ranges]
    return sorted(set(found))
