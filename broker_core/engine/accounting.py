"""Marking as settled what ended otherwise than by acknowledgement, one message at a time; acknowledgements go in bulk (settlement.py)."""

from __future__ import annotations

from .effects import Outcome
from .message import Message, Reliability, StoredBody
from .shard import Shard
from .subscription import Cursor


def settle_now(shard: Shard, cursor: Cursor, message: Message, outcome: Outcome) -> None:
    """The message is over for this subscription, with this outcome; the ledger will say so."""
    position = message.position
    cursor.progress.settle(position, position)
    shard.change(cursor)
    forget_failures(cursor, position)
    batch = shard.batch
    destination = cursor.subscription.destination
    if cursor.stored:
        batch.settled.append((cursor.subscription.number, cursor.index, position, position, outcome))
        if message.header.reliability == Reliability.ASSURED:
            batch.synchronous = True
    else:
        destination.octets_volatile -= message.size
    destination.octets -= message.size
    batch.touched[destination] = None
    if outcome is Outcome.EXPIRED:
        destination.expired += 1
        shard.expired += 1


def discard_body(shard: Shard, message: Message) -> None:
    """The message is over and was never in a commit, so no segment takes its large body along."""
    if message.body.__class__ is StoredBody:
        shard.batch.discarded.append(message.body.body)


def forget_failures(cursor: Cursor, position: int) -> None:
    if cursor.failures and cursor.failures.pop(position, 0) and cursor.stored:
        cursor.failures_changed[position] = None
