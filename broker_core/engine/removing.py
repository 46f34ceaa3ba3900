"""Making room by removing messages: the oldest, or of the lowest priority the oldest (R2). They die with that reason (checklist item 77).

Only what waits for whoever comes first is removed: what is delivered, reserved or set aside for its message group's owner, or waits for its redelivery, is
left alone. What has expired expires.
"""

from __future__ import annotations

from .capacity import depth_of
from .cursor import Cursor
from .dead import bury, expire
from .destination import Destination
from .keeping import refill
from .message import Message
from .outcome import Outcome
from .settings import REMOVE_LOW_PRIORITY, REMOVING
from .shard import Shard
from .subscription import Subscription
from .waiting import withdraw

REMOVE_STEPS = 4
"""What a message weighs: it is copied, as a rule."""
COMMENTS = {
    Outcome.OLDEST: "the destination was full and this was its oldest message",
    Outcome.LOW_PRIORITY: "the destination was full and this was the oldest of its lowest priority",
}


def relieve(shard: Shard) -> bool:
    """Remove what is too much, a bounded part of it in one flush. Whether anything was removed."""
    steps = before = shard.limits.removals + 2 * REMOVE_STEPS * (shard.accepted - shard.accepted_before)  # more than came
    for destination in list(shard.overfull):
        if steps <= 0:
            break
        if shard.numbered.get(destination.number) is destination and destination.settings.limit_behavior in REMOVING:
            steps = _relieve(shard, destination, steps)
        if steps > 0:
            del shard.overfull[destination]
    return steps < before


def _relieve(shard: Shard, destination: Destination, steps: int) -> int:
    if destination.capacity is not None:
        destination.capacity.forget()
    total = destination.depth
    average = destination.octets / total if total and destination.is_topic else 0.0
    for subscription in list(destination.subscriptions):
        octets = int(average * depth_of(subscription)) if destination.is_topic else destination.octets
        steps = _remove(shard, subscription, octets, steps)
        if steps <= 0:
            break
    return steps


def _remove(shard: Shard, subscription: Subscription, octets: int, steps: int) -> int:
    """The steps that are left."""
    settings = subscription.destination.settings
    messages = depth_of(subscription)
    by_priority = settings.limit_behavior == REMOVE_LOW_PRIORITY
    while steps > 0 and settings.exceeded_by(messages, octets):
        cursor = _lane_of_victim(shard, subscription, by_priority=by_priority)
        if cursor is None:
            break
        message = _first(cursor)
        messages -= 1
        octets -= message.size
        steps -= REMOVE_STEPS
        withdraw(shard, cursor, message)
        if 0 < message.header.expiration <= shard.now:
            expire(shard, cursor, message)
        else:
            outcome = Outcome.LOW_PRIORITY if by_priority else Outcome.OLDEST
            bury(shard, cursor, message, outcome, COMMENTS[outcome])
        shard.mark(subscription)
    return steps


def _lane_of_victim(shard: Shard, subscription: Subscription, *, by_priority: bool) -> Cursor | None:
    """Where the message to be removed next is at the head. None: nowhere; or it is being read, and then this goes on."""
    found: Cursor | None = None
    for cursor in reversed(subscription.order):
        if by_priority and found is not None and found.priority < cursor.priority:
            break
        if not _has_first(shard, cursor):
            if cursor.reading or cursor in shard.batch.wanted:
                return None
            continue
        if found is None or _first(cursor).sequence < _first(found).sequence:
            found = cursor
    return found


def _has_first(shard: Shard, cursor: Cursor) -> bool:
    """Whether something is in memory that may be removed; what is on disk only is asked for."""
    if cursor.returned or cursor.missing or cursor.ready:
        return True
    lane = cursor.lane
    if lane.kept and lane.keeps(cursor.horizon) and refill(shard, cursor.subscription):
        return bool(cursor.ready)
    if cursor.horizon < min(lane.tail, lane.handed):
        shard.batch.wanted[cursor] = None  # what this batch placed can be read when its segment is known
    return False


def _first(cursor: Cursor) -> Message:
    """The head of the lane, of what may be removed."""
    if cursor.missing and (not cursor.returned or cursor.first_missing < cursor.head.position):
        return cursor.missing[cursor.first_missing]
    return cursor.head
