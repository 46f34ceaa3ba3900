"""What operators name and set up: aliases, settings by pattern, administered objects, links to other brokers; each by keyset pages, in one query."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from .rows import rows

PAGE_ROWS = 100
T = TypeVar("T")


@dataclass(slots=True, frozen=True)
class Alias:
    address: str
    target: str
    default_reliability: str
    maximum_reliability: str
    reliability_override: bool


@dataclass(slots=True, frozen=True)
class Policy:
    pattern: str
    settings: dict[str, Any]


@dataclass(slots=True, frozen=True)
class AdministeredObject:
    name: str
    kind: str
    attributes: dict[str, Any]
    read_only: bool
    created_at: datetime


@dataclass(slots=True, frozen=True)
class Link:
    """To another broker; its passcode is not read."""

    name: str
    attributes: dict[str, Any]
    has_passcode: bool
    created_at: datetime


class Kind(Generic[T]):
    """Of what there is a table of. `query` ends in a condition, `key` is the column by which it is sorted and found."""

    def __init__(self, kind: type[T], query: str, key: str) -> None:
        self._kind = kind
        self._query = query
        self._key = key

    def page(self, after: str = "", limit: int = PAGE_ROWS) -> tuple[list[T], str]:
        """At most `limit` that follow `after`; and the key of the next page, empty if this is the last."""
        key = self._key
        found = rows(f"{self._query} AND {key} > %(after)s ORDER BY {key} LIMIT %(limit)s", {"after": after.replace("\x00", ""), "limit": limit + 1})
        shown = [self._made(row) for row in found[:limit]]
        return shown, getattr(shown[-1], key) if len(found) > limit else ""

    def one(self, value: str) -> T | None:
        found = rows(f"{self._query} AND {self._key} = %(value)s", {"value": value.replace("\x00", "")})
        return self._made(found[0]) if found else None

    def _made(self, row: dict[str, Any]) -> T:
        return self._kind(**{name: json.loads(value) if name in ("settings", "attributes") else value for name, value in row.items()})


ALIASES = Kind(
    Alias, "SELECT address, target, default_reliability, maximum_reliability, reliability_override FROM surety.alias WHERE shard = 0", "address"
)
POLICIES = Kind(Policy, "SELECT pattern, settings::text AS settings FROM surety.policy WHERE shard = 0", "pattern")
OBJECTS = Kind(AdministeredObject, "SELECT name, kind, attributes::text AS attributes, read_only, created_at FROM surety.administered WHERE true", "name")
LINKS = Kind(Link, "SELECT name, attributes::text AS attributes, passcode <> '' AS has_passcode, created_at FROM surety.foreign_link WHERE true", "name")
