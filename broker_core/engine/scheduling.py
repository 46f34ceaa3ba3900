"""Delayed messages (JMS 2.0, 7.9): until one is due it is a row of the store's schedule, holds no segment and no floor (R3); then it becomes
visible as any arrival, and the same commit deletes its row. What is due is decided by the engine's time alone.

Volatile ones, among them all for temporary destinations, wait in the store, too, and do not survive the node (R25); best effort waits in memory
and may be dropped.
"""

from __future__ import annotations

from .accounting import discard_body
from .capacity import entered
from .commands import PageLoaded
from .destination import Destination
from .message import VOLATILE, Message, Reliability
from .message_group import recognize
from .paging import allowance
from .placing import has_room_for_volatile, place
from .reads import ScheduledWanted
from .schedule import LAST, octets_of
from .shard import Shard
from .topics import publish
from .upkeep import DiscardScheduled


def schedule(shard: Shard, destination: Destination, message: Message, sent_at: int) -> bool:
    """The message waits until its delay, counted from `sent_at`, has passed; visible at once if it has. Whether it is stored, not to end with the node."""
    due = min(sent_at + message.header.delay, LAST)
    if due <= shard.now and not shard.schedule.waits_until(due):  # a transaction that took long; it overtakes nothing
        stored = enter(shard, destination, message)
        if destination.capacity is not None:
            entered(shard, destination)
        return stored
    shard.sequence = message.sequence = shard.sequence + 1
    message.destination, message.accepted_at = destination.number, due
    if destination.owner is not None:
        message.header = message.header.unstored()
    waiting, before = shard.schedule, shard.schedule.memory
    if message.header.reliability == Reliability.BEST_EFFORT:
        if not _has_room(shard, message):
            discard_body(shard, message)  # checklist item 113: it may be dropped under pressure
            return False
        waiting.unwritten.push(message)
    else:
        shard.batch.scheduled.append(message)
        if message.header.reliability == Reliability.ASSURED and message.header.lane < VOLATILE:
            shard.batch.synchronous = True
        waiting.add(message, shard.now + shard.limits.schedule_ahead_ms)
        _bound(shard)
    destination.scheduled += 1
    destination.scheduled_octets += message.size
    shard.watched[destination] = None
    shard.memory += waiting.memory - before
    return message.header.lane < VOLATILE


def enter(shard: Shard, destination: Destination, message: Message) -> bool:
    """The message becomes visible. Whether it is stored."""
    if destination.is_topic:
        return publish(shard, destination, message)
    if destination.owner is not None and message.header.lane < VOLATILE:
        message.header = message.header.unstored()
    place(shard, destination, message)
    return message.header.lane < VOLATILE


def _has_room(shard: Shard, message: Message) -> bool:
    octets = octets_of(message)
    return shard.schedule.unwritten.octets + octets <= shard.limits.schedule_octets and has_room_for_volatile(shard, octets)


def _bound(shard: Shard) -> None:
    """When there is too much, the farther half leaves memory: so each message is looked at a constant number of times."""
    near, limits = shard.schedule.near, shard.limits
    if len(near) > limits.schedule_rows or near.octets > limits.schedule_octets:
        shard.schedule.shrink(limits.schedule_rows // 2, limits.schedule_octets // 2)


# -- at flush -------------------------------------------------------------------------------------------------------------------------
def place_due(shard: Shard) -> None:
    """What is due becomes visible, a page of it at a time: a million messages due at one instant are a thousand short commits."""
    waiting, limits, before = shard.schedule, shard.limits, shard.schedule.memory
    rows, octets = limits.page_rows, limits.page_octets
    while rows > 0 and octets > 0 and not waiting.paused and (message := waiting.pop_due(shard.now)) is not None:
        destination = shard.numbered[message.destination]
        destination.scheduled -= 1
        destination.scheduled_octets -= message.size
        shard.watched[destination] = None
        if message.header.reliability != Reliability.BEST_EFFORT:
            shard.batch.due.append(message.sequence)
        # A new object: the old one may be on its way into the schedule with a commit that has not ended.
        enter(shard, destination, Message(message.header, message.body, message.size))
        if destination.capacity is not None:
            entered(shard, destination)
        rows -= 1
        octets -= octets_of(message)
    shard.memory += waiting.memory - before
    _read_on(shard)


def _read_on(shard: Shard) -> None:
    """Ask for what is due next, in good time."""
    if not _wants_read(shard):
        return
    waiting, limits = shard.schedule, shard.limits
    rows, octets = allowance(shard)
    rows, octets = min(rows, max(limits.schedule_rows // 2, 1)), min(octets, limits.schedule_octets // 2)
    read, upto = shard.next_read(), shard.now + limits.schedule_ahead_ms
    shard.batch.reads.append(ScheduledWanted(read, waiting.horizon, upto, rows, octets))
    waiting.begin(read, upto, octets, shard.sequence)
    shard.memory += octets


def _wants_read(shard: Shard) -> bool:
    waiting = shard.schedule
    return not waiting.read and not waiting.paused and waiting.beyond > 0 and _is_short(shard) and _read_at(shard) <= shard.now


def _is_short(shard: Shard) -> bool:
    """Less than a quarter is left: a page fits in, and what was shrunk to a half is not read again at once."""
    near, limits = shard.schedule.near, shard.limits
    return len(near) <= limits.schedule_rows // 4 and near.octets <= limits.schedule_octets // 4


def _read_at(shard: Shard) -> int:
    return shard.schedule.horizon[0] - shard.limits.schedule_ahead_ms // 2


def next_deadline(shard: Shard) -> int | None:
    """When something is due, or to be read; None: nothing is, or a read on its way comes first."""
    waiting = shard.schedule
    deadline = waiting.next_due()
    if waiting.beyond > 0 and not waiting.read and not waiting.paused and _is_short(shard):
        read_at = _read_at(shard)
        return read_at if deadline is None else min(deadline, read_at)
    return deadline


# -- what the store found -------------------------------------------------------------------------------------------------------------
def scheduled_loaded(shard: Shard, command: PageLoaded) -> None:
    """The answer to a ScheduledWanted."""
    waiting, before = shard.schedule, shard.schedule.memory
    recognize(shard, command.messages)
    waiting.take(command.messages, command.complete, shard.numbered.__contains__)
    if waiting.near:
        _bound(shard)
    shard.memory += waiting.memory - before


# -- destinations that are no more ----------------------------------------------------------------------------------------------------
def discards(shard: Shard) -> list[DiscardScheduled]:
    """Rows of destinations that ended (accounting.forget_delayed), to be deleted now."""
    steps = [DiscardScheduled(number) for number in shard.schedule.discarding]
    shard.schedule.discarding.clear()
    return steps
