"""Reading back from the store what memory did not keep (R5 to R7): pages of lanes, bodies of messages that came back.

From the moment a read of an interval is issued its cursor owns the interval; what the engine learns meanwhile (settled, expired, purged) wins
over the rows. Reads are released by the host after the batch's commit, so every row they name is there.

Subscribers of a topic that fall behind together read together: whoever wants what a page on its way brings, or the greater part of it, waits for it
and takes its part. So ten of them cost the database little more than one.
"""

from __future__ import annotations

from collections import deque

from .accounting import let_go
from .capacity import may_be_removed
from .commands import PageLoaded
from .cursor import Cursor
from .memory import SMALL
from .message import Message
from .message_group import recognize
from .reads import PageWanted, PositionsWanted
from .shard import Shard
from .subscription import Subscription
from .waiting import forget_gone, put_back, take_missing

EVICT_ROWS = 64
"""Below this many rows a window is not worth evicting."""


def want_pages(shard: Shard, subscription: Subscription) -> None:
    """Ask for what the links that take whatever comes will need next. Without such links nothing is read ahead."""
    for cursor in subscription.order:
        if not (cursor.missing or cursor.loaded < cursor.lane.tail) or cursor.reading:
            continue
        if not subscription.takes_all:
            return
        if cursor.missing:
            _want_missing(shard, cursor)
        elif cursor.loaded < cursor.lane.tail and (not cursor.ready or _may_read_ahead(shard, cursor)):
            _want_page(shard, cursor)


def _may_read_ahead(shard: Shard, cursor: Cursor) -> bool:
    """There is less than a page of it in memory, and memory has room: who has nothing may always read."""
    limits = shard.limits
    return len(cursor.ready) < limits.page_rows and cursor.octets < limits.page_octets and shard.memory < limits.memory_octets


