"""Messages that die: expired, rejected, failed too often, or removed to make room. They go to the dead message queue with time and reason, or are discarded
if their destination says so (checklist items 75 to 80). A destination may have a queue of its own for them. Nothing dies twice: what has died is gone when
it dies again."""

from __future__ import annotations

import json
from collections.abc import Sequence

from .accounting import discard_body, hand_over, settle_now, settle_range
from .address import DEAD_MESSAGE_QUEUE
from .aliases import target_of
from .capacity import entered
from .cursor import Cursor
from .destination import Destination
from .effects import Copy, Outcome
from .message import VOLATILE, Encoding, Header, Message, StoredBody
from .placing import create, place
from .policy import settings_for
from .refusal import Refusal
from .shard import Shard
from .waiting import withdraw

REASONS = {
    Outcome.EXPIRED: "EXPIRED", Outcome.UNDELIVERABLE: "UNDELIVERABLE", Outcome.REJECTED: "UNDELIVERABLE",
    Outcome.OLDEST: "OLDEST", Outcome.LOW_PRIORITY: "LOW_PRIORITY",
}  # fmt: skip
"""Open MQ's names (JMS_SUN_DMQ_UNDELIVERED_REASON)."""
ONCE = (Outcome.EXPIRED, Outcome.OLDEST, Outcome.LOW_PRIORITY)
"""A message of a topic that ends so for several subscriptions is in the dead message queue once."""


COPY_STEPS = 8
"""What a copy to the dead message queue weighs: its header is written anew."""
EXPIRED = "the message's time to live passed before it was consumed"
REASON, DIED_AT, COMMENT, FAILURES = (
    "JMS_SUN_DMQ_UNDELIVERED_REASON", "JMS_SUN_DMQ_UNDELIVERED_TIMESTAMP", "JMS_SUN_DMQ_UNDELIVERED_COMMENT", "JMS_SUN_DMQ_DELIVERY_COUNT",
)  # fmt: skip
ORIGIN, ACCEPTED_AT, EXPIRATION = "original-destination", "original-timestamp", "original-expiration"
ADDED = frozenset((REASON, DIED_AT, COMMENT, FAILURES, ORIGIN, ACCEPTED_AT, EXPIRATION))
"""What a dead message tells besides what its sender said. No sender may say it."""


def bury(shard: Shard, cursor: Cursor, message: Message, outcome: Outcome, comment: str) -> None:
    """Settle the message with this outcome and place its copy in the dead message queue. It must not be in any of the cursor's containers."""
    settle_now(shard, cursor, message, outcome)
    shard.batch.room -= COPY_STEPS
    _count(shard, cursor, 1)
    if not _is_kept(shard, cursor) or has_died(message) or (outcome in ONCE and not _not_buried(shard, cursor, message.position, message.position)):
        if not cursor.stored:
            discard_body(shard, message)
        return
    _copy(shard, cursor, message, outcome, comment)


def expire(shard: Shard, cursor: Cursor, message: Message) -> None:
    bury(shard, cursor, message, Outcome.EXPIRED, EXPIRED)


def expire_range(shard: Shard, cursor: Cursor, messages: Sequence[Message], octets: int) -> int:
    """The same for neighbours that are on disk or in their lane, none of them settled. Returns how many were copied."""
    first, last = messages[0].position, messages[-1].position
    failures = dict(cursor.failures) if cursor.failures else cursor.failures
    settle_range(shard, cursor, first, last, octets, Outcome.EXPIRED)
    _count(shard, cursor, len(messages))
    copied: list[Message] = []
    for low, high in _not_buried(shard, cursor, first, last) if _is_kept(shard, cursor) else ():
        copied += [message for message in messages[low - first : high - first + 1] if not has_died(message)]
    for message in copied:
        message.failures = failures.get(message.position, 0)
        _copy(shard, cursor, message, Outcome.EXPIRED, EXPIRED)
    if cursor.lane.bodies:
        theirs = {message.position for message in copied}
        for message in messages:
            if message.position not in theirs:
                discard_body(shard, message)
    return len(copied)


def _count(shard: Shard, cursor: Cursor, messages: int) -> None:
    cursor.subscription.destination.dead += messages
    shard.dead += messages


