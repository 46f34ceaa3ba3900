"""Who is connected, who produces and consumes, and who holds which message since when; for operators, who may have it given back, or a consumer or connection
closed."""

from __future__ import annotations

from heapq import nsmallest
from itertools import islice
from typing import TYPE_CHECKING, Any

from . import browsing
from .aliases import target_of
from .branch import Branch
from .browser import Browser
from .commands import Settle
from .looking import described, since
from .outcome import Outcome
from .outputs import Detached
from .producers import PER_PEER
from .refusal import Declined, Refusal
from .settlement import settle
from .subscribing import expel

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .commands import Control
    from .link import Link, Peer, Transaction
    from .producers import Producers
    from .shard import Shard

PAGE_MAX = 1_000
LOOKED_AT_MAX = 20_000
"""Producers, for one page of those of one destination: some 10 ms."""
TRANSACTION_PLACES = 10
"""Destinations of a transaction that are told."""
Answer = dict[str, Any]


def list_connections(shard: Shard, command: Control) -> Answer:
    """Those after a number, of one `account` or `client_id` if that is said. `origins`: what the node knows of their sockets, by number."""
    origins, account, client_id = (command.arguments.get(name) for name in ("origins", "account", "client_id"))
    fits = (number for number, peer in shard.peers.items() if account in (None, peer.account) and client_id in (None, peer.client_id))
    peers, origins = _page(command, fits), origins or {}
    return {
        "now": shard.now, "connections": [_connection(shard, shard.peers[number], origins.get(str(number))) for number in peers[0]], "next": peers[1],
    }  # fmt: skip


def _page(command: Control, numbers: Iterable[int]) -> tuple[list[int], int | None]:
    after, limit = command.arguments.get("after", 0), min(command.arguments.get("limit", PAGE_MAX), PAGE_MAX)
    only = command.arguments.get("only")
    found = nsmallest(limit + 1, [number for number in numbers if number > after and only in (None, number)])
    return found[:limit], found[limit - 1] if len(found) > limit else None


