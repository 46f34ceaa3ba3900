"""What operators do with destinations. Each function asks the node and returns its answer; see `requests.ask` for what they raise."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from console.permissions import MANAGE, MANAGE_DESTINATION, PURGE
from console.selectors import destinations
from console.selectors.destinations import Destination

from .audit import Actor, require
from .requests import Outcome, ask


@dataclass(slots=True, frozen=True)
class Preview:
    """What a call would discard now, by the node's counters. None: unknown, as no node tells it."""

    address: str
    depth: int | None
    """To be given with the call itself, if it takes one: what you saw."""
    discarded: int | None
    kept: int | None
    """Delivered to consumers, who may still acknowledge them."""
    scheduled: int | None
    """Delayed messages that would be discarded, too."""


def create(actor: Actor, address: str, settings: Mapping[str, Any] | None = None) -> Outcome:
    _require_where_it_leads(actor, "create", address, settings or {})
    return ask(actor, MANAGE, "create", address, settings)


def update(actor: Actor, address: str, settings: Mapping[str, Any]) -> Outcome:
    """Change the settings that are named; the others stay."""
    _require_where_it_leads(actor, "update", address, settings)
    return ask(actor, MANAGE, "update", address, settings)


def _require_where_it_leads(actor: Actor, verb: str, address: str, settings: Mapping[str, Any]) -> None:
    """Its messages, by what is new in these settings: into a queue that somebody may not manage, or to another broker, he sends none. Raises
    PermissionDenied."""
    named = {name: settings[name] for name, _ in LEADING if settings.get(name)}
    if not named:
        return
    it = destinations.by_address(address)
    for name, right in LEADING:
        if name in named and (it is None or it.settings.get(name) != named[name]):
            require(actor, right, verb, address, over=str(named[name]) if right == MANAGE else "")


LEADING = (("dead_queue", MANAGE), ("foreign_link", MANAGE_DESTINATION))
"""Settings that take messages elsewhere, and what one must be allowed there."""


def create_alias(actor: Actor, address: str, target: str, settings: Mapping[str, Any] | None = None) -> Outcome:
    """A name that stands for another destination, or for another alias. Whoever may not manage that makes no other name of it."""
    require(actor, MANAGE, "create_alias", address, over=target)
    return ask(actor, MANAGE, "create_alias", address, {"target": target, **(settings or {})})


def update_alias(actor: Actor, address: str, settings: Mapping[str, Any]) -> Outcome:
    if "target" in settings:
        require(actor, MANAGE, "update_alias", address, over=str(settings["target"]))
    return ask(actor, MANAGE, "update_alias", address, settings)


def delete_alias(actor: Actor, address: str) -> Outcome:
    """What it stood for stays."""
    return ask(actor, MANAGE, "delete_alias", address)


def pause(actor: Actor, address: str, direction: str) -> Outcome:
    """`direction`: PRODUCERS (nothing comes in), CONSUMERS (nothing goes out) or ALL."""
    return ask(actor, MANAGE, "pause", address, {"direction": direction})


def resume(actor: Actor, address: str, direction: str = "ALL") -> Outcome:
    return ask(actor, MANAGE, "resume", address, {"direction": direction})


def purge(actor: Actor, address: str, depth: int) -> Outcome:
    """Discard the messages. `depth` is the number the operator saw when he agreed (R22)."""
    return ask(actor, PURGE, "purge", address, {"depth": depth})


def destroy(actor: Actor, address: str, depth: int) -> Outcome:
    """Discard the messages and the destination itself."""
    return ask(actor, PURGE, "destroy", address, {"depth": depth})


def destroy_unused(actor: Actor, address: str) -> Outcome:
    """The destination itself, if nothing is in it and nobody consumes from it."""
    return ask(actor, PURGE, "destroy", address, {"depth": 0, "if_unused": True})


def preview_purge(actor: Actor, it: Destination) -> Preview:
    """Raises PermissionDenied."""
    require(actor, PURGE, "purge", it.address, reads=True)
    waiting = None if it.depth is None or it.unsettled is None else max(0, it.depth - it.unsettled)
    return Preview(it.address, it.depth, waiting, it.unsettled, 0)


def preview_destroy(actor: Actor, it: Destination) -> Preview:
    """Raises PermissionDenied."""
    require(actor, PURGE, "destroy", it.address, reads=True)
    return Preview(it.address, it.depth, it.depth, None if it.depth is None else 0, it.scheduled)
