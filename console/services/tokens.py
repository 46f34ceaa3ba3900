"""Tokens by which machines use the REST API, each in the name of the operator who made it."""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from console.models import ApiToken
from console.permissions import MANAGE_OPERATOR, VERBS, invalid_pattern, may

from . import login
from .audit import Actor, record
from .refusals import AlreadyThere, NotThere

PREFIX = "surety_"
"""By it a token that lies where it should not is recognised."""
TOKEN_CHARACTERS_MAX = 100
NAME_CHARACTERS_MAX = 100
DAYS, DAYS_MAX = 90, 366
OWN_MAX = 100
"""Tokens of one operator."""
PATTERNS_MAX = 20
"""Of one token: its row is read by each call."""
USE_SECONDS = 60
"""The time of the last use is written at most so often."""
GUESSES = "an API token"
"""The name under which wrong tokens are counted, beside logins."""


class InvalidToken(ValueError):
    """The token cannot be made or revoked like this; the message is a sentence that says why."""


class TokenExists(InvalidToken, AlreadyThere):
    """Another of the owner's has the name."""


class NoToken(InvalidToken, NotThere):
    """None that the actor may revoke has the number."""


@dataclass(slots=True, frozen=True)
class Made:
    number: int
    token: str
    """Shown once: it is kept nowhere."""


def create(
    actor: Actor, name: str, scope: str, days: int = DAYS, *, verbs: Sequence[str] = (), patterns: Sequence[str] = (), by_token: bool = False
) -> Made:
    """A token of the actor's own, for these verbs and destinations at most; none named: for all that he may, also what is of the whole broker.
    Who came by a token makes none: it would outlive the first. Raises PermissionDenied, InvalidToken."""
    if by_token or actor.read_only or not actor.user.is_authenticated:
        record(actor.name, actor.origin, "token create", name[:NAME_CHARACTERS_MAX], result={"refused": "a token makes no tokens"})
        raise PermissionDenied("Tokens are made by who has logged in, not by another token.")
    if not (0 < len(name) <= NAME_CHARACTERS_MAX and name.isprintable() and name.strip() == name):
        raise InvalidToken(f"Give the token a name of 1 to {NAME_CHARACTERS_MAX} printable characters, without outer spaces.")
    if scope not in ApiToken.SCOPES:
        raise InvalidToken(f"The scope must be one of {', '.join(ApiToken.SCOPES)}.")
    if not 0 < days <= DAYS_MAX:
        raise InvalidToken(f"A token lasts 1 to {DAYS_MAX} days.")
    if not set(verbs) <= set(VERBS):
        raise InvalidToken(f"The verbs must be of {', '.join(VERBS)}.")
    if len(patterns) > PATTERNS_MAX:
        raise InvalidToken(f"A token has at most {PATTERNS_MAX} patterns.")
    for pattern in patterns:
        if problem := invalid_pattern(pattern):
            raise InvalidToken(f"The pattern {pattern[:80]} is not valid: {problem}.")
    limits = {"verbs": [verb for verb in VERBS if verb in verbs], "patterns": list(dict.fromkeys(patterns))}
    token = PREFIX + secrets.token_urlsafe(32)
    now = timezone.now()
    if ApiToken.objects.filter(owner=actor.user).count() >= OWN_MAX:
        raise InvalidToken(f"You have {OWN_MAX} tokens: revoke those that nobody uses.")
    try:
        with transaction.atomic():
            made = ApiToken.objects.create(
                owner=actor.user, name=name, digest=_digest(token), scope=scope, created_at=now, expires_at=now + timedelta(days=days), **limits
            )
            record(actor.name, actor.origin, "token create", name, {"scope": scope, "days": days, **limits})
    except IntegrityError as error:
        raise TokenExists(f"You have a token {name} already.") from error
    return Made(made.pk, token)


def revoke(actor: Actor, number: int) -> None:
    """One's own; a superuser anybody's. By a token that is limited to verbs or destinations nobody's. Raises PermissionDenied, InvalidToken."""
    everybody = may(actor, MANAGE_OPERATOR)
    mine = Q() if everybody else Q(owner=actor.user)
    token = ApiToken.objects.select_related("owner").filter(mine, pk=number).first()
    if actor.read_only or actor.is_limited:
        why = "may only read" if actor.read_only else "is limited"
        record(actor.name, actor.origin, "token revoke", str(number), result={"refused": f"the token {why}"})
        raise PermissionDenied(f"This token {why}.")
    if token is None:
        raise NoToken(f"There is no token {number} that you may revoke.")
    with transaction.atomic():
        record(actor.name, actor.origin, "token revoke", token.name, {"owner": token.owner.get_username()})
        token.delete()


def shown(token: str, address: str) -> ApiToken | None:
    """The token with its owner, if it is good; counted as used. A wrong one is counted like a failed login. Raises login.Throttled."""
    now = timezone.now()
    found = None
    if len(token) <= TOKEN_CHARACTERS_MAX and token.isascii():
        found = ApiToken.objects.select_related("owner").filter(digest=_digest(token), expires_at__gt=now, owner__is_active=True).first()
    if found is None:
        login.admit(GUESSES, address)
        record("a stranger", address, "login by token", result={"refused": "the token is wrong, has expired or was revoked"})
        return None
    if found.last_used_at is None or found.last_used_at < now - timedelta(seconds=USE_SECONDS):
        ApiToken.objects.filter(pk=found.pk).update(last_used_at=now)
    return found


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
