"""Marking as settled what ended otherwise than by acknowledgement, one message at a time; acknowledgements go in bulk (settlement.py)."""

from __future__ import annotations

from .cursor import Cursor
from .destination import Destination
from .keeping import bodies_behind
from .message import VOLATILE, Message, Reliability, StoredBody
from .outcome import Outcome
from .shard import Shard
from .subscription import Subscription
from .waiting import waiting


def settle_now(shard: Shard, cursor: Cursor, message: Message, outcome: Outcome) -> None:
    """The message is over for this subscription, with this outcome; the ledger will say so."""
    settle_range(shard, cursor, message.position, message.position, message.size, outcome)
    if cursor.gone:
        cursor.forget_gone(message.position)
    if cursor.durable and message.header.reliability == Reliability.ASSURED:
        shard.batch.synchronous = True


def settle_range(shard: Shard, cursor: Cursor, first: int, last: int, octets: int, outcome: Outcome) -> None:
    """The same for neighbours, none of them settled yet. Whether they are assured the caller looks at."""
    cursor.progress.settle(first, last)
    shard.change(cursor)
    forget_failures_within(cursor, first, last)
    batch = shard.batch
    destination = cursor.subscription.destination
    if cursor.durable:
        batch.settled.append((cursor.subscription.number, cursor.index, first, last, outcome))
    else:
        destination.octets_volatile -= octets
    destination.octets -= octets
    batch.touched[destination] = None
    if outcome is Outcome.EXPIRED:
        destination.expired += last - first + 1
        shard.expired += last - first + 1


def discard_body(shard: Shard, message: Message) -> None:
    """The message is over and was never in a commit, so no segment takes its large body along."""
    if message.body.__class__ is StoredBody:
        discard(shard, message.body)


def discard(shard: Shard, body: StoredBody) -> None:
    """The body of a volatile message; one that several subscriptions of a topic hold goes with the last."""
    holders = shard.bodies.pop(body.body, 1)
    if holders > 1:
        shard.bodies[body.body] = holders - 1
    else:
        shard.batch.discarded.append(body.body)


def let_go(message: Message) -> None:
    """One holder less; the body of a stored message is forgotten when everybody has framed it."""
    if message.holders > 1:
        message.holders -= 1
    elif message.header.lane < VOLATILE and message.body.__class__ is bytes:
        message.body = None


def hand_over(shard: Shard, body: StoredBody) -> bool:
    """Whether a row may name the body from now on, and its segment take it along: not while other subscriptions of a topic hold it in memory."""
    if shard.bodies.get(body.body, 1) > 1:
        return False
    shard.bodies.pop(body.body, None)
    return True


def forget_failures(cursor: Cursor, position: int) -> None:
    if cursor.failures and cursor.failures.pop(position, 0) and cursor.durable:
        cursor.failures_changed[position] = None


def forget_failures_within(cursor: Cursor, first: int, last: int) -> None:
    """The same for neighbours."""
    if cursor.failures:
        few = last - first < len(cursor.failures)
        for position in range(first, last + 1) if few else [p for p in cursor.failures if first <= p <= last]:
            forget_failures(cursor, position)


# -- octets of a topic ----------------------------------------------------------------------------------------------------------------
def give_back_octets(subscription: Subscription) -> None:
    """Of all that a subscription holds, as it ends. What is in memory has a size; for what is on disk only stands the average of what was
    published, so that from now on the topic's octets are an estimate."""
    destination = subscription.destination
    average = destination.published_octets / destination.published if destination.published else 0.0
    for cursor in subscription.order:
        known = [*waiting(cursor), *cursor.missing.values(), *cursor.reserved.values()]
        unknown = cursor.depth - len(known) - len(cursor.accepted)
        octets = sum([message.size for message in known]) + int(unknown * average)
        destination.octets -= octets
        if not cursor.durable:
            destination.octets_volatile -= octets
        if unknown:
            destination.estimated = True


def correct_octets(destination: Destination) -> None:
    """An estimate is never less than nothing, and at an end when nothing is left."""
    if destination.is_empty:
        destination.octets = destination.octets_volatile = 0
        destination.estimated = False
    destination.octets = max(destination.octets, 0)
    destination.octets_volatile = min(max(destination.octets_volatile, 0), destination.octets)


def empty(shard: Shard, cursor: Cursor) -> None:
    """Nothing is left in it, for good; timers and reads that still name it find everything settled."""
    discard_waiting(shard, cursor)
    if not cursor.stored:
        for message in cursor.reserved.values():
            discard_body(shard, message)
    cursor.reserved.clear()
    cursor.failures.clear()
    cursor.accepted = []
    shard.batch.settling.pop(cursor, None)
    if cursor.lane.tail:
        cursor.progress.settle(0, cursor.lane.tail - 1)


def discard_waiting(shard: Shard, cursor: Cursor) -> None:
    """Nothing waits in it any more; whether it is settled is the caller's affair."""
    if not cursor.stored:
        for message in waiting(cursor):
            discard_body(shard, message)
        for body in bodies_behind(cursor):
            discard(shard, body)
    shard.memory -= cursor.octets
    cursor.octets = cursor.aside_octets = cursor.delayed_octets = cursor.stale = 0
    for kept in (cursor.ready, cursor.gone, cursor.returned, cursor.lowest, cursor.missing, cursor.awaited, cursor.delayed, cursor.aside):
        kept.clear()


def forget_delayed(shard: Shard, destination: Destination) -> None:
    """The destination ends, and its delayed messages with it; their rows are deleted in the background."""
    if not destination.scheduled:
        return
    before = shard.schedule.memory
    for message in shard.schedule.forget(destination.number, destination.scheduled):
        discard_body(shard, message)
    shard.memory += shard.schedule.memory - before
