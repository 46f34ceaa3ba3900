"""Handing messages to links: highest priority first, each lane in order, links in turn, each within its credit and octets.

Links that take whatever comes are served from the subscription's cursors, those with a filter of their own from their selection's scans. Where there
are message groups group_dispatch.py says who is served what.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from typing import Any

from .commands import Direction
from .cursor import Cursor
from .delivering import deliver, room_of
from .eligibility import is_eligible, open_turns, step_back
from .group_dispatch import serve_owners, serve_with_groups
from .keeping import refill
from .link import Link, Tier
from .memory import is_cooling
from .outputs import Drained
from .scanning import foremost, look
from .selection import Scan, Selection
from .settlement import acknowledge
from .shard import Shard
from .subscription import Subscription
from .wildcard import WildcardSubscription

ALL = 1 << 30
"""Messages: what there is."""


def dispatch(shard: Shard, subscription: Subscription) -> None:
    """Serve hungry links in turn."""
    if subscription.destination.state & Direction.CONSUMERS or subscription.returning or _cools(shard, subscription):
        return
    if subscription.wildcard is not None:
        subscription.wildcard.supplied[subscription] = None
        subscription.destination.idle_since = shard.now
        shard.mark(subscription.wildcard)
        return
    if subscription.owners is not None:
        _dispatch_groups(shard, subscription)
        return
    if subscription.selections:
        _dispatch_among(shard, subscription, _serve)
        return
    if shard.keeping:
        refill(shard, subscription)
    while True:
        for tier in subscription.turns:
            _serve(shard, tier)
        # Asked again behind it: what was full before may have left as a whole, and nobody else says that more is kept.
        if not shard.keeping or shard.batch.room <= 0 or not refill(shard, subscription):
            return


def _cools(shard: Shard, subscription: Subscription) -> bool:
    """It is marked when a message of it comes back; and once a second, for memory may have room again before."""
    cools = is_cooling(shard, subscription)
    if cools:
        shard.cooling[subscription] = None
    return cools


def _dispatch_groups(shard: Shard, subscription: Subscription) -> None:
    """The same if there are message groups: what their owners take of what was set aside makes room for more."""
    outputs = shard.batch.outputs
    while True:
        before = len(outputs)
        filled = bool(shard.keeping) and refill(shard, subscription)
        serve_owners(shard, subscription)
        _dispatch_among(shard, subscription, serve_with_groups)
        moved = serve_owners(shard, subscription)
        if not (moved or filled or len(outputs) > before) or shard.batch.room <= 0:
            return


def _dispatch_among(shard: Shard, subscription: Subscription, serve: Callable[[Shard, Tier], None]) -> None:
    """The same if some of the links are selective."""
    outputs = shard.batch.outputs
    satisfied: list[Tier] = []
    above: Tier | None = None
    for tier in open_turns(subscription):
        before = len(outputs)
        if tier and isinstance(tier.source, Selection):
            look(shard, tier.source)
        serve(shard, tier)
        if len(outputs) > before and (above is None or above.priority != tier.priority):
            satisfied.append(tier)
        above = tier
    for tier in satisfied:
        step_back(subscription, tier)


def _serve(shard: Shard, hungry: Tier) -> None:
    """What is ready is shared out evenly, in runs: of 100 messages and two links each gets 50 in a row, of two messages and two links
    each gets one."""
    source, first = hungry.source, _first_of(hungry.source)
    shared: Cursor | Scan | None = None
    share = turns = 0
    batch = shard.batch
    two_lanes = isinstance(source, Subscription) and not source.durable
    while hungry and batch.room > 0 and (cursor := first(shard, source)) is not None:
        if batch.room <= 0:  # what a member of a pattern took from its lane was all that there is room for
            break
        if cursor is not shared or not turns:
            shared, turns = cursor, len(hungry)
            share = -(-cursor.deliverable // turns) if turns > 1 else ALL
        turns -= 1
        link = hungry.popleft()
        room = room_of(shard, link)
        if room > 0:
            if two_lanes:
                room = min(room, _before_its_twin(cursor))
            room = room if room < batch.room else batch.room  # noqa: FURB136  # min() costs three times as much, per message
            deliver(shard, link, cursor, share if share < room else room)  # noqa: FURB136
            room = room_of(shard, link)
        if room > 0:
            hungry.append(link)
        else:
            link.hungry = False


def _first_of(source: Subscription | Selection) -> Callable[[Shard, Any], Cursor | Scan | None]:
    """What says where the message is that leaves next."""
    kind = source.__class__
    return _foremost if kind is Subscription else foremost if kind is Selection else _of_members


def _foremost(_: Shard, subscription: Subscription) -> Cursor | None:
    """The cursor to deliver from: of the highest priority that has anything, between stored and volatile the older message. While what comes first
    is being read, lower priorities wait: highest first holds for what is on disk, too; but not through page after page of what has expired."""
    if len(subscription.order) == 1:  # nearly always
        cursor = subscription.order[0]
        if cursor.missing:
            return cursor if cursor.deliverable else None
        return cursor if cursor.returned or cursor.ready else None
    found: Cursor | None = None
    foremost = -1
    for cursor in subscription.order:
        if cursor.priority < foremost:
            break
        if cursor.deliverable:
            foremost = cursor.priority
            if found is None or cursor.head.sequence < found.head.sequence:
                found = cursor
        elif cursor.holds_up:
            foremost = cursor.priority
            if not subscription.durable:  # what it gets of one producer and mode may lie in both lanes (topics.publish)
                return None
    return found


def _before_its_twin(cursor: Cursor | Scan) -> int:
    """How many messages the cursor has that are older than what lies in the other lane of its priority: of one producer and mode a volatile subscription
    may get some from there (topics.publish)."""
    assert isinstance(cursor, Cursor)
    twin = next((other for other in cursor.subscription.order if other.priority == cursor.priority and other is not cursor and other.deliverable), None)
    if twin is None:
        return ALL
    if cursor.returned:
        return 1
    next_there = twin.head.sequence
    return max(sum(1 for _ in takewhile(lambda message: message.sequence < next_there, cursor.ready)), 1)


def _of_members(shard: Shard, subscription: WildcardSubscription) -> Cursor | None:
    """The same of the member whose turn it is. Whoever has been served goes behind the others, so that all get on, however little room consumers have;
    who has nothing is not looked at again before something comes."""
    supplied = subscription.supplied
    while supplied:
        member = next(iter(supplied))
        cursor = None
        if not member.destination.state & Direction.CONSUMERS and not _cools(shard, member):
            if shard.keeping and refill(shard, member):
                subscription.look_at(member)
            cursor = _foremost(shard, member)
        if cursor is not None:
            supplied.move_to_end(member)
            shard.batch.served[member] = None
            return cursor
        del supplied[member]
    return None


def look_again(shard: Shard) -> None:
    """At those who wait for memory to have room."""
    cooling, shard.cooling = shard.cooling, {}
    for subscription in cooling:
        if subscription.number in shard.subscriptions:
            shard.mark(subscription)


def settle_presettled(shard: Shard) -> None:
    """What was sent on presettled links has left: acknowledge for the client (checklist item 58). Credit and octets come back at once."""
    left, shard.left = shard.left, []
    for link, tags in left:
        messages = [link.unsettled.pop(tag) for tag in tags if tag in link.unsettled]
        if messages:
            link.octets -= acknowledge(shard, link.subscription, messages)
            if link.replenish:
                link.credit += len(messages)
            if not link.hungry and room_of(shard, link) > 0:
                link.hungry = True
                link.tier.append(link)
            shard.mark(link.subscription)


def drain(shard: Shard, link: Link) -> None:
    """The peer wants to know when nothing more can come: its remaining credit lapses (AMQP 2.6.7)."""
    if link.credit == 0 or not is_eligible(link) or not _may_receive(shard, link):
        shard.batch.outputs.append(Drained(link.peer.number, link.number, link.drain))
        link.credit = link.drain = 0


def _may_receive(shard: Shard, link: Link) -> bool:
    """Something may come without another word of the peer's, or of an operator's."""
    source, limits = link.source, shard.limits
    if not link.presettled and (link.octets >= limits.link_octets or len(link.unsettled) >= limits.link_unsettled):
        return False
    if link.subscription.destination.state & Direction.CONSUMERS or is_cooling(shard, link.subscription):
        return False
    waits = link.subscription.owners is None and _first_of(source)(shard, source) is not None  # of groups it has been dealt all that is for it
    return waits or source.is_reading
