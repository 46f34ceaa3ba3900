"""What waits in a cursor's memory: put back there, taken from the middle, with the octets it holds. Dispatch takes from the head by itself."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from heapq import heapify, heappush

from .cursor import Cursor
from .message import Message
from .shard import Shard

SLACK = 64
"""What is remembered of messages that left otherwise, beside as much as waits, before it is forgotten at once."""


def waiting(cursor: Cursor) -> list[Message]:
    """All of it that has its body at hand, or waits for its back-off."""
    ready = [message for message in cursor.ready if message.position not in cursor.gone] if cursor.stale else cursor.ready
    return [*ready, *cursor.returned.values(), *cursor.delayed.values(), *cursor.aside.values()]


def put_back(shard: Shard, cursor: Cursor, message: Message) -> None:
    """It comes before what was never delivered."""
    cursor.returned[message.position] = message
    heappush(cursor.lowest, message.position)
    cursor.octets += message.weight
    shard.memory += message.weight
    if cursor.scans:
        offer(cursor, message)


def put_back_in_turn(shard: Shard, cursor: Cursor, message: Message) -> None:
    """The same of one that was taken from the middle and never left: it comes in its turn, where that is still to come. One that left, if only to somebody who
    did not look at it, comes first."""
    position = message.position
    if message.redelivered or position < cursor.frontier or (cursor.durable and cursor.may_have_left(position)):
        put_back(shard, cursor, message)
        return
    del cursor.gone[position]
    if position < cursor.loaded:
        ready = cursor.ready
        index = bisect_left(ready, position, key=_position)
        if index < len(ready) and ready[index].position == position:  # it was not forgotten yet
            cursor.stale -= 1
            ready[index] = message  # the other one may have left, and its body with it
        else:
            ready.insert(index, message)
            free(shard, cursor, -message.weight)
    offer(cursor, message)


def _position(message: Message) -> int:
    return message.position


def offer(cursor: Cursor, message: Message) -> None:
    """It waits again: selective consumers may want it."""
    for scan in cursor.scans:
        scan.unseen.append(message)
        if len(scan.unseen) > 2 * (len(cursor.returned) + len(cursor.missing)) + SLACK:
            scan.unseen = deque([each for each in scan.unseen if cursor.holds(each)])


def at_hand(cursor: Cursor, message: Message) -> Message:
    """The volatile message with its body, if it waits for its first delivery in memory: timers do not keep bodies."""
    if cursor.stored or message.body is not None:
        return message
    position, ready = message.position, cursor.ready
    if position >= cursor.loaded:
        return cursor.lane.kept.get(position, message)
    if position < cursor.frontier or not ready:
        return message
    index = min(position - ready[0].position, len(ready) - 1)  # unless there are gaps
    if ready[index].position != position:
        index = bisect_left(ready, position, 0, index, key=_position)
    return ready[index] if ready[index].position == position else message


def withdraw(shard: Shard, cursor: Cursor, message: Message) -> Message | None:
    """Take the unsettled message from where it waits, whatever waits before it; the object that waited. None: a consumer has it."""
    position = message.position
    waiting = cursor.returned.pop(position, None)
    if waiting is not None:
        free(shard, cursor, waiting.weight)
        if len(cursor.lowest) > 2 * len(cursor.returned) + SLACK:
            cursor.lowest = list(cursor.returned)
            heapify(cursor.lowest)
        return waiting
    waiting = take_missing(cursor, position) or take_delayed(shard, cursor, position)
    if waiting is not None:
        return waiting
    waiting = cursor.aside.pop(position, None)
    if waiting is not None:
        cursor.aside_octets -= waiting.weight
        free(shard, cursor, waiting.weight)
        return waiting
    if position < cursor.frontier or position in cursor.gone:
        return None
    cursor.gone[position] = None
    if position < cursor.loaded:
        cursor.stale += 1
        forget_stale(shard, cursor)
    return message


def put_delayed(shard: Shard, cursor: Cursor, message: Message, due: int) -> None:
    """It comes back then; until then it is in nobody else's hands. Its body counts, if it is in memory."""
    cursor.delayed[message.position] = message
    if message.body is not None:
        cursor.delayed_octets += message.weight
        free(shard, cursor, -message.weight)
    shard.timers.add(due, cursor, message.bare())


def take_delayed(shard: Shard, cursor: Cursor, position: int) -> Message | None:
    """It waits for its back-off no more."""
    message = cursor.delayed.pop(position, None)
    if message is not None and message.body is not None:
        cursor.delayed_octets -= message.weight
        free(shard, cursor, message.weight)
    return message


def put_missing(cursor: Cursor, message: Message) -> None:
    """It comes before what was never delivered, when its body has been read."""
    cursor.missing[message.position] = message
    heappush(cursor.awaited, message.position)
    offer(cursor, message)


def take_missing(cursor: Cursor, position: int) -> Message | None:
    """It waits for its body no more."""
    message = cursor.missing.pop(position, None)
    if message is not None and len(cursor.awaited) > 2 * len(cursor.missing) + SLACK:
        cursor.awaited = sorted(cursor.missing)
    return message


def forget_stale(shard: Shard, cursor: Cursor) -> None:
    """What is gone leaves memory: at the head at once, elsewhere when it is the greater part, so that each costs a constant number of steps."""
    ready, gone = cursor.ready, cursor.gone
    freed = 0
    while ready and ready[0].position in gone:
        message = ready.popleft()
        del gone[message.position]
        cursor.stale -= 1
        freed += message.weight
    if 2 * cursor.stale > len(ready):
        freed += sum([message.weight for message in ready if message.position in gone])
        cursor.ready = deque([message for message in ready if message.position not in gone])
        forget_gone(cursor)
    free(shard, cursor, freed)


def forget_gone(cursor: Cursor) -> None:
    """Nothing in `ready` is gone any more: what is settled need not be known as gone, too."""
    is_settled = cursor.progress.is_settled
    cursor.gone = {position: None for position in cursor.gone if not is_settled(position)}
    cursor.stale = 0


def free(shard: Shard, cursor: Cursor, octets: int) -> None:
    cursor.octets -= octets
    shard.memory -= octets
