"""Messages that die: expired, rejected, or failed too often. They go to the dead message queue with time and reason, or are discarded
if their destination says so (checklist items 75 to 80). Nothing dies twice: what leaves the dead message queue is gone."""

from __future__ import annotations

import json

from .accounting import discard_body, settle_now
from .address import DEAD_MESSAGE_QUEUE
from .effects import Copy, Outcome
from .message import Encoding, Header, Message
from .placing import place
from .shard import Shard
from .subscription import Cursor

REASONS = {Outcome.EXPIRED: "EXPIRED", Outcome.UNDELIVERABLE: "UNDELIVERABLE", Outcome.REJECTED: "UNDELIVERABLE"}
"""Open MQ's names (JMS_SUN_DMQ_UNDELIVERED_REASON)."""


def bury(shard: Shard, cursor: Cursor, message: Message, outcome: Outcome, comment: str) -> None:
    """Settle the message with this outcome and place its copy in the dead message queue. It must not be in any of the cursor's containers."""
    settle_now(shard, cursor, message, outcome)
    origin = cursor.subscription.destination
    origin.dead += 1
    shard.dead += 1
    target = shard.destinations[DEAD_MESSAGE_QUEUE]
    if origin is target or not origin.settings.use_dead:
        if not cursor.stored:
            discard_body(shard, message)
        return
    copy = Message(_dead_header(shard, origin.address, message, outcome, comment), None, message.size)
    if cursor.stored:
        place(shard, target, copy, copied=True)
        segment = shard.segments.holding((origin.number, cursor.index), message.position)
        shard.batch.copies.append(Copy(segment, (origin.number, cursor.index, message.position), copy))
    elif message.body is not None:
        copy.body = message.body
        place(shard, target, copy)


def expire(shard: Shard, cursor: Cursor, message: Message) -> None:
    bury(shard, cursor, message, Outcome.EXPIRED, "the message's time to live passed before it was consumed")


def expire_found(shard: Shard, cursor: Cursor, message: Message) -> None:
    """A sweep or a timer found the message past its expiration, wherever it is. Messages delivered or coming back are left alone:
    a delivered one may still be acknowledged, one that came back is looked at again when its turn comes."""
    position = message.position
    if cursor.progress.is_settled(position) or position in cursor.skip:
        return
    if position < cursor.loaded:
        if not cursor.ready or position < cursor.ready[0].position:
            return
        cursor.skip[position] = None
    expire(shard, cursor, message)


def _dead_header(shard: Shard, address: str, message: Message, outcome: Outcome, comment: str) -> Header:
    header = message.header
    added = json.loads(header.annotations) if header.annotations else {}
    added |= {
        "JMS_SUN_DMQ_UNDELIVERED_REASON": REASONS[outcome],
        "JMS_SUN_DMQ_UNDELIVERED_TIMESTAMP": shard.now,
        "JMS_SUN_DMQ_UNDELIVERED_COMMENT": comment,
        "JMS_SUN_DMQ_DELIVERY_COUNT": message.failures,
        "original-destination": address,
        "original-timestamp": message.accepted_at,
    }
    if header.expiration:
        added["original-expiration"] = header.expiration
    return Header(
        octets=header.octets,
        priority=header.priority,
        reliability=header.reliability,
        expiration=shard.now + shard.limits.dead_retention_ms,
        encoding=Encoding(header.encoding),
        message_id=shard.message_id(message),
        client_id=header.client_id,
        annotations=json.dumps(added, ensure_ascii=False, separators=(",", ":")),
    )
