"""Control requests: what was asked of the node, and what became of it."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from broker_core.control import LOOKS

from .rows import rows

WAITING, LAPSED, DONE, REFUSED = STATES = ("waiting", "lapsed", "done", "refused")
"""Lapsed: not answered before its deadline; no node applies it any more."""


@dataclass(slots=True, frozen=True)
class Request:
    number: int
    verb: str
    address: str
    arguments: dict[str, Any]
    requested_by: str
    created_at: datetime
    deadline_at: datetime | None
    state: str
    answered_at: datetime | None
    result: dict[str, Any] | None
    """None: the node has not answered."""


def by_number(number: int) -> Request | None:
    """None also of a look: who may see the request's destination may not therefore see messages, and who asked has its answer."""
    found = rows(
        """
        SELECT request AS number, verb, address, arguments::text AS arguments, requested_by, created_at,
               CASE WHEN deadline > 0 THEN to_timestamp(deadline / 1000.0) END AS deadline_at,
               CASE WHEN answered_at IS NOT NULL THEN CASE WHEN done THEN 'done' ELSE 'refused' END
                    WHEN deadline > 0 AND deadline < extract(epoch FROM clock_timestamp()) * 1000 THEN 'lapsed'
                    ELSE 'waiting' END AS state,
               answered_at, result::text AS result
          FROM surety.control_request WHERE shard = 0 AND request = %(number)s AND verb <> ALL (%(looks)s::text[])
        """,
        {"number": number, "looks": list(LOOKS)},
    )
    if not found:
        return None
    row = found[0]
    return Request(**{**row, "arguments": json.loads(row["arguments"]), "result": json.loads(row["result"]) if row["result"] else None})
