"""The state of one shard and of its open batch. Functions that change it live beside it: placing, dispatch, settlement, paging, administration."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, TypeAlias

from .branch import Branches
from .browser import Browser, Browsing
from .compaction import Compaction
from .cursor import Cursor
from .definitions import Definition
from .destination import Destination, Lane
from .effects import Death, Turned
from .known_ids import Duplicates
from .limits import Limits
from .link import Link, Peer
from .message import APART_OCTETS, VOLATILE, Header, Message
from .observing import Observed
from .operations import Operations
from .outputs import Output
from .reads import PageWanted, PositionsWanted, Read
from .records import Records
from .schedule import Schedule
from .segments import LaneKey, Segments
from .subscription import Subscription
from .wildcard import Matches
from .writes import BulkCopy, Copy, PreparedBranch

if TYPE_CHECKING:
    from .access import Access
    from .aliases import Alias
    from .expiring import Run
    from .fan_out import FanOut, Reminder
    from .operation import Operation
    from .paging import Shares
    from .policy import Policy
    from .properties import Value
    from .selection import Scan, Selection
    from .settlement import Returning

    Reader: TypeAlias = Cursor | Scan | Operation

Decode = Callable[[Header], Mapping[str, "Value"]]


def nothing(header: Header) -> Mapping[str, Value]:
    """No header section can be read: selectors see the fields of the message alone."""
    return {}


class Batch:
    """What the commands since the last flush amount to so far."""

    __slots__ = (
        "answers",
        "bulk_copies",
        "copies",
        "definitions",
        "dirty",
        "discarded",
        "dismissed",
        "due",
        "evicted",
        "failures",
        "firsts",
        "given_up",
        "looks",
        "messages",
        "noted",
        "noted_more",
        "offered",
        "outputs",
        "pairs",
        "prepared",
        "published",
        "reads",
        "remembered",
        "resolved",
        "returns",
        "room",
        "scheduled",
        "served",
        "settled",
        "settling",
        "spilled",
        "stepped",
        "synchronous",
        "taken",
        "touched",
        "traces",
        "verdicts",
        "wanted",
    )

    def __init__(self, limits: Limits) -> None:
        self.messages: list[Message] = []
        self.spilled: list[Message] = []
        self.copies: list[Copy] = []
        self.bulk_copies: list[BulkCopy] = []
        self.scheduled: list[Message] = []
        self.due: list[int] = []
        self.stepped = False
        """It has its step of an operation."""
        self.dismissed: list[tuple[int, str]] = []
        """Connections that an operator closes, and what they are told."""
        self.given_up: list[tuple[int, str, int]] = []
        """Purges that cannot be undone any more as disk space is low: number, address, octets."""
        self.taken: list[int] = []
        self.remembered: dict[Destination, list[str]] = {}
        """Identifiers of stored messages."""
        self.firsts: dict[Lane, int] = {}
        """Lanes that took stored messages, with the first position taken."""
        self.published: dict[Lane, int] = {}
        """Lanes of topics with filters that took messages, and from where on what they left out is not settled yet."""
        self.settling: dict[Cursor, Message] = {}
        """Cursors with acknowledgements in `accepted`, and one of the messages."""
        self.settled: list[tuple[int, int, int, int, int]] = []
        self.offered: list[tuple[int, int, int, int, int]] = []
        self.failures: list[tuple[int, int, int, int]] = []
        self.traces: list[tuple[int, int, int, int, int, int, int]] = []
        """What died and was not copied by the store: see writes.Commit."""
        self.prepared: list[PreparedBranch] = []
        self.resolved: list[tuple[int, int]] = []
        self.definitions: list[Definition] = []
        self.answers: list[tuple[int, bool, dict[str, Any]]] = []
        self.outputs: list[Output] = []
        self.reads: list[Read] = []
        self.discarded: list[int] = []
        """Large bodies that no commit named nor will."""
        self.noted: list[Death | Turned] = []
        """To be told to whoever keeps the log."""
        self.noted_more = 0
        """How many more there were than are told."""
        self.dirty: dict[Subscription, None] = {}
        """Subscriptions to dispatch."""
        self.served: dict[Subscription, None] = {}
        """Members of wildcard subscriptions that were delivered from."""
        self.touched: dict[Destination, None] = {}
        """Destinations whose octets may have changed."""
        self.synchronous = False
        self.evicted = False
        """What is kept in memory for nobody was given up."""
        self.pairs = limits.fan_out
        """Copies of published messages that subscriptions may still be given at once."""
        self.returns = limits.returns
        """Deliveries of closed links that may still come back at once."""
        self.room = limits.deliveries
        """What may still be handed out."""
        self.wanted: dict[Cursor, None] = {}
        """Whose next messages are to be read, to be removed."""
        self.looks = limits.looks
        """Messages that may still be compared with the filters of selective consumers."""
        self.verdicts: dict[tuple[Selection, Header], bool] = {}
        """What came of it, for messages with the same header section."""


def _remembered(message: Message) -> int:
    """Octets, about, that are kept because a timer waits for it."""
    return APART_OCTETS + len(message.header.octets)


class Timers:
    """One heap of deadlines: a message's back-off passes for a cursor, its time to live for its lane, and so for all subscriptions. An entry whose
    message has moved on meanwhile is ignored when due. They have no bodies: what has moved on is not to be kept."""

    __slots__ = ("_heap", "_octets", "_serial", "_sweep_at")

    SWEEP_AT = 256 << 10
    """Octets."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Cursor | Lane, Message]] = []
        self._serial = 0
        self._octets = 0
        self._sweep_at = self.SWEEP_AT

    def add(self, due: int, place: Cursor | Lane, message: Message) -> None:
        self._serial += 1
        heappush(self._heap, (due, self._serial, place, message))
        self._octets += _remembered(message)
        if self._octets >= self._sweep_at:
            self._sweep()

    def _sweep(self) -> None:
        """Forget messages that were settled before their time: else each with a time to live is kept until it has passed. At twice the size
        of what was left last time, so that an entry is looked at about once."""
        waits: dict[Cursor | Lane, Callable[[int], bool]] = {}
        kept = []
        for entry in self._heap:
            _, _, place, message = entry
            if place not in waits:
                waits[place] = place.waits()
            if waits[place](message.position):
                kept.append(entry)
        self._heap = kept
        heapify(self._heap)
        self._octets = sum([_remembered(message) for *_, message in kept])
        self._sweep_at = max(2 * self._octets, self.SWEEP_AT)

    def pop_due(self, now: int) -> tuple[Cursor | Lane, Message] | None:
        if self._heap and self._heap[0][0] <= now:
            _, _, place, message = heappop(self._heap)
            self._octets -= _remembered(message)
            return place, message
        return None

    def next_deadline(self) -> int | None:
        return self._heap[0][0] if self._heap else None

    def deadlines(self) -> list[tuple[int, Cursor | Lane, Message]]:
        """What is waited for, and until when, in no order."""
        return [(due, place, message) for due, _, place, message in self._heap]

    def entries(self) -> list[tuple[Cursor | Lane, Message]]:
        """What is waited for, in no order."""
        return [(place, message) for _, _, place, message in self._heap]


