"""Durable subscriptions of topics: made, ended, purged by operators; how much each holds, as the node knows it. See `requests.ask` for what these raise."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from broker_core.control import InvalidRequest
from console.permissions import MANAGE, METRICS, PURGE
from console.selectors import accounts
from console.selectors.subscriptions import Subscription

from . import operations
from .audit import Actor, require
from .destinations import Preview
from .looking import NodeSilent, look, shared
from .requests import Outcome, ask

UNKNOWN: Mapping[str, None] = dict.fromkeys(("depth", "unsettled", "consumers", "segments", "growth", "growth_since"))


def create(actor: Actor, address: str, arguments: Mapping[str, Any]) -> Outcome:
    """It begins at the end of the topic. Only its account can consume from it."""
    require(actor, MANAGE, "subscribe", address)
    if accounts.by_name(arguments["account"]) is None:
        raise InvalidRequest(f"there is no client account {arguments['account']}: only its account can consume from a subscription")
    return ask(actor, MANAGE, "subscribe", address, arguments)


def destroy(actor: Actor, it: Subscription, *, force: bool) -> Outcome:
    """What it keeps is discarded. With consumers only if it is forced."""
    return ask(actor, PURGE, "unsubscribe", "", {"subscription": it.number, **({"force": True} if force else {})}, over=_over(it))


def purge(actor: Actor, it: Subscription) -> Outcome:
    """An operation, which can be undone. Raises broker_core.control.InvalidRequest for a pattern: its topics are purged one by one."""
    return operations.begin(actor, it.address, {"verb": "purge", "subscription": it.number})


def preview_destroy(actor: Actor, it: Subscription) -> Preview:
    """Raises PermissionDenied."""
    depth, _ = _counted(actor, "unsubscribe", it)
    return Preview(it.address, depth, depth, None if depth is None else 0, 0)


def preview_purge(actor: Actor, it: Subscription) -> Preview:
    """Raises PermissionDenied."""
    depth, unsettled = _counted(actor, "purge", it)
    waiting = None if depth is None or unsettled is None else max(0, depth - unsettled)
    return Preview(it.address, depth, waiting, unsettled, 0)


def _counted(actor: Actor, verb: str, it: Subscription) -> tuple[int | None, int | None]:
    """Messages of it, and those of them that its consumers hold."""
    require(actor, PURGE, verb, over=_over(it), reads=True)
    (found,) = held(actor, [it])
    return found["depth"], found["unsettled"]


def held(actor: Actor, found: Sequence[Subscription], *, again: bool = False) -> list[dict[str, Any]]:
    """What the node knows of each of these, in order; None of each if no node answers. `again`: as of the last second will do. Raises PermissionDenied."""
    for address in {_over(it) for it in found}:
        require(actor, METRICS, "list subscriptions", over=address, reads=True)
    try:
        numbers = [it.number for it in found]
        ask = functools.partial(look, actor.name, "subscriptions", "", {"numbers": numbers})
        told = (shared(("subscriptions", *numbers), ask) if again else ask())["subscriptions"] if found else {}
    except NodeSilent:
        told = {}
    return [told.get(str(it.number), UNKNOWN) for it in found]


def _over(it: Subscription) -> str:
    """Of a pattern all destinations."""
    return "" if any(mark in it.address for mark in "*>") else it.address
