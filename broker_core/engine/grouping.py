"""What a subscription's message groups make of its messages: whose they are, and what is set aside for an owner who has no room just now.

A message set aside is nobody else's. It waits in its cursor's `aside` until its owner takes it, or is gone: then it comes before what was never in
turn. A lane has as much set aside as its window holds; when there is no room for more the lane waits for its owners.
"""

from __future__ import annotations

from heapq import heappop, heappush

from .cursor import Cursor
from .eligibility import is_eligible
from .link import Link
from .message import Message
from .message_group import MessageGroup
from .scanning import matches
from .selection import Selection
from .shard import Shard
from .subscription import Subscription
from .waiting import SLACK, free, put_back_in_turn


# -- owners ---------------------------------------------------------------------------------------------------------------------------
def owner_of(shard: Shard, subscription: Subscription, message: Message) -> Link | None:
    """Who of those who own its group is to get the message. None: nobody takes it, so its group has another owner to choose."""
    owners, group = subscription.owners, message.header.group
    assert owners is not None and group is not None
    for link in owners.of(group.name):
        source = link.source
        if not isinstance(source, Selection) or matches(shard, source, message):
            return link
    return None


def choose(shard: Shard, link: Link, group: MessageGroup) -> None:
    """The link gets the group's next message, and is to get those that follow."""
    owners, limits = link.subscription.owners, shard.limits
    assert owners is not None
    before = owners.names
    owners.choose(group.name, link, room=before < limits.subscription_groups_max and shard.owned < limits.groups_max)
    shard.owned += owners.names - before


def close(shard: Shard, subscription: Subscription, group: MessageGroup) -> None:
    """Its last message has found its consumer."""
    owners = subscription.owners
    assert owners is not None
    before = owners.names
    owners.close(group.name)
    shard.owned += owners.names - before


def disown(shard: Shard, subscription: Subscription, link: Link) -> None:
    """The link gets nothing more: what is set aside for it comes back, and its groups choose anew."""
    owners = subscription.owners
    if owners is None:
        return
    before = owners.names
    owners.leave(link)
    shard.owned += owners.names - before
    for cursor, positions in owners.queues.pop(link, {}).items():
        for position in positions:
            message = cursor.aside.pop(position, None)
            if message is not None:
                cursor.aside_octets -= message.weight
                free(shard, cursor, message.weight)
                put_back_in_turn(shard, cursor, message)
    shard.mark(subscription)
    if not subscription.links and not subscription.depth:
        subscription.owners = None


def disown_ineligible(shard: Shard, subscription: Subscription) -> None:
    """An exclusive consumer has come: it owns all groups, if it is the one that is served."""
    for link in subscription.links.values() if subscription.owners is not None else ():
        if not is_eligible(link):
            disown(shard, subscription, link)


def forget_groups(shard: Shard, subscription: Subscription) -> None:
    """The subscription ends."""
    if subscription.owners is not None:
        shard.owned -= subscription.owners.names
        subscription.owners = None


# -- set aside ------------------------------------------------------------------------------------------------------------------------
def may_set_aside(shard: Shard, cursor: Cursor, message: Message, owner: Link, room: int) -> bool:
    """Whether there is room for the message; or the owner, who has room for so many, will take it at once."""
    limits = shard.limits
    if message.position in cursor.returned:  # it is in memory anyway, and the lane must not wait for it
        return True
    if len(cursor.aside) < limits.window_rows and (not cursor.aside or cursor.aside_octets + message.weight <= limits.window_octets):
        return True
    owners = owner.subscription.owners
    assert owners is not None
    return sum([len(positions) for positions in owners.queues.get(owner, {}).values()]) < room


def set_aside(shard: Shard, cursor: Cursor, message: Message, owner: Link) -> None:
    """The message, taken from where it waited, is for its owner."""
    owners = owner.subscription.owners
    assert owners is not None
    position = message.position
    cursor.aside[position] = message
    cursor.aside_octets += message.weight
    cursor.octets += message.weight
    shard.memory += message.weight
    positions = owners.queues.setdefault(owner, {}).setdefault(cursor, [])
    heappush(positions, position)
    if len(positions) > 2 * len(cursor.aside) + SLACK:  # many have expired while the owner had no room
        positions[:] = sorted(each for each in positions if each in cursor.aside)


def forget_aside(cursor: Cursor) -> None:
    """All of it is over."""
    owners = cursor.subscription.owners
    if owners is None:
        return
    cursor.aside.clear()
    cursor.aside_octets = 0
    for link in list(owners.queues):
        owners.queues[link].pop(cursor, None)
        if not owners.queues[link]:
            del owners.queues[link]


def first_aside(link: Link, cursor: Cursor) -> Message | None:
    """Of what is set aside for the link there, what comes first."""
    owners = link.subscription.owners
    assert owners is not None
    lanes = owners.queues.get(link)
    positions = lanes.get(cursor) if lanes is not None else None
    while positions:
        message = cursor.aside.get(positions[0])
        if message is not None:
            return message
        _forget_first(link, cursor)
    return None


def take_aside(shard: Shard, link: Link, cursor: Cursor, message: Message) -> None:
    """The first one."""
    del cursor.aside[message.position]
    cursor.aside_octets -= message.weight
    free(shard, cursor, message.weight)
    _forget_first(link, cursor)


def _forget_first(link: Link, cursor: Cursor) -> None:
    owners = link.subscription.owners
    assert owners is not None
    lanes = owners.queues[link]
    heappop(lanes[cursor])
    if not lanes[cursor]:
        del lanes[cursor]
        if not lanes:
            del owners.queues[link]
