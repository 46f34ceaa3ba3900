"""What operators discard: all that waits in a destination, or the destination itself. Nothing of it dies (checklist item 76)."""

from __future__ import annotations

from typing import Any

from . import undoing
from .accounting import discard_body, discard_waiting, forget_delayed
from .address import is_reserved
from .aliases import find
from .commands import Control
from .cursor import Cursor
from .definitions import DestinationDestroyed
from .destination import Destination
from .duplicates import forget_all
from .grouping import forget_aside, forget_groups
from .matching import part, topic_destroyed
from .message import VOLATILE, Message
from .outcome import Outcome
from .outputs import Detached
from .records import Record
from .refusal import Declined, Refusal
from .registering import count_selector, forget
from .scanning import abandon, leave
from .settlement import feed
from .shard import Shard
from .subscription import Subscription
from .temporary import end_temporary

PURGE_UNSEEN = 1_000
"""A purge takes what has come since the operator looked, but not more than he saw and so many."""
Answer = dict[str, Any]


def purge(shard: Shard, command: Control) -> Answer:
    """Discard every message that is not delivered to a consumer just now (Open MQ's default); O(blocks), whatever the depth."""
    destination = find(shard, command)
    _check_seen(destination, command)
    record = undoing.begin(shard, command.request, command.verb, destination)
    stored = destination.octets - destination.octets_volatile
    purged = sum(_purge_cursor(shard, cursor, record) for subscription in destination.subscriptions for cursor in subscription.order)
    _recount_octets(destination)
    shard.batch.touched[destination] = None
    answer = {"purged": purged, "outstanding": destination.depth}
    if record is None:
        return answer
    record.lapses_at = shard.now + undoing.period(shard, destination)
    if undoing.write(shard, record, stored - (destination.octets - destination.octets_volatile)):
        answer |= {"undo": record.number, "undoable": record.messages}
    return answer


def _check_seen(destination: Destination, command: Control) -> None:
    """Nobody agreed to discard more than he could have seen coming (R22)."""
    seen = command.arguments.get("depth")
    if isinstance(seen, int) and destination.depth > 2 * seen + PURGE_UNSEEN:
        raise Declined(Refusal.DESTINATION_IN_USE, f"it holds {destination.depth} messages now, {seen} when you looked: look again")


def _purge_cursor(shard: Shard, cursor: Cursor, record: Record | None = None) -> int:
    """`record`: of what may come back."""
    before, tail = cursor.depth, cursor.lane.tail
    subscription = cursor.subscription
    held = [message for message in subscription.delivered() if message.header.lane == cursor.index]
    kept = sorted([*(m.position for m in held), *cursor.reserved, *cursor.accepted])
    discard_waiting(shard, cursor)
    forget_aside(cursor)
    cursor.loaded = tail
    for scan in cursor.scans:
        abandon(shard, scan)
    still = set(kept)
    if record is not None and cursor.durable:
        _keep_for_undo(shard, record, cursor, kept)
    for position in [p for p in cursor.failures if p not in still]:
        del cursor.failures[position]
        if cursor.durable:
            cursor.failures_changed[position] = None
    first = cursor.progress.floor
    for stop in [*kept, tail]:
        for low, high in list(cursor.progress.unsettled(first, stop - 1)):
            cursor.progress.settle(low, high)
            if cursor.durable:
                shard.batch.settled.append((subscription.number, cursor.index, low, high, Outcome.PURGED))
        first = stop + 1
    shard.change(cursor)
    shard.batch.synchronous = True
    return before - cursor.depth


def _keep_for_undo(shard: Shard, record: Record, cursor: Cursor, held: list[int]) -> None:
    """All but what somebody holds."""
    failed, first = sorted(cursor.failures), cursor.progress.floor
    for stop in [*held, cursor.lane.tail]:
        for low, high in cursor.progress.unsettled(first, stop - 1):
            undoing.keep(shard, record, cursor, low, high, failed)
        first = stop + 1


def _recount_octets(destination: Destination) -> None:
    """After a purge only what is delivered holds octets."""
    destination.octets = sum(m.size for s in destination.subscriptions for m in _held(s))
    destination.octets_volatile = sum(m.size for s in destination.subscriptions for m in _held(s) if m.header.lane >= VOLATILE or not s.durable)


def _held(subscription: Subscription) -> list[Message]:
    return [*subscription.delivered(), *(message for cursor in subscription.order for message in cursor.reserved.values())]


def destroy_by_hand(shard: Shard, command: Control) -> Answer:
    destination = find(shard, command)
    if is_reserved(destination.address):
        raise Declined(Refusal.DESTINATION_RESERVED, destination.address)
    _check_seen(destination, command)
    depth = destination.depth
    scheduled = destination.scheduled
    if command.arguments.get("if_unused") and (depth or scheduled or destination.consumers):
        raise Declined(Refusal.DESTINATION_IN_USE, destination.address)
    destroy(shard, destination)
    return {"discarded": depth, "scheduled": scheduled}


def destroy(shard: Shard, destination: Destination) -> None:
    """Its links are detached with a reason; its messages are discarded, never to the dead message queue (checklist item 76)."""
    for subscription in destination.subscriptions:
        if subscription.wildcard is not None:
            _take_away(shard, subscription)
        for link in list(subscription.links.values()):
            detail = f"{destination.address} was destroyed"
            shard.batch.outputs.append(Detached(link.peer.number, link.number, Refusal.NO_SUCH_DESTINATION, detail))
            del shard.links[link.number], link.peer.links[link.number], subscription.links[link.number]
            leave(shard, link)
            count_selector(shard, link.peer.account, -link.selector_octets)
            for message in link.unsettled.values():
                if message.header.lane >= VOLATILE:
                    discard_body(shard, message)
            link.unsettled = {}
        for cursor in subscription.order:
            cursor.accepted = []
            if not cursor.stored:
                for message in cursor.reserved.values():
                    discard_body(shard, message)
            cursor.reserved.clear()
            shard.batch.settling.pop(cursor, None)
            _purge_cursor(shard, cursor)
        forget_groups(shard, subscription)
        forget(shard, subscription)
    if destination.owner is not None:
        end_temporary(shard, destination)
        return
    undoing.destroyed(shard, destination)
    forget_delayed(shard, destination)
    forget_all(shard, destination)
    del shard.destinations[destination.address], shard.numbered[destination.number]
    shard.foreign.pop(destination, None)
    topic_destroyed(shard, destination)
    shard.batch.definitions.append(DestinationDestroyed(destination.number))


def _take_away(shard: Shard, member: Subscription) -> None:
    """From its wildcard subscription. What consumers hold of the topic is over; they themselves go on with the others."""
    held = list(member.delivered()) if member.depth else []
    for message in held:
        if message.header.lane >= VOLATILE:
            discard_body(shard, message)
    for link in member.links.values() if held else ():
        tags = [tag for tag, message in link.unsettled.items() if message.destination == member.destination.number]
        link.octets -= sum([link.unsettled.pop(tag).size for tag in tags])
        link.regain(len(tags))
        feed(shard, link)
    part(member)
    member.links = {}
