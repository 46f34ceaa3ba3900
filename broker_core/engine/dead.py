"""Messages that die: expired, rejected, failed too often, or removed to make room. They go to the dead message queue with time and reason, or are discarded
if their destination says so, or they themselves (checklist items 75 to 80). A destination may have a queue of its own for them. Nothing dies twice: what has
died is gone when it dies again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from .accounting import discard_body, hand_over, settle_now, settle_range
from .address import DEAD_MESSAGE_QUEUE
from .aliases import target_of
from .capacity import entered
from .cursor import Cursor
from .destination import Destination
from .effects import Death
from .message import VOLATILE, Encoding, Header, Message, StoredBody
from .noting import note, traceparent_of
from .observing import REFUSED, note_dead
from .outcome import Outcome
from .placing import create, place
from .policy import settings_for
from .refusal import Refusal
from .shard import Shard
from .waiting import at_hand, withdraw
from .wishes import Wishes, wishes_of
from .writes import Copy

REASONS = {
    Outcome.EXPIRED: "EXPIRED", Outcome.UNDELIVERABLE: "UNDELIVERABLE", Outcome.REJECTED: "UNDELIVERABLE",
    Outcome.OLDEST: "OLDEST", Outcome.LOW_PRIORITY: "LOW_PRIORITY",
}  # fmt: skip
"""Open MQ's names (JMS_SUN_DMQ_UNDELIVERED_REASON). Its ERROR never comes: a broker that cannot process a message stops and keeps it."""
ONCE = (Outcome.EXPIRED, Outcome.OLDEST, Outcome.LOW_PRIORITY)
"""A message of a topic that ends so for several subscriptions is in the dead message queue once."""


COPY_STEPS = 8
"""What a copy to the dead message queue weighs: its header is written anew."""
EXPIRED = "the message's time to live passed before it was consumed"
REASON, DIED_AT, COMMENT, FAILURES = (
    "JMS_SUN_DMQ_UNDELIVERED_REASON", "JMS_SUN_DMQ_UNDELIVERED_TIMESTAMP", "JMS_SUN_DMQ_UNDELIVERED_COMMENT", "JMS_SUN_DMQ_DELIVERY_COUNT",
)  # fmt: skip
EXCEPTION, TRUNCATED = "JMS_SUN_DMQ_UNDELIVERED_EXCEPTION", "JMS_SUN_DMQ_BODY_TRUNCATED"
PRODUCED_BY, DEAD_AT = "JMS_SUN_DMQ_PRODUCING_BROKER", "JMS_SUN_DMQ_DEAD_BROKER"
ORIGIN, ACCEPTED_AT, EXPIRATION = "original-destination", "original-timestamp", "original-expiration"
SUBSCRIPTION = "original-subscription"
"""Of a topic's message that failed in one subscription: which, by number. The topic's others may have it, and get it no second time (performing.py)."""
REPLAYED = "JMS_SURETY_REPLAYED"
"""Of a message that was sent again from the archive: the identifier of the one that it repeats."""
ADDED = frozenset(
    (REASON, DIED_AT, COMMENT, EXCEPTION, FAILURES, PRODUCED_BY, DEAD_AT, TRUNCATED, ORIGIN, SUBSCRIPTION, ACCEPTED_AT, EXPIRATION, REPLAYED)
)
"""What a dead message, or a replayed one, tells besides what its sender said. No sender may say it."""


def bury(shard: Shard, cursor: Cursor, message: Message, outcome: Outcome, comment: str) -> None:
    """Settle the message with this outcome and place its copy in the dead message queue. It must not be in any of the cursor's containers."""
    settle_now(shard, cursor, message, outcome)
    shard.batch.room -= COPY_STEPS
    _count(shard, cursor, outcome, 1)
    once = outcome in ONCE and not _not_buried(shard, cursor, message.position, message.position)
    if once or not _part(shard, cursor, message, outcome, comment):
        _discarded(shard, cursor, message.position, message.position)
        if not cursor.stored:
            discard_body(shard, message)


def expire(shard: Shard, cursor: Cursor, message: Message) -> None:
    bury(shard, cursor, message, Outcome.EXPIRED, EXPIRED)


