"""Operators whom the organisation's provider knows: made at their first login, with the role that their groups give them at each."""

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from console.models import ProviderIdentity
from console.permissions import ADMINISTRATOR, RESTRICTED
from console.single_sign_on import Shown

from .audit import record
from .operators import NAME_CHARACTERS_MAX, give_role

WHO = "single sign-on"
"""Who changes operators so, in the audit."""


class NotAdmitted(Exception):
    """Whoever it is may not come in; the message is a sentence for him."""


def admit(shown: Shown, roles: Sequence[tuple[str, frozenset[str]]], origin: str) -> User:
    """The operator. Raises NotAdmitted."""
    role = next((role for role, groups in roles if groups & shown.groups), None)
    with transaction.atomic():
        known = ProviderIdentity.objects.select_related("user").filter(issuer=shown.issuer, subject=shown.subject).first()
        if role is not None:
            user = known.user if known is not None else _make(shown, origin)
            if not user.is_active:
                raise NotAdmitted("Your operator is disabled here.")
            return _with_role(user, role, origin)
        if known is not None:  # his tokens, and sessions elsewhere, have what he had
            _with_role(known.user, RESTRICTED, origin)
    raise NotAdmitted("You are in no group that may use this console.")


def _with_role(user: User, role: str, origin: str) -> User:
    before = (user.is_superuser, user.operatorrole.role if hasattr(user, "operatorrole") else "")
    user.is_superuser = user.is_staff = role == ADMINISTRATOR
    user.save(update_fields=["is_superuser", "is_staff"])
    give_role(user, role)
    user = User.objects.select_related("operatorrole").get(pk=user.pk)
    if before != (user.is_superuser, user.operatorrole.role if hasattr(user, "operatorrole") else ""):
        record(WHO, origin, "operator role", user.get_username(), {"role": role})
    return user


def _make(shown: Shown, origin: str) -> User:
    """Nobody becomes an operator that is there already by having his name at the provider."""
    name = User.normalize_username(shown.name)
    try:
        User.username_validator(name)
    except ValidationError as error:
        raise NotAdmitted("Your name has characters that an operator's cannot have.") from error
    if len(name) > NAME_CHARACTERS_MAX:
        raise NotAdmitted(f"Your name has more than {NAME_CHARACTERS_MAX} characters.")
    try:
        with transaction.atomic():
            user = User(username=name)
            user.set_unusable_password()
            user.save()
    except IntegrityError as error:
        raise NotAdmitted(f"There is an operator {name} here already, who logs in otherwise.") from error
    ProviderIdentity.objects.create(user=user, issuer=shown.issuer, subject=shown.subject)
    record(WHO, origin, "operator create", name, {"issuer": shown.issuer, "subject": shown.subject})
    return user
