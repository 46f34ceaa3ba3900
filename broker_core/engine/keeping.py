"""What a topic's lane keeps in memory for subscriptions that are behind: volatile messages, once for all of them (checklist items 106 and 110).

A subscription without consumers is not touched when a message arrives. The message waits in its lane, or on disk if memory is full (R19), until the
subscription has a consumer and takes it from there, or everybody is past it. What is kept is an interval of the lane: once something had to be
spilled everything after it is, until nothing is kept any more. So a cursor finds each position either here or on disk.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile

from .cursor import Cursor
from .destination import Lane
from .message import Message, Reliability, StoredBody
from .shard import Shard
from .subscription import Subscription


def keep(shard: Shard, lane: Lane, message: Message, *, room: bool) -> bool:
    """For those who take the message and do not have it in memory. `room`: memory may hold it. False: best effort, which is written nowhere (R19)."""
    position = message.position
    if not lane.kept:
        lane.kept_first = position
    if room and lane.spilled_end <= lane.kept_first:
        _keep_body(shard, lane, message)
        shard.keeping[lane] = None
        lane.kept[position] = message
        lane.kept_end = position + 1
        lane.kept_octets += message.weight
        shard.memory += message.weight
    elif message.header.reliability == Reliability.BEST_EFFORT:
        return False
    else:
        spill(shard, lane, message)
    return True


def spill(shard: Shard, lane: Lane, message: Message) -> None:
    """To the segment's UNLOGGED twin."""
    _keep_body(shard, lane, message)
    lane.spilled_end = message.position + 1
    shard.batch.spilled.append(message)
    shard.batch.firsts.setdefault(lane, message.position)


def _keep_body(shard: Shard, lane: Lane, message: Message) -> None:
    if message.body.__class__ is StoredBody:
        shard.keeping[lane] = None
        lane.bodies[message.position] = message.body


def refill(shard: Shard, subscription: Subscription) -> bool:
    """Take a page of what its lanes keep for it; whether there was anything."""
    filled = False
    for cursor in subscription.order:
        if cursor.lane.kept and cursor.lane.keeps(cursor.horizon) and cursor.horizon < cursor.lane.handed:
            filled = _take(shard, cursor) or filled
    return filled


def _take(shard: Shard, cursor: Cursor) -> bool:
    lane, limits, is_settled = cursor.lane, shard.limits, cursor.progress.is_settled
    ready, gone = cursor.ready, cursor.gone
    position, before = cursor.horizon, len(ready)
    end = min(lane.kept_end, lane.handed)
    while position < end and len(ready) < limits.page_rows and (cursor.octets < limits.page_octets or not ready):
        message = lane.kept.get(position)
        if message is not None and not is_settled(position) and position not in gone:
            ready.append(message)
            if message.header.group is not None:
                cursor.subscription.meet_groups()
            cursor.octets += message.weight
            shard.memory += message.weight
        position += 1
    cursor.loaded = position
    cursor.forget_passed()
    shard.batch.room -= len(ready) - before
    return len(ready) > before


def bodies_behind(cursor: Cursor) -> list[StoredBody]:
    """Large bodies of what the cursor has on disk, or its lane keeps for it."""
    behind, is_settled = cursor.horizon, cursor.progress.is_settled
    return [body for position, body in cursor.lane.bodies.items() if position >= behind and not is_settled(position) and position not in cursor.gone]


# -- what nobody needs any more -------------------------------------------------------------------------------------------------------
def tend(shard: Shard) -> None:
    """Forget what every subscription is past; about once a second."""
    for lane in list(shard.keeping):
        cursors = [cursor for s in lane.destination.subscriptions if (cursor := s.cursors[lane.index]) is not None]
        behind = min((cursor.horizon for cursor in cursors), default=lane.tail)
        if lane.kept:
            release(shard, lane, _below(behind, lane.kept))
            if not lane.kept:  # who was to take what is behind it from here has to read it
                for cursor in cursors:
                    if cursor.horizon < lane.tail and cursor.subscription.links:
                        shard.mark(cursor.subscription)
        for position in _below(behind, lane.bodies):
            del lane.bodies[position]
        over = min((cursor.progress.floor for cursor in cursors), default=lane.tail)
        over = min(over, shard.records.lowest((lane.destination.number, lane.index), over))
        if lane.buried.ahead:
            shard.has_buried(lane, 0, over - 1)
        if not lane.kept and not lane.bodies and not lane.buried.ahead:
            del shard.keeping[lane]


def _below(behind: int, positions: Iterable[int]) -> list[int]:
    return list(takewhile(lambda position: position < behind, positions))


def release(shard: Shard, lane: Lane, positions: list[int]) -> None:
    """Nobody will take these any more."""
    for position in positions:
        message = lane.kept.pop(position, None)
        if message is not None:
            lane.kept_octets -= message.weight
            shard.memory -= message.weight
