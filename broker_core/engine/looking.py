"""What operators see of a queue, or of a subscription of a topic (R6): which positions are unsettled, in which state each of them is, and the messages
that are in memory only. Rows of the store are read by whoever asked, as they stay as they are.

A look costs what it shows, not what the queue holds: it begins at a position, goes through so many unsettled ones at the most, and says where to go on.
"""

from __future__ import annotations

from base64 import b64encode
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from .cursor import Cursor
from .link import ALWAYS
from .message import LANES, PRIORITIES, Message, StoredBody
from .refusal import Declined, Refusal

if TYPE_CHECKING:
    from .commands import Control
    from .link import Link
    from .shard import Shard
    from .subscription import Subscription

POSITIONS_MAX = 1 << 18
"""Unsettled ones that one look goes through."""
RANGES_MAX = 1_000
STATES_MAX = 2_000
"""Of positions that do not just wait."""
MESSAGES_MAX = 1_000
MESSAGES_OCTETS_MAX = 1 << 20
"""Of messages that are in memory only; one at least."""
SPAN = 1 << 20
"""Positions that are looked at at a time, settled ones included, and how often."""
SPANS_MAX = 64
WAITS, DELIVERED, DELAYED, RESERVED, ASIDE = "available", "delivered", "delayed", "reserved", "aside"
BRANCH, TRANSACTION = "branch", "transaction"
ORDER = sorted(range(LANES), key=lambda lane: (-(lane % PRIORITIES), lane))
"""Lanes as they are delivered: the highest priority first, of equals what is stored."""
Answer = dict[str, Any]


class _Asked:
    """How much, and from where on."""

    def __init__(self, shard: Shard, command: Control) -> None:
        arguments = command.arguments
        self.shard = shard
        self.newest_first = bool(arguments.get("newest_first", False))
        self.positions = min(arguments.get("positions", POSITIONS_MAX), POSITIONS_MAX)
        self.messages = min(arguments.get("messages", MESSAGES_MAX), MESSAGES_MAX)
        self.octets = MESSAGES_OCTETS_MAX
        self.bodies = bool(arguments.get("bodies", False))
        self.ranges = RANGES_MAX
        self.states = STATES_MAX
        lanes = ORDER[::-1] if self.newest_first else ORDER
        lane: int
        self.position: int | None
        lane, self.position = arguments["from"] if arguments.get("from") else (lanes[0], None)
        self.lanes = lanes[lanes.index(lane) :]


def look(shard: Shard, command: Control) -> Answer:
    """`from`: [lane, position], there included. `pieces`: of one lane each, in order; `next`: where to go on, None if all was seen."""
    subscription = _subscription(shard, command)
    asked = _Asked(shard, command)
    pieces, following = [], None
    at = asked.position
    for index in asked.lanes:
        cursor = subscription.cursors[index]
        if cursor is not None and cursor.depth:
            piece, stopped = _Piece(asked, subscription, cursor).cut(at)
            if piece["ranges"]:
                pieces.append(piece)
            if stopped is not None:
                following = [index, stopped]
                break
        at = None
    return {
        "now": shard.now, "instance": shard.instance, "destination": subscription.destination.number, "subscription": subscription.number,
        "depth": subscription.depth, "pieces": pieces, "links": _holders(shard, pieces), "next": following,
    }  # fmt: skip


def _subscription(shard: Shard, command: Control) -> Subscription:
    """Raises Declined."""
    destination = shard.destinations.get(command.address)
    if destination is None:
        raise Declined(Refusal.NO_SUCH_DESTINATION, command.address)
    number = command.arguments.get("subscription")
    if not destination.is_topic and number is None:
        return destination.subscriptions[0]
    found = shard.subscriptions.get(number) if isinstance(number, int) else None
    if found is None or found.destination is not destination:
        detail = "a topic's messages are seen by subscription: name one of its subscriptions by its number" if number is None else str(number)
        raise Declined(Refusal.NO_SUCH_SUBSCRIPTION, detail)
    return found


def _holders(shard: Shard, pieces: list[dict[str, Any]]) -> dict[str, Any]:
    """Who the consumers are that have something delivered, by the links' numbers."""
    numbers = {state[2] for piece in pieces for state in piece["states"] if state[1] == DELIVERED}
    links = [shard.links[number] for number in sorted(numbers)]
    return {str(link.number): {"peer": link.peer.number, "account": link.peer.account, "client_id": link.peer.client_id} for link in links}