def expire_range(shard: Shard, cursor: Cursor, messages: Sequence[Message], octets: int) -> int:
    """The same for neighbours that are on disk or in their lane, none of them settled. Returns how many were copied."""
    first, last = messages[0].position, messages[-1].position
    kept = cursor.lane.kept  # timers do not keep bodies
    failures = dict(cursor.failures) if cursor.failures else cursor.failures
    settle_range(shard, cursor, first, last, octets, Outcome.EXPIRED)
    _count(shard, cursor, Outcome.EXPIRED, len(messages))
    copied: dict[int, None] = {}
    for low, high in _not_buried(shard, cursor, first, last):
        for found in messages[low - first : high - first + 1]:
            message = kept.get(found.position, found)
            message.failures = failures.get(message.position, 0)
            if _part(shard, cursor, message, Outcome.EXPIRED, EXPIRED):
                copied[message.position] = None
    for low, high in _gaps(copied, first, last) if cursor.durable else ():
        _discarded(shard, cursor, low, high)
    if cursor.lane.bodies:
        for message in messages:
            if message.position not in copied:
                discard_body(shard, kept.get(message.position, message))
    return len(copied)


def _gaps(copied: Iterable[int], first: int, last: int) -> Iterator[tuple[int, int]]:
    """The ranges of first to last, inclusive, without what was copied, which is in order."""
    for position in [*copied, last + 1]:
        if position > first:
            yield first, position - 1
        first = position + 1


def _discarded(shard: Shard, cursor: Cursor, first: int, last: int) -> None:
    """It is over for good, or in the dead message queue already: the ledger says that no copy of it is missing."""
    if cursor.durable:
        shard.batch.traces.append((cursor.subscription.destination.number, cursor.index, first, last, 0, 0, 0))


def _count(shard: Shard, cursor: Cursor, outcome: Outcome, messages: int) -> None:
    note_dead(shard, cursor.subscription.destination, outcome, messages)
    cursor.subscription.destination.dead += messages
    shard.dead += messages


def _part(shard: Shard, cursor: Cursor, message: Message, outcome: Outcome, comment: str) -> bool:
    """Copy it to the dead message queue, if its destination and its own wish have it so; tell of its death, if anybody wants to know. Whether it was copied."""
    origin, wishes = cursor.subscription.destination, wishes_of(shard, message.header)
    kept = origin.settings.use_dead if wishes.preserve is None else wishes.preserve
    kept = kept and not has_died(message) and origin is not shard.destinations[DEAD_MESSAGE_QUEUE]
    target = _copy(shard, cursor, message, outcome, comment, cut=_is_cut(shard, wishes)) if kept else None
    if _is_told(shard, wishes):
        _tell(shard, message, origin.address, REASONS[outcome], comment, target)
    return target is not None


def _is_cut(shard: Shard, wishes: Wishes) -> bool:
    return shard.limits.dead_truncate_body if wishes.truncate is None else wishes.truncate


def _is_told(shard: Shard, wishes: Wishes) -> bool:
    return shard.limits.dead_log if wishes.log is None else wishes.log


def _tell(shard: Shard, message: Message, address: str, reason: str, comment: str, target: Destination | None) -> None:
    kept_in = "" if target is None else target.address
    note(shard, Death(shard.message_id(message), address, reason, comment, kept_in, traceparent_of(shard, message.header)))


def has_died(message: Message) -> bool:
    """It is a copy of a dead one, wherever it lies now."""
    return message.header.annotations != "" and REASON in message.header.annotations


def _dead_queue(shard: Shard, origin: Destination) -> Destination:
    """Where its dead messages go; made when the first one dies."""
    address = target_of(shard, origin.settings.dead_queue or DEAD_MESSAGE_QUEUE)
    known = shard.destinations.get(address)
    if known is origin:  # by an alias or a policy that came later: what it has lost is not to come back to it
        return shard.destinations[DEAD_MESSAGE_QUEUE]
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


