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


def page(before: int = 0, limit: int = PAGE_ROWS) -> tuple[list[Entry], int]:
    """At most `limit` entries older than entry `before` (0: the newest); and the key of the next page, 0 if this is the last. One query."""
    found = rows(
        """
        SELECT audit.entry, audit.at, audit.who, audit.origin, audit.what, audit.address, audit.arguments::text AS arguments, audit.request,
               audit.request IS NULL OR control_request.answered_at IS NOT NULL AS answered,
               control_request.done, coalesce(audit.result, control_request.result, '{}')::text AS result
          FROM surety.audit LEFT JOIN surety.control_request ON control_request.shard = 0 AND control_request.request = audit.request
         WHERE %(before)s = 0 OR audit.entry < %(before)s
         ORDER BY audit.entry DESC LIMIT %(limit)s
        """,
        {"before": before, "limit": limit + 1},
    )
    shown = [Entry(**{**row, "arguments": json.loads(row["arguments"]), "result": json.loads(row["result"])}) for row in found[:limit]]
    return shown, shown[-1].entry if len(found) > limit else 0