class _Piece:
    """What one look shows of one lane."""

    def __init__(self, asked: _Asked, subscription: Subscription, cursor: Cursor) -> None:
        self.asked = asked
        self.subscription = subscription
        self.cursor = cursor
        self.newest_first = asked.newest_first

    def cut(self, at: int | None) -> tuple[dict[str, Any], int | None]:
        """From `at` on as far as it may go; and where it goes on, None if the lane ends there."""
        asked, cursor = self.asked, self.cursor
        ranges, stopped = self._ranges(at)
        messages: list[Message] = []
        if not cursor.stored and ranges:
            messages, beyond = self._in_memory(*_ends(ranges))
            if beyond is not None:
                ranges, stopped = self._upto(ranges, beyond), beyond
        states: list[list[Any]] = []
        if ranges:
            states, beyond = self._states(*_ends(ranges))
            if beyond is not None:
                ranges, stopped = self._upto(ranges, beyond), beyond
                messages = [message for message in messages if self._is_before(message.position, beyond)]
        asked.positions -= sum([high - low + 1 for low, high in ranges])
        asked.ranges -= len(ranges)
        asked.states -= len(states)
        asked.messages -= len(messages)
        asked.octets -= sum([message.size for message in messages])
        asked.shard.effort += 100 + len(ranges) + len(states) * 2 + len(messages) * 10
        return self._told(ranges, states, messages), stopped

    def _is_before(self, position: int, beyond: int) -> bool:
        return position > beyond if self.newest_first else position < beyond

    def _ranges(self, at: int | None) -> tuple[list[tuple[int, int]], int | None]:
        """Unsettled ranges in the order of looking, and the first position that is none of them any more."""
        progress, tail = self.cursor.progress, self.cursor.lane.tail
        left = self.asked.positions
        found: list[tuple[int, int]] = []
        low = progress.floor if at is None else max(at, progress.floor)
        high = tail - 1 if at is None else min(at, tail - 1)
        for _ in range(SPANS_MAX):
            down, up = (high - SPAN + 1, high), (low, min(low + SPAN, tail) - 1)
            for first, last in progress.unsettled_down(*down) if self.newest_first else progress.unsettled(*up):
                if left <= 0 or len(found) >= self.asked.ranges:
                    return found, last if self.newest_first else first
                taken = min(last - first + 1, left)
                found.append((last - taken + 1, last) if self.newest_first else (first, first + taken - 1))
                left -= taken
                if taken <= last - first:
                    return found, last - taken if self.newest_first else first + taken
            low, high = low + SPAN, high - SPAN
            if (high < progress.floor) if self.newest_first else (low >= tail):
                return found, None
        return found, high if self.newest_first else low

    def _upto(self, ranges: list[tuple[int, int]], beyond: int) -> list[tuple[int, int]]:
        """Those before it."""
        if self.newest_first:
            return [(max(low, beyond + 1), high) for low, high in ranges if high > beyond]
        return [(low, min(high, beyond - 1)) for low, high in ranges if low < beyond]

    # -- in memory --------------------------------------------------------------------------------------------------------------------
    def _in_memory(self, low: int, high: int) -> tuple[list[Message], int | None]:
        """Messages from `low` to `high` that memory has, in the order of looking, and the first position that was too much."""
        cursor, asked = self.cursor, self.asked
        most = max(asked.messages, 1) + 1
        by_position = {message.position: message for message in self._ready(low, high, most)}
        for place in (cursor.returned, cursor.missing, cursor.delayed, cursor.aside, cursor.reserved):
            by_position |= {position: message for position, message in place.items() if low <= position <= high}
        by_position |= {message.position: message for message in self._delivered(low, high)}
        kept, horizon = cursor.lane.kept, cursor.horizon
        if kept:
            positions: Iterable[int] = range(max(low, horizon, cursor.lane.kept_first), min(high + 1, cursor.lane.kept_end))
            positions = reversed(positions) if self.newest_first else positions  # type: ignore[call-overload]
            by_position |= {position: kept[position] for position in islice(positions, most) if position in kept}
        settled = {*cursor.accepted}
        found = [m for m in by_position.values() if m.position not in settled and not cursor.progress.is_settled(m.position)]
        found.sort(key=_position, reverse=self.newest_first)
        octets = asked.octets
        for count, message in enumerate(found):
            octets -= message.size
            if count >= asked.messages or (octets < 0 and count):
                return found[:count], message.position
        return found, None

    def _ready(self, low: int, high: int, most: int) -> Iterator[Message]:
        ready, gone = self.cursor.ready, self.cursor.gone
        first, last = bisect_left(ready, low, key=_position), bisect_right(ready, high, key=_position)
        most += self.cursor.stale
        first, last = (max(first, last - most), last) if self.newest_first else (first, min(last, first + most))
        self.asked.shard.effort += last // 50
        return (message for message in islice(ready, first, last) if message.position not in gone)

    def _delivered(self, low: int, high: int) -> list[Message]:
        return [message for _, _, message in self._held(low, high)]

    def _held(self, low: int, high: int) -> Iterator[tuple[Link, int, Message]]:
        """What its consumers have of the lane."""
        index, destination = self.cursor.index, self.subscription.destination.number
        for link in self.subscription.links.values():
            for tag, message in link.unsettled.items():
                if low <= message.position <= high and message.header.lane == index and message.destination == destination:
                    yield link, tag, message
            self.asked.shard.effort += len(link.unsettled) // 10

    # -- states -----------------------------------------------------------------------------------------------------------------------
    def _states(self, low: int, high: int) -> tuple[list[list[Any]], int | None]:
        """[position, state, ...] of those that do not just wait, or have been delivered before, in the order of looking; and the first position that was
        too much. After the state comes of DELIVERED: link, instant; of DELAYED: instant; of RESERVED: what, whose number, xid."""
        cursor = self.cursor
        states: dict[int, list[Any]] = {}
        for position in [p for p in cursor.returned if low <= p <= high] + [p for p in cursor.missing if low <= p <= high]:
            states[position] = [WAITS]
        for position in cursor.aside:
            if low <= position <= high:
                states[position] = [ASIDE]
        if cursor.delayed:
            states |= {position: [DELAYED, due] for position, due in self._due().items() if low <= position <= high}
        for link, tag, message in self._held(low, high):
            states[message.position] = [DELIVERED, link.number, since(link, tag, self.asked.shard.now)]
        if cursor.reserved:
            owners = self._owners()
            states |= {position: owners.get(position, [WAITS]) for position in cursor.reserved if low <= position <= high}
        for position in cursor.failures:
            if low <= position <= high:
                states.setdefault(position, [WAITS])
        positions = sorted(states, reverse=self.newest_first)
        beyond = positions[self.asked.states] if len(positions) > max(self.asked.states, 1) else None
        return [[position, *states[position]] for position in positions[: max(self.asked.states, 1)]], beyond

    def _due(self) -> dict[int, int]:
        """When back-offs end, by position."""
        cursor = self.cursor
        return {m.position: due for due, place, m in self.asked.shard.timers.deadlines() if place is cursor and m.position in cursor.delayed}

    def _owners(self) -> dict[int, list[Any]]:
        """Which transactions have acknowledged what, by position."""
        shard, cursor = self.asked.shard, self.cursor
        transactions: list[tuple[list[Any], Any]] = [([BRANCH, branch.number, branch.xid], branch) for branch in shard.branches.numbered.values()]
        transactions += [([TRANSACTION, peer.number, ""], t) for peer in shard.peers.values() for t in [*peer.transactions.values(), *peer.branches.values()]]
        owners: dict[int, list[Any]] = {}
        for name, transaction in transactions:
            for subscription, _, messages in transaction.settles:
                shard.effort += len(messages) // 10
                if subscription is self.subscription or subscription is self.subscription.wildcard:
                    owners |= {position: [RESERVED, *name] for position in _positions(cursor, messages)}
        return owners

    # -- what is told -----------------------------------------------------------------------------------------------------------------
    def _told(self, ranges: list[tuple[int, int]], states: list[list[Any]], messages: list[Message]) -> dict[str, Any]:
        cursor, shard = self.cursor, self.asked.shard
        key = cursor.lane.destination.number, cursor.index
        low, high = _ends(ranges) if ranges else (0, -1)
        known: dict[int, None] = dict.fromkeys([position for position, *_ in states])
        back = [*cursor.returned.values(), *cursor.missing.values(), *cursor.delayed.values()]
        return {
            "lane": cursor.index,
            "ranges": ranges,
            "gone": sorted(position for position in cursor.accepted if low <= position <= high),
            "segments": shard.segments.placed(key, low, high) if ranges else [],
            "states": states,
            "failures": {str(position): cursor.failures[position] for position in known if position in cursor.failures},
            "flagged": sorted(message.position for message in back if message.redelivered and message.position in known),
            "flagged_upto": cursor.offered_before,
            "flagged_ahead": _settled_runs(cursor, low, high),
            "messages": [described(message, bodies=self.asked.bodies) for message in messages],
        }


