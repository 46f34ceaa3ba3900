"""What has been counted since an operator reset totals. The totals themselves go on growing, as whoever computes rates from them wants it: a reset remembers
what they were, and here that is taken off.

A difference is never negative: totals may be lower than what is remembered of them where a node died before it had stored what it counted last.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .destinations import Destination
from .node import HEARTBEAT_SECONDS_MAX
from .rows import rows

TOTALS = ("accepted_total", "settled_total", "dead_total", "expired_total", "redelivered_total")
ALL = 0
"""In place of a destination: when those of the whole broker were reset."""


@dataclass(slots=True, frozen=True)
class Since:
    """What was counted since then. None: unknown, as no node tells it."""

    at: datetime
    accepted_total: int | None
    settled_total: int | None
    dead_total: int | None
    expired_total: int | None
    redelivered_total: int | None


_REMEMBERED = f"SELECT at, {', '.join(TOTALS)} FROM console_totalsreset"
# Of every row that the sums are of; what came into being after the reset counts from its beginning on. Without a reset nothing is summed.
_OF_ALL = f"""
    WITH reset AS (SELECT at FROM console_totalsreset WHERE destination = {ALL} AND of_broker),
    holder AS (
        SELECT 1 AS held FROM surety.lease
         WHERE shard = 0 AND holder_pid IS NOT NULL
           AND heartbeat_at >= clock_timestamp() - make_interval(secs => %(heartbeat_seconds_max)s)),
    sums AS (
        SELECT {", ".join(f"coalesce(sum(greatest(0, told.{name} - coalesce(remembered.{name}, 0))), 0)::int8 AS {name}" for name in TOTALS)}
          FROM reset CROSS JOIN holder CROSS JOIN surety.destination_statistics told JOIN surety.destination USING (shard, destination)
          LEFT JOIN console_totalsreset remembered ON remembered.destination = told.destination AND remembered.of_broker
         WHERE shard = 0)
    SELECT reset.at, {", ".join(f"CASE WHEN held = 1 THEN sums.{name} END AS {name}" for name in TOTALS)}
      FROM reset CROSS JOIN sums LEFT JOIN holder ON true"""


def of_destination(it: Destination) -> Since | None:
    """None: its totals were never reset. One query."""
    found = rows(f"{_REMEMBERED} WHERE destination = %(number)s AND NOT of_broker", {"number": it.number})
    if not found:
        return None
    [remembered] = found
    return Since(remembered["at"], **{name: _difference(getattr(it, name), remembered[name]) for name in TOTALS})


def of_all() -> Since | None:
    """Of the sums over all destinations. None: they were never reset. One query."""
    found = rows(_OF_ALL, {"heartbeat_seconds_max": HEARTBEAT_SECONDS_MAX})
    return Since(**found[0]) if found else None


def told(totals: Any, since: Since | None) -> list[dict[str, Any]]:
    """For a page: what each total is called, what it is, and what it is since the reset. `totals`: a mapping, or None."""
    words = ("Accepted", "Settled", "Dead", "Expired", "Redelivered")
    return [
        {"label": label, "total": (totals or {}).get(name), "since": getattr(since, name) if since else None}
        for label, name in zip(words, TOTALS, strict=True)
    ]


def _difference(now: int | None, then: int) -> int | None:
    return None if now is None else max(0, now - then)
