"""How deliveries end."""

from __future__ import annotations

from enum import IntEnum


class Outcome(IntEnum):
    """How a delivery, or a message that never got one, ended. The first four are AMQP 1.0 section 3.4."""

    ACCEPTED = 0
    REJECTED = 1
    """Dead at once (AMQP 3.4.3)."""
    RELEASED = 2
    """Back to its place, not a failure (AMQP 3.4.4)."""
    FAILED = 3
    """Back to its place, one failure more (AMQP modified with delivery-failed; STOMP NACK; rollback)."""
    EXPIRED = 4
    UNDELIVERABLE = 5
    """The redelivery maximum is reached."""
    PURGED = 6
    """Discarded by an operator; never to the dead message queue (checklist item 76)."""
    DROPPED = 7
    """Best effort, under memory pressure (checklist item 113)."""
    EXCLUDED = 8
    """Not for this subscription: its filter left it out, or it was sent before the subscription began."""
    OLDEST = 9
    """Removed to make room."""
    LOW_PRIORITY = 10
    """The same, as one of the lowest priority."""
    UNUSED = 11
    """Back to its place as if it had never left: its consumer says that nobody has looked at it (AMQP released, JMS prefetch)."""
    MOVED = 12
    """An operator had it go elsewhere: it is there since the same commit."""
    RESTORED = 13
    """No end: a purge was undone, and what it had settled is not settled any more. What was offered before is told as offered again, to no link."""
