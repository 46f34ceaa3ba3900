"""A page of a queue or a subscription: what the node says of it (engine.looking) and the rows of the store, filtered, within a time that people wait.

A page ends when it has what was asked for, when it has looked at as much as one page may, or when its time is over; it says how far it came, and the next
one goes on there. So it costs the same however deep the queue is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from base64 import b64decode
from typing import Any

from broker_core.conversion import decode, to_stomp
from broker_core.engine.looking import ASIDE, DELAYED, DELIVERED, RESERVED, WAITS
from broker_core.engine.message import Header, Message, StoredBody
from broker_core.engine.message_filter import MessageFilter, attempts_of
from broker_core.engine.properties import Properties
from broker_core.store.sieve import Sieve, sift

from .rows import Read, Row, TableGone, TooSlow, keys, message_of, statement

SECONDS = 0.12
"""Of one page, from its beginning; what began within it is finished."""
GRACE = 0.05
"""That a statement may take beyond it, before it is given up and tried with less."""
ROWS, ROWS_WITH_BODIES = 4_000, 400
"""That the first statement of a filtered page looks at; the next ones as many as there is time for."""
ROWS_MAX = 200_000
FETCHED, FETCHED_WITH_BODIES = 1_000, 40
"""Rows that one statement returns at the most: bodies have up to 256 KiB."""
GONE_RETRIES = 3
Ask = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""What to look at (control verb browse) to the node's answer."""
Key = tuple[int, int]
"""A lane and a position: what names a message of a destination."""
EXPIRED = "expired"
STATES = (WAITS, DELIVERED, DELAYED, RESERVED, ASIDE, EXPIRED)


@dataclass(slots=True)
class Seen:
    """A message of a queue or a subscription, and how it stands there."""

    lane: int
    message: Message
    state: str
    """One of STATES."""
    identity: str
    """The message's identifier."""
    link: int | None = None
    """The consumer that it is delivered to."""
    holder: Mapping[str, Any] | None = None
    """That consumer's connection, account and client identifier."""
    since: int | None = None
    """When that was, in ms, to a second."""
    due_at: int | None = None
    """When it may be delivered again, in ms."""
    reserved_by: tuple[str, int, str] | None = None
    """branch or transaction, the number of the branch or of the connection, the xid."""

    @property
    def key(self) -> str:
        return key_text((self.lane, self.message.position))

    @property
    def attempts(self) -> int:
        return attempts_of(self.message)


@dataclass(slots=True)
class Page:
    seen: list[Seen] = field(default_factory=list)
    looked_at: int = 0
    """Messages."""
    next: Key | None = None
    """Where to go on; None: all was looked at."""
    depth: int = 0
    now: int = 0
    """Of the node, in ms."""

    @property
    def complete(self) -> bool:
        return self.next is None


def key_text(key: Key) -> str:
    return f"{key[0]}-{key[1]}"


class _Broker:
    """What properties of messages need."""

    def __init__(self, instance: str) -> None:
        self.instance = instance
        self.decode = decode

    def message_id(self, message: Message) -> str:
        return message.header.message_id or f"ID:{self.instance}-{message.sequence}"


def content(message: Message) -> bytes | None:
    """A body as clients of STOMP get it: of an AMQP map that is JSON."""
    if isinstance(message.body, StoredBody) or message.body is None:
        return None
    if not message.header.encoding:
        return message.body
    _, beginning, body = to_stomp(message, "/queue/any")
    return beginning + body if isinstance(body, bytes) else None


# -- pages ------------------------------------------------------------------------------------------------------------------------------
def browse(
    ask: Ask, read: Read, clock: Callable[[], float], wanted: MessageFilter, limit: int, *, after: Key | None = None, newest_first: bool = False,
    subscription: int | None = None, bodies: bool = False,
) -> Page:  # fmt: skip
    """At most `limit` messages from `after` on, that one included. `clock`: seconds. `bodies`: come with them, large ones apart."""
    deadline = clock() + SECONDS
    look: dict[str, Any] = {"newest_first": newest_first, "bodies": bodies or wanted.needs_body}
    if wanted.is_everything:
        look |= {"positions": limit, "messages": limit}
    if subscription is not None:
        look["subscription"] = subscription
    for attempt in range(GONE_RETRIES):
        answer = ask(look | ({"from": list(after)} if after is not None else {}))
        maker = _Maker(answer, read, clock, wanted, limit, deadline, newest_first=newest_first, bodies=bodies)
        try:
            return maker.make()
        except TableGone:
            if attempt == GONE_RETRIES - 1:
                raise
    raise AssertionError("unreachable")


