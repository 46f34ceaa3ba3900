"""Client accounts, by keyset pages. Verifiers are not read: nobody here needs them."""

from dataclasses import dataclass
from datetime import datetime

from .destinations import containing
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
    groups: list[str]
    connections_max: int
    sessions_max: int
    """0: as many as the broker takes."""
    rotating_until: datetime | None
    """None: only one password is good."""


@dataclass(slots=True, frozen=True)
class AccessRule:
    number: int
    resource: str
    operation: str
    allow: bool
    principal: str
    group: bool


COLUMNS = """name, disabled, loopback_only, persistent_reliability, nonpersistent_reliability, created_at, groups, connections_max, sessions_max,
    CASE WHEN previous_until > clock_timestamp() THEN previous_until END AS rotating_until"""


def by_name(name: str) -> Account | None:
    found = rows(f"SELECT {COLUMNS} FROM surety.account WHERE name = %(name)s", {"name": name.replace("\x00", "")})
    return Account(**found[0]) if found else None


def search(text: str, limit: int) -> list[Account]:
    """At most so many whose names contain it. One query."""
    found = rows(
        f"SELECT {COLUMNS} FROM surety.account WHERE name ILIKE %(pattern)s ORDER BY name LIMIT %(limit)s", {"pattern": containing(text), "limit": limit}
    )
    return [Account(**row) for row in found]


def page(after: str = "", limit: int = PAGE_ROWS, *, search: str = "") -> tuple[list[Account], str]:
    """At most `limit` accounts whose names follow `after` and contain `search`; and the key of the next page, empty if this is the last. One query."""
    found = rows(
        f"""SELECT {COLUMNS} FROM surety.account
            WHERE name > %(after)s AND name ILIKE %(pattern)s ORDER BY name LIMIT %(limit)s""",
        {"after": after.replace("\x00", ""), "pattern": containing(search), "limit": limit + 1},
    )
    shown = [Account(**row) for row in found[:limit]]
    return shown, shown[-1].name if len(found) > limit else ""


def access_page(after: int = 0, limit: int = PAGE_ROWS, *, principal: str = "") -> tuple[list[AccessRule], str]:
    """At most `limit` rules of access whose numbers follow `after`, of one principal if it is said; and the key of the next page, empty if this is the last.
    One query."""
    found = rows(
        """SELECT rule AS number, resource, operation, allow, principal, of_group AS "group" FROM surety.access_rule
            WHERE rule > %(after)s AND %(principal)s IN ('', principal) ORDER BY rule LIMIT %(limit)s""",
        {"after": after, "principal": principal.replace("\x00", ""), "limit": limit + 1},
    )
    shown = [AccessRule(**row) for row in found[:limit]]
    return shown, str(shown[-1].number) if len(found) > limit else ""


def access_rule(number: int) -> AccessRule | None:
    found = rows(
        'SELECT rule AS number, resource, operation, allow, principal, of_group AS "group" FROM surety.access_rule WHERE rule = %(number)s', {"number": number}
    )
    return AccessRule(**found[0]) if found else None
