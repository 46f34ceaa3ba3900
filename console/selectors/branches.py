"""Prepared branches of distributed transactions, by keyset pages; each query goes by the primary key."""

from dataclasses import dataclass
from datetime import datetime

from .destinations import containing
from .rows import rows

PAGE_ROWS = 100
PREPARED = 4
STATES = {PREPARED: "prepared", 5: "committed", 6: "rolled back"}
"""The last two: by an administrator's hand, and not forgotten yet."""

_BRANCHES = """
    SELECT branch AS number, xid, account, state, sends, acknowledgements, octets,
           to_timestamp(prepared_at / 1000.0) AS prepared_at, to_timestamp(ended_at / 1000.0) AS ended_at,
           greatest(0, extract(epoch FROM clock_timestamp()) - prepared_at / 1000.0)::float8 AS age_seconds
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
    age_seconds: float
    """Since it was prepared, by the database's clock."""


@dataclass(slots=True, frozen=True)
class Item:
    """A message that a branch sends, or one that it acknowledged."""

    number: int
    sends: bool
    address: str | None
    """None: the destination is gone."""
    destination: int
    """Of what was acknowledged; 0: it is none."""
    subscription: int
    position: int
    size: int
    priority: int
    reliability: int
    message_id: str | None


def page(after: int = 0, limit: int = PAGE_ROWS, *, ended: bool | None = None, account: str = "") -> tuple[list[Branch], str]:
    """At most `limit` whose numbers follow `after`: all, or those that are `ended` by hand or are not, or those of one account; and the key of the next
    page, empty if this is the last. One query."""
    which = "" if ended is None else f"AND state {'<>' if ended else '='} {PREPARED}"
    found = rows(
        f"{_BRANCHES} AND branch > %(after)s {which} AND %(account)s IN ('', account) ORDER BY branch LIMIT %(limit)s",
        {"after": after, "account": account.replace("\x00", ""), "limit": limit + 1},
    )
    shown = [Branch(**{**row, "state": STATES[row["state"]]}) for row in found[:limit]]
    return shown, str(shown[-1].number) if len(found) > limit else ""


def search(text: str, limit: int) -> list[Branch]:
    """At most so many whose XID contains it, as it is written or as the text that it stands for. One query; there are never more than ten thousand."""
    found = rows(
        f"{_BRANCHES} AND (xid ILIKE %(pattern)s OR xid ILIKE %(digits)s) ORDER BY branch LIMIT %(limit)s",
        {"pattern": containing(text), "digits": containing(text.encode(errors="replace").hex()), "limit": limit},
    )
    return [Branch(**{**row, "state": STATES[row["state"]]}) for row in found]


def by_number(number: int) -> Branch | None:
    found = rows(f"{_BRANCHES} AND branch = %(number)s", {"number": number})
    return Branch(**{**found[0], "state": STATES[found[0]["state"]]}) if found else None


def items(branch: int, after: int = -1, limit: int = PAGE_ROWS) -> tuple[list[Item], str]:
    """What a branch sends and has acknowledged, in order, without bodies; and the key of the next page, empty if this is the last. One query."""
    found = rows(
        """SELECT i.item AS number, i.outcome = -1 AS sends, coalesce(nullif(i.address, ''), d.address) AS address,
                  CASE WHEN i.outcome = -1 THEN 0 ELSE i.destination END AS destination, i.subscription, i.position, i.size, i.priority, i.reliability,
                  i.message_id
             FROM surety.prepared_item i LEFT JOIN surety.destination d ON d.shard = i.shard AND d.destination = i.destination AND i.outcome <> -1
            WHERE i.shard = 0 AND i.branch = %(branch)s AND i.item > %(after)s ORDER BY i.item LIMIT %(limit)s""",
        {"branch": branch, "after": after, "limit": limit + 1},
    )
    shown = [Item(**row) for row in found[:limit]]
    return shown, str(shown[-1].number) if len(found) > limit else ""
