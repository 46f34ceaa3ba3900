"""API tokens; their hashes are not read."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from console.models import ApiToken
from console.permissions import MANAGE_OPERATOR
from console.services.audit import Actor, require


@dataclass(slots=True, frozen=True)
class Token:
    number: int
    owner: str
    name: str
    scope: str
    verbs: list[str]
    patterns: list[str]
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime | None
    """None: never."""


def of(user: Any, after: int = 0, limit: int = 100) -> tuple[list[Token], str]:
    """One operator's: at most `limit` whose numbers follow `after`; and the key of the next page, empty if this is the last. One query."""
    return _page(ApiToken.objects.filter(owner=user), after, limit)


def all_for(actor: Actor, after: int = 0, limit: int = 100) -> tuple[list[Token], str]:
    """Everybody's, for who may revoke them. One query. Raises PermissionDenied."""
    require(actor, MANAGE_OPERATOR, "token list", reads=True)
    return _page(ApiToken.objects.all(), after, limit)


def _page(among: QuerySet[ApiToken], after: int, limit: int) -> tuple[list[Token], str]:
    found = list(among.select_related("owner").defer("digest").filter(pk__gt=after).order_by("pk")[: limit + 1])
    listed = [
        Token(each.pk, each.owner.get_username(), each.name, each.scope, each.verbs, each.patterns, each.created_at, each.expires_at, each.last_used_at)
        for each in found[:limit]
    ]
    return listed, str(listed[-1].number) if len(found) > limit else ""
