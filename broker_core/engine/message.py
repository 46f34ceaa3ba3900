"""A message as the engine sees it: what orders it, what expires it, how safely it must be kept. Bodies and headers are opaque."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .message_group import MessageGroup

PRIORITIES = 10
"""JMS 3.4.10: priorities 0 to 9."""

VOLATILE = PRIORITIES
"""Lane index = priority for stored messages, VOLATILE + priority for those kept in memory (R2, R19)."""

LANES = 2 * PRIORITIES

APART_OCTETS = 256
"""What a message takes in memory beside its header section if its body is in the store: about so much for the objects that name it."""

BEYOND = 1 << 62
"""Whatever position there is lies below."""


class Reliability(IntEnum):
    """The five levels of message reliability, weakest first (WebSphere; checklist items 111 to 130)."""

    BEST_EFFORT = 0
    EXPRESS = 1
    RELIABLE_NONPERSISTENT = 2
    RELIABLE = 3
    ASSURED = 4


LEVEL_NAMES = ("best-effort", "express", "reliable-np", "reliable", "assured")
"""What clients and operators call them, by their numbers."""
STORED = Reliability.RELIABLE
"""Levels from here on are written to the store before anyone hears of them."""


class Encoding(IntEnum):
    """The form in which a message's header section and body were received; conversion happens at delivery (R15)."""

    STOMP = 0
    AMQP = 1


@dataclass(slots=True, eq=False)
class Header:
    """What messages with the same header section share; never changed once made (not frozen: that would triple the cost of making one)."""

    octets: bytes
    """The header section as received, less what concerned only the sender's frame; in the form named by `encoding`."""
    priority: int = 4
    reliability: int = Reliability.EXPRESS
    expiration: int = 0
    """Instant in ms since the epoch; 0: never (JMS 3.4.9)."""
    encoding: int = Encoding.STOMP
    message_id: str = ""
    """The JMSMessageID if it is not derived from the sequence: given by an AMQP sender, or kept by a moved or dead message."""
    client_id: str = ""
    """The sender's client identifier, for no-local."""
    annotations: str = ""
    """JSON object: what the broker added (reason, time, origin, counts of a dead message); the bare message never changes (R15)."""
    delay: int = 0
    """Ms from the send until the message may be delivered (JMS 2.0, 7.9); 0 once it may."""
    duplicate_id: str = ""
    """The sender's own name for the message, by which a second sending of it is known; empty: none (see duplicates)."""
    group: MessageGroup | None = None
    """Of a row: only once `message_group.recognize` has looked."""
    stated: bool = True
    """False: the producer left the level to the destination, and `reliability` is what it is if the destination has no say (see levels)."""
    lane: int = 0
    """Derived: the lane index of (priority, reliability)."""
    twin: Header | None = None
    """See `unstored`."""
    others: dict[int, Header] | None = None
    """See `at`."""

    def __post_init__(self) -> None:
        volatile = 0 if self.reliability >= STORED else VOLATILE
        self.lane = volatile + self.priority

    def unstored(self) -> Header:
        """The same header for a message that nobody's durable subscription wants: it is kept in memory, whatever its mode (R19)."""
        if self.twin is None:
            twin = replace(self)
            twin.lane = VOLATILE + self.priority
            self.twin = twin
        return self.twin

    def at(self, level: Reliability) -> Header:
        """The same header at another level, which consumers are told; for messages that were just sent. Made once for all that share it."""
        if level == self.reliability and self.stated:
            return self
        if self.others is None:
            self.others = {}
        other = self.others.get(level)
        if other is None:
            told = f'{{"reliability":"{LEVEL_NAMES[level]}"}}'
            other = self.others[level] = replace(self, reliability=level, stated=True, annotations=told, twin=None, others=None)
        return other


@dataclass(slots=True, frozen=True)
class StoredBody:
    """A body too large to travel with its message (R16): written in chunks beforehand, streamed at delivery."""

    body: int
    """The number of the body in the store."""
    size: int
    """Octets."""


def weight_of(message: Message) -> int:
    """Octets that it takes in memory as long as it waits there; what memory limits count."""
    return APART_OCTETS + len(message.header.octets) if message.body.__class__ is StoredBody else message.size


def weight_as_read(message: Message) -> int:
    """The same of a row that was read only to be looked at: mostly without its body."""
    return message.weight if message.body is not None else len(message.header.octets)


def octets_as_read(message: Message) -> int:
    """What its row brought: header section and body, if they were asked for."""
    return len(message.header.octets) + (len(message.body) if isinstance(message.body, bytes) else 0)


class Message:
    """One message. A producer's protocol machine fills the first three; the engine fills the rest when the message becomes visible."""

    __slots__ = ("accepted_at", "body", "destination", "failures", "header", "holders", "position", "redelivered", "sequence", "size", "weight")

    header: Header
    body: bytes | StoredBody | None
    """None: the body is in the store only and must be read before it can leave."""
    size: int
    """Octets of header section and body together; what byte limits count."""
    weight: int
    """Its `weight_of`. It changes only in `keep_apart` and `fill`, which are for messages that wait nowhere yet: what was counted when it came is what is
    given back when it goes."""
    destination: int
    """The destination's number."""
    sequence: int
    """The message's number within its shard; says which segment holds it. While it is delayed: its number in the schedule."""
    position: int
    """Dense within the lane (R2)."""
    accepted_at: int
    """Instant in ms since the epoch. While it is delayed: when it is due."""
    redelivered: bool
    failures: int
    """Deliveries that failed (NACK, rejected, modified failed, rollback); crash and disconnect never count (R9)."""
    holders: int
    """Subscriptions in whose cursors this very object waits for its first delivery: the body may be forgotten when the last one has framed it."""

    def __init__(self, header: Header, body: bytes | StoredBody | None, size: int) -> None:
        self.header = header
        self.body = body
        self.size = size
        self.weight = size if body.__class__ is not StoredBody else APART_OCTETS + len(header.octets)
        self.redelivered = False
        self.failures = 0
        self.holders = 1

    def keep_apart(self, body: int) -> None:
        """Its large body has been written to the store, under this number."""
        self.body = StoredBody(body, self.size - len(self.header.octets))
        self.weight = weight_of(self)

    def fill(self, row: Message) -> None:
        """Its body was read again."""
        self.body, self.weight = row.body, row.weight

    def bare(self) -> Message:
        """The same without its body, for who only remembers that it is there."""
        bare = Message(self.header, None, self.size)
        bare.destination, bare.sequence, bare.position = self.destination, self.sequence, self.position
        bare.accepted_at, bare.failures = self.accepted_at, self.failures
        return bare

    def again(self) -> Message:
        """The same message for one subscription alone: what befalls it there must not show in others', nor in a frame not written yet."""
        again = Message(self.header, self.body, self.size)
        again.destination, again.sequence, again.position = self.destination, self.sequence, self.position
        again.accepted_at, again.failures, again.redelivered = self.accepted_at, self.failures, self.redelivered
        return again
