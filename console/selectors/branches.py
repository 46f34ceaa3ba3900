"""Prepared branches of distributed transactions, by keyset pages; each query goes by the primary key."""

from dataclasses import dataclass
from datetime import datetime

from .rows import rows

PAGE_ROWS = 100
STATES = {4: "prepared", 5: "committed", 6: "rolled back"}
"""The last two: by an administrator's hand, and not forgotten yet."""

_BRANCHES = """
    SELECT branch AS number, xid, account, state, sends, acknowledgements, octets,
           to_timestamp(prepared_at / 1000.0) AS prepared_at, to_timestamp(ended_at / 1000.0) AS ended_at
      FROM surety.prepared WHERE shard = 0"""


@dataclass(slots=True, frozen=True)
class Branch:
    number: int
    xid: str
    account: str
    state: str
    sends: int
    acknowledgements: int
    octets: int
    """Of what it sends."""
    prepared_at: datetime
    ended_at: datetime | None


def page(after: int = 0, limit: int = PAGE_ROWS) -> tuple[list[Branch], str]:
    """At most `limit` whose numbers follow `after`; and the key of the next page, empty if this is the last. One query."""
    found = rows(f"{_BRANCHES} AND branch > %(after)s ORDER BY branch LIMIT %(limit)s", {"after": after, "limit": limit + 1})
    shown = [Branch(**{**row, "state": STATES[row["state"]]}) for row in found[:limit]]
    return shown, str(shown[-1].number) if len(found) > limit else ""


def by_number(number: int) -> Branch | None:
    found = rows(f"{_BRANCHES} AND branch = %(number)s", {"number": number})
    return Branch(**{**found[0], "state": STATES[found[0]["state"]]}) if found else None
