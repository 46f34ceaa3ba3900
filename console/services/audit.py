"""Who asks, and the audit rows that say so. An attempt without the permission is refused and recorded as well."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import PermissionDenied
from django.db import connection

from console.permissions import LOOK, may

CHARACTERS_MAX = 500
"""Of what a row is about: no name that there is has as many."""


@dataclass(slots=True, frozen=True)
class Actor:
    """The person behind a request, and where he sits."""

    user: User | AbstractBaseUser | AnonymousUser
    origin: str = ""
    """IP address, with the token that was shown if one was; or the command line, and whose it is."""
    read_only: bool = False
    """Came with a token that may only look."""
    verbs: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    """Came with a token that may do only these, with these destinations; empty: what its owner may."""

    @property
    def is_limited(self) -> bool:
        """Came with a token that is for some destinations, or some verbs with them: it does nothing of the whole broker."""
        return bool(self.verbs or self.patterns)

    @property
    def name(self) -> str:
        return self.user.get_username() or "a stranger"


def require(actor: Actor, right: str, what: str, address: str = "", *, over: str | None = None, reads: bool = False) -> None:
    """`right`: as `permissions.may` has it, of the destination `over`; None: of `address`, which is what the audit says. `reads`: nothing is changed, so
    that a token that may only read may do it. Raises PermissionDenied, after a row in the audit."""
    if actor.read_only and not reads:
        record(actor.name, actor.origin, what, address, result={"refused": "the token may only read"})
        raise PermissionDenied("This token may only read.")
    if not may(replace(actor, read_only=False) if reads else actor, right, address if over is None else over):
        record(actor.name, actor.origin, what, address, result={"refused": f"needs the permission {right}"})
        raise PermissionDenied(f"You need the permission {right} for this.")


def look(actor: Actor, what: str) -> None:
    """Before a list of what is of the whole broker. Raises PermissionDenied."""
    require(actor, LOOK, what, reads=True)


def record(
    who: str,
    origin: str,
    what: str,
    address: str = "",
    arguments: Mapping[str, Any] | None = None,
    *,
    request: int | None = None,
    result: Mapping[str, Any] | None = None,
) -> None:
    """One audit row, in the caller's transaction. `arguments` must hold no secret."""
    with connection.cursor() as cursor:
        cursor.execute(
            """INSERT INTO surety.audit (who, origin, what, address, arguments, request, result)
               VALUES (%(who)s, %(origin)s, %(what)s, %(address)s, %(arguments)s::jsonb, %(request)s, %(result)s::jsonb)""",
            {
                "who": who,
                "origin": origin,
                "what": _kept(what),
                "address": _kept(address),
                "arguments": json.dumps(dict(arguments or {})),
                "request": request,
                "result": None if result is None else json.dumps(dict(result)),
            },
        )


def _kept(text: str) -> str:
    """Refused attempts are recorded too, and may name anything; NUL is the one character that PostgreSQL cannot keep, and an index takes no long texts."""
    return text[:CHARACTERS_MAX].replace("\x00", "\N{REPLACEMENT CHARACTER}")
