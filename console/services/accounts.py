"""Client accounts: who may connect to the node. What is kept of a password is a SCRAM-SHA-256 verifier; the password itself is nowhere."""

import re
import secrets
from collections.abc import Mapping, Sequence

from django.db import IntegrityError, connection, transaction

from broker_core.control import InvalidPassword, level_problem, level_warnings, make_verifier
from console.permissions import MANAGE_ACCOUNT

from . import access
from .audit import Actor, record, require
from .refusals import AlreadyThere, NotThere

NAME_OCTETS_MAX = 255
PASSWORD_CHARACTERS_MIN = 8
SALT_OCTETS = 16
OVERLAP_SECONDS_MAX = 30 * 86_400
"""A month: who has not been given the new password by then never will be."""
LIMIT_MAX = 1_000_000
GROUPS_MAX, GROUP_CHARACTERS_MAX = 100, 100
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


def set_password(actor: Actor, name: str, password: str, *, overlap_seconds: int = 0) -> None:
    """The former one stays good for so long; without that, its connections end at once. Raises PermissionDenied, InvalidAccount."""
    require(actor, MANAGE_ACCOUNT, "account password", name)
    _check_password(name, password)
    if not 0 <= overlap_seconds <= OVERLAP_SECONDS_MAX:
        raise InvalidAccount(f"Two passwords are good for at most {OVERLAP_SECONDS_MAX} seconds.")
    if overlap_seconds:
        _rotate(actor, name, password, overlap_seconds)
        return
    verifier = make_verifier(password, secrets.token_bytes(SALT_OCTETS))
    _change(
        actor,
        "account password",
        name,
        """UPDATE surety.account SET salt = %(salt)s, iterations = %(iterations)s, stored_key = %(stored_key)s, server_key = %(server_key)s,
                  previous_stored_key = NULL, previous_server_key = NULL, previous_until = NULL
            WHERE name = %(name)s""",
        {
            "salt": verifier.salt,
            "iterations": verifier.iterations,
            "stored_key": verifier.stored_key,
            "server_key": verifier.server_key,
        },
    )


def _rotate(actor: Actor, name: str, password: str, seconds: int) -> None:
    """The new password is salted as the one before: a client that logs in by SCRAM is told the salt before it shows which it knows."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT salt, iterations FROM surety.account WHERE name = %(name)s FOR UPDATE", {"name": name.replace("\x00", "")})
        found = cursor.fetchone()
        if found is None:
            raise NoAccount(f"There is no account {name}.")
        verifier = make_verifier(password, bytes(found[0]), found[1])
        _change(
            actor,
            "account password",
            name,
            """UPDATE surety.account SET previous_stored_key = stored_key, previous_server_key = server_key,
                      previous_until = clock_timestamp() + make_interval(secs => %(seconds)s), stored_key = %(stored_key)s, server_key = %(server_key)s
                WHERE name = %(name)s""",
            {"stored_key": verifier.stored_key, "server_key": verifier.server_key, "seconds": seconds},
            {"overlap_seconds": seconds},
        )


def set_limits(actor: Actor, name: str, *, connections_max: int | None = None, sessions_max: int | None = None) -> None:
    """Of the account's connections, and of the sessions of one by AMQP, from now on; 0: as many as the broker takes; None: as before. Raises
    PermissionDenied, InvalidAccount."""
    require(actor, MANAGE_ACCOUNT, "account limits", name)
    limits = {"connections_max": connections_max, "sessions_max": sessions_max}
    if any(limit is not None and not 0 <= limit <= LIMIT_MAX for limit in limits.values()):
        raise InvalidAccount(f"A limit is a number from 1 to {LIMIT_MAX}, or 0 for none.")
    statement = """UPDATE surety.account SET connections_max = coalesce(%(connections_max)s, connections_max),
        sessions_max = coalesce(%(sessions_max)s, sessions_max) WHERE name = %(name)s"""
    _change(actor, "account limits", name, statement, limits, {each: limit for each, limit in limits.items() if limit is not None})


def set_groups(actor: Actor, name: str, groups: Sequence[str]) -> None:
    """What rules of access call them; connected clients feel it within the second. Raises PermissionDenied, InvalidAccount."""
    require(actor, MANAGE_ACCOUNT, "account groups", name)
    given = sorted(set(groups))
    if len(given) > GROUPS_MAX or any(not 0 < len(group) <= GROUP_CHARACTERS_MAX or not group.isprintable() or group == "*" for group in given):
        raise InvalidAccount(f"An account has at most {GROUPS_MAX} groups, with names of at most {GROUP_CHARACTERS_MAX} printable characters.")
    with transaction.atomic(), connection.cursor() as cursor:
        statement = "UPDATE surety.account SET groups = %(groups)s WHERE name = %(name)s"
        _change(actor, "account groups", name, statement, {"groups": given}, {"groups": ", ".join(given)})
        access.tell(cursor)


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


def check(actor: Actor, name: str) -> None:
    """Who may change none does not hear which there are. Raises PermissionDenied."""
    require(actor, MANAGE_ACCOUNT, "account update", name)


def update(
    actor: Actor,
    name: str,
    *,
    password: str | None = None,
    overlap_seconds: int = 0,
    disabled: bool | None = None,
    levels: tuple[str, str] | None = None,
    groups: Sequence[str] | None = None,
    connections_max: int | None = None,
    sessions_max: int | None = None,
) -> list[str]:
    """What is not None, all of it or nothing; `levels` as set_levels has them. Warnings for the operator. Raises PermissionDenied, InvalidAccount."""
    require(actor, MANAGE_ACCOUNT, "account update", name)  # before the transaction: a refusal's row in the audit stays
    with transaction.atomic():
        if password is not None:
            set_password(actor, name, password, overlap_seconds=overlap_seconds)
        if groups is not None:
            set_groups(actor, name, groups)
        if connections_max is not None or sessions_max is not None:
            set_limits(actor, name, connections_max=connections_max, sessions_max=sessions_max)
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
