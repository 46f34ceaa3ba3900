"""Everything the engine answers. One Effects value a batch: a Commit (what must be durable), outputs (what peers are told, in order,
only after the commit), reads (pages it wants, to be read after the commit)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Any

from .message import Message
from .reads import Read
from .refusal import Refusal
from .subscription import Filter
from .upkeep import Maintenance


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


# -- outputs ------------------------------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class Confirmed:
    """What `token` asked for is done and, as far as its reliability promises, durable."""

    peer: int
    token: Any


@dataclass(slots=True)
class Attached:
    """The confirmation of an Attach to which the destination allows less credit than it asked for."""

    peer: int
    token: Any
    credit: int


@dataclass(slots=True)
class Delivered:
    """`messages` go to the link with consecutive tags, the first being `tag`."""

    peer: int
    link: int
    tag: int
    messages: list[Message]


@dataclass(slots=True)
class Refused:
    """The peer's mistake, or ours to bear: no exception, no harm to anyone else."""

    peer: int
    token: Any
    refusal: Refusal
    detail: str = ""
    link: int = 0


@dataclass(slots=True)
class Drained:
    peer: int
    link: int
    drain: int = 1
    """What the Grant had there that asked for it."""


@dataclass(slots=True)
class Detached:
    """The engine closed the link on its own account: its destination was destroyed."""

    peer: int
    link: int
    refusal: Refusal
    detail: str = ""


@dataclass(slots=True)
class Browsed:
    """The browser has been shown everything."""

    peer: int
    link: int


@dataclass(slots=True)
class Found:
    """The subscription that was looked for."""

    peer: int
    token: Any
    address: str
    """Of its topic, or a pattern of topics."""
    wanted: Filter
    shared: bool
    durable: bool


@dataclass(slots=True)
class Waiting:
    """What `token` asked for waits in a full destination: the answer comes when there is room."""

    peer: int
    token: Any


Output = Confirmed | Attached | Delivered | Refused | Drained | Browsed | Detached | Found | Waiting


# -- writes -------------------------------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class DestinationDefined:
    """Insert or replace. `settings` is engine.destination.Settings as a plain dict."""

    destination: int
    address: str
    created_at: int
    automatic: bool
    state: int
    settings: dict[str, Any]


@dataclass(slots=True)
class DestinationDestroyed:
    destination: int


@dataclass(slots=True)
class SubscriptionDefined:
    """A queue has one, built in; topics get theirs from subscribers. Only durable ones are told."""

    subscription: int
    destination: int
    name: str = ""
    client_id: str = ""
    shared: bool = True
    selector: str = ""
    """Empty: none."""
    no_local: bool = False
    account: str = ""
    """Its owner; empty: built in."""
    idle_since: int = 0
    """As the last checkpoint knew it, in ms; 0: it had a consumer then. Told at recovery only."""
    pattern: str = ""
    """Of a wildcard subscription, whose destination is 0: an address of topics with wildcards. Others of this client and name are its members."""


@dataclass(slots=True)
class SubscriptionDestroyed:
    subscription: int


@dataclass(slots=True)
class SegmentClosed:
    """The catalogue learns where a segment ended: `lanes` maps (destination, lane) to its (first, last) position therein."""

    segment: int
    last_sequence: int
    lanes: dict[tuple[int, int], tuple[int, int]]


@dataclass(slots=True)
class AliasDefined:
    """Insert or replace: see engine.aliases.Alias."""

    address: str
    target: str
    default_reliability: str
    maximum_reliability: str
    reliability_override: bool


@dataclass(slots=True)
class AliasDeleted:
    address: str


@dataclass(slots=True)
class PolicyDefined:
    """Insert or replace: settings of what matches the pattern, an address of queues or topics, when it is created (engine.policy)."""

    pattern: str
    settings: dict[str, Any]


@dataclass(slots=True)
class PolicyDropped:
    pattern: str


@dataclass(slots=True)
class UndoKept:
    """What this commit's purge may give back (R14); of an operation, which has several commits, what this one adds. Insert, or replace all but `ranges`,
    which are added. Instants in ms."""

    undo: int
    """The request that asked for the purge, or for the operation."""
    verb: str
    address: str
    destination: int
    at: int
    lapses_at: int
    """0: the operation goes on."""
    swept: int
    messages: int
    """In all, as `octets`."""
    octets: int
    ranges: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    """(subscription, lane, first, last, mark): records.NEVER, or how many times each has failed. At recovery: all of them."""


class UndoEnd(Enum):
    """Why a purge cannot be undone any more."""

    UNDONE = "undone"
    LAPSED = "lapsed"
    """Its time is over."""
    SPACE = "disk space is low"
    SCATTERED = "too scattered"
    """The messages lie among others that stay: it would take too much memory to know them."""
    CROWDED = "too many later ones"
    DESTROYED = "its destination was destroyed"
    GIVEN_UP = "given up"
    """An operator wants the disk back."""


@dataclass(slots=True)
class UndoEnded:
    undo: int
    how: UndoEnd


