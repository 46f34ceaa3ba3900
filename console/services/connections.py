"""Who is connected, who produces and who consumes, as the node knows it now; giving back what a consumer holds, closing it or a connection."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from console.permissions import BROWSE_HEADERS, LOOK, MANAGE, MANAGE_ACCOUNT, METRICS, may

from .audit import Actor, require
from .looking import look, shared
from .refusals import NotThere
from .requests import Outcome, ask


class NoConsumer(NotThere):
    """None has the number, or it has gone."""


class NoProducer(NotThere):
    """None has the number, or it has gone."""


def connections(
    actor: Actor, after: int = 0, limit: int = 100, only: int | None = None, *, again: bool = False, **of: str
) -> dict[str, Any]:
    """`again`: for a page that is open and keeps itself up to date; the answer may be a second old. `of`: one `account`, one `client_id`.
    Raises PermissionDenied, NodeSilent."""
    require(actor, LOOK, "list connections", reads=True)
    return _looked(actor, "connections", {"after": after, "limit": limit, **of} | ({"only": only} if only is not None else {}), again)


def consumers(
    actor: Actor, after: int = 0, limit: int = 100, *, destination: str = "", connection: int | None = None, again: bool = False
) -> dict[str, Any]:
    """Of one destination, or of all; `again` as above. Raises PermissionDenied, NodeSilent."""
    if destination:
        require(actor, METRICS, "list consumers", destination, reads=True)
    else:
        require(actor, LOOK, "list consumers", reads=True)
    wanted = {"destination": destination} if destination else {}
    return _looked(actor, "consumers", {"after": after, "limit": limit, **wanted, **({} if connection is None else {"connection": connection})}, again)


def producers(
    actor: Actor, after: int = 0, limit: int = 100, *, destination: str = "", connection: int | None = None, again: bool = False
) -> dict[str, Any]:
    """Of one destination, or of all; `again` as above. Raises PermissionDenied, NodeSilent."""
    if destination:
        require(actor, METRICS, "list producers", destination, reads=True)
    else:
        require(actor, LOOK, "list producers", reads=True)
    wanted = {"destination": destination} if destination else {}
    return _looked(actor, "producers", {"after": after, "limit": limit, **wanted, **({} if connection is None else {"connection": connection})}, again)


def producer(actor: Actor, number: int) -> dict[str, Any]:
    """One of them. Raises NodeSilent, NoProducer: also for what the actor may not see."""
    found = look(actor.name, "producers", "", {"only": number, "limit": 1})["producers"]
    if not found or not may(replace(actor, read_only=False), METRICS, str(found[0]["destination"])):
        raise NoProducer("There is no such producer, or it has gone.")
    return dict(found[0])


def transactions(
    actor: Actor, after: int = 0, limit: int = 100, *, connection: int | None = None, again: bool = False
) -> dict[str, Any]:
    """Those that are begun and neither ended nor prepared: of one connection, or of all after a connection's number; `again` as above.
    Raises PermissionDenied, NodeSilent, Declined."""
    require(actor, LOOK, "list transactions", reads=True)
    return _looked(actor, "transactions", {"after": after, "limit": limit} | ({} if connection is None else {"connection": connection}), again)


def consumer(actor: Actor, number: int) -> dict[str, Any] | None:
    """None: it has gone, or the actor may not see it. Raises NodeSilent, Declined."""
    found = look(actor.name, "consumers", "", {"only": number, "limit": 1})["consumers"]
    return found[0] if found and may(actor, METRICS, destination_of(found[0])) else None


def unsettled(actor: Actor, consumer: int, after: int = 0, limit: int = 100, *, again: bool = False) -> dict[str, Any]:
    """What a consumer holds; `again` as above. Raises PermissionDenied, NoConsumer, NodeSilent, Declined."""
    require(actor, BROWSE_HEADERS, "list deliveries", over=_over(actor, consumer, again), reads=True)
    return _looked(actor, "unsettled", {"consumer": consumer, "after": after, "limit": limit}, again)


def release(actor: Actor, consumer: int, deliveries: list[int] | None) -> Outcome:
    """Give back these deliveries, or all, a thousand at the most. Raises PermissionDenied, NoConsumer, NodeSilent, control.InvalidRequest."""
    named = {"consumer": consumer} | ({} if deliveries is None else {"deliveries": deliveries})
    return ask(actor, MANAGE, "release", "", named, over=_over(actor, consumer))


def disconnect(actor: Actor, connection: int, reason: str) -> Outcome:
    """The client is told the reason. Raises PermissionDenied, control.InvalidRequest."""
    return ask(actor, MANAGE_ACCOUNT, "disconnect", "", {"connection": connection, "reason": reason})


def detach(actor: Actor, consumer: int, reason: str) -> Outcome:
    """Closes a consumer and not its connection; its client is told the reason. Raises PermissionDenied, control.InvalidRequest."""
    return ask(actor, MANAGE_ACCOUNT, "detach", "", {"consumer": consumer, "reason": reason})


def _looked(actor: Actor, verb: str, arguments: dict[str, Any], again: bool) -> dict[str, Any]:
    if not again:
        return look(actor.name, verb, "", arguments)
    return shared((verb, *sorted(arguments.items())), lambda: look(actor.name, verb, "", arguments))


def _over(actor: Actor, consumer: int, again: bool = False) -> str:
    """Its destination; empty for a pattern, for which one must have the right to all. Raises NoConsumer: as for what the actor may not see."""
    found = _looked(actor, "consumers", {"only": consumer, "limit": 1}, again)["consumers"]
    over = destination_of(found[0]) if found else ""
    if not found or not may(replace(actor, read_only=False), METRICS, over):
        raise NoConsumer("There is no such consumer, or it has gone.")
    return over


def destination_of(row: Mapping[str, Any]) -> str:
    """The destination over which one must have a right; empty for a pattern, for which it must be all."""
    address = str(row.get("destination", ""))
    return "" if any(mark in address for mark in "*>") else address
