"""Who is connected, who consumes, and who holds which message since when; for operators, who may have it given back, or a connection closed."""

from __future__ import annotations

from heapq import nsmallest
from itertools import islice
from typing import TYPE_CHECKING, Any

from .commands import Settle
from .effects import Outcome
from .looking import described, since
from .refusal import Declined, Refusal
from .settlement import settle

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .browser import Browser
    from .commands import Control
    from .link import Link, Peer
    from .shard import Shard

PAGE_MAX = 1_000
Answer = dict[str, Any]


def list_connections(shard: Shard, command: Control) -> Answer:
    """Those after a number. `origins`: what the node knows of their sockets, by number."""
    origins = command.arguments.get("origins", {})
    peers = _page(command, shard.peers)
    return {
        "now": shard.now, "connections": [_connection(shard, shard.peers[number], origins.get(str(number))) for number in peers[0]], "next": peers[1],
    }  # fmt: skip


def _page(command: Control, numbers: Iterable[int]) -> tuple[list[int], int | None]:
    after, limit = command.arguments.get("after", 0), min(command.arguments.get("limit", PAGE_MAX), PAGE_MAX)
    only = command.arguments.get("only")
    found = nsmallest(limit + 1, [number for number in numbers if number > after and only in (None, number)])
    return found[:limit], found[limit - 1] if len(found) > limit else None


def _connection(shard: Shard, peer: Peer, origin: list[str] | None) -> Answer:
    held = [link.unsettled for link in peer.links.values()]
    oldest = [since(link, next(iter(link.unsettled)), shard.now) for link in peer.links.values() if link.unsettled]
    return {
        "connection": peer.number, "account": peer.account, "client_id": peer.client_id, "since": peer.since, "address": origin[0] if origin else None,
        "protocol": origin[1] if origin else None, "consumers": len(peer.links), "browsers": len(peer.browsers), "unsettled": sum(map(len, held)),
        "oldest_since": min(oldest, default=None), "transactions": len(peer.transactions), "temporary_destinations": len(peer.temporaries),
        "blocked_by": [destination.address for destination in islice(peer.blocked, 10)], "forwards": peer.forwards, "stopped": peer.stopped,
    }  # fmt: skip


def list_consumers(shard: Shard, command: Control) -> Answer:
    """Of all destinations, of one (`destination`, an address) or of one `connection`; browsers among them."""
    where, connection = command.arguments.get("destination"), command.arguments.get("connection")
    shard.effort += len(shard.links) // 10
    found: dict[int, Link | Browser] = {
        number: link
        for number, link in shard.links.items()
        if (where is None or link.subscription.destination.address == where) and connection in (None, link.peer.number)
    }
    if where is None:
        found |= {number: browser for number, browser in shard.browsing.browsers.items() if connection in (None, browser.peer.number)}
    numbers, following = _page(command, found)
    return {"now": shard.now, "consumers": [_consumer(shard, number, found[number]) for number in numbers], "next": following}


def _consumer(shard: Shard, number: int, it: Link | Browser) -> Answer:
    told = {"consumer": number, "connection": it.peer.number, "account": it.peer.account, "client_id": it.peer.client_id}
    link = shard.links.get(number)
    if link is None:
        return told | {"kind": "browser", "credit": it.credit, "delivered": it.tag}
    subscription = link.subscription
    wanted = getattr(link.source, "wanted", None) or subscription.wanted
    return told | {
        "kind": "consumer", "destination": subscription.destination.address, "subscription": subscription.number, "subscription_name": subscription.name,
        "durable": subscription.durable and bool(subscription.name), "selector": wanted.selector.text if wanted.selector is not None else "",
        "credit": min(link.credit, 1 << 53), "delivered": link.tag, "unsettled": len(link.unsettled), "unsettled_octets": link.octets,
        "oldest_since": since(link, next(iter(link.unsettled)), shard.now) if link.unsettled else None, "presettled": link.unacknowledged,
        "exclusive": link.exclusive, "priority": link.priority,
    }  # fmt: skip


def list_unsettled(shard: Shard, command: Control) -> Answer:
    """What one consumer holds, after a delivery's tag."""
    link = _link(shard, command)
    after, limit = command.arguments.get("after", 0), min(command.arguments.get("limit", PAGE_MAX), PAGE_MAX)
    tags = list(islice((tag for tag in link.unsettled if tag > after), limit + 1))
    shard.effort += len(link.unsettled) // 20
    return {"now": shard.now, "deliveries": [_delivery(shard, link, tag) for tag in tags[:limit]], "next": tags[limit - 1] if len(tags) > limit else None}


def _delivery(shard: Shard, link: Link, tag: int) -> Answer:
    message = link.unsettled[tag]
    destination = shard.numbered.get(message.destination)
    told = described(message, bodies=False)
    return {
        "delivery": tag, "since": since(link, tag, shard.now), "message_id": shard.message_id(message), "lane": message.header.lane,
        "destination": destination.address if destination is not None else "",
        **{name: told[name] for name in ("position", "accepted_at", "size", "priority", "redelivered", "failures")},
    }  # fmt: skip


def _link(shard: Shard, command: Control) -> Link:
    """Raises Declined."""
    number = command.arguments.get("consumer")
    link = shard.links.get(number) if isinstance(number, int) else None
    if link is None:
        raise Declined(Refusal.NO_SUCH_CONSUMER, str(number))
    return link


def release(shard: Shard, command: Control) -> Answer:
    """What a consumer holds goes back to its place, flagged, for others or for itself; not a failure. An acknowledgement that it sends later is late."""
    link = _link(shard, command)
    asked = command.arguments.get("deliveries")
    tags = list(islice(link.unsettled, PAGE_MAX)) if asked is None else [tag for tag in dict.fromkeys(asked) if tag in link.unsettled]
    if tags:
        settle(shard, Settle(link.peer.number, link.number, tags, outcome=Outcome.RELEASED))
    return {"released": len(tags), "left": len(link.unsettled)}


def disconnect(shard: Shard, command: Control) -> Answer:
    """The connection is told why, and closed when that has been read; what it holds goes back then."""
    number = command.arguments.get("connection")
    peer = shard.peers.get(number) if isinstance(number, int) else None
    if peer is None or peer.forwards:
        raise Declined(Refusal.NO_SUCH_CONNECTION, str(number))
    shard.batch.dismissed.append((peer.number, f"closed by an operator: {command.arguments.get('reason', '')}"))
    return {"connection": peer.number, "account": peer.account, "client_id": peer.client_id}