def _copy(shard: Shard, cursor: Cursor, message: Message, outcome: Outcome, comment: str, *, cut: bool) -> Destination | None:
    """`cut`: without its body. Returns where it is now; None: what is not stored has no body at hand."""
    origin, body = cursor.subscription.destination, message.body
    if body is None and not (cursor.stored or cut):
        return None
    target = _dead_queue(shard, origin)
    failed_in = cursor.subscription.number if origin.is_topic and outcome not in ONCE else 0
    header = _dead_header(shard, origin.address, message, REASONS[outcome], comment, cut=cut, failed_in=failed_in)
    size = len(header.octets) if cut else message.size
    if cursor.stored:
        copy = Message(header, None, size)
        place(shard, target, copy, copied=True)
        segment = shard.segments.holding((origin.number, cursor.index), message.position)
        shard.batch.copies.append(Copy(segment, (origin.number, cursor.index, message.position), copy, cut))
    else:
        if cut:
            body = b""
            discard_body(shard, message)
        elif body.__class__ is StoredBody and header.lane < VOLATILE and not hand_over(shard, body):
            header = header.unstored()
        kept = Message(header, body, size)
        place(shard, target, kept)
        _keep_track(shard, kept, origin.number, cursor.index, message.position)
    if target.capacity is not None:
        entered(shard, target)
    return target


def refuse(shard: Shard, address: str, message: Message, refusal: Refusal, sent_at: int, detail: str = "") -> None:
    """The message could not be sent to this address, and its sender is not there to hear it. That is no matter of the destination's settings."""
    message.accepted_at = sent_at
    shard.dead += 1
    shard.observed.died[REFUSED] += 1
    shard.batch.room -= COPY_STEPS
    wishes = wishes_of(shard, message.header)
    kept, cut = wishes.preserve is not False, _is_cut(shard, wishes)
    target = shard.destinations[DEAD_MESSAGE_QUEUE] if kept else None
    comment = f"{refusal.value}: {detail}" if detail else refusal.value
    if cut or not kept:
        discard_body(shard, message)
    if target is not None:
        reason = REASONS[Outcome.UNDELIVERABLE]
        header = _dead_header(shard, address, message, reason, comment, cut=cut, exception=refusal.name)
        copy = Message(header, b"" if cut else message.body, len(header.octets) if cut else message.size)
        place(shard, target, copy)
        _keep_track(shard, copy, 0, 0, 0)
        if target.capacity is not None:
            entered(shard, target)
    if _is_told(shard, wishes):
        _tell(shard, message, address, REASONS[Outcome.UNDELIVERABLE], comment, target)


def _keep_track(shard: Shard, kept: Message, destination: int, lane: int, position: int) -> None:
    """The ledger says where what it does not know otherwise came from."""
    if kept.header.lane < VOLATILE:
        shard.batch.traces.append((destination, lane, position, position, kept.destination, kept.header.lane, kept.position))


def expire_found(shard: Shard, cursor: Cursor, message: Message) -> None:
    """A sweep or a timer found the message past its expiration, wherever it is. One that is delivered is left alone, it may still be
    acknowledged; if it comes back, it expires then."""
    if cursor.progress.is_settled(message.position):
        return
    waiting = withdraw(shard, cursor, at_hand(cursor, message))
    if waiting is not None:
        waiting.failures = cursor.failures.get(message.position, 0)  # a row read for a sweep does not know them
        expire(shard, cursor, waiting)
        shard.mark(cursor.subscription)


def _dead_header(
    shard: Shard, address: str, message: Message, reason: str, comment: str, *, cut: bool, exception: str = "", failed_in: int = 0
) -> Header:
    """`exception`: what refused it, by its name. `failed_in`: the subscription; 0: it did not fail in one of several."""
    header = message.header
    added = json.loads(header.annotations) if header.annotations else {}
    added |= {
        REASON: reason,
        DIED_AT: shard.now,
        COMMENT: comment,
        FAILURES: message.failures,
        PRODUCED_BY: shard.instance,
        DEAD_AT: shard.instance,
        TRUNCATED: cut,
        ORIGIN: address,
        ACCEPTED_AT: message.accepted_at,
    }
    if failed_in:
        added[SUBSCRIPTION] = failed_in
    if header.expiration:
        added[EXPIRATION] = header.expiration
    if exception:
        added[EXCEPTION] = exception
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
