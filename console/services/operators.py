"""Operators: who may log in to the console, and what each may do there. Only a superuser may change another; everybody his own password."""

from collections.abc import Callable, Collection

from django.contrib.auth.models import Permission, User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from console.models import OperatorRole
from console.permissions import ADMINISTRATOR, GIVEN_ROLES, GRANTABLE, MANAGE_OPERATOR, ROLES, VIEWER

from . import login
from .audit import Actor, record, require
from .refusals import AlreadyThere, NotThere

NAME_CHARACTERS_MAX = 150
PASSWORD_CHARACTERS_MAX = 1024
"""Hashing takes time that grows with the length."""


class InvalidOperator(ValueError):
    """The operator cannot be made or changed like this; the message is a sentence that says why."""


class OperatorExists(InvalidOperator, AlreadyThere):
    """Another has the name."""


class NoOperator(InvalidOperator, NotThere):
    """None has the name."""


def create(actor: Actor, name: str, password: str, rights: Collection[str] = (), *, superuser: bool = False, role: str = VIEWER) -> None:
    """`rights`: of GRANTABLE; a superuser has all, and so has the role administrator. Raises PermissionDenied, InvalidOperator."""
    require(actor, MANAGE_OPERATOR, "operator create", name[:NAME_CHARACTERS_MAX])
    _check_role(role)
    superuser = superuser or role == ADMINISTRATOR
    name = User.normalize_username(name)  # as the login form does, or nobody could log in by it
    user = User(username=name, is_superuser=superuser, is_staff=superuser)
    try:
        User.username_validator(name)
    except ValidationError as error:
        raise InvalidOperator("Give the operator a name of letters, digits and @ . + - _ only.") from error
    if len(name) > NAME_CHARACTERS_MAX:
        raise InvalidOperator(f"Give the operator a name of at most {NAME_CHARACTERS_MAX} characters.")
    granted = _permissions(rights)
    _check_password(user, password)
    user.set_password(password)
    try:
        with transaction.atomic():
            user.save()
            user.user_permissions.set(granted)
            give_role(user, role)
            record(actor.name, actor.origin, "operator create", name, {**_told(rights, superuser), "role": ADMINISTRATOR if superuser else role})
    except IntegrityError as error:
        raise OperatorExists(f"There is an operator {name} already.") from error


def set_rights(actor: Actor, name: str, rights: Collection[str], *, superuser: bool) -> None:
    """Raises PermissionDenied, InvalidOperator."""
    granted = _permissions(rights)

    def change(user: User) -> None:
        user.is_superuser = user.is_staff = superuser
        user.user_permissions.set(granted)

    _change(actor, "operator rights", name, change, _told(rights, superuser))


def set_role(actor: Actor, name: str, role: str) -> None:
    """One of permissions.ROLES. Raises PermissionDenied, InvalidOperator."""
    _check_role(role)

    def change(user: User) -> None:
        user.is_superuser = user.is_staff = role == ADMINISTRATOR
        give_role(user, role)

    _change(actor, "operator role", name, change, {"role": role})


def set_disabled(actor: Actor, name: str, disabled: bool) -> None:
    """Who is disabled is logged out at his next click. Raises PermissionDenied, InvalidOperator."""

    def change(user: User) -> None:
        user.is_active = not disabled

    _change(actor, "operator disable" if disabled else "operator enable", name, change)


def set_password(actor: Actor, name: str, password: str) -> None:
    """His sessions end. Raises PermissionDenied, InvalidOperator."""

    def change(user: User) -> None:
        _check_password(user, password)
        user.set_password(password)

    _change(actor, "operator password", name, change)


def update(
    actor: Actor,
    name: str,
    *,
    password: str | None = None,
    disabled: bool | None = None,
    rights: Collection[str] | None = None,
    superuser: bool = False,
    role: str | None = None,
) -> None:
    """What is not None, all of it or nothing; `superuser` goes with `rights`. Raises PermissionDenied, InvalidOperator."""
    require(actor, MANAGE_OPERATOR, "operator update", name[:NAME_CHARACTERS_MAX])  # before the transaction: a refusal's row in the audit stays
    with transaction.atomic():
        if password is not None:
            set_password(actor, name, password)
        if disabled is not None:
            set_disabled(actor, name, disabled)
        if rights is not None:
            set_rights(actor, name, rights, superuser=superuser)
        if role is not None:
            set_role(actor, name, role)


def change_own_password(actor: Actor, old: str, new: str) -> User:
    """The person with his new password; his other sessions end. Guesses of the old one are counted like logins. Raises InvalidOperator, login.Throttled."""
    attempt = login.admit(actor.name, actor.origin)
    user = User.objects.get(username=actor.name)
    if not user.check_password(old):
        record(actor.name, actor.origin, "operator password", actor.name, result={"refused": "the old password was not right"})
        raise InvalidOperator("The old password is not right.")
    login.succeeded(attempt)
    _check_password(user, new)
    with transaction.atomic():
        user.set_password(new)
        user.save(update_fields=["password"])
        record(actor.name, actor.origin, "operator password", actor.name)
    return user


def _change(actor: Actor, what: str, name: str, change: Callable[[User], None], told: dict[str, object] | None = None) -> None:
    require(actor, MANAGE_OPERATOR, what, name[:NAME_CHARACTERS_MAX])
    if "\x00" in name:
        raise NoOperator("There is no such operator.")
    with transaction.atomic():
        # Two superusers who disable each other at the same moment would leave none: one waits here for the other.
        superusers = {user.pk for user in User.objects.select_for_update().filter(is_superuser=True, is_active=True).order_by("pk")}
        user = User.objects.select_for_update().filter(username=name).first()
        if user is None:
            raise NoOperator(f"There is no operator {name}.")
        change(user)
        if superusers <= {user.pk} and not (user.is_superuser and user.is_active):
            raise InvalidOperator(f"{name} is the only superuser: without one nobody could make another.")
        user.save()
        record(actor.name, actor.origin, what, name, told)


def _check_role(role: str) -> None:
    if role not in ROLES:
        raise InvalidOperator(f"The role must be one of {', '.join(ROLES)}.")


def give_role(user: User, role: str) -> None:
    """The row alone, in the caller's transaction; checks nothing. An administrator is one whatever row he has; when he is none any more he is a viewer."""
    if role in GIVEN_ROLES and role != VIEWER:
        OperatorRole.objects.update_or_create(user=user, defaults={"role": role})
    else:
        OperatorRole.objects.filter(user=user).delete()


def _told(rights: Collection[str], superuser: bool) -> dict[str, object]:
    return {"superuser": superuser, "rights": ", ".join(sorted(rights)) or "none"}


def _permissions(rights: Collection[str]) -> list[Permission]:
    wanted = set(rights)
    if not wanted <= set(GRANTABLE):
        raise InvalidOperator(f"There are only the rights {', '.join(GRANTABLE)}.")
    return list(Permission.objects.filter(content_type__app_label="console", codename__in=wanted))


def _check_password(user: User, password: str) -> None:
    if len(password) > PASSWORD_CHARACTERS_MAX or "\x00" in password:
        raise InvalidOperator(f"Give a password of at most {PASSWORD_CHARACTERS_MAX} characters, none of them NUL.")
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise InvalidOperator(" ".join(error.messages)) from error
