"""Who is connected, who produces and who consumes, as the node knows it now; giving back what a consumer holds, closing a connection."""

from dataclasses import replace
from typing import Any

from console.permissions import BROWSE_HEADERS, LOOK, MANAGE, MANAGE_ACCOUNT, METRICS, may

from .audit import Actor, require
from .looking import look
from .refusals import NotThere
from .requests import Outcome, ask


class NoConsumer(NotThere):
    """None has the number, or it has gone."""


class NoProducer(NotThere):
    """None has the number, or it has gone."""


def connections(actor: Actor, after: int = 0, limit: int = 100, only: int | None = None) -> dict[str, Any]:
    """Raises PermissionDenied, NodeSilent."""
    require(actor, LOOK, "list connections", reads=True)
    return look(actor.name, "connections", "", {"after": after, "limit": limit} | ({"only": only} if only is not None else {}))


def consumers(actor: Actor, after: int = 0, limit: int = 100, *, destination: str = "", connection: int | None = None) -> dict[str, Any]:
    """Of one destination, or of all. Raises PermissionDenied, NodeSilent."""
    if destination:
        require(actor, METRICS, "list consumers", destination, reads=True)
    else:
        require(actor, LOOK, "list consumers", reads=True)
    wanted = {"destination": destination} if destination else {}
    return look(actor.name, "consumers", "", {"after": after, "limit": limit, **wanted, **({} if connection is None else {"connection": connection})})


def producers(actor: Actor, after: int = 0, limit: int = 100, *, destination: str = "", connection: int | None = None) -> dict[str, Any]:
    """Of one destination, or of all. Raises PermissionDenied, NodeSilent."""
    if destination:
        require(actor, METRICS, "list producers", destination, reads=True)
    else:
        require(actor, LOOK, "list producers", reads=True)
    wanted = {"destination": destination} if destination else {}
    return look(actor.name, "producers", "", {"after": after, "limit": limit, **wanted, **({} if connection is None else {"connection": connection})})


def producer(actor: Actor, number: int) -> dict[str, Any]:
    """One of them. Raises NodeSilent, NoProducer: also for what the actor may not see."""
    found = look(actor.name, "producers", "", {"only": number, "limit": 1})["producers"]
    if not found or not may(replace(actor, read_only=False), METRICS, str(found[0]["destination"])):
        raise NoProducer("There is no such producer, or it has gone.")
    return dict(found[0])


def transactions(actor: Actor, connection: int) -> list[dict[str, Any]]:
    """Those that it has begun and that are neither ended nor prepared. Raises PermissionDenied, NodeSilent, Declined."""
    require(actor, LOOK, "list transactions", reads=True)
    return list(look(actor.name, "transactions", "", {"connection": connection})["transactions"])


def unsettled(actor: Actor, consumer: int, after: int = 0, limit: int = 100) -> dict[str, Any]:
    """What a consumer holds. Raises PermissionDenied, NoConsumer, NodeSilent, Declined."""
    require(actor, BROWSE_HEADERS, "list deliveries", over=_over(actor, consumer), reads=True)
    return look(actor.name, "unsettled", "", {"consumer": consumer, "after": after, "limit": limit})


def release(actor: Actor, consumer: int, deliveries: list[int] | None) -> Outcome:
    """Give back these deliveries, or all, a thousand at the most. Raises PermissionDenied, NoConsumer, NodeSilent, control.InvalidRequest."""
    named = {"consumer": consumer} | ({} if deliveries is None else {"deliveries": deliveries})
    return ask(actor, MANAGE, "release", "", named, over=_over(actor, consumer))


def disconnect(actor: Actor, connection: int, reason: str) -> Outcome:
    """The client is told the reason. Raises PermissionDenied, control.InvalidRequest."""
    return ask(actor, MANAGE_ACCOUNT, "disconnect", "", {"connection": connection, "reason": reason})


def _over(actor: Actor, consumer: int) -> str:
    """Its destination; empty for a pattern, for which one must have the right to all. Raises NoConsumer: as for what the actor may not see."""
    found = look(actor.name, "consumers", "", {"only": consumer, "limit": 1})["consumers"]
    address = str(found[0].get("destination", "")) if found else ""
    over = "" if any(mark in address for mark in "*>") else address
    if not found or not may(replace(actor, read_only=False), METRICS, over):
        raise NoConsumer("There is no such consumer, or it has gone.")
    return over
