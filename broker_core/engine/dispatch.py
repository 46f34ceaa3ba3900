"""Handing messages to links: highest priority first, each lane in order, links in turn, each within its credit and octets.

Links that take whatever comes are served from the subscription's cursors, those with a filter of their own from their selection's scans.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop
from typing import Any

from .commands import Direction
from .dead import expire, expire_found
from .effects import Delivered, Drained
from .eligibility import is_eligible, step_back
from .keeping import refill
from .link import Link, Tier
from .message import Header, Message, Reliability, StoredBody
from .scanning import foremost, head, look, remove
from .selection import Scan, Selection
from .settlement import acknowledge
from .shard import Shard
from .subscription import Cursor, Subscription
from .waiting import forget_stale, withdraw
from .wildcard import WildcardSubscription


ALL = 1 << 30
"""Messages: what there is."""
OCTETS_STEP = 8192
"""That take as long to write as another message."""


def dispatch(shard: Shard, subscription: Subscription) -> None:
    """Serve hungry links in turn."""
    if subscription.destination.state & Direction.CONSUMERS or subscription.returning:
        return
    if subscription.wildcard is not None:
        subscription.wildcard.supplied[subscription] = None
        subscription.destination.idle_since = shard.now
        shard.mark(subscription.wildcard)
        return
    if subscription.selections:
        _dispatch_among(shard, subscription)
        return
    while True:
        filled = bool(shard.keeping) and refill(shard, subscription)
        for tier in subscription.turns:
            _serve(shard, tier)
        if not filled or shard.batch.room <= 0:
            return


def _dispatch_among(shard: Shard, subscription: Subscription) -> None:
    """The same if some of the links are selective."""
    outputs = shard.batch.outputs
    satisfied: list[Tier] = []
    above: Tier | None = None
    for tier in subscription.turns:
        before = len(outputs)
        if tier and isinstance(tier.source, Selection):
            look(shard, tier.source)
        _serve(shard, tier)
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
    while hungry and batch.room > 0 and (cursor := first(shard, source)) is not None:
        if cursor is not shared or not turns:
            shared, turns = cursor, len(hungry)
            share = -(-cursor.deliverable // turns) if turns > 1 else ALL
        turns -= 1
        link = hungry.popleft()
        room = _room(shard, link)
        if room > 0:
            room = room if room < batch.room else batch.room  # noqa: FURB136  # min() costs three times as much, per message
            _deliver(shard, link, cursor, share if share < room else room)  # noqa: FURB136
            room = _room(shard, link)
        if room > 0:
            hungry.append(link)
        else:
            link.hungry = False


def _room(shard: Shard, link: Link) -> int:
    """How many messages the link may receive: within credit, octets (R16) and the cap on unsettled deliveries (R20), if it is still there."""
    limits = shard.limits
    if link.octets >= limits.link_octets or link.peer.stopped or link.number not in shard.links:
        return 0
    room = limits.link_unsettled - len(link.unsettled)
    return room if room < link.credit else link.credit  # noqa: FURB136  # as above


def _first_of(source: Subscription | Selection) -> Callable[[Shard, Any], Cursor | Scan | None]:
    """What says where the message is that leaves next."""
    kind = source.__class__
    return _foremost if kind is Subscription else foremost if kind is Selection else _of_members


def _foremost(_: Shard, subscription: Subscription) -> Cursor | None:
    """The cursor to deliver from: of the highest priority that has anything, between stored and volatile the older message. While what comes first
    is being read, lower priorities wait: highest first holds for what is on disk, too; but not through page after page of what has expired."""
    if len(subscription.order) == 1:  # nearly always
        cursor = subscription.order[0]
        return cursor if cursor.returned or (cursor.ready and not cursor.missing) else None
    found: Cursor | None = None
    foremost = -1
    for cursor in subscription.order:
        if cursor.priority < foremost:
            break
        if cursor.deliverable:
            foremost = cursor.priority
            if found is None or cursor.head.sequence < found.head.sequence:
                found = cursor
        elif cursor.is_behind and not (cursor.is_barren and subscription.durable):
            foremost = cursor.priority
            if not subscription.durable:  # what it gets of one producer and mode may lie in both lanes (topics.publish)
                return None
    return found


def _of_members(shard: Shard, subscription: WildcardSubscription) -> Cursor | None:
    """The same of the member whose turn it is. Whoever has been served goes behind the others, so that all get on, however little room consumers have;
    who has nothing is not looked at again before something comes."""
    supplied = subscription.supplied
    while supplied:
        member = next(iter(supplied))
        cursor = None
        if not member.destination.state & Direction.CONSUMERS:
            if shard.keeping:
                refill(shard, member)
            cursor = _foremost(shard, member)
        if cursor is not None:
            supplied.move_to_end(member)
            shard.batch.served[member] = None
            return cursor
        del supplied[member]
    return None


def _deliver(shard: Shard, link: Link, place: Cursor | Scan, count: int) -> None:
    """Up to `count` messages from there to the link, stopping when its octets are full."""
    if place.__class__ is Cursor:
        cursor, messages = place, _take(shard, link, place, count)
    else:
        cursor, messages = place.cursor, _take_found(shard, link, place, count)  # type: ignore[union-attr,arg-type]
    if not messages:
        return
    first_tag = link.tag + 1
    link.tag += len(messages)
    link.credit -= len(messages)
    shard.batch.outputs.append(Delivered(link.peer.number, link.number, first_tag, messages))
    if cursor.durable:
        _offer(shard, link, cursor, messages, ahead=place is not cursor)
    if len(messages) == 1:
        link.unsettled[first_tag] = messages[0]
    else:
        link.unsettled.update(zip(range(first_tag, link.tag + 1), messages, strict=True))
    if link.presettled:
        # A large body leaves chunk by chunk: whoever streams it settles it when the last one has left, as until then it must stay in the store.
        shard.presettled.append((link, [tag for tag, m in enumerate(messages, first_tag) if m.body.__class__ is not StoredBody]))


def _take(shard: Shard, link: Link, cursor: Cursor, count: int) -> list[Message]:
    messages: list[Message] = []
    ready, returned, gone, now = cursor.ready, cursor.returned, cursor.gone, shard.now
    room = shard.limits.link_octets - link.octets
    octets = freed = expiration = 0
    header: Header | None = None
    while count and octets < room and (returned or ready):
        if returned:
            position = heappop(cursor.lowest)
            if position not in returned:
                continue
            message = returned.pop(position)
        elif cursor.missing:
            break
        else:
            message = ready.popleft()
            if gone and message.position in gone:
                del gone[message.position]
                cursor.stale -= 1
                freed += message.size
                continue
        size = message.size
        freed += size
        if message.header is not header:  # neighbours share it, mostly
            header = message.header
            expiration = header.expiration
            if header.reliability == Reliability.ASSURED:
                shard.batch.synchronous = True
        if expiration and expiration <= now:
            expire(shard, cursor, message)
            if shard.batch.room <= 0:
                break
            continue
        messages.append(message)
        octets += size
        count -= 1
    cursor.octets -= freed
    shard.memory -= freed
    link.octets += octets
    shard.batch.room -= len(messages) + octets // OCTETS_STEP
    if cursor.stale:
        forget_stale(shard, cursor)
    return messages


def _take_found(shard: Shard, link: Link, scan: Scan, count: int) -> list[Message]:
    """The same from a scan's candidates: the messages leave the middle of their lane."""
    messages: list[Message] = []
    cursor, now = scan.cursor, shard.now
    room = shard.limits.link_octets - link.octets
    octets = 0
    while count and octets < room and (message := head(shard, scan)) is not None and message.body is not None:
        remove(shard, scan, message.position)
        if 0 < message.header.expiration <= now:
            expire_found(shard, cursor, message)
            if shard.batch.room <= 0:
                break
            continue
        withdraw(shard, cursor, message)
        if message.header.reliability == Reliability.ASSURED:
            shard.batch.synchronous = True
        messages.append(message)
        octets += message.size
        count -= 1
    link.octets += octets
    shard.batch.room -= len(messages) + octets // OCTETS_STEP
    return messages


