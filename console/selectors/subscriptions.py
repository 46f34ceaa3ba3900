"""Durable subscriptions of topics, by keyset pages; how much each holds only the node knows (services/subscriptions.py)."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from console.permissions import EVERYTHING, Sight

from .node import HEARTBEAT_SECONDS_MAX
from .destinations import containing
from .rows import rows

PAGE_ROWS = 100
ACTIVE, INACTIVE = STATES = ("active", "inactive")
IDLE_SECONDS_MAX = 10 * 366 * 86_400


@dataclass(slots=True, frozen=True)
class Subscription:
    number: int
    client_id: str
    """Empty: of a shared one without a client identifier."""
    name: str
    address: str
    """The topic, or the pattern of a wildcard subscription, whose members, one a topic, are listed with the same client and name."""
    shared: bool
    selector: str
    no_local: bool
    account: str
    state: str | None
    """None: no node tells whether it has consumers."""
    idle_since: datetime | None
    """When its last consumer left; None: it has some, or nobody knows."""


def page(after: int = 0, limit: int = PAGE_ROWS, idle_seconds: int = 0, within: Sight = EVERYTHING) -> tuple[list[Subscription], str]:
    """At most `limit` whose numbers follow `after`, of all or of those that have had no consumer for so long, of those that `within` shows; and the key of
    the next page, empty if this is the last. One query."""
    shown = _rows("s.subscription > %(after)s", within, {"after": after, "limit": limit + 1, "idle_seconds": idle_seconds})
    return shown[:limit], str(shown[limit - 1].number) if len(shown) > limit else ""


def search(text: str, limit: int, within: Sight = EVERYTHING) -> list[Subscription]:
    """At most so many whose name or client identifier contains it. One query."""
    which = "(s.name ILIKE %(pattern)s OR s.client_id ILIKE %(pattern)s)"
    return _rows(which, within, {"pattern": containing(text), "limit": limit, "idle_seconds": 0})


def by_number(number: int, within: Sight = EVERYTHING) -> Subscription | None:
    found = _rows("s.subscription = %(number)s", within, {"number": number, "limit": 1, "idle_seconds": 0})
    return found[0] if found else None


def _rows(which: str, within: Sight, parameters: dict[str, Any]) -> list[Subscription]:
    condition, shown_only = within.condition("CASE WHEN s.pattern <> '' THEN s.pattern ELSE d.address END")
    found = rows(
        f"""
        WITH holder AS (
            SELECT true AS alive FROM surety.lease
             WHERE shard = 0 AND holder_pid IS NOT NULL
               AND heartbeat_at >= clock_timestamp() - make_interval(secs => %(heartbeat_seconds_max)s))
        SELECT s.subscription AS number, s.client_id, s.name, CASE WHEN s.pattern <> '' THEN s.pattern ELSE d.address END AS address, s.shared, s.selector,
               s.no_local, s.account, CASE WHEN alive THEN CASE s.idle_since WHEN 0 THEN 'active' ELSE 'inactive' END END AS state,
               CASE WHEN s.idle_since > 0 THEN to_timestamp(s.idle_since / 1000.0) END AS idle_since
          FROM surety.subscription s LEFT JOIN surety.destination d USING (shard, destination) LEFT JOIN holder ON true
         WHERE shard = 0 AND {which} AND s.destroyed_at IS NULL AND s.name <> ''
           AND (%(idle_seconds)s = 0 OR s.idle_since BETWEEN 1 AND extract(epoch FROM clock_timestamp()) * 1000 - %(idle_seconds)s::int8 * 1000)
           AND {condition}
         ORDER BY s.subscription LIMIT %(limit)s
        """,
        {**shown_only, **parameters, "heartbeat_seconds_max": HEARTBEAT_SECONDS_MAX},
    )
    return [Subscription(**row) for row in found]


def of_destination(destination: int, after: int = 0, limit: int = PAGE_ROWS) -> tuple[list[Subscription], str]:
    """Durable ones of one topic, members of wildcard subscriptions among them; the rest as `page`. One query, by index."""
    found = rows(
        """
        WITH holder AS (
            SELECT true AS alive FROM surety.lease
             WHERE shard = 0 AND holder_pid IS NOT NULL
               AND heartbeat_at >= clock_timestamp() - make_interval(secs => %(heartbeat_seconds_max)s))
        SELECT s.subscription AS number, s.client_id, s.name, d.address, s.shared, s.selector, s.no_local, s.account,
               CASE WHEN alive THEN CASE s.idle_since WHEN 0 THEN 'active' ELSE 'inactive' END END AS state,
               CASE WHEN s.idle_since > 0 THEN to_timestamp(s.idle_since / 1000.0) END AS idle_since
          FROM surety.subscription s JOIN surety.destination d USING (shard, destination) LEFT JOIN holder ON true
         WHERE shard = 0 AND s.destination = %(destination)s AND s.subscription > %(after)s AND s.destroyed_at IS NULL AND s.name <> ''
         ORDER BY s.subscription LIMIT %(limit)s
        """,
        {"destination": destination, "after": after, "limit": limit + 1, "heartbeat_seconds_max": HEARTBEAT_SECONDS_MAX},
    )
    shown = [Subscription(**row) for row in found[:limit]]
    return shown, str(shown[-1].number) if len(found) > limit else ""


def numbers_of(destination: int) -> list[int]:
    """All that are or were: a queue's own, the durable ones of a topic; the latest thousand. One query, by index."""
    found = rows(
        "SELECT subscription FROM surety.subscription WHERE shard = 0 AND destination = %(destination)s ORDER BY subscription DESC LIMIT 1000",
        {"destination": destination},
    )
    return [row["subscription"] for row in found]


def names_of(numbers: Collection[int]) -> dict[int, str]:
    """Of those that are or were; a queue's own has none, so that it is not here. One query."""
    found = rows(
        "SELECT subscription, name FROM surety.subscription WHERE shard = 0 AND subscription = ANY(%(numbers)s) AND name <> ''", {"numbers": list(numbers)}
    )
    return {row["subscription"]: row["name"] for row in found}


def place_of(number: int, within: Sight = EVERYTHING) -> tuple[int, str] | None:
    """The number and the address of the topic that a subscription is of; None: there is no such, or `within` does not show it, or it is a wildcard one."""
    found = rows(
        """SELECT d.destination, d.address FROM surety.subscription s JOIN surety.destination d USING (shard, destination)
            WHERE shard = 0 AND s.subscription = %(number)s AND s.destroyed_at IS NULL""",
        {"number": number},
    )
    return (found[0]["destination"], found[0]["address"]) if found and within.shows(found[0]["address"]) else None
