"""A subscription: of a queue the one built in, of a topic as many as clients make; its cursors, one a lane, and its links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .cursor import Cursor
from .link import Tier
from .message import LANES, Message
from .owners import Owners

if TYPE_CHECKING:
    from .destination import Destination, Lane
    from .eligibility import Eligibility
    from .link import Link
    from .selection import Selection
    from .selector import Selector
    from .wildcard import WildcardSubscription


@dataclass(slots=True, frozen=True)
class Filter:
    """What a subscription takes. Equal ones share a group, so that a message is compared with each once (R8)."""

    selector: Selector | None = None
    sender: str = ""
    """The client identifier whose own messages are left out (no-local, JMS 6.11.1); empty: nobody's."""

    def __bool__(self) -> bool:
        """It leaves something out."""
        return self.selector is not None or self.sender != ""

    @property
    def octets(self) -> int:
        """Of the selector's text: its memory is some forty times as much."""
        return len(self.selector.text) if self.selector is not None else 0


EVERYTHING = Filter()


class Subscription:
    """A queue has one, built in, durable and shared by all its consumers (checklist item 98); a topic as many as clients make."""

    __slots__ = (
        "account",
        "client_id",
        "cursors",
        "destination",
        "dirty",
        "draining",
        "durable",
        "eligibility",
        "hungry",
        "idle_since",
        "links",
        "name",
        "number",
        "order",
        "owners",
        "place",
        "returning",
        "selections",
        "shared",
        "turns",
        "wanted",
        "wildcard",
    )  # fmt: skip

    def __init__(
        self,
        number: int,
        destination: Destination,
        name: str = "",
        client_id: str = "",
        account: str = "",
        *,
        durable: bool = True,
        shared: bool = True,
        wanted: Filter = EVERYTHING,
    ) -> None:
        self.number = number
        self.destination = destination
        self.name = name
        """Empty: built in, or of one consumer who gave none."""
        self.client_id = client_id
        self.account = account
        """Its owner: whoever made it. Nobody else may consume from it, change it or end it."""
        self.durable = durable
        """It outlives its consumers and the node."""
        self.shared = shared
        """Several consumers at a time."""
        self.wanted = wanted
        self.place = -1
        """In its destination's list."""
        self.idle_since = 0
        """When its last consumer left, in ms; 0: it has one, or never had."""
        self.cursors: list[Cursor | None] = [None] * LANES
        self.order: list[Cursor] = []
        """Highest priority first; of equals the stored lane first."""
        self.links: dict[int, Link] = {}
        """In order of registration."""
        self.hungry = Tier(self)
        """Links that may receive. Exclusive ones, those with a priority and those with a filter of their own wait apart."""
        self.turns: list[Tier] = [self.hungry]
        """Where links are served from, in this order."""
        self.selections: dict[Filter, Selection] = {}
        """Of a queue: its links that do not take whatever comes, by what they want."""
        self.eligibility: Eligibility | None = None
        """None: all its links are alike."""
        self.owners: Owners | None = None
        """Of its message groups. None: it has met none."""
        self.wildcard: WildcardSubscription | None = None
        """Whose member it is."""
        self.dirty = False
        """Something to dispatch in the open batch."""
        self.returning = 0
        """Closed links from which messages are still to come back: until then nobody is served."""
        self.draining = False
        """Some link has asked to be drained."""

    def cursor(self, lane: Lane) -> Cursor:
        cursor = self.cursors[lane.index]
        if cursor is None:
            cursor = self.cursors[lane.index] = Cursor(self, lane)
            self.order.append(cursor)
            self.order.sort(key=lambda c: (-c.priority, c.index))
            for selection in self.selections.values():
                selection.scan(cursor)
        return cursor

    def meet_groups(self) -> None:
        """It has a message of a group, and may have several consumers to choose from."""
        if self.owners is None and self.shared and self.wildcard is None:
            self.owners = Owners()

    @property
    def size(self) -> int:
        """How many subscriptions it counts for."""
        return 1

    def parts(self) -> Sequence[Subscription]:
        """Those with cursors."""
        return (self,)

    def cursor_of(self, message: Message) -> Cursor | None:
        """Of a message that it was given. None: its topic is gone."""
        return self.cursors[message.header.lane]

    def delivered(self) -> Iterator[Message]:
        """What its consumers hold."""
        topic = self.destination.number if self.wildcard is not None else None
        for link in self.links.values():
            for message in link.unsettled.values():
                if topic is None or message.destination == topic:
                    yield message

    @property
    def takes_all(self) -> bool:
        """Some link takes whatever comes next."""
        if not self.selections:
            return bool(self.links)
        return len(self.links) > sum([len(selection.links) for selection in self.selections.values()])

    @property
    def is_idle(self) -> bool:
        """Nothing to deliver, nothing to read: a link that becomes hungry need not be looked at before a message comes."""
        if self.draining or self.owners is not None:
            return False
        for cursor in self.order:  # noqa: SIM110  # asked at every acknowledgement: a generator would cost more than the answer
            if cursor.ready or cursor.returned or cursor.missing or cursor.loaded < cursor.lane.tail:
                return False
        return True

    @property
    def is_reading(self) -> bool:
        """More may come for links that have nothing now."""
        return any(cursor.reading or cursor.loaded < cursor.lane.tail for cursor in self.order)

    @property
    def depth(self) -> int:
        depth = 0
        for cursor in self.order:  # asked of thousands of subscriptions a second: as Cursor.depth, without a call for each
            progress = cursor.progress
            depth += cursor.lane.tail - progress.floor - progress.ahead
        return depth

    @property
    def outstanding(self) -> int:
        """Delivered and not settled, what transactions hold included."""
        if self.wildcard is not None:  # its consumers hold messages of thousands of topics: what neither waits nor is settled is with them
            return sum([cursor.outstanding for cursor in self.order])
        outstanding = 0
        for link in self.links.values():
            outstanding += len(link.unsettled)
        for cursor in self.order:
            outstanding += len(cursor.reserved)
        return outstanding
