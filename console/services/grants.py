"""What roles and single operators may do with destinations of a pattern: console.permissions says what that means. Only administrators grant."""

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from console.models import Grant
from console.permissions import GIVEN_ROLES, MANAGE_OPERATOR, VERBS, invalid_pattern

from .audit import Actor, record, require
from .refusals import AlreadyThere, NotThere

OF_ONE_MAX = 1_000
"""Grants of one role or operator: each of his requests reads them."""


class InvalidGrant(ValueError):
    """It cannot be granted or changed like this; the message is a sentence that says why."""


class GrantExists(InvalidGrant, AlreadyThere):
    """The role or operator has a grant of this pattern."""


class NoGrant(InvalidGrant, NotThere):
    """None has the number."""


def create(actor: Actor, pattern: str, verbs: Sequence[str], *, role: str = "", operator: str = "") -> int:
    """To the role or to the operator; its number. Raises PermissionDenied, InvalidGrant."""
    require(actor, MANAGE_OPERATOR, "grant create", role or operator)
    given = _checked(verbs)
    if bool(role) == bool(operator):
        raise InvalidGrant("Name a role or an operator to whom it is granted, one of them.")
    if role and role not in GIVEN_ROLES:
        raise InvalidGrant(f"The role must be one of {', '.join(GIVEN_ROLES)}; an administrator may everything.")
    if problem := invalid_pattern(pattern):
        raise InvalidGrant(f"The pattern is not valid: {problem}.")
    user = User.objects.filter(username=operator.replace("\x00", "")).first() if operator else None
    if operator and user is None:
        raise InvalidGrant(f"There is no operator {operator}.")
    if Grant.objects.filter(role=role, user=user).count() >= OF_ONE_MAX:
        raise InvalidGrant(f"There are {OF_ONE_MAX} grants to {role or operator}; use patterns that say more.")
    try:
        with transaction.atomic():
            made = Grant.objects.create(role=role, user=user, pattern=pattern, verbs=given)
            record(actor.name, actor.origin, "grant create", pattern, {"to": role or operator, "verbs": ", ".join(given)})
    except IntegrityError as error:
        raise GrantExists(f"There is a grant of {pattern} to {role or operator} already.") from error
    return int(made.pk)


def update(actor: Actor, number: int, verbs: Sequence[str]) -> None:
    """Raises PermissionDenied, InvalidGrant."""
    require(actor, MANAGE_OPERATOR, "grant update", str(number))
    given = _checked(verbs)
    with transaction.atomic():
        grant = _found(number)
        grant.verbs = given
        grant.save(update_fields=["verbs"])
        record(actor.name, actor.origin, "grant update", grant.pattern, {"to": _subject(grant), "verbs": ", ".join(given)})


def delete(actor: Actor, number: int) -> None:
    """Raises PermissionDenied, InvalidGrant."""
    require(actor, MANAGE_OPERATOR, "grant delete", str(number))
    with transaction.atomic():
        grant = _found(number)
        record(actor.name, actor.origin, "grant delete", grant.pattern, {"to": _subject(grant)})
        grant.delete()


def _found(number: int) -> Grant:
    grant = Grant.objects.select_for_update().filter(pk=number).first()
    if grant is None:
        raise NoGrant(f"There is no grant {number}.")
    return grant


def _subject(grant: Grant) -> str:
    return grant.role or grant.user.get_username()


def _checked(verbs: Sequence[str]) -> list[str]:
    if not verbs or not set(verbs) <= set(VERBS):
        raise InvalidGrant(f"Name the verbs, of {', '.join(VERBS)}.")
    return [verb for verb in VERBS if verb in verbs]