class Shard:
    __slots__ = (
        "accepted",
        "accepted_before",
        "access",
        "aliases",
        "batch",
        "blocked",
        "bodies",
        "branches",
        "browsing",
        "changed_burials",
        "changed_cursors",
        "changed_destinations",
        "changed_lanes",
        "changed_subscriptions",
        "commit_number",
        "compact_turn",
        "compaction",
        "cooling",
        "dead",
        "decode",
        "destinations",
        "duplicates",
        "durables",
        "effort",
        "expired",
        "expiring",
        "expiry_again",
        "expiry_from",
        "expiry_page",
        "expiry_read",
        "expiry_upto",
        "foreign",
        "handing",
        "held_since",
        "instance",
        "joined",
        "keeping",
        "last_destination",
        "last_subscription",
        "last_temporary",
        "last_volatile",
        "left",
        "limits",
        "links",
        "listed",
        "memory",
        "named",
        "now",
        "numbered",
        "observed",
        "operations",
        "overfull",
        "owned",
        "patterns",
        "peers",
        "pinned",
        "policies",
        "presettled",
        "read_number",
        "reading",
        "records",
        "redelivered",
        "scan_at",
        "scan_began",
        "scan_traffic",
        "scanning",
        "schedule",
        "segments",
        "selector_octets",
        "sends_to_the_gone",
        "sequence",
        "settled",
        "subscriptions",
        "timers",
        "told_blocked",
        "topic_subscriptions",
        "transacted",
        "turned_away",
        "unfinished",
        "unlisted",
        "unreleased",
        "unserved",
        "untold",
        "waiting_octets",
        "watched",
    )

    def __init__(self, limits: Limits, instance: str, decode: Decode = nothing) -> None:
        self.limits = limits
        self.decode = decode
        """What selectors see of a header section."""
        self.instance = instance
        """Names this installation in message ids: ID:<instance>-<sequence>."""
        self.now = 0
        self.access: Access | None = None
        """None: everybody may everything."""
        self.effort = 0
        """What commands have cost beyond what each of them does, about, in microseconds: the host sets it back and looks at it, so that a client
        who asks for much at a time does not keep the others waiting."""
        self.sequence = 0
        self.commit_number = 0
        self.last_destination = self.last_subscription = self.last_temporary = self.last_volatile = 0
        self.destinations: dict[str, Destination] = {}
        """By address."""
        self.aliases: dict[str, Alias] = {}
        """By address: no destination has it."""
        self.numbered: dict[int, Destination] = {}
        self.subscriptions: dict[int, Subscription] = {}
        self.peers: dict[int, Peer] = {}
        self.named: dict[tuple[str, str], Subscription] = {}
        """Of topics, by client identifier (empty: of no client) and name."""
        self.patterns: dict[str, Matches] = {}
        """Of topics, that somebody has subscribed to."""
        self.policies: dict[str, Policy] = {}
        self.foreign: dict[Destination, None] = {}
        """Whose messages are forwarded (engine.foreign)."""
        """Settings of what is created from now on, by pattern."""
        self.topic_subscriptions = 0
        self.durables: Counter[str] = Counter()
        """Durable subscriptions of topics, by account."""
        self.selector_octets: Counter[str] = Counter()
        """Of the text of the selectors of topics' subscriptions and queues' consumers, by account."""
        self.bodies: dict[int, int] = {}
        """Large bodies of volatile messages that several subscriptions hold, and how many do."""
        self.keeping: dict[Lane, None] = {}
        """Lanes that keep messages or large bodies for subscriptions that are behind."""
        self.links: dict[int, Link] = {}
        self.owned = 0
        """Message groups that have an owner of their own, in all subscriptions together."""
        self.browsing = Browsing()
        self.pinned: dict[LaneKey, dict[int, int]] = {}
        """Positions of stored messages whose large bodies are on their way to browsers, and to how many."""
        self.segments = Segments()
        self.timers = Timers()
        self.schedule = Schedule()
        self.records = Records()
        """Purges that may be undone."""
        self.duplicates = Duplicates()
        self.accepted = self.settled = self.dead = self.expired = self.redelivered = 0
        """Of all destinations, destroyed ones included, since recovery."""
        self.accepted_before = 0
        """As of the last flush."""
        self.observed = Observed()
        self.held_since: int | None = None
        """Since when a consumer holds what is held longest, as of the last report; None: nobody holds anything."""
        self.overfull: dict[Destination, None] = {}
        """Destinations from which messages are to be removed (removing.py)."""
        self.blocked: dict[Destination, int] = {}
        """Those for which sends wait (holding.py), and since when, in ms, as far as that is not noted (blocking.py)."""
        self.untold: list[tuple[int, int, int]] = []
        """When producers waited, for the next commit to say: see writes.Commit."""
        self.told_blocked: dict[Destination, None] = {}
        """Those of which operators were last told so."""
        self.waiting_octets = 0
        """Of these sends."""
        self.turned_away = 0
        """Non-persistent messages dropped because their destination was full, or they were too large for it."""
        self.sends_to_the_gone = 0
        """Dropped, as their temporary destination had ended."""
        self.operations = Operations()
        self.batch = Batch(limits)
        self.memory = 0
        """Octets of messages in `ready`, `returned`, `aside` and `delayed`, of those of the schedule that are due soon, of pages on their way, and of what
        browsers were read."""
        self.branches = Branches()
        self.transacted = 0
        """Octets of sends that wait for their transactions' end; as many as `memory_octets` at the most."""
        self.presettled: list[tuple[Link, list[int]]] = []
        """Deliveries handed out in this flush that are settled once they have left."""
        self.unreleased: deque[tuple[list[tuple[Link, list[int]]], list[Browser]]] = deque()
        """The same of earlier flushes whose outputs the host has not released yet, oldest first; and the browsers that got something."""
        self.left: list[tuple[Link, list[int]]] = []
        """The same, released: settled by the next flush."""
        self.read_number = 0
        self.reading: dict[int, tuple[Reader, PageWanted | PositionsWanted, int]] = {}
        """Reads on their way: whose, what was asked, octets set aside for the answer."""
        self.joined: dict[int, list[Cursor]] = {}
        """Others that wait for the page of such a read."""
        self.scanning: deque[Scan] = deque()
        """Scans that have to read on in the store, the next first."""
        self.scan_began = 0
        """When the one that reads now was asked for, in ms; 0: none does."""
        self.scan_at = 0
        """When the next one may be."""
        self.scan_traffic = 0
        """Messages accepted and settled when it was asked for."""
        self.unfinished: dict[Subscription, None] = {}
        """Whose selections have more to look at in memory than one flush allows."""
        self.unserved: dict[Subscription, None] = {}
        """Dirty ones that earlier flushes had no room for, the longest waiting first."""
        self.cooling: dict[Subscription, None] = {}
        """Not served since the last report, for memory is full of what waits for its back-off."""
        self.handing: deque[FanOut | Reminder | Shares | Returning] = deque()
        """What is being handed to many subscriptions or comes back from closed links, portion by portion; the next to go on first."""
        self.expiry_from = (0, 0)
        """(expiration, sequence) up to which the sweep has looked."""
        self.expiry_again: int | None = None
        """The next sweep is to look again at what has expired since then: a purge was undone."""
        self.expiry_upto = 0
        self.expiry_page: tuple[int, int] | None = None
        """The same, as soon as everything in `expiring` is ended; None: no page is being worked off."""
        self.expiring: deque[Run] = deque()
        """What has expired and is still to be ended for some subscriptions."""
        self.expiry_read = 0
        self.compact_turn = 0
        self.compaction: Compaction | None = None
        """That an operator has asked for last."""
        self.changed_lanes: dict[Lane, None] = {}
        self.changed_cursors: dict[Cursor, None] = {}
        self.changed_destinations: dict[Destination, None] = {}
        self.changed_subscriptions: dict[Subscription, None] = {}
        self.changed_burials: dict[Lane, None] = {}
        """Since the last checkpoint."""
        self.watched: dict[Destination, None] = {}
        """Changed since operators were last told."""
        self.listed: set[int] = set()
        """Temporary destinations that operators were told of."""
        self.unlisted: list[int] = []
        """Those of them that have ended since."""

    def next_subscription(self, *, durable: bool) -> int:
        """A number. Only those of durable ones are stored, in 32 bits, and never given again; others count down from -1."""
        if durable:
            self.last_subscription += 1
            return self.last_subscription
        self.last_volatile += 1
        return -self.last_volatile

    def next_read(self) -> int:
        self.read_number += 1
        return self.read_number

    def begin_read(self, owner: Reader, read: PageWanted | PositionsWanted, octets: int) -> None:
        owner.reading = read.read
        self.memory += octets
        self.reading[read.read] = (owner, read, octets)
        self.segments.begin_read(read.read, read.segments)
        self.batch.reads.append(read)

    def end_read(self, number: int) -> tuple[Reader, PageWanted | PositionsWanted]:
        self.segments.end_read(number)
        owner, read, octets = self.reading.pop(number)
        self.memory -= octets
        owner.reading = 0
        return owner, read

    def message_id(self, message: Message) -> str:
        return message.header.message_id or f"ID:{self.instance}-{message.sequence}"

    def mark(self, subscription: Subscription) -> None:
        """The subscription has something to dispatch, or someone new to dispatch to."""
        if not subscription.dirty:
            subscription.dirty = True
            self.batch.dirty[subscription] = None

    def has_buried(self, lane: Lane, first: int, last: int) -> None:
        """The neighbours are in the dead message queue already, whoever else they expire for; after a restart, too, if they are stored."""
        buried = lane.buried
        floor = buried.floor
        buried.settle(first, last)
        self.keeping[lane] = None
        if lane.index >= VOLATILE:
            buried.dirty.clear()
        elif buried.dirty or buried.floor != floor:
            self.changed_burials[lane] = None

    def change(self, cursor: Cursor) -> None:
        """The cursor's progress belongs in the next checkpoint."""
        if not cursor.changed:
            cursor.changed = True
            self.changed_cursors[cursor] = None