def allowance(shard: Shard) -> tuple[int, int]:
    """Rows and octets of a read: small ones while memory is short, so that ten thousand deep queues share it."""
    limits = shard.limits
    if shard.memory + limits.page_octets > limits.memory_octets and not shard.batch.evicted:
        shard.batch.evicted = True  # it looks at every subscription, and thousands may want to read
        _evict_idle(shard)
    if shard.memory + limits.page_octets > limits.memory_octets:
        return max(limits.page_rows // SMALL, 1), limits.page_octets // SMALL
    return limits.page_rows, limits.page_octets


def _want_page(shard: Shard, cursor: Cursor, rows_max: int = 1 << 30) -> None:
    lane = cursor.lane
    key = (lane.destination.number, lane.index)
    cursor.loaded = first = cursor.horizon
    upto = min(lane.tail, lane.handed) - 1
    if first >= lane.handed:
        fan_out = lane.destination.fan_out
        assert fan_out is not None
        fan_out.turn_away(cursor)
        return
    if lane.kept and first < lane.kept_end:  # the rest is in the lane's memory, for dispatch to take
        upto = lane.kept_first - 1
    if first > upto:
        return
    if _joins(shard, cursor):
        return
    rows, octets = allowance(shard)
    segments = shard.segments.overlapping(key, first, upto)
    read = PageWanted(shard.next_read(), *key, first - 1, upto, min(rows, rows_max), octets, segments)
    shard.begin_read(cursor, read, octets)
    if lane.destination.is_topic and rows_max > rows:
        lane.page = read


def _joins(shard: Shard, cursor: Cursor) -> bool:
    """A page that is on its way for another subscription is for this one, too."""
    page = cursor.lane.page
    if page is None or not 0 < cursor.loaded - page.after <= 1 + page.limit // 2:
        return False
    cursor.reading = page.read
    shard.joined.setdefault(page.read, []).append(cursor)
    return True


def want_next(shard: Shard, cursor: Cursor) -> None:
    """What comes next is to be in memory, whoever consumes."""
    if not cursor.reading:
        _want_page(shard, cursor)


def want_head(shard: Shard, cursor: Cursor) -> None:
    """Of a queue nobody consumes: its oldest message, so that its age can be told."""
    if not cursor.reading and not cursor.ready and cursor.loaded < cursor.lane.tail:
        _want_page(shard, cursor, rows_max=1)


def _want_missing(shard: Shard, cursor: Cursor) -> None:
    lane = cursor.lane
    key = (lane.destination.number, lane.index)
    rows, octets = allowance(shard)
    positions: list[int] = []
    for position in sorted(cursor.missing)[:rows]:
        positions.append(position)
        octets -= cursor.missing[position].weight
        if octets <= 0:
            break
    segments = shard.segments.overlapping(key, positions[0], positions[-1])
    shard.begin_read(cursor, PositionsWanted(shard.next_read(), *key, positions, segments), 0)


def loaded(shard: Shard, cursor: Cursor, read: PageWanted | PositionsWanted, command: PageLoaded) -> None:
    """What a cursor asked for, and others with it."""
    if cursor.subscription.destination.capacity is not None:
        may_be_removed(shard, cursor.subscription.destination)
    if isinstance(read, PositionsWanted):
        if cursor.subscription.number in shard.subscriptions:
            _take_missing(shard, cursor, command.messages)
            shard.mark(cursor.subscription)
        return
    if cursor.lane.page is read:
        cursor.lane.page = None
    joined = shard.joined.pop(read.read, [])
    recognize(shard, command.messages)
    if joined:
        shares = Shares(shard, read, command, [cursor, *joined])
        shard.batch.pairs = shares.proceed(shard, max(shard.batch.pairs, 1))
        if not shares.is_over:
            shard.handing.append(shares)
    elif cursor.subscription.number in shard.subscriptions:
        _take_page(shard, cursor, read, command, together=False)
        shard.mark(cursor.subscription)


class Shares:
    """Of a page that several cursors waited for: each takes what it wants of it, so many as a flush has time for (fan_out.hand_out)."""

    __slots__ = ("_command", "octets", "read", "rest")

    def __init__(self, shard: Shard, read: PageWanted, command: PageLoaded, cursors: list[Cursor]) -> None:
        self.read = read
        self._command = command
        self.rest = deque(cursors)
        """Until it is their turn the page counts as being on its way to them."""
        self.octets = sum([message.weight for message in command.messages])
        shard.memory += self.octets
        for message in command.messages:
            message.holders = 1  # this one

    def proceed(self, shard: Shard, steps: int) -> int:
        """Do so much. What is left of the steps; 0 or less: they were not enough."""
        messages = self._command.messages
        while self.rest and steps > 0:
            cursor = self.rest.popleft()
            steps -= 1 + len(messages)
            cursor.reading = 0
            if cursor.subscription.number in shard.subscriptions:
                _take_page(shard, cursor, self.read, self._command, together=True)
                shard.mark(cursor.subscription)
        if not self.rest:
            shard.memory -= self.octets
            for message in messages:
                let_go(message)
        return steps

    @property
    def is_over(self) -> bool:
        return not self.rest


def _take_page(shard: Shard, cursor: Cursor, read: PageWanted, command: PageLoaded, *, together: bool) -> None:
    if cursor.loaded <= read.after:  # it went back since, to what comes before the page: it reads anew
        return
    progress, gone, first = cursor.progress, cursor.gone, cursor.loaded  # after a purge further than what was asked for
    settled_some = progress.ahead or progress.floor > read.after + 1
    octets = 0
    for message in command.messages:
        position = message.position
        if position < first or (settled_some and progress.is_settled(position)) or (gone and position in gone):
            continue
        if together and (position <= cursor.offered_before or cursor.failures or cursor.ahead.is_settled(position)):
            cursor.ready.append(as_placed(cursor, message.again()))  # what befell it here is not for the others
        else:
            cursor.ready.append(as_placed(cursor, message))
            message.holders += together
        octets += message.weight
        if message.header.group is not None:
            cursor.subscription.meet_groups()
    cursor.octets += octets
    shard.memory += octets
    cursor.loaded = max(cursor.loaded, read.upto + 1 if command.complete else command.messages[-1].position + 1)
    cursor.forget_passed()
    if not command.complete and all(0 < message.header.expiration <= shard.now for message in command.messages):
        cursor.barren = cursor.loaded


def as_placed(cursor: Cursor, message: Message) -> Message:
    """A row tells what its sender asked for: one that no durable subscription wanted was put into a volatile lane all the same (R19).
    It does not tell what befell the message since."""
    if message.header.lane != cursor.index:
        message.header = message.header.unstored()
    if message.position <= cursor.offered_before or cursor.ahead.is_settled(message.position):
        message.redelivered = True
    if cursor.failures:
        message.failures = cursor.failures.get(message.position, 0)
    return message


def _take_missing(shard: Shard, cursor: Cursor, messages: list[Message]) -> None:
    for row in messages:
        message = cursor.missing.get(row.position)
        if message is not None:
            message.fill(row)
            found_missing(shard, cursor, message)


def found_missing(shard: Shard, cursor: Cursor, message: Message) -> None:
    """The body of a message that came back without it was read."""
    if take_missing(cursor, message.position) is not None:
        put_back(shard, cursor, message)


def _evict_idle(shard: Shard) -> None:
    """Give up what is kept in memory for nobody: stored messages that no link will take next; they are read again when someone comes."""
    for subscription in shard.subscriptions.values():
        if not subscription.takes_all:
            for cursor in subscription.order:
                if cursor.stored and not cursor.reading and len(cursor.ready) >= EVICT_ROWS:
                    evict(shard, cursor)


def evict(shard: Shard, cursor: Cursor) -> None:
    """Forget `ready`; its positions are on disk only again."""
    if not cursor.ready:
        return
    octets = sum(message.weight for message in cursor.ready)
    cursor.loaded = cursor.ready[0].position
    cursor.ready.clear()
    forget_gone(cursor)
    cursor.octets -= octets
    shard.memory -= octets
