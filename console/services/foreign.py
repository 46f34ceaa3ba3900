"""Links to other brokers. The node follows within a second. A passcode goes into the link and comes out nowhere: not in a list, the audit or an error."""

import json
from collections.abc import Mapping
from typing import Any

from django.db import IntegrityError, connection, transaction

from broker_core.foreign import definition
from console.permissions import MANAGE_DESTINATION

from .audit import Actor, record, require
from .refusals import AlreadyThere, NotThere

SECRET = "passcode"  # noqa: S105  # the name of the attribute


class InvalidLink(ValueError):
    """The link cannot be made or changed like this; the message is a sentence that says why."""


class LinkExists(InvalidLink, AlreadyThere):
    """Another has the name."""


class NoLink(InvalidLink, NotThere):
    """None has the name."""


def create(actor: Actor, name: str, attributes: Mapping[str, Any]) -> list[str]:
    """`attributes`: see broker_core.foreign.definition. Warnings for the operator. Raises PermissionDenied, InvalidLink."""
    require(actor, MANAGE_DESTINATION, "link create", name)
    _check(name, attributes)
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM surety.foreign_link")
            if cursor.fetchone()[0] >= definition.LINKS_MAX:
                raise InvalidLink(f"There are {definition.LINKS_MAX} links; delete one that is not used, or let one link forward and take more.")
            cursor.execute(
                "INSERT INTO surety.foreign_link (name, attributes, passcode) VALUES (%(name)s, %(attributes)s::jsonb, %(passcode)s)",
                {"name": name, "attributes": _listed(attributes), "passcode": attributes.get(SECRET, "")},
            )
            record(actor.name, actor.origin, "link create", name, _told(attributes))
    except IntegrityError as error:
        raise LinkExists(f"There is a link {name} already.") from error
    return _warnings(attributes)


def update(actor: Actor, name: str, attributes: Mapping[str, Any]) -> list[str]:
    """In place of all that it had; without a passcode it keeps the one it has. Warnings for the operator. Raises PermissionDenied, InvalidLink."""
    require(actor, MANAGE_DESTINATION, "link update", name)
    _check(name, attributes)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE surety.foreign_link SET attributes = %(attributes)s::jsonb, passcode = coalesce(%(passcode)s, passcode) WHERE name = %(name)s",
            {"name": name, "attributes": _listed(attributes), "passcode": attributes.get(SECRET)},
        )
        if cursor.rowcount != 1:
            raise NoLink(f"There is no link {name}.")
        record(actor.name, actor.origin, "link update", name, _told(attributes))
    return _warnings(attributes)


def delete(actor: Actor, name: str) -> list[str]:
    """What is forwarded over it waits until there is one of this name again. Warnings for the operator. Raises PermissionDenied, InvalidLink."""
    require(actor, MANAGE_DESTINATION, "link delete", name)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM surety.foreign_link WHERE name = %(name)s", {"name": name.replace("\x00", "")})
        if cursor.rowcount != 1:
            raise NoLink(f"There is no link {name}.")
        cursor.execute(
            "SELECT count(*) FROM surety.destination WHERE destroyed_at IS NULL AND settings ->> 'foreign_link' = %(name)s", {"name": name}
        )
        waiting = cursor.fetchone()[0]
        record(actor.name, actor.origin, "link delete", name)
    return [f"{waiting} queues are forwarded over it: their messages wait"] if waiting else []


def _check(name: str, attributes: Mapping[str, Any]) -> None:
    if problem := definition.problem(name, attributes):
        raise InvalidLink(f"{problem[0].upper()}{problem[1:]}.")


def _listed(attributes: Mapping[str, Any]) -> str:
    return json.dumps({name: value for name, value in attributes.items() if name != SECRET})


def _told(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """What the audit may say."""
    return {name: definition.REDACTED if name == SECRET else value for name, value in attributes.items()}


def _warnings(attributes: Mapping[str, Any]) -> list[str]:
    """What its operator may not have meant (item 118)."""
    found = []
    if attributes.get("passcode") and not attributes.get("tls"):
        found.append("the passcode travels as it is: without TLS whoever sees the network reads it")
    if attributes.get("persistent_reliability") in definition.LOSES:
        found.append(f"persistent messages from there are {attributes['persistent_reliability']} here: they are lost when the broker stops")
    return found
