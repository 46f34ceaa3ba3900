"""API tokens of one operator; their hashes are not read."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from console.models import ApiToken


@dataclass(slots=True, frozen=True)
class Token:
    number: int
    name: str
    scope: str
    verbs: list[str]
    patterns: list[str]
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime | None
    """None: never."""


def of(user: Any, after: int = 0, limit: int = 100) -> tuple[list[Token], str]:
    """At most `limit` whose numbers follow `after`; and the key of the next page, empty if this is the last. One query."""
    found = list(ApiToken.objects.defer("digest").filter(owner=user, pk__gt=after).order_by("pk")[: limit + 1])
    listed = [Token(each.pk, each.name, each.scope, each.verbs, each.patterns, each.created_at, each.expires_at, each.last_used_at) for each in found[:limit]]
    return listed, str(listed[-1].number) if len(found) > limit else ""
