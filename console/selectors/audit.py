"""Who did what, newest first, by keyset pages; with the node's answer where the node was asked."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .rows import rows

PAGE_ROWS = 100


@dataclass(slots=True, frozen=True)
class Entry:
    entry: int
    at: datetime
    who: str
    origin: str
    what: str
    address: str
    arguments: dict[str, Any]
    request: int | None
    answered: bool
    """The node has answered, or nobody had to ask it."""
    done: bool | None
    result: dict[str, Any]


@dataclass(slots=True, frozen=True)
class Wanted:
    """Which entries; what is None is not asked about. Each goes by an index of its own, or by the primary key."""

    who: str | None = None
    what: str | None = None
    address: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    refused: bool = False
    """Only attempts that were refused before anything was done."""

    def condition(self) -> tuple[str, dict[str, Any]]:
        asked = {name: getattr(self, name) for name in _CONDITIONS if getattr(self, name) is not None}
        given = {name: value.replace("\x00", "") if isinstance(value, str) else value for name, value in asked.items()}
        return " AND ".join([*(_CONDITIONS[name] for name in asked), *(["audit.result ? 'refused'"] if self.refused else [])]) or "true", given


_CONDITIONS = {
    "who": "audit.who = %(who)s",
    "what": "audit.what = %(what)s",
    "address": "audit.address = %(address)s AND audit.address <> ''",
    "since": "audit.at >= %(since)s",
    "until": "audit.at < %(until)s",
}
EVERY = Wanted()


def page(before: int = 0, limit: int = PAGE_ROWS, wanted: Wanted = EVERY) -> tuple[list[Entry], int]:
    """At most `limit` entries older than entry `before` (0: the newest); and the key of the next page, 0 if this is the last. One query."""
    condition, given = wanted.condition()
    found = rows(
        f"""
        SELECT audit.entry, audit.at, audit.who, audit.origin, audit.what, audit.address, audit.arguments::text AS arguments, audit.request,
               audit.request IS NULL OR control_request.answered_at IS NOT NULL AS answered,
               control_request.done, coalesce(audit.result, control_request.result, '{{}}')::text AS result
          FROM surety.audit LEFT JOIN surety.control_request ON control_request.shard = 0 AND control_request.request = audit.request
         WHERE (%(before)s = 0 OR audit.entry < %(before)s) AND {condition}
         ORDER BY audit.entry DESC LIMIT %(limit)s
        """,
        {**given, "before": before, "limit": limit + 1},
    )
    shown = [Entry(**{**row, "arguments": json.loads(row["arguments"]), "result": json.loads(row["result"])}) for row in found[:limit]]
    return shown, shown[-1].entry if len(found) > limit else 0