def _settled_runs(cursor: Cursor, low: int, high: int) -> list[tuple[int, int]]:
    """Ranges beyond `offered` that may have left all the same; so many that an answer has room for."""
    if not cursor.ahead.blocks and cursor.ahead.floor <= low:
        return []
    runs, at = [], low
    for first, last in islice(cursor.ahead.unsettled(low, high), RANGES_MAX):
        if first > at:
            runs.append((at, first - 1))
        at = last + 1
    if at <= high and len(runs) < RANGES_MAX:
        runs.append((at, high))
    return runs


def described(message: Message, *, bodies: bool) -> dict[str, Any]:
    """A message that is in memory, as JSON. Octets in base64; a large body by its number."""
    header, body = message.header, message.body
    told: dict[str, Any] = {
        "position": message.position, "sequence": message.sequence, "accepted_at": message.accepted_at, "size": message.size,
        "headers": b64encode(header.octets).decode(), "priority": header.priority, "reliability": int(header.reliability),
        "expiration": header.expiration, "encoding": int(header.encoding), "message_id": header.message_id, "client_id": header.client_id,
        "annotations": header.annotations, "redelivered": message.redelivered, "failures": message.failures,
    }  # fmt: skip
    if isinstance(body, StoredBody):
        told["stored_body"] = body.body
    elif bodies and body is not None:
        told["body"] = b64encode(body).decode()
    return told