def _offer(shard: Shard, link: Link, cursor: Cursor, messages: list[Message], *, ahead: bool) -> None:
    """Durable before the messages leave (R9): what may have left is flagged when it is delivered again. `ahead` of their turn: each by itself."""
    subscription, index = cursor.subscription.number, cursor.index
    before = len(shard.batch.offered)
    first = last = messages[0].position
    if len(messages) > 1 and (last := messages[-1].position) - first + 1 != len(messages):
        previous = first
        for message in messages[1:]:
            if message.position != previous + 1:
                shard.batch.offered.append((subscription, index, first, previous, link.number))
                first = message.position
            previous = message.position
    shard.batch.offered.append((subscription, index, first, last, link.number))
    if ahead:
        for _, _, low, high, _ in shard.batch.offered[before:]:
            cursor.offer_ahead(low, high)
        shard.change(cursor)
    elif last > cursor.offered:
        cursor.offered = last
        shard.change(cursor)


def settle_presettled(shard: Shard) -> None:
    """What was sent on presettled links has left: acknowledge for the client (checklist item 58). Credit and octets come back at once."""
    left, shard.left = shard.left, []
    for link, tags in left:
        messages = [link.unsettled.pop(tag) for tag in tags if tag in link.unsettled]
        if messages:
            link.octets -= acknowledge(shard, link.subscription, messages)
            if link.replenish:
                link.credit += len(messages)
            if not link.hungry and _room(shard, link) > 0:
                link.hungry = True
                link.tier.append(link)
            shard.mark(link.subscription)


def drain(shard: Shard, link: Link) -> None:
    """The peer wants to know when nothing more can come: its remaining credit lapses (AMQP 2.6.7)."""
    source = link.source
    if link.credit == 0 or not is_eligible(link) or (_first_of(source)(shard, source) is None and not source.is_reading):
        link.credit, link.drain = 0, False
        shard.batch.outputs.append(Drained(link.peer.number, link.number))
