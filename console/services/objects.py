"""Administered objects: connection factories and destinations that clients look up by name. Who looks one up next has it as it is then."""

import json
from collections.abc import Mapping
from typing import Any

from django.db import IntegrityError, connection, transaction

from broker_core import administered
from console.permissions import MANAGE_DESTINATION

from .audit import Actor, record, require
from .refusals import AlreadyThere, NotThere


class InvalidObject(ValueError):
    """The object cannot be made or changed like this; the message is a sentence that says why."""


class ObjectExists(InvalidObject, AlreadyThere):
    """Another has the name."""


class NoObject(InvalidObject, NotThere):
    """None has the name."""


def create(actor: Actor, name: str, kind: str, attributes: Mapping[str, Any], *, read_only: bool = False) -> list[str]:
    """`kind`: factory, queue or topic. Warnings for the operator. Raises PermissionDenied, InvalidObject."""
    require(actor, MANAGE_DESTINATION, "object create", name)
    _check(name, kind, attributes)
    values = {"name": name, "kind": kind, "attributes": json.dumps(dict(attributes)), "read_only": read_only}
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO surety.administered (name, kind, attributes, read_only) VALUES (%(name)s, %(kind)s, %(attributes)s::jsonb, %(read_only)s)",
                values,
            )
            record(actor.name, actor.origin, "object create", name, {"kind": kind, "read_only": read_only, **attributes})
    except IntegrityError as error:
        raise ObjectExists(f"There is an administered object {name} already.") from error
    return administered.warnings(attributes)


def update(actor: Actor, name: str, attributes: Mapping[str, Any], *, read_only: bool = False) -> list[str]:
    """In place of all that it had; its kind stays. Warnings for the operator. Raises PermissionDenied, InvalidObject."""
    require(actor, MANAGE_DESTINATION, "object update", name)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT kind FROM surety.administered WHERE name = %(name)s FOR UPDATE", {"name": name.replace("\x00", "")})
        found = cursor.fetchone()
        if found is None:
            raise NoObject(f"There is no administered object {name}.")
        _check(name, found[0], attributes)
        cursor.execute(
            "UPDATE surety.administered SET attributes = %(attributes)s::jsonb, read_only = %(read_only)s WHERE name = %(name)s",
            {"name": name, "attributes": json.dumps(dict(attributes)), "read_only": read_only},
        )
        record(actor.name, actor.origin, "object update", name, {"read_only": read_only, **attributes})
    return administered.warnings(attributes)


def delete(actor: Actor, name: str) -> None:
    """Who has looked it up keeps it. Raises PermissionDenied, InvalidObject."""
    require(actor, MANAGE_DESTINATION, "object delete", name)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM surety.administered WHERE name = %(name)s", {"name": name.replace("\x00", "")})
        if cursor.rowcount != 1:
            raise NoObject(f"There is no administered object {name}.")
        record(actor.name, actor.origin, "object delete", name)


def _check(name: str, kind: str, attributes: Mapping[str, Any]) -> None:
    problem = administered.problem(name, kind, attributes)
    if problem:
        raise InvalidObject(f"{problem[0].upper()}{problem[1:]}.")
