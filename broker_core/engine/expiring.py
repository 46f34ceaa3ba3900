"""The end of messages whose time to live has passed: sweeps of the store and timers find them, flushes end them portion by portion.

A message of a topic expires for each of its subscriptions, and these may be thousands. So what is found waits here, as runs of neighbours in a lane,
and every flush ends a bounded part of it: most of a run costs a subscription one step and the ledger one range. Nothing depends on how soon it is
done, as whoever is about to deliver a message looks at its expiration (dispatch, settlement). What waits is one page of a sweep at the most, of stored
messages less bodies and most header sections; and of volatile ones that are in memory no more than that they are there.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from .commands import PageLoaded
from .cursor import Cursor
from .dead import COPY_STEPS, expire_found, expire_range
from .destination import Lane
from .keeping import release
from .message import VOLATILE, Message, Reliability
from .message_group import recognize
from .reads import ExpiredWanted
from .settlement import come_back
from .shard import Shard
from .subscription import Subscription
from .waiting import take_delayed

RUN_MAX = 1_000
"""Messages of a run: what one subscription may cost without a pause."""


class Run:
    """Neighbours in a lane that have expired."""

    __slots__ = ("assured", "lane", "messages", "octets", "rest")

    def __init__(self, lane: Lane, message: Message) -> None:
        self.lane = lane
        self.messages = [message]
        self.rest: Iterator[Subscription] | None = None
        """Subscriptions that are still to be looked at; None: nobody has begun, so the run may grow."""
        self.octets: list[int] = []
        """Of the messages before each, once begun."""
        self.assured = False

    @property
    def first(self) -> int:
        return self.messages[0].position

    @property
    def last(self) -> int:
        return self.messages[-1].position

    def begin(self) -> Iterator[Subscription]:
        if self.rest is None:
            self.octets = list(accumulate([message.size for message in self.messages], initial=0))
            self.assured = any(message.header.reliability == Reliability.ASSURED for message in self.messages)
            self.rest = iter(list(self.lane.destination.subscriptions))
        return self.rest


# -- finding --------------------------------------------------------------------------------------------------------------------------
def sweep_expired(shard: Shard) -> None:
    """Look for messages on disk that expired since the last sweep; goes on page by page until it has reached now."""
    if shard.expiry_read or shard.expiry_page is not None:
        return
    if shard.expiry_again is not None:
        shard.expiry_from, shard.expiry_again = min(shard.expiry_from, (shard.expiry_again, 0)), None
    shard.expiry_upto = shard.now
    shard.expiry_read = shard.next_read()
    segments = shard.segments.all()
    limits = shard.limits
    sections = limits.dead_truncate_body  # what is left without the body must be weighed
    read = ExpiredWanted(shard.expiry_read, shard.expiry_from, shard.expiry_upto, limits.expiry_rows, segments, limits.page_octets, sections)
    shard.segments.begin_read(read.read, segments)
    shard.batch.reads.append(read)


def page_of_expired(shard: Shard, command: PageLoaded) -> None:
    """The answer to a sweep's read; the next one is asked for when this one is worked off."""
    shard.segments.end_read(command.read)
    shard.expiry_read = 0
    last = command.messages[-1] if not command.complete else None
    shard.expiry_page = (last.header.expiration, last.sequence) if last is not None else (shard.expiry_upto, 0)
    for message in command.messages:
        if message.body is not None and message.header.lane < VOLATILE:  # spilled, whatever its sender asked for (paging.as_placed)
            message.header = message.header.unstored()
    recognize(shard, [message for message in command.messages if message.body is not None])  # their copies may be in memory, which no page brings
    for message in sorted(command.messages, key=lambda m: (m.destination, m.header.lane, m.position)):
        _found(shard, message)


def fire_timers(shard: Shard) -> None:
    """What is due: a back-off that has passed, or a message's time to live. Of much that is due at once the rest waits for the next flush."""
    for _ in range(shard.limits.timers):
        due = shard.timers.pop_due(shard.now)
        if due is None:
            return
        place, message = due
        if isinstance(place, Lane):
            _found(shard, message)
            continue
        waiting = place.delayed.get(message.position)
        if waiting is not None and waiting.failures == message.failures:  # else it has come back by other ways, and failed again
            take_delayed(shard, place, message.position)
            come_back(shard, place, waiting)


def _found(shard: Shard, message: Message) -> None:
    destination = shard.numbered.get(message.destination)
    lane = destination.lanes[message.header.lane] if destination is not None else None
    if lane is None or message.position >= lane.tail:
        return
    run = shard.expiring[-1] if shard.expiring else None
    if run is not None and run.lane is lane and run.rest is None and run.last + 1 == message.position and len(run.messages) < RUN_MAX:
        run.messages.append(message)
    else:
        shard.expiring.append(Run(lane, message))


# -- ending ---------------------------------------------------------------------------------------------------------------------------
def end_expired(shard: Shard) -> None:
    """The next portion of what was found."""
    steps = shard.limits.expiry_steps
    while shard.expiring and steps > 0:
        run = shard.expiring[0]
        destination = run.lane.destination
        if shard.numbered.get(destination.number) is destination:
            steps = _end(shard, run, steps)
            if steps > 0 and run.lane.kept:
                release(shard, run.lane, [message.position for message in run.messages])
        if steps > 0:
            shard.expiring.popleft()
    if shard.expiry_page is not None and not shard.expiring:
        shard.expiry_from, shard.expiry_page = shard.expiry_page, None
        if shard.expiry_from[1]:
            sweep_expired(shard)


def _end(shard: Shard, run: Run, steps: int) -> int:
    """What is left of the steps when all subscriptions have been looked at; 0 or less: they were not enough."""
    if run.assured:
        shard.batch.synchronous = True
    for subscription in run.begin():
        cursor = subscription.cursors[run.lane.index]
        steps -= 1
        if cursor is not None and cursor.progress.floor <= run.last and subscription.number in shard.subscriptions:
            steps -= _end_for(shard, cursor, run)
        if steps <= 0:
            return 0
    return steps


def _end_for(shard: Shard, cursor: Cursor, run: Run) -> int:
    """Neighbours that this subscription has on disk only, or in its lane, end as a range; what it has in memory is taken from where it waits. The steps."""
    first, last = run.first, run.last
    on_disk = min(max(cursor.loaded, first), last + 1) if not cursor.gone else last + 1
    for message in run.messages[: on_disk - first]:
        expire_found(shard, cursor, message)
    steps = on_disk - first
    for low, high in list(cursor.progress.unsettled(on_disk, last)):
        octets = run.octets[high - first + 1] - run.octets[low - first]
        steps += 1 + COPY_STEPS * expire_range(shard, cursor, run.messages[low - first : high - first + 1], octets)
    if cursor.subscription.links:
        shard.mark(cursor.subscription)
    return steps