Definition = (
    DestinationDefined | DestinationDestroyed | SubscriptionDefined | SubscriptionDestroyed | SegmentClosed
    | AliasDefined | AliasDeleted | PolicyDefined | PolicyDropped | UndoKept | UndoEnded
)  # fmt: skip


@dataclass(slots=True)
class Copy:
    """Copy one stored message inside the database (R15): the body never passes through Python."""

    segment: int
    """Where the source row is; RETAINED: in the retained table."""
    source: tuple[int, int, int]
    """(destination, lane, position)"""
    target: Message
    """Its header tells priority, reliability, expiration, message id and annotations of the copy; octets and body come from the source."""
    cut: bool = False
    """The copy has no body; its size is the target's."""


@dataclass(slots=True)
class BulkCopy:
    """Copy messages of one lane to neighbouring places at the end of another, inside the database (R15): none of their octets passes through Python."""

    segment: int
    """Where the source rows are; RETAINED: in the retained table."""
    source: tuple[int, int]
    """(destination, lane)"""
    positions: list[int]
    """Of the sources, ascending."""
    destination: int
    lane: int
    sequence: int
    """Of the first copy, as `position`; the others follow."""
    position: int
    accepted_at: int
    octets: int
    """Of all of them."""
    identifier: str
    """What a copy is known by if its source had no identifier of its own: this, and the source's sequence."""
    expirations: list[int] | None = None
    """None: the sources'."""
    annotations: list[str] | None = None
    """None: the sources'."""


class OperationState(Enum):
    WAITING = "waiting"
    """For others to end."""
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"
    """It cannot go on: its queue was destroyed, or where it moves to."""


@dataclass(slots=True)
class OperationRow:
    """An operation as the store keeps it. Instants in ms."""

    operation: int
    """The request that asked for it."""
    verb: str
    address: str
    arguments: dict[str, Any]
    state: OperationState
    looked_at: int
    done: int
    skipped: int
    """Left alone: with a consumer, reserved by a transaction, or about to expire."""
    failed: int
    """Left where they were, as they could not be dealt with: `error` tells of the first."""
    total: int | None
    """How many it may come to; None: nobody knows."""
    place: dict[str, Any]
    """Where it goes on: what lanes are left, with their ends, and a position in the first."""
    started_at: int
    ended_at: int | None
    error: str


@dataclass(slots=True)
class PreparedBranch:
    """What must outlive the node of a branch that is prepared (R13). `state` is engine.branch.State; of one that was ended by hand only that is left."""

    branch: int
    xid: str
    account: str
    prepared_at: int
    state: int
    octets: int = 0
    """Of the sends, large bodies included."""
    sends: list[tuple[str, Message]] = field(default_factory=list)
    """(address, message), in order: `accepted_at` is when it was sent. Best effort is not among them."""
    settled: list[tuple[int, Outcome, Message]] = field(default_factory=list)
    """(subscription, outcome, message), in order: of durable subscriptions and stored messages. The rows' headers are kept, not their bodies."""


@dataclass(slots=True)
class Commit:
    """What one transaction makes durable: message rows and one ledger row (R1). Ranges are inclusive."""

    number: int
    at: int
    """Engine time, ms."""
    sequence: int
    """The highest sequence given out so far: the durable high-water mark."""
    synchronous: bool
    """True: confirmed only when on disk (R10)."""
    segment: int
    """The segment that takes `messages`, `copies` alike."""
    messages: list[Message] = field(default_factory=list)
    accepted: list[tuple[int, int, int, int]] = field(default_factory=list)
    """(destination, lane, first, last)"""
    offered: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    """(subscription, lane, first, last, link): deliveries leaving after this commit; the highest `last` is the offered mark (R9)."""
    settled: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    """(subscription, lane, first, last, outcome)"""
    scheduled: list[Message] = field(default_factory=list)
    """Delayed messages: `sequence` numbers them in the schedule, `accepted_at` is when they are due (R3)."""
    due: list[int] = field(default_factory=list)
    """Numbers in the schedule that this commit makes visible: their rows go."""
    taken: list[int] = field(default_factory=list)
    """Entries of the inbox whose messages this commit takes over: their rows go. If one is gone already nothing of the commit may be done."""
    failures: list[tuple[int, int, int, int]] = field(default_factory=list)
    """(subscription, lane, position, failures)"""
    spilled: list[Message] = field(default_factory=list)
    """Volatile messages that found no room in memory: to the segment's UNLOGGED twin (R19)."""
    octets: list[tuple[int, int]] = field(default_factory=list)
    """(destination, change of the octets its unsettled messages hold)"""
    copies: list[Copy] = field(default_factory=list)
    bulk_copies: list[BulkCopy] = field(default_factory=list)
    traces: list[tuple[int, int, int, int, int, int, int]] = field(default_factory=list)
    """(destination, lane, first, last, to, lane there, first position there): what died without a Copy. To destination 0: nothing is kept of it. From a
    volatile lane: its row is among `messages`; from destination 0: it never lay anywhere. Copies tell for themselves."""
    operations: list[OperationRow] = field(default_factory=list)
    """Insert or replace."""
    remembered: list[tuple[int, list[str]]] = field(default_factory=list)
    """(destination, identifiers): of messages in `messages` and `scheduled`, so that they are known when they are sent again."""
    prepared: list[PreparedBranch] = field(default_factory=list)
    resolved: list[tuple[int, int]] = field(default_factory=list)
    """(branch, state): what was prepared for it goes; the row stays if the state is a heuristic one, 0: it goes, too. Perhaps one of `prepared`."""
    definitions: list[Definition] = field(default_factory=list)
    answers: list[tuple[int, bool, dict[str, Any]]] = field(default_factory=list)
    """(request, done, result)"""


