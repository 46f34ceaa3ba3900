"""What operators name and set up: aliases, settings by pattern, administered objects, links to other brokers; each by keyset pages, in one query."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .rows import rows

PAGE_ROWS = 100


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


ALIASES = "SELECT address, target, default_reliability, maximum_reliability, reliability_override FROM surety.alias WHERE shard = 0"
POLICIES = "SELECT pattern, settings::text AS settings FROM surety.policy WHERE shard = 0"
OBJECTS = "SELECT name, kind, attributes::text AS attributes, read_only, created_at FROM surety.administered WHERE true"
LINKS = "SELECT name, attributes::text AS attributes, passcode <> '' AS has_passcode, created_at FROM surety.foreign_link WHERE true"


def alias_page(after: str = "", limit: int = PAGE_ROWS) -> tuple[list[Alias], str]:
    """At most `limit` that follow `after`; and the key of the next page, empty if this is the last. So are the others."""
    return _page(Alias, ALIASES, "address", after, limit)


def alias(address: str) -> Alias | None:
    return _one(Alias, ALIASES, "address", address)


def policy_page(after: str = "", limit: int = PAGE_ROWS) -> tuple[list[Policy], str]:
    return _page(Policy, POLICIES, "pattern", after, limit)


def policy(pattern: str) -> Policy | None:
    return _one(Policy, POLICIES, "pattern", pattern)


def object_page(after: str = "", limit: int = PAGE_ROWS) -> tuple[list[AdministeredObject], str]:
    return _page(AdministeredObject, OBJECTS, "name", after, limit)


def administered_object(name: str) -> AdministeredObject | None:
    return _one(AdministeredObject, OBJECTS, "name", name)


def link_page(after: str = "", limit: int = PAGE_ROWS) -> tuple[list[Link], str]:
    return _page(Link, LINKS, "name", after, limit)


def link(name: str) -> Link | None:
    return _one(Link, LINKS, "name", name)


def _page(kind: type[Any], query: str, key: str, after: str, limit: int) -> tuple[list[Any], str]:
    found = rows(f"{query} AND {key} > %(after)s ORDER BY {key} LIMIT %(limit)s", {"after": after.replace("\x00", ""), "limit": limit + 1})
    shown = [_made(kind, row) for row in found[:limit]]
    return shown, getattr(shown[-1], key) if len(found) > limit else ""


def _one(kind: type[Any], query: str, key: str, value: str) -> Any:
    found = rows(f"{query} AND {key} = %(value)s", {"value": value.replace("\x00", "")})
    return _made(kind, found[0]) if found else None


def _made(kind: type[Any], row: dict[str, Any]) -> Any:
    return kind(**{name: json.loads(value) if name in ("settings", "attributes") else value for name, value in row.items()})