class _Maker:
    def __init__(
        self, answer: Mapping[str, Any], read: Read, clock: Callable[[], float], wanted: MessageFilter, limit: int, deadline: float, *, newest_first: bool,
        bodies: bool,
    ) -> None:  # fmt: skip
        self.answer = answer
        self.read = read
        self.clock = clock
        self.wanted = wanted
        self.limit = limit
        self.deadline = deadline
        self.newest_first = newest_first
        self.bodies = bodies or wanted.needs_body
        self.now: int = answer["now"]
        self.broker = _Broker(answer["instance"])
        self.sifted = sift(wanted, self.now) if not wanted.is_everything else Sieve()
        self.page = Page(depth=answer["depth"], now=self.now)
        self.rows = ROWS_MAX if wanted.is_everything else ROWS_WITH_BODIES if self.bodies else ROWS

    def make(self) -> Page:
        for piece in self.answer["pieces"]:
            self.page.next = self._go_through(Piece(piece, self.newest_first))
            if self.page.next is not None:
                return self.page
        following = self.answer["next"]
        self.page.next = None if following is None else (following[0], following[1])
        return self.page

    def _go_through(self, piece: Piece) -> Key | None:
        """Where the page ended within it; None: it did not."""
        while (batch := piece.batch(self.rows)) is not None:
            if len(self.page.seen) >= self.limit or (self.page.looked_at and self.clock() >= self.deadline):
                return piece.lane, batch.start
            began = self.clock()
            try:
                messages, upto = self._read(piece, batch)
            except TooSlow:
                if self.rows <= 1:
                    raise
                self.rows = max(self.rows // 8, 1)
                piece.back(batch)
                continue
            for message in messages:
                if not self._takes(message):
                    continue
                if len(self.page.seen) >= self.limit:
                    self.page.looked_at += batch.count_before(message.position)
                    return piece.lane, message.position
                self.page.seen.append(self._seen(piece, message))
            if upto is not None:
                self.page.looked_at += batch.count_before(upto)
                piece.back(batch, upto)
            else:
                self.page.looked_at += batch.count
            self._pace(self.clock() - began)
        return None

    def _pace(self, took: float) -> None:
        """The next statement takes half of what is left, about."""
        if not self.wanted.is_everything:
            left = max(self.deadline - self.clock(), 0.0)
            factor = left / 2 / took if took > 0 else 8.0
            self.rows = int(min(max(self.rows * min(factor, 8.0), 50), ROWS_MAX))

    def _read(self, piece: Piece, batch: Batch) -> tuple[list[Message], int | None]:
        """Messages of the batch in the order of looking, and from where on they are not known as too many were found."""
        found: dict[int, Message] = {}
        upto = None
        segments = piece.segments_of(batch)
        if segments:
            fetched = min(FETCHED_WITH_BODIES if self.bodies else FETCHED, max(4 * (self.limit - len(self.page.seen)), 20)) + 1
            rows = self._fetch(piece.lane, segments, batch, fetched)
            if len(rows) == fetched:
                upto = rows.pop()[1]
            found = {message.position: message for message in map(message_of, rows) if batch.holds(message.position)}
        found |= {position: m for position, m in piece.memory.items() if batch.holds(position) and (upto is None or piece.is_before(position, upto))}
        messages = [found[position] for position in sorted(found, reverse=self.newest_first) if position not in piece.gone]
        for message in messages:
            message.destination = self.answer["destination"]
            message.failures = max(piece.failures.get(message.position, 0), message.failures)
            message.redelivered = message.redelivered or piece.is_flagged(message.position)
        return messages, upto

    def _fetch(self, lane: int, segments: list[int], batch: Batch, limit: int) -> list[Row]:
        text = statement(lane, segments, self.sifted, newest_first=self.newest_first, bodies=self.bodies)
        parameters = keys(self.answer["destination"], lane, segments) | self.sifted.constants
        parameters |= {"first": batch.first, "last": batch.last, "limit": limit}
        return self.read(text, parameters, max(self.deadline - self.clock(), 0.0) + GRACE if not self.wanted.is_everything else 2.0)

    def _takes(self, message: Message) -> bool:
        if self.wanted.is_everything:
            return True
        return self.wanted.matches(message, Properties(self.broker, message).__getitem__, self.now, content)

    def _seen(self, piece: Piece, message: Message) -> Seen:
        state, *more = piece.states.get(message.position, [WAITS])
        seen = Seen(piece.lane, message, state, self.broker.message_id(message))
        if state == DELIVERED:
            seen.link, seen.since = more
            seen.holder = self.answer["links"].get(str(seen.link))
        elif state == DELAYED:
            (seen.due_at,) = more
        elif state == RESERVED:
            seen.reserved_by = (more[0], more[1], more[2])
        elif state == WAITS and 0 < message.header.expiration <= self.now:
            seen.state = EXPIRED
        return seen


# -- what the node said -------------------------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class Batch:
    """Unsettled positions to look at with one statement."""

    runs: list[tuple[int, int]]
    newest_first: bool

    @property
    def first(self) -> int:
        return min(self.runs[0][0], self.runs[-1][0])

    @property
    def last(self) -> int:
        return max(self.runs[0][1], self.runs[-1][1])

    @property
    def start(self) -> int:
        """The first in the order of looking."""
        return self.last if self.newest_first else self.first

    @property
    def count(self) -> int:
        return sum([high - low + 1 for low, high in self.runs])

    def count_before(self, position: int) -> int:
        """In the order of looking."""
        if self.newest_first:
            return sum([max(high - max(low, position + 1) + 1, 0) for low, high in self.runs])
        return sum([max(min(high, position - 1) - low + 1, 0) for low, high in self.runs])

    def holds(self, position: int) -> bool:
        runs = self.runs[::-1] if self.newest_first else self.runs
        place = bisect_right(runs, position, key=lambda run: run[0]) - 1
        return place >= 0 and runs[place][0] <= position <= runs[place][1]


class Piece:
    """One lane's part of a look."""

    def __init__(self, told: Mapping[str, Any], newest_first: bool) -> None:
        self.lane: int = told["lane"]
        self.newest_first = newest_first
        self.left: list[tuple[int, int]] = [(low, high) for low, high in told["ranges"]]
        self.left.reverse()
        """The next last."""
        self.segments: list[tuple[int, int, int]] = told["segments"]
        self.gone = set(told["gone"])
        self.states: dict[int, list[Any]] = {position: state for position, *state in told["states"]}
        self.failures = {int(position): failures for position, failures in told["failures"].items()}
        self.flagged = set(told["flagged"])
        self.flagged_upto: int = told["flagged_upto"]
        self.flagged_ahead: list[tuple[int, int]] = told["flagged_ahead"]
        self.memory = {message.position: message for message in map(_from_memory, told["messages"])}

    def is_before(self, position: int, other: int) -> bool:
        return position > other if self.newest_first else position < other

    def is_flagged(self, position: int) -> bool:
        return position <= self.flagged_upto or position in self.flagged or any(low <= position <= high for low, high in self.flagged_ahead)

    def segments_of(self, batch: Batch) -> list[int]:
        return [segment for segment, first, last in self.segments if first <= batch.last and last >= batch.first]

    def batch(self, rows: int, *, single: bool = False) -> Batch | None:
        """The next positions, `rows` at the most, without a gap as wide as all of them; `single`: without any."""
        runs: list[tuple[int, int]] = []
        left = rows
        while self.left and left > 0:
            low, high = self.left[-1]
            if runs and (single or self._gap(runs[-1], (low, high)) > rows):
                break
            self.left.pop()
            if high - low + 1 > left:
                rest, (low, high) = ((low, high - left), (high - left + 1, high)) if self.newest_first else ((low + left, high), (low, low + left - 1))
                self.left.append(rest)
            runs.append((low, high))
            left -= high - low + 1
        return Batch(runs, self.newest_first) if runs else None

    def _gap(self, one: tuple[int, int], next_one: tuple[int, int]) -> int:
        return one[0] - next_one[1] if self.newest_first else next_one[0] - one[1]

    def back(self, batch: Batch, upto: int | None = None) -> None:
        """It was not looked at, or only up to a position."""
        for low, high in reversed(batch.runs):
            if upto is not None:
                low, high = (low, min(high, upto)) if self.newest_first else (max(low, upto), high)  # noqa: PLW2901
            if low <= high:
                self.left.append((low, high))


def _from_memory(told: Mapping[str, Any]) -> Message:
    header = Header(
        b64decode(told["headers"]), told["priority"], told["reliability"], told["expiration"], told["encoding"], told["message_id"], told["client_id"],
        told["annotations"],
    )  # fmt: skip
    size: int = told["size"]
    body = StoredBody(told["stored_body"], size - len(header.octets)) if "stored_body" in told else b64decode(told["body"]) if "body" in told else None
    message = Message(header, body, size)
    message.sequence, message.position, message.accepted_at = told["sequence"], told["position"], told["accepted_at"]
    message.redelivered, message.failures = told["redelivered"], told["failures"]
    return message