# -- progress -----------------------------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class Checkpoint:
    """The state that the ledger up to commit `number` amounts to, as far as it changed since the last checkpoint (R1)."""

    number: int
    at: int
    sequence: int
    lanes: list[tuple[int, int, int]] = field(default_factory=list)
    """(destination, lane, tail): tail is the next position."""
    cursors: list[tuple[int, int, int, int]] = field(default_factory=list)
    """(subscription, lane, floor, offered): everything below floor is settled; nothing above offered ever left but what `blocks` names. With a topic's
    number, negative, for the subscription: what has expired in the lane for any, and is in the dead message queue already. `blocks` likewise."""
    blocks: list[tuple[int, int, int, bytes]] = field(default_factory=list)
    """(subscription, lane, block, bits): BLOCK bits, little endian, of the positions settled above the floor; empty bits: delete the row. With LANES added to
    the lane: of the positions beyond `offered` that may have left all the same."""
    failures: list[tuple[int, int, int, int]] = field(default_factory=list)
    """(subscription, lane, position, failures); 0 failures: delete the row."""
    counters: list[tuple[int, int, int, int, int, int, int]] = field(default_factory=list)
    """(destination, octets, accepted, settled, dead, expired, redelivered): octets held now, and totals since creation."""
    idle: list[tuple[int, int]] = field(default_factory=list)
    """(subscription, instant): when the last consumer of a durable one left; 0: it has one."""


@dataclass(slots=True)
class DestinationStatistics:
    """What operators see of a destination; counts since creation, octets, ms."""

    destination: int
    address: str
    state: int
    automatic: bool
    depth: int
    octets: int
    consumers: int
    unsettled: int
    """Delivered and not yet acknowledged."""
    accepted: int
    settled: int
    dead: int
    expired: int
    redelivered: int
    scheduled: int
    """Delayed messages that are not due yet: in neither `depth` nor `octets`."""
    scheduled_octets: int
    oldest_at: int | None
    """When the oldest unsettled message was accepted; None: unknown or none."""
    waiting: int = 0
    """Sends that wait for room in it."""
    oldest_unsettled_at: int | None = None
    """Since when, to a second, a consumer holds what it has held longest; None: nobody holds anything."""
    waited: Sequence[int] = ()
    """Of acknowledged messages since recovery, by how long they had been there: observing.WAITED_MS, and the sum of ms behind. Empty: there were none."""
    died: Sequence[int] = ()
    """By observing.CAUSES, since recovery. Empty: none."""


@dataclass(slots=True)
class Death:
    """A message that died, for the log: nothing of what its sender said is in it but its identifier and where it was sent to."""

    message_id: str
    destination: str
    reason: str
    """As in JMS_SUN_DMQ_UNDELIVERED_REASON."""
    comment: str
    """The same as a sentence."""
    kept_in: str
    """The dead message queue that has it now; empty: it was discarded."""
    traceparent: str = ""
    """Of the trace that its sender said it belongs to (W3C); empty: none, or nothing that can be one."""


@dataclass(slots=True)
class Turned:
    """A send that was refused, for the log."""

    address: str
    account: str
    reason: str
    detail: str
    traceparent: str
    """As of a Death."""


@dataclass(slots=True)
class Effects:
    """What one batch amounts to. `commit` is None when nothing needs the database."""

    commit: Commit | None
    outputs: list[Output]
    reads: list[Read]
    discarded: list[int] = field(default_factory=list)
    """Large bodies of refused and of volatile messages that are over: no commit names them, nobody needs them any more."""
    checkpoint: Checkpoint | None = None
    """If one was asked for: to be written once `commit` is durable, as all that follows."""
    maintenance: list[Maintenance] = field(default_factory=list)
    statistics: list[DestinationStatistics] = field(default_factory=list)
    noted: list[Death | Turned] = field(default_factory=list)
    """What is to be in the log."""
    noted_more: int = 0
    """As many are beyond what one flush tells of."""
    dismissed: list[tuple[int, str]] = field(default_factory=list)
    """Connections that an operator closes, and what they are told."""
    given_up: list[tuple[int, str, int]] = field(default_factory=list)
    """Purges that cannot be undone any more as disk space is low: number, address, octets."""
    unlisted: list[int] = field(default_factory=list)
    """Temporary destinations that were in earlier statistics and have ended: nothing else says so, as no definition told that they were there."""

    @property
    def reports(self) -> bool:
        """There is something of a report in it."""
        return self.checkpoint is not None or bool(self.statistics or self.unlisted)
