"""Operators of the console, by keyset pages; password hashes are not read."""

from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User

PAGE_ROWS = 100


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


def by_name(name: str) -> Operator | None:
    user = User.objects.defer("password").filter(username=name.replace("\x00", "")).first()
    return _operator(user) if user else None


def _operator(user: User) -> Operator:
    rights = sorted(permission.codename for permission in user.user_permissions.all())
    return Operator(user.username, user.is_superuser, not user.is_active, user.last_login, tuple(rights))
