"""Purges and deletions that can be undone, newest first, by keyset pages; what became of them is told for a month. Each query goes by the primary key."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from console.permissions import EVERYTHING, Sight

from .destinations import containing
from .rows import rows

PAGE_ROWS = 100

_UNDO = """
    SELECT undo AS number, verb, address, requested_by, messages, octets, to_timestamp(kept_at / 1000.0) AS kept_at,
           CASE WHEN lapses_at > 0 THEN to_timestamp(lapses_at / 1000.0) END AS lapses_at, to_timestamp(ended_at / 1000.0) AS ended_at,
           coalesce(ended_how, '') AS ended_how
      FROM surety.undo WHERE shard = 0"""


@dataclass(slots=True, frozen=True)
class Undo:
    number: int
    verb: str
    address: str
    requested_by: str
    messages: int
    octets: int
    kept_at: datetime
    lapses_at: datetime | None
    """None: the operation goes on."""
    ended_at: datetime | None
    ended_how: str
    """Why it cannot be undone any more: engine.definitions.UndoEnd; empty: it can."""


def page(
    before: int = 0, limit: int = PAGE_ROWS, *, open_only: bool = False, search: str = "", within: Sight = EVERYTHING
) -> tuple[list[Undo], str]:  # fmt: skip
    """At most `limit` with lower numbers than `before` (0: the newest), of destinations that may be seen; and the key of the next page, empty if this is
    the last. `open_only`: those that can still be undone; `search`: is in the address, or in the name of who discarded it. One query."""
    seen, parameters = within.condition()
    unended = "AND ended_at IS NULL" if open_only else ""
    found = rows(
        f"""{_UNDO} AND (%(before)s = 0 OR undo < %(before)s) AND (address ILIKE %(sought)s OR requested_by ILIKE %(sought)s) AND {seen} {unended}
            ORDER BY undo DESC LIMIT %(limit)s""",
        {"before": before, "limit": limit + 1, "sought": containing(search), **parameters},
    )
    shown = [_made(row) for row in found[:limit]]
    return shown, str(shown[-1].number) if len(found) > limit else ""


def by_number(number: int, within: Sight = EVERYTHING) -> Undo | None:
    found = rows(f"{_UNDO} AND undo = %(number)s", {"number": number})
    return _made(found[0]) if found and within.shows(found[0]["address"]) else None


def latest_of(address: str) -> Undo | None:
    """What was last discarded of a destination and can still be undone. One query."""
    found = rows(f"{_UNDO} AND ended_at IS NULL AND address = %(address)s ORDER BY undo DESC LIMIT 1", {"address": address})
    return _made(found[0]) if found else None


def _made(row: dict[str, Any]) -> Undo:
    return Undo(**row)