def _connection(shard: Shard, peer: Peer, origin: list[Any] | None) -> Answer:
    held = [link.unsettled for link in peer.links.values()]
    oldest = [since(link, next(iter(link.unsettled)), shard.now) for link in peer.links.values() if link.unsettled]
    return {
        "connection": peer.number, "account": peer.account, "client_id": peer.client_id, "since": peer.since, "address": origin[0] if origin else None,
        "protocol": origin[1] if origin else None, "producers": origin[2] if origin else None, "consumers": len(peer.links),
        "browsers": len(peer.browsers), "unsettled": sum(map(len, held)), "oldest_since": min(oldest, default=None),
        "transactions": len(_open(peer)), "temporary_destinations": len(peer.temporaries),
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
    told = {
        "consumer": number, "connection": it.peer.number, "account": it.peer.account, "client_id": it.peer.client_id, "closable": it.peer.detaches,
    }  # fmt: skip
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


def list_transactions(shard: Shard, command: Control) -> Answer:
    """Those that are neither ended nor prepared: of one `connection`, a hundred or so at the most, or of all after a connection's number. A page
    ends with the connection that fills it."""
    if "connection" in command.arguments:
        numbers, following = [_peer(shard, command).number], None
    else:
        numbers, following = _page(command, (number for number, peer in shard.peers.items() if peer.transactions or peer.branches))
    found: list[Answer] = []
    for number in numbers:
        found += _open_transactions(shard, shard.peers[number])
        if len(found) >= command.arguments.get("limit", PAGE_MAX) and number != numbers[-1]:
            following = number
            break
    return {"now": shard.now, "transactions": found, "next": following}


def _open(peer: Peer) -> list[tuple[bytes, Transaction]]:
    found: list[tuple[bytes, Transaction]] = list(peer.transactions.items())
    found += [(branch.name, branch) for branch in peer.branches.values() if peer.transactions.get(branch.name) is not branch]  # suspended, or ended
    return found


def _open_transactions(shard: Shard, peer: Peer) -> list[Answer]:
    whose = {"connection": peer.number, "account": peer.account, "client_id": peer.client_id}
    return [whose | _transaction(shard, name, it) for name, it in _open(peer)]


def _transaction(shard: Shard, name: bytes, it: Transaction) -> Answer:
    shard.effort += len(it.sends) // 20
    places = dict.fromkeys([*(send.address for send in it.sends), *(subscription.destination.address for subscription, *_ in it.settles)])
    branch = it if isinstance(it, Branch) else None
    return {
        "name": name.decode() if name.isascii() and name.decode().isprintable() else name.hex(), "xid": branch.xid if branch is not None else None,
        "state": branch.state.name.lower() if branch is not None else "active", "ends_at": it.ends_at, "sends": len(it.sends), "octets": it.octets,
        "acknowledgements": it.settled, "destinations": list(islice(places, TRANSACTION_PLACES)),
        "refused": it.refusal.value if it.refusal is not None else None,
    }  # fmt: skip


def page_of_producers(shard: Shard, arguments: Mapping[str, Any], known: Mapping[int, Producers]) -> Answer:
    """What `list_producers` is to be asked with, of what connections know of where they send to: one page of it, in order of the numbers. A page
    ends, perhaps with less, after so much that was looked at: others wait meanwhile."""
    where, connection, only = (arguments.get(name) for name in ("destination", "connection", "only"))
    after, limit = arguments.get("after", 0), min(arguments.get("limit", PAGE_MAX), PAGE_MAX)
    if only is not None:
        connection, after, limit = only // PER_PEER, only - 1, 1
    first = (after + 1) // PER_PEER
    found: list[list[Any]] = []
    looked_at, following = 0, None
    peers = sorted([number for number in known if number >= first and connection in (None, number)])
    for peer in peers:
        looked_at += len(known[peer])
        for producer in known[peer]:
            if producer.number > after and (where is None or target_of(shard, producer.address) == where):
                sent = producer.sent() if producer.sent is not None else None
                found.append([producer.number, producer.address, producer.since, producer.link, sent])
        if len(found) > limit:
            following = found[limit - 1][0]
            break
        if looked_at > LOOKED_AT_MAX and peer != peers[-1]:
            following = peer * PER_PEER + PER_PEER - 1
            break
    if only is not None:
        return {"rows": [row for row in found if row[0] == only], "next": None}
    return {"rows": found[:limit], "next": following}


def list_producers(shard: Shard, command: Control) -> Answer:
    """Of all destinations, of one (`destination`, an address) or of one `connection`. `produced`: what the node knows by its connections, as
    page_of_producers puts it together, and of which of them it does not read."""
    produced = command.arguments.get("produced", {})
    held_up = produced.get("held_up", ())
    shard.effort += len(produced.get("rows", ()))
    rows = [_producer(shard, row, held_up) for row in produced.get("rows", ()) if row[0] // PER_PEER in shard.peers]
    return {"now": shard.now, "producers": rows, "next": produced.get("next")}


def _producer(shard: Shard, row: list[Any], held_up: Iterable[int]) -> Answer:
    number, named, began, link, sent = row
    peer, address = shard.peers[number // PER_PEER], target_of(shard, named)
    destination = shard.destinations.get(address)
    return {
        "producer": number, "connection": peer.number, "account": peer.account, "client_id": peer.client_id, "destination": address,
        "alias": named if named != address else None, "link": link, "since": began, "sent": sent,
        "waiting": peer.blocked.get(destination, 0) if destination is not None else 0, "held_up": peer.number in held_up,
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


def detach(shard: Shard, command: Control) -> Answer:
    """A consumer or browser ends, as if its client had ended it: what it holds goes back. The client is told why, and its connection goes on."""
    number = command.arguments["consumer"]
    it = shard.browsing.browsers.get(number) or _link(shard, command)
    if not it.peer.detaches:
        raise Declined(Refusal.NOT_SUPPORTED, f"the protocol of its client has no word for the end of one consumer: close connection {it.peer.number}")
    unsettled, reason = 0, command.arguments["reason"]
    if isinstance(it, Browser):
        browsing.close(shard, it)
        shard.batch.outputs.append(Detached(it.peer.number, number, Refusal.CONSUMER_CLOSED, reason))
    else:
        unsettled = len(it.unsettled)
        expel(shard, it, Refusal.CONSUMER_CLOSED, reason)
    return {"consumer": number, "connection": it.peer.number, "account": it.peer.account, "unsettled": unsettled}


def _peer(shard: Shard, command: Control) -> Peer:
    """Raises Declined."""
    number = command.arguments.get("connection")
    peer = shard.peers.get(number) if isinstance(number, int) else None
    if peer is None:
        raise Declined(Refusal.NO_SUCH_CONNECTION, str(number))
    return peer


def disconnect(shard: Shard, command: Control) -> Answer:
    """The connection is told why, and closed when that has been read; what it holds goes back then."""
    peer = _peer(shard, command)
    if peer.forwards:
        raise Declined(Refusal.NO_SUCH_CONNECTION, str(peer.number))
    shard.batch.dismissed.append((peer.number, f"closed by an operator: {command.arguments.get('reason', '')}"))
    return {"connection": peer.number, "account": peer.account, "client_id": peer.client_id}
