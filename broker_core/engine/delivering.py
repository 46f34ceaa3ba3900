"""One run of messages to one link: taken from where they wait, offered before they leave, outstanding from then on."""

from __future__ import annotations

from heapq import heappop
from operator import attrgetter

from .cursor import Cursor
from .dead import expire, expire_found
from .link import Link
from .message import BEYOND, Header, Message, Reliability, StoredBody
from .outputs import Delivered
from .scanning import head, remove
from .selection import Scan
from .shard import Shard
from .waiting import forget_stale, withdraw

OCTETS_STEP = 8192
"""That take as long to write as another message."""


class Taken:
    """Messages of one lane that left the places where they waited (group_dispatch.py)."""

    __slots__ = ("cursor", "messages")

    def __init__(self, cursor: Cursor, messages: list[Message]) -> None:
        self.cursor = cursor
        self.messages = messages


def room_of(shard: Shard, link: Link) -> int:
    """How many messages the link may receive: within credit, octets (R16) and the cap on unsettled deliveries (R20), if it is still there."""
    limits = shard.limits
    if link.octets >= limits.link_octets or link.peer.stopped or link.number not in shard.links:
        return 0
    room = limits.link_unsettled - len(link.unsettled)
    return room if room < link.credit else link.credit  # noqa: FURB136  # min() costs three times as much, per message


def deliver(shard: Shard, link: Link, place: Cursor | Scan | Taken, count: int) -> None:
    """Up to `count` messages from there to the link, stopping when its octets are full; or those that were taken already."""
    ascending = place.__class__ is Scan
    if place.__class__ is Cursor:
        ascending = not place.returned  # which come first, wherever they stood
        cursor, messages = place, _take(shard, link, place, count)
    elif place.__class__ is Scan:
        cursor, messages = place.cursor, _take_found(shard, link, place, count)
    else:
        cursor, messages = place.cursor, place.messages  # type: ignore[union-attr]
    if not messages:
        return
    first_tag = link.tag + 1
    link.tag += len(messages)
    link.credit -= len(messages)
    shard.batch.outputs.append(Delivered(link.peer.number, link.number, first_tag, messages))
    if cursor.durable:
        _offer(shard, link, cursor, messages, ahead=place is not cursor, ascending=ascending)
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
    upto = cursor.first_missing if cursor.missing else BEYOND
    while count and octets < room and (returned or ready):
        if returned:
            position = cursor.lowest[0]
            if position in returned and position > upto:
                break
            heappop(cursor.lowest)
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
                freed += message.weight
                continue
        freed += message.weight
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
        octets += message.size
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


def _offer(shard: Shard, link: Link, cursor: Cursor, messages: list[Message], *, ahead: bool, ascending: bool) -> None:
    """Durable before the messages leave (R9): what may have left is flagged when it is delivered again. `ahead` of their turn: each by itself."""
    subscription, index = cursor.subscription.number, cursor.index
    before = len(shard.batch.offered)
    mark = messages[-1].position
    if not ascending:
        messages = sorted(messages, key=attrgetter("position"))
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
    elif mark > cursor.offered and (ascending or mark < cursor.frontier):  # what came back from further on is in `ahead`: before it others still wait
        cursor.offered = mark
        shard.change(cursor)


