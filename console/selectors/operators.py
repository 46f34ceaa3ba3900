"""Operators of the console, by keyset pages; password hashes are not read."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Q

from console.models import Grant
from console.permissions import ADMINISTRATOR, GRANTABLE, MANAGE_OPERATOR, VIEWER, grants_of, may, role_of
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
    role: str


@dataclass(slots=True, frozen=True)
class Granted:
    number: int
    role: str
    """Empty: it is granted to the operator."""
    operator: str
    pattern: str
    verbs: list[str]


def page(after: str = "", limit: int = PAGE_ROWS, *, search: str = "") -> tuple[list[Operator], str]:
    """At most `limit` operators whose names follow `after` and contain `search`; and the key of the next page, empty if this is the last. Two queries."""
    following = User.objects.defer("password").filter(username__gt=after.replace("\x00", ""), username__icontains=_sought(search)).order_by("username")
    found = list(following.select_related("operatorrole").prefetch_related("user_permissions")[: limit + 1])
    shown = [_operator(user) for user in found[:limit]]
    return shown, shown[-1].name if len(found) > limit else ""


def page_for(actor: Actor, after: str = "", limit: int = PAGE_ROWS, *, search: str = "") -> tuple[list[Operator], str]:
    """The same for superusers. Raises PermissionDenied."""
    require(actor, MANAGE_OPERATOR, "operator list", reads=True)
    return page(after, limit, search=search)


def _sought(text: str) -> str:
    return text[:NAME_CHARACTERS_MAX].replace("\x00", "")


def by_name_for(actor: Actor, name: str) -> Operator | None:
    """Raises PermissionDenied."""
    require(actor, MANAGE_OPERATOR, "operator query", name[:NAME_CHARACTERS_MAX], reads=True)
    return by_name(name)


def rights_of(actor: Actor) -> list[str]:
    """What the actor may do, of GRANTABLE."""
    return sorted(each for each in GRANTABLE if may(actor, f"console.{each}"))


def told_of(actor: Actor) -> dict[str, Any]:
    """Of himself: his role, and what he may do with which destinations, less what his token leaves out."""
    grants = [{"pattern": pattern, "verbs": verbs} for pattern, verbs in grants_of(actor.user)]
    return {"role": role_of(actor.user), "grants": grants, "token_verbs": actor.verbs, "token_patterns": actor.patterns}


def grants_for(actor: Actor, after: int = 0, limit: int = PAGE_ROWS, *, search: str = "") -> tuple[list[Granted], str]:
    """At most `limit` grants whose numbers follow `after`, and whose pattern, role or operator contains `search`; and the key of the next page, empty if
    this is the last. One query. Raises PermissionDenied."""
    require(actor, MANAGE_OPERATOR, "grant list", reads=True)
    sought = _sought(search)
    fits = Q(pattern__icontains=sought) | Q(role__icontains=sought) | Q(user__username__icontains=sought)
    found = list(Grant.objects.select_related("user").filter(fits, pk__gt=after).order_by("pk")[: limit + 1])
    shown = [_granted(grant) for grant in found[:limit]]
    return shown, str(shown[-1].number) if len(found) > limit else ""


def grant_for(actor: Actor, number: int) -> Granted | None:
    """Raises PermissionDenied."""
    require(actor, MANAGE_OPERATOR, "grant query", str(number), reads=True)
    grant = Grant.objects.select_related("user").filter(pk=number).first()
    return _granted(grant) if grant else None


def _granted(grant: Grant) -> Granted:
    return Granted(grant.pk, grant.role, grant.user.get_username() if grant.user else "", grant.pattern, grant.verbs)


def by_name(name: str) -> Operator | None:
    user = User.objects.defer("password").select_related("operatorrole").filter(username=name.replace("\x00", "")).first()
    return _operator(user) if user else None


def _operator(user: User) -> Operator:
    rights = sorted(permission.codename for permission in user.user_permissions.all())
    given = getattr(user, "operatorrole", None)
    role = ADMINISTRATOR if user.is_superuser else given.role if given else VIEWER
    return Operator(user.username, user.is_superuser, not user.is_active, user.last_login, tuple(rights), role)
