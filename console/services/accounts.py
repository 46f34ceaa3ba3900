"""Client accounts: who may connect to the node. What is kept of a password is a SCRAM-SHA-256 verifier; the password itself is nowhere."""

import re
import secrets
from collections.abc import Mapping

from django.db import IntegrityError, connection, transaction

from broker_core.control import InvalidPassword, level_problem, level_warnings, make_verifier
from console.permissions import MANAGE_ACCOUNT

from .audit import Actor, record, require
from .refusals import AlreadyThere, NotThere

NAME_OCTETS_MAX = 255
PASSWORD_CHARACTERS_MIN = 8
SALT_OCTETS = 16
CHANNEL = "surety_account"
"""Notified with the account's name when its password or standing changes: the node forgets what it remembered of it."""

_NAME = re.compile(r"[^\x00-\x20\x7f]([^\x00-\x1f\x7f]*[^\x00-\x20\x7f])?")


class InvalidAccount(ValueError):
    """The account cannot be made or changed like this; the message is a sentence that says why."""


class AccountExists(InvalidAccount, AlreadyThere):
    """Another has the name."""


class NoAccount(InvalidAccount, NotThere):
    """None has the name."""


def create(actor: Actor, name: str, password: str, *, loopback_only: bool = False) -> None:
    """Raises PermissionDenied, InvalidAccount."""
    require(actor, MANAGE_ACCOUNT, "account create", name)
    _check_name(name)
    _check_password(name, password)
    try:
        with transaction.atomic():
            insert(name, password, loopback_only=loopback_only)
            record(actor.name, actor.origin, "account create", name, {"loopback_only": loopback_only})
    except IntegrityError as error:
        raise AccountExists(f"There is an account {name} already.") from error


def set_password(actor: Actor, name: str, password: str) -> None:
    """Raises PermissionDenied, InvalidAccount."""
    require(actor, MANAGE_ACCOUNT, "account password", name)
    _check_password(name, password)
    verifier = make_verifier(password, secrets.token_bytes(SALT_OCTETS))
    _change(
        actor,
        "account password",
        name,
        """UPDATE surety.account SET salt = %(salt)s, iterations = %(iterations)s, stored_key = %(stored_key)s, server_key = %(server_key)s
            WHERE name = %(name)s""",
        {
            "salt": verifier.salt,
            "iterations": verifier.iterations,
            "stored_key": verifier.stored_key,
            "server_key": verifier.server_key,
        },
    )


def set_disabled(actor: Actor, name: str, disabled: bool) -> None:
    """Raises PermissionDenied, InvalidAccount."""
    what = "account disable" if disabled else "account enable"
    require(actor, MANAGE_ACCOUNT, what, name)
    _change(actor, what, name, "UPDATE surety.account SET disabled = %(disabled)s WHERE name = %(name)s", {"disabled": disabled})


def set_levels(actor: Actor, name: str, persistent: str, nonpersistent: str) -> list[str]:
    """What the account's persistent and non-persistent messages stand for where its connection factories say nothing: a level, `as-destination`, or
    empty: nothing particular. For connections made from now on. Warnings for the operator. Raises PermissionDenied, InvalidAccount."""
    require(actor, MANAGE_ACCOUNT, "account levels", name)
    problem = level_problem("persistent", persistent) or level_problem("nonpersistent", nonpersistent)
    if problem:
        raise InvalidAccount(f"{problem[0].upper()}{problem[1:]}.")
    levels = {"persistent_reliability": persistent, "nonpersistent_reliability": nonpersistent}
    statement = """UPDATE surety.account SET persistent_reliability = %(persistent_reliability)s,
        nonpersistent_reliability = %(nonpersistent_reliability)s WHERE name = %(name)s"""
    _change(actor, "account levels", name, statement, levels, levels)
    return level_warnings(persistent)


def update(
    actor: Actor, name: str, *, password: str | None = None, disabled: bool | None = None, levels: tuple[str, str] | None = None
) -> list[str]:
    """What is not None, all of it or nothing; `levels` as set_levels has them. Warnings for the operator. Raises PermissionDenied, InvalidAccount."""
    require(actor, MANAGE_ACCOUNT, "account update", name)  # before the transaction: a refusal's row in the audit stays
    with transaction.atomic():
        if password is not None:
            set_password(actor, name, password)
        if disabled is not None:
            set_disabled(actor, name, disabled)
        return [] if levels is None else set_levels(actor, name, *levels)


def delete(actor: Actor, name: str) -> None:
    """Raises PermissionDenied, InvalidAccount."""
    require(actor, MANAGE_ACCOUNT, "account delete", name)
    _change(actor, "account delete", name, "DELETE FROM surety.account WHERE name = %(name)s", {})


def insert(name: str, password: str, *, loopback_only: bool) -> None:
    """The row itself, in the caller's transaction; checks nothing. Raises IntegrityError if the account exists."""
    verifier = make_verifier(password, secrets.token_bytes(SALT_OCTETS))
    with connection.cursor() as cursor:
        cursor.execute(
            """INSERT INTO surety.account (name, salt, iterations, stored_key, server_key, loopback_only)
               VALUES (%(name)s, %(salt)s, %(iterations)s, %(stored_key)s, %(server_key)s, %(loopback_only)s)""",
            {
                "name": name,
                "salt": verifier.salt,
                "iterations": verifier.iterations,
                "stored_key": verifier.stored_key,
                "server_key": verifier.server_key,
                "loopback_only": loopback_only,
            },
        )


def _change(
    actor: Actor, what: str, name: str, statement: str, parameters: Mapping[str, object], told: Mapping[str, object] | None = None
) -> None:
    """`told`: what the audit log says of it beside the account's name."""
    if "\x00" in name:
        raise NoAccount("There is no such account.")
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, {**parameters, "name": name})
        if cursor.rowcount != 1:
            raise NoAccount(f"There is no account {name}.")
        record(actor.name, actor.origin, what, name, told)
        cursor.execute("SELECT pg_notify(%(channel)s, %(name)s)", {"channel": CHANNEL, "name": name})


def _check_name(name: str) -> None:
    if len(name.encode("utf-8", "surrogatepass")) > NAME_OCTETS_MAX or not _NAME.fullmatch(name):
        raise InvalidAccount(f"Give the account a name of 1 to {NAME_OCTETS_MAX} octets, without control characters or outer spaces.")
    if any("\ud800" <= c <= "\udfff" for c in name):
        raise InvalidAccount("Give the account a name of whole characters: this one has half of a surrogate pair.")


def _check_password(name: str, password: str) -> None:
    if len(password) < PASSWORD_CHARACTERS_MIN:
        raise InvalidAccount(f"Give the account a password of at least {PASSWORD_CHARACTERS_MIN} characters.")
    if password.casefold() == name.casefold():
        raise InvalidAccount("Give the account a password other than its name.")
    try:
        make_verifier(password, bytes(SALT_OCTETS))
    except InvalidPassword as error:
        raise InvalidAccount(f"Give the account another password: {error}.") from error