def _positions(cursor: Cursor, messages: Iterable[Message]) -> list[int]:
    """Of those that it has reserved."""
    return [message.position for message in messages if cursor.reserved.get(message.position) is message]


def _ends(ranges: list[tuple[int, int]]) -> tuple[int, int]:
    return min(ranges[0][0], ranges[-1][0]), max(ranges[0][1], ranges[-1][1])


def _position(message: Message) -> int:
    return message.position


# -- since when -----------------------------------------------------------------------------------------------------------------------
MARKS_MAX = 64


def mark_deliveries(shard: Shard) -> None:
    """Once a second: up to which delivery each consumer has got by now. So nothing is noted message by message. What is
    settled needs no mark: the first is that of the oldest outstanding delivery."""
    oldest = None
    for link in shard.links.values():
        marks = link.marks
        if not link.unsettled:
            if marks:
                link.marks = []
            continue
        if not marks or marks[-1][0] < link.tag:
            marks.append((link.tag, shard.now))
            if len(marks) > MARKS_MAX:
                link.marks = marks = _needed(link)
        first = next(iter(link.unsettled))
        while marks[0][0] < first:
            del marks[0]
        if oldest is None or marks[0][1] < oldest:
            oldest = marks[0][1]
    shard.held_since = oldest


def _needed(link: Link) -> list[tuple[int, int]]:
    """Those marks that tell of something outstanding: no more than there is of that."""
    tags, kept = iter(link.unsettled), []
    tag = next(tags, ALWAYS)
    for mark in link.marks:
        if tag <= mark[0]:
            kept.append(mark)
            while tag <= mark[0]:
                tag = next(tags, ALWAYS)
    return kept


def since(link: Link, tag: int, now: int) -> int:
    """When the delivery was made, in ms, to a second: the first mark that counts it. `now`: none does yet."""
    place = bisect_left(link.marks, tag, key=lambda mark: mark[0])
    return link.marks[place][1] if place < len(link.marks) else now