def _is_kept(shard: Shard, cursor: Cursor) -> bool:
    """Whether what dies here goes to the dead message queue."""
    origin = cursor.subscription.destination
    return origin.settings.use_dead and origin is not shard.destinations[DEAD_MESSAGE_QUEUE]


def has_died(message: Message) -> bool:
    """It is a copy of a dead one, wherever it lies now."""
    return message.header.annotations != "" and REASON in message.header.annotations


def _dead_queue(shard: Shard, origin: Destination) -> Destination:
    """Where its dead messages go; made when the first one dies."""
    address = target_of(shard, origin.settings.dead_queue or DEAD_MESSAGE_QUEUE)
    known = shard.destinations.get(address)
    if known is not None:
        return known
    if len(shard.destinations) >= shard.limits.destinations_max:
        return shard.destinations[DEAD_MESSAGE_QUEUE]
    return create(shard, address, settings_for(shard, address), automatic=True)


def _not_buried(shard: Shard, cursor: Cursor, first: int, last: int) -> list[tuple[int, int]]:
    """What has expired for this subscription first, and so for its topic. From now on it counts as buried: it is in the dead message queue once.
    What is stored is buried for durable subscriptions only: of the others the ledger knows nothing, and after a crash it would be buried again."""
    if not cursor.subscription.destination.is_topic:
        return [(first, last)]
    if cursor.stored and not cursor.durable:
        return []
    found = list(cursor.lane.buried.unsettled(first, last))
    if found:
        shard.has_buried(cursor.lane, first, last)
    return found


def _copy(shard: Shard, cursor: Cursor, message: Message, outcome: Outcome, comment: str) -> None:
    origin = cursor.subscription.destination
    target = _dead_queue(shard, origin)
    copy = Message(_dead_header(shard, origin.address, message, outcome, comment), None, message.size)
    if cursor.stored:
        place(shard, target, copy, copied=True)
        segment = shard.segments.holding((origin.number, cursor.index), message.position)
        shard.batch.copies.append(Copy(segment, (origin.number, cursor.index, message.position), copy))
    elif message.body is not None:
        copy.body = message.body
        if message.body.__class__ is StoredBody and copy.header.lane < VOLATILE and not hand_over(shard, message.body):
            copy.header = copy.header.unstored()
        place(shard, target, copy)
    if target.capacity is not None:
        entered(shard, target)


def refuse(shard: Shard, address: str, message: Message, refusal: Refusal, sent_at: int) -> None:
    """The message could not be sent to this address, and its sender is not there to hear it."""
    message.accepted_at = sent_at
    header = _dead_header(shard, address, message, Outcome.UNDELIVERABLE, refusal.value)
    shard.dead += 1
    shard.batch.room -= COPY_STEPS
    target = shard.destinations[DEAD_MESSAGE_QUEUE]
    place(shard, target, Message(header, message.body, message.size))
    if target.capacity is not None:
        entered(shard, target)


def expire_found(shard: Shard, cursor: Cursor, message: Message) -> None:
    """A sweep or a timer found the message past its expiration, wherever it is. One that is delivered is left alone, it may still be
    acknowledged; if it comes back, it expires then."""
    if cursor.progress.is_settled(message.position):
        return
    waiting = withdraw(shard, cursor, message)
    if waiting is not None:
        waiting.failures = cursor.failures.get(message.position, 0)  # a row read for a sweep does not know them
        expire(shard, cursor, waiting)
        shard.mark(cursor.subscription)


def _dead_header(shard: Shard, address: str, message: Message, outcome: Outcome, comment: str) -> Header:
    header = message.header
    added = json.loads(header.annotations) if header.annotations else {}
    added |= {
        REASON: REASONS[outcome],
        DIED_AT: shard.now,
        COMMENT: comment,
        FAILURES: message.failures,
        ORIGIN: address,
        ACCEPTED_AT: message.accepted_at,
    }
    if header.expiration:
        added[EXPIRATION] = header.expiration
    return Header(
        octets=header.octets,
        priority=header.priority,
        reliability=header.reliability,
        expiration=shard.now + shard.limits.dead_retention_ms,
        encoding=Encoding(header.encoding),
        message_id=shard.message_id(message),
        client_id=header.client_id,
        annotations=json.dumps(added, ensure_ascii=False, separators=(",", ":")),
        group=header.group,
    )
