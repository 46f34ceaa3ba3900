"""Client accounts, by keyset pages. Verifiers are not read: nobody here needs them."""

from dataclasses import dataclass
from datetime import datetime

from .rows import rows

PAGE_ROWS = 100


@dataclass(slots=True, frozen=True)
class Account:
    name: str
    disabled: bool
    loopback_only: bool
    persistent_reliability: str
    nonpersistent_reliability: str
    """What delivery modes stand for; empty: nothing particular."""
    created_at: datetime


COLUMNS = "name, disabled, loopback_only, persistent_reliability, nonpersistent_reliability, created_at"


def by_name(name: str) -> Account | None:
    found = rows(f"SELECT {COLUMNS} FROM surety.account WHERE name = %(name)s", {"name": name.replace("\x00", "")})
    return Account(**found[0]) if found else None


def page(after: str = "", limit: int = PAGE_ROWS) -> tuple[list[Account], str]:
    """At most `limit` accounts whose names follow `after`; and the key of the next page, empty if this is the last. One query."""
    found = rows(
        f"""SELECT {COLUMNS} FROM surety.account
            WHERE name > %(after)s ORDER BY name LIMIT %(limit)s""",
        {"after": after.replace("\x00", ""), "limit": limit + 1},
    )
    shown = [Account(**row) for row in found[:limit]]
    return shown, shown[-1].name if len(found) > limit else ""
