"""Topics: who takes a published message, and what that makes of it (checklist items 91 to 110)."""

from __future__ import annotations

from .accounting import discard_body
from .cursor import Cursor
from .destination import Destination, Lane
from .fan_out import put_off
from .keeping import keep
from .message import STORED, VOLATILE, Message, Reliability, StoredBody
from .outcome import Outcome
from .placing import drop, has_room, has_room_for_volatile, place, watch_expiration
from .properties import Properties
from .routes import Group
from .shard import Shard
from .subscription import Subscription


def publish(shard: Shard, destination: Destination, message: Message) -> bool:
    """The message joins the topic's lane for all subscriptions that take it. Each filter is asked once at the most; a subscription without consumers
    costs nothing. What no durable subscription takes is not stored (R19), what nobody takes is over.
    Whether it is stored."""
    header = message.header
    message.accepted_at = shard.now
    message.sequence = shard.sequence + 1
    message.destination = destination.number
    routes = destination.routes
    if routes.filtered:
        groups = routes.takers(Properties(shard, message))
        shard.effort += routes.effort
    else:
        groups = list(routes.groups.values())
    durables = takers = 0
    for group in groups:
        durables += group.durables
        takers += len(group.members)
    if not takers:
        shard.sequence += 1
        destination.accepted += 1
        shard.accepted += 1
        shard.batch.touched[destination] = None
        discard_body(shard, message)
        return False
    if not durables and header.reliability >= STORED:
        message.header = header = header.unstored()
    volatile = header.lane >= VOLATILE
    size = message.size
    destination.published += 1
    destination.published_octets += size
    if takers > 1:  # the first is counted by `place`
        destination.octets += size * (takers - 1)
        if not volatile:
            destination.octets_arrived += size * (durables - 1)
        elif message.body.__class__ is StoredBody:
            shard.bodies[message.body.body] = takers
    destination.octets_volatile += size * (takers - 1 if volatile else takers - durables)
    place(shard, destination, message)
    lane = destination.lanes[header.lane]
    assert lane is not None
    if destination.fan_out is not None or routes.active > shard.batch.pairs:
        take_down(shard, lane, groups, message)
        put_off(shard, lane, groups, message)
        behind = True
    else:
        shard.batch.pairs -= routes.active
        behind = _feed(shard, lane, groups, message)
    if behind and volatile and not keep(shard, lane, message, room=has_room_for_volatile(shard, message.weight)):
        _drop_for_others(shard, lane, groups, message)
    if header.expiration:
        watch_expiration(shard, lane, message)
    return not volatile


def _feed(shard: Shard, lane: Lane, groups: list[Group], message: Message) -> bool:
    """To those who have consumers and are not behind; whether there are others who take it."""
    position, index = message.position, lane.index
    first = shard.batch.published.setdefault(lane, position) if lane.destination.routes.filtered else position
    holders = 0
    behind = False
    grouped = message.header.group is not None
    for group in groups:
        caught_up = position
        if group.wanted:
            # What lies between was left out: whoever has the last one that it let through has everything.
            taken = group.taken.setdefault(index, [])
            caught_up = taken[-1] + 1 if taken else first
            taken.append(position)
        behind = behind or len(group.active) < len(group.members)
        for subscription in group.active.values():
            if not subscription.dirty:
                subscription.dirty = True
                shard.batch.dirty[subscription] = None
            cursor = subscription.cursors[index]
            assert cursor is not None
            if cursor.loaded < caught_up or not has_room(shard, cursor, message):
                if cursor.stored or message.header.reliability != Reliability.BEST_EFFORT:
                    behind = True
                    continue
                drop(shard, cursor, message)
                if cursor.loaded >= caught_up:
                    cursor.loaded = position + 1
                continue
            if grouped:
                subscription.meet_groups()
            cursor.ready.append(message)
            cursor.loaded = position + 1
            cursor.octets += message.weight
            shard.memory += message.weight
            holders += 1
    message.holders = holders
    return behind


def _drop_for_others(shard: Shard, lane: Lane, groups: list[Group], message: Message) -> None:
    """It is over for all who do not have it by now (checklist item 113)."""
    position = message.position
    for group in groups:
        for subscription in group.members.values():
            cursor = subscription.cursors[lane.index]
            assert cursor is not None
            if cursor.loaded <= position and not cursor.progress.is_settled(position):
                drop(shard, cursor, message)
                if cursor.loaded == position:
                    cursor.loaded = position + 1


def take_down(shard: Shard, lane: Lane, groups: list[Group], message: Message) -> None:
    """That these filters let it through."""
    if lane.destination.routes.filtered:
        shard.batch.published.setdefault(lane, message.position)
        for group in groups:
            if group.wanted:
                group.taken.setdefault(lane.index, []).append(message.position)


def leave_out(shard: Shard) -> None:
    """Settle what filters did not let through since the last time, in ranges: recovery asks no selector again."""
    published, shard.batch.published = shard.batch.published, {}
    for lane, first in published.items():
        last = lane.tail - 1
        for group in lane.destination.routes.filtered.values():
            taken = group.taken.pop(lane.index, [])
            caught_up = taken[-1] + 1 if taken else first
            ranges = _between(taken, first, last)
            for subscription in group.members.values() if ranges else ():
                cursor = subscription.cursors[lane.index]
                assert cursor is not None
                if cursor.loaded >= caught_up:
                    cursor.loaded = last + 1
                _settle(shard, cursor, ranges)


def _between(taken: list[int], first: int, last: int) -> list[tuple[int, int]]:
    """The ranges of first to last, inclusive, without what was taken."""
    ranges = []
    for position in [*taken, last + 1]:
        if position > first:
            ranges.append((first, position - 1))
        first = position + 1
    return ranges


def leave_to(shard: Shard, lane: Lane, first: int, taken: dict[Subscription, list[int]]) -> None:
    """Of what has joined the lane from `first` on, and nobody was given, each of these subscriptions has its positions, in order, and no other has any. What
    came before must have been left out already."""
    last = lane.tail - 1
    for subscription in lane.destination.subscriptions:
        cursor, own = subscription.cursors[lane.index], taken.get(subscription)
        assert cursor is not None
        if own is None and cursor.loaded >= first:
            cursor.loaded = last + 1
        _settle(shard, cursor, _between(own or [], first, last))
    for subscription in taken:
        if subscription.links:
            shard.mark(subscription)


def _settle(shard: Shard, cursor: Cursor, ranges: list[tuple[int, int]]) -> None:
    shard.change(cursor)
    for first, high in ranges:
        low = max(first, cursor.progress.floor)  # what was sent before the subscription began is settled, and the ledger says so once
        if low > high:
            continue
        cursor.progress.settle(low, high)
        if cursor.durable:
            shard.batch.settled.append((cursor.subscription.number, cursor.index, low, high, Outcome.EXCLUDED))
