"""Topics: who takes a published message, and what that makes of it (checklist items 91 to 110)."""

from __future__ import annotations

from .accounting import discard_body
from .destination import Destination
from .message import STORED, VOLATILE, Message, StoredBody
from .placing import open_lane, place
from .properties import Properties, takes
from .shard import Shard
from .subscription import Group


def publish(shard: Shard, destination: Destination, message: Message) -> None:
    """The message joins the topic's lane for all subscriptions that take it. Each filter is asked once; a subscription without consumers and
    without a filter costs nothing. What no durable subscription takes is not stored (R19), what nobody takes is over."""
    header = message.header
    message.accepted_at = shard.now
    message.sequence = shard.sequence + 1
    message.destination = destination.number
    left_out: list[Group] = []
    durables = takers = 0
    properties = Properties(shard, message)
    for group in destination.groups.values():
        if group.wanted and not takes(group.wanted, properties):
            left_out.append(group)
        else:
            durables += group.durables
            takers += len(group.members)
    if not takers:
        shard.sequence += 1
        destination.accepted += 1
        shard.accepted += 1
        shard.batch.touched[destination] = None
        discard_body(shard, message)
        return
    if not durables and header.reliability >= STORED:
        message.header = header = header.unstored()
    lane = destination.lanes[header.lane] or open_lane(destination, header.lane)
    if left_out:
        _exclude(shard, left_out, header.lane, lane.tail)
    destination.published += 1
    destination.published_octets += message.size
    more = message.size * (takers - 1)
    destination.octets += more
    destination.octets_volatile += more if header.lane >= VOLATILE else message.size * (takers - durables)
    if takers > 1 and header.lane >= VOLATILE and message.body.__class__ is StoredBody:
        shard.bodies[message.body.body] = takers
    place(shard, destination, message)
    fed = destination.receivers if header.lane < VOLATILE else destination.subscriptions
    message.holders = len([s for s in fed if (cursor := s.cursors[header.lane]) and cursor.ready and cursor.ready[-1] is message])


def _exclude(shard: Shard, groups: list[Group], index: int, position: int) -> None:
    """The position is settled for them before it is taken; the flush writes ranges of them."""
    for group in groups:
        for subscription in group.members.values():
            cursor = subscription.cursors[index]
            assert cursor is not None
            cursor.excluded.append(position)
            shard.batch.settling[cursor] = None
            if cursor.loaded == position:
                cursor.loaded = position + 1
