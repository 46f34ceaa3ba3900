"""What alerts compare: of each destination, or of the broker. What nobody knows is None, and neither begins an alert nor ends one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from console.permissions import expression

from . import database, health, node
from .node import HEARTBEAT_SECONDS_MAX
from .rows import rows

COMPARATORS = {">": ">", "<": "<"}
SUBJECTS_MAX = 100
"""Destinations that one rule finds at a time; the first by name. Whoever has more needs no longer list."""
WINDOW_SECONDS = 300
"""Of `died_5m`."""


@dataclass(slots=True, frozen=True)
class Metric:
    words: str
    """As in `{words} of queue/orders is 12`."""
    column: str = ""
    """SQL over destination_statistics, one value a destination."""
    sum: str = ""
    """The same, one value for all destinations of the pattern together: it grows, and what counts is by how much within the window."""

    @property
    def of_destinations(self) -> bool:
        return bool(self.column or self.sum)


_AGE = "greatest(0, extract(epoch FROM clock_timestamp()) - {} / 1000.0)::float8"
METRICS = {
    "depth": Metric("the number of messages", "depth"),
    "octets": Metric("the octets of messages", "octets"),
    "unsettled": Metric("the number of unacknowledged messages", "unsettled"),
    "consumers": Metric("the number of consumers", "consumers"),
    "waiting": Metric("the number of sends that wait for room", "waiting"),
    "oldest_seconds": Metric("the age of the oldest message, in seconds,", f"CASE WHEN depth > 0 THEN {_AGE.format('oldest_at')} ELSE 0 END"),
    "oldest_unsettled_seconds": Metric(
        "the time for which a message is unacknowledged, in seconds,",
        f"CASE WHEN unsettled > 0 THEN {_AGE.format('oldest_unsettled_at')} ELSE 0 END",
    ),
    "unconsumed": Metric("the number of messages without a consumer", "CASE WHEN consumers = 0 THEN depth ELSE 0 END"),
    "died_5m": Metric("the number of messages that died in five minutes", sum="dead_total"),
    "not_ready": Metric("the number of health checks that fail"),
    "standbys": Metric("the number of nodes that stand by"),
    "space_low": Metric("the want of disk space (1: producers wait)"),
    "space_free_octets": Metric("the free space on the database's disk, in octets,"),
    "connections": Metric("the number of connections"),
    "producers_blocked": Metric("the number of connections whose sends wait for room"),
    "memory_level": Metric("the level of memory (0 green to 3 red)"),
    "event_loop_lag_seconds": Metric("the lag of the node's event loop, in seconds,"),
    "in_doubt": Metric("the number of prepared branches in doubt"),
    "in_doubt_seconds": Metric("the time for which a branch is in doubt, in seconds,"),
    "xmin_horizon_age": Metric("the age of the database's oldest snapshot, in transactions,"),
}
_KNOWN = f"""
      FROM surety.destination_statistics statistics JOIN surety.destination defined USING (shard, destination)
      JOIN surety.lease lease USING (shard)
     WHERE shard = 0 AND lease.holder_pid IS NOT NULL AND lease.heartbeat_at >= clock_timestamp() - make_interval(secs => {HEARTBEAT_SECONDS_MAX})
       AND at >= lease.acquired_at AND destroyed_at IS NULL"""


def exceeding(metric: str, pattern: str, comparator: str, threshold: float) -> list[tuple[str, float]]:
    """Address and value of destinations of the pattern that are beyond the threshold, the first by name. One query."""
    column = METRICS[metric].column.replace("%", "%%")
    found = rows(
        f"""SELECT statistics.address, ({column})::float8 AS value {_KNOWN} AND statistics.address ~ %(pattern)s
               AND ({column}) {COMPARATORS[comparator]} %(threshold)s ORDER BY statistics.address LIMIT {SUBJECTS_MAX}""",
        {"pattern": expression(pattern), "threshold": threshold},
    )
    return [(row["address"], row["value"]) for row in found]


def values(metric: str, addresses: Sequence[str]) -> dict[str, float | None]:
    """Of these destinations; those that are gone are left out. One query."""
    found = rows(
        f"""SELECT defined.address, known.value FROM surety.destination defined LEFT JOIN
                   (SELECT statistics.destination, ({METRICS[metric].column})::float8 AS value {_KNOWN}) known USING (destination)
             WHERE defined.shard = 0 AND defined.destroyed_at IS NULL AND defined.address = ANY(%(addresses)s)""",
        {"addresses": list(addresses)},
    )
    return {row["address"]: row["value"] for row in found}


def grown(metric: str, pattern: str) -> int | None:
    """The sum over the pattern's destinations, destroyed ones included; None: no node is alive. One query."""
    known = _KNOWN.replace(" AND destroyed_at IS NULL", "").replace("AND at >= lease.acquired_at", "")
    found = rows(f"SELECT sum({METRICS[metric].sum})::int8 AS total {known} AND statistics.address ~ %(pattern)s", {"pattern": expression(pattern)})
    return found[0]["total"]


def of_broker() -> dict[str, tuple[float | None, str]]:
    """Value, and what there is to say of it, by metric. Three queries."""
    status = node.node_status()
    problems, told = health.problems(status), status.metrics
    waits, server = database.in_doubt(), database.database()
    found: dict[str, Any] = {
        "not_ready": len(problems),
        "standbys": len(status.standbys) if status.alive else None,
        "in_doubt": waits["branches"],
        "in_doubt_seconds": waits["oldest_seconds"] or 0,
        "xmin_horizon_age": server["xmin_horizon_age"],
        **{name: told.get(name) for name in _TOLD},
    }
    details = {"not_ready": " ".join(problems.values())}
    return {name: (None if value is None else float(value), details.get(name, "")) for name, value in found.items()}


_TOLD = ("space_low", "space_free_octets", "connections", "producers_blocked", "memory_level", "event_loop_lag_seconds")
Broker = Callable[[], dict[str, tuple[float | None, str]]]
