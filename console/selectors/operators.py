"""Operators of the console, by keyset pages; password hashes are not read."""

from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User

from console.permissions import GRANTABLE, MANAGE_OPERATOR
from console.services.audit import Actor, require

PAGE_ROWS = 100
NAME_CHARACTERS_MAX = 150


@dataclass(slots=True, frozen=True)
class Operator:
    name: str
    superuser: bool
    disabled: bool
    last_login: datetime | None
    """None: never."""
    rights: tuple[str, ...]


def page(after: str = "", limit: int = PAGE_ROWS) -> tuple[list[Operator], str]:
    """At most `limit` operators whose names follow `after`; and the key of the next page, empty if this is the last. Two queries."""
    following = User.objects.defer("password").filter(username__gt=after.replace("\x00", "")).order_by("username")
    found = list(following.prefetch_related("user_permissions")[: limit + 1])
    shown = [_operator(user) for user in found[:limit]]
    return shown, shown[-1].name if len(found) > limit else ""


def page_for(actor: Actor, after: str = "", limit: int = PAGE_ROWS) -> tuple[list[Operator], str]:
    """The same for superusers. Raises PermissionDenied."""
    require(actor, MANAGE_OPERATOR, "operator list", reads=True)
    return page(after, limit)


def by_name_for(actor: Actor, name: str) -> Operator | None:
    """Raises PermissionDenied."""
    require(actor, MANAGE_OPERATOR, "operator query", name[:NAME_CHARACTERS_MAX], reads=True)
    return by_name(name)


def rights_of(actor: Actor) -> list[str]:
    """What the actor may do, of GRANTABLE."""
    return sorted(each for each in GRANTABLE if actor.user.has_perm(f"console.{each}"))


def by_name(name: str) -> Operator | None:
    user = User.objects.defer("password").filter(username=name.replace("\x00", "")).first()
    return _operator(user) if user else None


def _operator(user: User) -> Operator:
    rights = sorted(permission.codename for permission in user.user_permissions.all())
    return Operator(user.username, user.is_superuser, not user.is_active, user.last_login, tuple(rights))
