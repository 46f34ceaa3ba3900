"""Operations on many messages, newest first, by keyset pages; each query goes by the primary key."""

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from console.instants import YEAR_9999_MS
from console.permissions import EVERYTHING, Sight

from .rows import rows

PAGE_ROWS = 100
STATES = ("waiting", "running", "done", "cancelled", "failed")
INSTANTS = ("accepted_from", "accepted_to")
"""Conditions that the node has in ms."""

_COLUMNS = """
    operation AS number, verb, address, arguments::text AS arguments, requested_by, state, looked_at, done, skipped, failed, total, error,
    CASE WHEN started_at > 0 THEN to_timestamp(started_at / 1000.0) END AS started_at, to_timestamp(ended_at / 1000.0) AS ended_at"""
_OPERATIONS = f"SELECT {_COLUMNS} FROM surety.operation WHERE shard = 0"


@dataclass(slots=True, frozen=True)
class Operation:
    number: int
    verb: str
    address: str
    arguments: dict[str, Any]
    requested_by: str
    state: str
    looked_at: int
    done: int
    skipped: int
    failed: int
    total: int | None
    """How many it may come to; None: nobody knows."""
    error: str
    started_at: datetime | None
    ended_at: datetime | None
    told: tuple[tuple[str, str, list[list[int]]], ...] = ()
    """Result, why, and the places of the messages that it is told of; asked for of one operation only."""

    @property
    def destination(self) -> str | None:
        return self.arguments.get("destination")

    @property
    def conditions(self) -> dict[str, Any]:
        """Which messages it is about, with instants as people write them."""
        given = self.arguments.get("filter") or {}
        return {name: _written(value) if name in INSTANTS else value for name, value in given.items()}

    @property
    def as_asked(self) -> dict[str, Any]:
        return self.arguments | ({"filter": self.conditions} if "filter" in self.arguments else {})

    @property
    def dry_run(self) -> bool:
        return bool(self.arguments.get("dry_run"))


def page(before: int = 0, limit: int = PAGE_ROWS, *, open_only: bool = False, within: Sight = EVERYTHING) -> tuple[list[Operation], str]:
    """At most `limit` with lower numbers than `before` (0: the newest), of destinations that may be seen; and the key of the next page, empty if this is
    the last. `open_only`: those that wait or run. One query."""
    seen, parameters = within.condition()
    unended = "AND ended_at IS NULL" if open_only else ""
    found = rows(
        f"{_OPERATIONS} AND (%(before)s = 0 OR operation < %(before)s) AND {seen} {unended} ORDER BY operation DESC LIMIT %(limit)s",
        {"before": before, "limit": limit + 1, **parameters},
    )
    shown = [_made(row) for row in found[:limit]]
    return shown, str(shown[-1].number) if len(found) > limit else ""


def by_numbers(numbers: Collection[int]) -> list[Operation]:
    """Those that there are, in no order; whoever asks sees to it who may see them. One query."""
    return [_made(row) for row in rows(f"{_OPERATIONS} AND operation = ANY(%(numbers)s)", {"numbers": list(numbers)})]


def by_number(number: int, within: Sight = EVERYTHING) -> Operation | None:
    found = rows(f"SELECT {_COLUMNS}, results::text AS told FROM surety.operation WHERE shard = 0 AND operation = %(number)s", {"number": number})
    return _made(found[0]) if found and within.shows(found[0]["address"]) else None


def _written(milliseconds: int) -> str:
    return datetime.fromtimestamp(min(milliseconds, YEAR_9999_MS) / 1000, UTC).isoformat()


def progress() -> list[tuple[Any, ...]]:
    """How far those are that wait or run: their numbers, and what they have looked at. One query, by index."""
    found = rows("SELECT operation, state, looked_at FROM surety.operation WHERE shard = 0 AND ended_at IS NULL ORDER BY operation LIMIT 1000")
    return [tuple(row.values()) for row in found]


def _made(row: dict[str, Any]) -> Operation:
    told = tuple(tuple(each) for each in json.loads(row.get("told", "[]")))
    return Operation(**{**row, "arguments": json.loads(row["arguments"]), "told": told})
