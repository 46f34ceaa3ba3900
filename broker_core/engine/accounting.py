"""Marking as settled what ended otherwise than by acknowledgement, one message at a time; acknowledgements go in bulk (settlement.py)."""

from __future__ import annotations

from .effects import Outcome
from .message import Message, Reliability, StoredBody
from .shard import Shard
from .subscription import Cursor


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
    if cursor.failures:
        few = last - first < len(cursor.failures)
        for position in range(first, last + 1) if few else [p for p in cursor.failures if first <= p <= last]:
            forget_failures(cursor, position)
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


def forget_failures(cursor: Cursor, position: int) -> None:
    if cursor.failures and cursor.failures.pop(position, 0) and cursor.durable:
        cursor.failures_changed[position] = None
