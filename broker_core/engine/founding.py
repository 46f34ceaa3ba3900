"""Durable subscriptions as operators see to them: made for a client that is not there yet, ended for one that does not come back, and looked at."""

from __future__ import annotations

from typing import Any

from .address import is_temporary, is_topic, is_valid
from .commands import Attach, Control
from .growth import growth_of
from .link import Peer
from .message import VOLATILE
from .outputs import Detached
from .refusal import Declined, Refusal
from .selector import SelectorError, compile_selector
from .shard import Shard
from .subscribing import close, end, subscribe, why_not_subscribe
from .subscription import Filter, Subscription

NOBODY = 0
LOOKED_AT_MAX = 1_000
Answer = dict[str, Any]


def found(shard: Shard, command: Control) -> Answer:
    """From the end of the topic on: what was sent before is not for it."""
    address, given = command.address, command.arguments
    name, client_id, account = given["name"], given.get("client_id", ""), given["account"]
    if not is_topic(address) or not is_valid(address) or is_temporary(address):
        raise Declined(Refusal.INVALID_DESTINATION, f"{address}: a durable subscription is of a topic that stays")
    if address not in shard.destinations:
        raise Declined(Refusal.NO_SUCH_DESTINATION, address)
    if (client_id, name) in shard.named:
        raise Declined(Refusal.SUBSCRIPTION_IN_USE, f"{name}: there is one of this name already")
    try:
        selector = compile_selector(given["selector"]) if given.get("selector") else None
    except SelectorError as error:
        raise Declined(Refusal.INVALID_SETTING, f"selector: {error}") from None
    if given.get("no_local") and not client_id:
        raise Declined(Refusal.INVALID_SETTING, "no_local: whose messages are left out the client_id says")
    wanted = Filter(selector, client_id if given.get("no_local") else "")
    attach = Attach(
        NOBODY, 0, address, name=name, durable=True, shared=given.get("shared", False), wanted=wanted, of_any_client=not client_id
    )  # fmt: skip
    peer = Peer(NOBODY, account, client_id)
    refusal, detail = why_not_subscribe(shard, peer, attach)
    if refusal is not None:
        raise Declined(refusal, detail)
    subscription = subscribe(shard, peer, attach)
    subscription.idle_since = shard.now
    shard.changed_subscriptions[subscription] = None
    return {"subscription": subscription.number}


def end_by_hand(shard: Shard, command: Control) -> Answer:
    """What it kept is discarded. While it has consumers only if that is forced: then they are told."""
    subscription = _find(shard, command.arguments.get("subscription"))
    if subscription is None:
        raise Declined(Refusal.NO_SUCH_SUBSCRIPTION, str(command.arguments.get("subscription")))
    if subscription.wildcard is not None:
        raise Declined(Refusal.NOT_SUPPORTED, f"it is of one of the topics of a pattern: end subscription {subscription.wildcard.number}, of the pattern")
    if subscription.links and not command.arguments.get("force"):
        raise Declined(Refusal.SUBSCRIPTION_IN_USE, f"{len(subscription.links)} consumers have it open")
    for link in list(subscription.links.values()):
        close(shard, link)
        detail = f"an operator ended the subscription {subscription.name}"
        shard.batch.outputs.append(Detached(link.peer.number, link.number, Refusal.NO_SUCH_SUBSCRIPTION, detail))
    discarded = subscription.depth
    end(shard, subscription)
    return {"subscription": subscription.number, "discarded": discarded}


def _find(shard: Shard, number: object) -> Subscription | None:
    subscription = shard.subscriptions.get(number) if isinstance(number, int) else None
    return subscription if subscription is not None and subscription.durable and subscription.name else None


def look_at_subscriptions(shard: Shard, command: Control) -> Answer:
    """How much each of these holds, by number; those that are not there are left out."""
    asked = [_find(shard, number) for number in command.arguments.get("numbers", ())[:LOOKED_AT_MAX]]
    return {"now": shard.now, "subscriptions": {str(one.number): _told(shard, one) for one in asked if one is not None}}


def _told(shard: Shard, subscription: Subscription) -> Answer:
    """`segments`: closed ones that hold something for it, and so stay on the disk; not for it alone, perhaps. `growth`: messages a minute."""
    parts = subscription.parts()
    held = [(part.destination.number, cursor) for part in parts for cursor in part.order if cursor.index < VOLATILE and cursor.depth]
    segments = 0
    for segment in shard.segments.closed.values():
        shard.effort += len(held)
        ends = [(cursor, segment.lanes.get((number, cursor.index))) for number, cursor in held]
        segments += any(last and next(cursor.progress.unsettled(*last), None) is not None for cursor, last in ends)
    growth, since = growth_of(shard, subscription) or (None, None)
    return {
        "depth": subscription.depth, "unsettled": subscription.outstanding, "consumers": len(subscription.links), "segments": segments,
        "growth": growth, "growth_since": since,
    }  # fmt: skip
