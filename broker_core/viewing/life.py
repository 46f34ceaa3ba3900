"""What the ledger says of one message: when it was accepted, for whom it left, how deliveries ended, where it went and where it had come from.

The ledger has a row for each commit and no index by message, so this walks it backwards from its end, by the index of its commits, for so long as it may,
and says how far it came. A message that lies there for long has its acceptance found by its time, so that only what lies between may stay unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from broker_core.engine.message import VOLATILE
from broker_core.engine.outcome import Outcome
from broker_core.store.traces import DIED

from .rows import SHARD, Read, TableGone, TooSlow

__all__ = ["DIED", "VOLATILE", "Event", "Life", "Outcome", "Place", "Stop", "life", "sought"]
ACCEPTED, CAME, OFFERED, FAILED, SETTLED, WENT = KINDS = ("accepted", "came", "offered", "failed", "settled", "went")
"""In the order in which they are told of one commit. Came, went: as a copy of what had died or was moved."""
END, ACCEPTANCE, TIME, MANY, HIDDEN = "end", "acceptance", "time", "many", "hidden"
"""Why a walk stopped: the ledger has nothing before; the message was accepted there; it took as long as it may; too much has happened; nobody may
look where the message was before."""
EVENTS_MAX = 200
STEP_FIRST, STEP_MAX = 2_000, 64_000
"""Commits that one statement looks at."""
FOUND_WITHIN = 20_000
"""Commits after the time of a message's acceptance, among which it is looked for."""
SLACK_MS = 2_000
AHEAD, RANGES_MAX = 64, 500
"""Commits, and what they accepted, among which a message's number is looked for: a transaction commits what had its number before."""


@dataclass(slots=True, frozen=True)
class Place:
    destination: int
    lane: int
    position: int


@dataclass(slots=True, frozen=True)
class Event:
    number: int
    """Of its commit."""
    at: int
    """Milliseconds, of the engine's clock."""
    epoch: int
    kind: str
    place: Place
    subscription: int
    """0: nobody's in particular."""
    value: int
    """Of offered the consumer (0: nobody, a purge was undone), of failed how often by now, of settled the outcome, of came and went store.traces' kind."""
    other: Place | None
    """Of came and went. Of went None: nothing is kept."""


@dataclass(slots=True, frozen=True)
class Stop:
    """Where a walk went no further back."""

    why: str
    place: Place
    number: int
    """All commits after it were looked at."""
    at: int | None
    """When that was; None: unknown."""


@dataclass(slots=True, frozen=True)
class Life:
    events: list[Event]
    """The newest first."""
    stops: list[Stop]
    """The last one is where it ends. One before it: between that and the acceptance nothing was looked at."""


@dataclass(slots=True, frozen=True)
class _Table:
    segment: int
    after: int
    upto: int

    @property
    def name(self) -> str:
        return f"surety.ledger_{SHARD}_{self.segment}"


Subscriptions = Callable[[int], Sequence[int] | None]
"""Of a destination whose deliveries are told; None: nothing of it may be told."""


def life(
    read: Read, clock: Callable[[], float], place: Place, subscriptions: Subscriptions, seconds: float, *, accepted_at: int | None = None, upto: int = 0
) -> Life:
    """What happened to it in commits up to `upto` (0: the last), and to what it is a copy of before. `accepted_at`: about when it came to its place, in
    milliseconds. `read` and `clock` as page.browse has them. Raises what `read` raises, but TooSlow and TableGone."""
    walk = _Walk(read, clock, clock() + seconds, subscriptions)
    try:
        walk.begin()
    except TooSlow:
        return Life([], [Stop(TIME, place, upto, None)])
    half = clock() + seconds / 2 if accepted_at is not None and not upto else walk.ends
    events, stop = walk.back(place, upto, half)
    stops = [stop]
    if stop.why == TIME and accepted_at is not None and stop.place == place:
        found = walk.acceptance(place, accepted_at, stop.number)
        if found:
            more, last = walk.before(found, walk.ends)
            events, stops = [*events, *more], [stop, last]
    return Life(events, stops)


def sought(read: Read, clock: Callable[[], float], sequence: int, seconds: float) -> Place | None:
    """Where the stored message with this number came to lie first; None: the ledger does not say, or not in this time. It may have gone from there."""
    walk = _Walk(read, clock, clock() + seconds, lambda destination: ())
    try:
        walk.begin()
        return walk.sought(sequence)
    except (TooSlow, TableGone):
        return None


def _halved(table: _Table, first_behind: Callable[[_Table, int], tuple[int, int] | None], value: int) -> tuple[int, int]:
    """Neighbouring numbers, by halves: the first commit behind the one says less than `value`, that behind the other as much or there is none."""
    low, high = table.after, table.upto
    while high - low > 1:
        middle = (low + high) // 2
        found = first_behind(table, middle)
        if found is None or found[1] >= value:
            high = middle
        else:
            low = middle
    return low, high


class _Walk:
    def __init__(self, read: Read, clock: Callable[[], float], ends: float, subscriptions: Subscriptions) -> None:
        self._read, self._clock, self._subscriptions = read, clock, subscriptions
        self.ends = ends
        self._tables: list[_Table] = []
        """Those with commits, the latest first."""

    def begin(self) -> None:
        known = self._read("SELECT segment, last_number FROM surety.ledger_segment WHERE shard = 0 ORDER BY segment", {}, self._left(self.ends))
        after: int | None = None
        for segment, closed_at in known:
            table = f"surety.ledger_{SHARD}_{segment}"
            try:
                if after is None:  # the first that there is: what is before is dropped
                    [[first]] = self._read(f"SELECT min(number) FROM {table}", {}, self._left(self.ends))
                    after = first - 1 if first is not None else closed_at
                [[last]] = [[closed_at]] if closed_at is not None else self._read(f"SELECT max(number) FROM {table}", {}, self._left(self.ends))
            except TableGone:
                after = None
                continue
            if last is not None and after is not None and last > after:
                self._tables.append(_Table(segment, after, last))
                after = last
        self._tables.reverse()

    def back(self, place: Place, upto: int, ends: float) -> tuple[list[Event], Stop]:
        """From commit `upto` (0: the last) to the acceptance of a message that is no copy, or as far as it goes."""
        events: list[Event] = []
        at: int | None = None
        reached = upto or (self._tables[0].upto if self._tables else 0)
        subscriptions = self._subscriptions(place.destination)
        if subscriptions is None:
            return events, Stop(HIDDEN, place, reached, None)
        for table, low, high in self._steps(reached):
            try:
                found, at = self._looked(table, place, subscriptions, low, high, ends)
            except TooSlow:
                return events, Stop(TIME, place, reached, at)
            except TableGone:
                return events, Stop(END, place, reached, at)
            arrived = next((event for event in found if event.kind in (ACCEPTED, CAME)), None)
            kept = [event for event in found if arrived is None or event.number >= arrived.number]
            events += kept
            reached = low
            if arrived is not None:
                more, stop = self.before([event for event in kept if event.number == arrived.number], ends, told=True)
                return [*events, *more], stop
            if len(events) >= EVENTS_MAX:
                return events, Stop(MANY, place, min(event.number for event in events) - 1, at)
            if self._clock() >= ends:
                return events, Stop(TIME, place, reached, at)
        return events, Stop(END, place, reached, at)

    def before(self, arrival: list[Event], ends: float, *, told: bool = False) -> tuple[list[Event], Stop]:
        """What happened to the message before it arrived by this commit; with `arrival` itself unless it is told."""
        first = arrival[0]
        came = next((event.other for event in arrival if event.kind == CAME), None)
        shown = [] if told else arrival
        if came is None:
            return shown, Stop(ACCEPTANCE, first.place, first.number - 1, first.at)
        more, stop = self.back(came, first.number, ends)  # that very commit ended it there
        return [*shown, *more], stop

    def acceptance(self, place: Place, accepted_at: int, before: int) -> list[Event]:
        """The commit by which it came to its place, looked for around its time; empty: it is not there."""
        try:
            low = self._number_at(accepted_at - SLACK_MS)
            for table in reversed(self._tables):
                if table.upto <= low or table.after >= min(before, low + FOUND_WITHIN):
                    continue
                start, stop = max(low, table.after), min(before, low + FOUND_WITHIN, table.upto)
                for first in range(start, stop, STEP_FIRST):
                    found, _ = self._looked(table, place, (), first, min(first + STEP_FIRST, stop), self.ends)
                    arrived = next((event.number for event in found if event.kind in (ACCEPTED, CAME)), None)
                    if arrived is not None:
                        return [event for event in found if event.number == arrived]
        except (TooSlow, TableGone):
            pass
        return []

    def sought(self, sequence: int) -> Place | None:
        """By halves, as each commit says the highest number given out so far."""
        later: _Table | None = None
        for table in self._tables:
            first = self._given(table, table.after)
            if first is None or first[1] >= sequence:
                later = table
                continue
            _, high = _halved(table, self._given, sequence)  # the commit behind it has given it out
            if high < table.upto or later is None:
                return self._accepted(table, high, sequence)
            break
        return self._accepted(later, later.after, sequence) if later is not None else None

    def _given(self, table: _Table, after: int) -> tuple[int, int] | None:
        """The first commit behind that number, and the highest number of a message by then."""
        statement = f"SELECT number, sequence FROM {table.name} WHERE number > %(after)s ORDER BY number LIMIT 1"
        found = self._read(statement, {"after": after}, self._left(self.ends))
        return (found[0][0], found[0][1]) if found else None

    def _accepted(self, table: _Table, after: int, sequence: int) -> Place | None:
        """The place of the message in one of the commits that follow: by its row, or if that has gone by being one of a run without a gap."""
        commits = self._read(_ACCEPTED.format(table=table.name), {"after": after, "upto": after + AHEAD, "limit": RANGES_MAX}, self._left(self.ends))
        for _, _, segment, destination, lane, first, last in commits:
            if lane >= VOLATILE:
                continue
            for source in (f"surety.message_{SHARD}_{segment} WHERE", f"surety.retained WHERE shard = {SHARD} AND"):
                try:
                    found = self._read(
                        f"SELECT position FROM {source} destination = %(destination)s AND priority = %(lane)s AND position BETWEEN %(first)s AND %(last)s "
                        "AND sequence = %(sequence)s LIMIT 1",
                        {"destination": destination, "lane": lane, "first": first, "last": last, "sequence": sequence},
                        self._left(self.ends),
                    )
                except TableGone:
                    continue
                if found:
                    return Place(destination, lane, found[0][0])
        numbers = {row[0] for row in commits}
        of_one = [row for row in commits if row[0] == min(numbers)] if numbers else []
        before = self._given(table, after - 1) if after > table.after else None
        if len(of_one) == 1 and before is not None and before[0] == after:
            _, given, _, destination, lane, first, last = of_one[0]
            if lane < VOLATILE and last - first + 1 == given - before[1] and before[1] < sequence <= given:
                return Place(destination, lane, first + sequence - before[1] - 1)
        return None

    def _number_at(self, at: int) -> int:
        """The last commit that is older, or 0: by its tables' first commits, then by halves of one."""
        for table in self._tables:
            if (first := self._commit(table, table.after)) is None or first[1] >= at:
                continue
            return _halved(table, self._commit, at)[0]
        return self._tables[-1].after if self._tables else 0

    def _commit(self, table: _Table, after: int) -> tuple[int, int] | None:
        """The first one behind that number, and its time."""
        statement = f"SELECT number, at FROM {table.name} WHERE number > %(after)s ORDER BY number LIMIT 1"
        found = self._read(statement, {"after": after}, self._left(self.ends))
        return (found[0][0], found[0][1]) if found else None

    def _steps(self, upto: int) -> Iterator[tuple[_Table, int, int]]:
        """Intervals of commits, from `upto` backwards: after the one, up to the other. They grow."""
        size = STEP_FIRST
        for table in self._tables:
            high = min(table.upto, upto)
            while high > table.after:
                low = max(high - size, table.after)
                yield table, low, high
                high, size = low, min(size * 2, STEP_MAX)

    def _looked(
        self, table: _Table, place: Place, subscriptions: Sequence[int], after: int, upto: int, ends: float
    ) -> tuple[list[Event], int | None]:
        """What these commits say of it, the newest first; and the time of the first of them."""
        parameters = {
            "destination": place.destination, "lane": place.lane, "at": place.position, "subscriptions": list(subscriptions), "after": after, "upto": upto,
            "limit": EVENTS_MAX,
        }  # fmt: skip
        rows = self._read(_EVENTS.format(table=table.name), parameters, self._left(ends))
        events = [
            Event(number, at, epoch, kind, place, subscription, value, Place(*other) if other[0] else None)
            for number, at, epoch, kind, subscription, value, *other in rows
        ]
        events.sort(key=lambda event: (-event.number, -KINDS.index(event.kind)))
        first = self._commit(table, after)
        return events, first[1] if first else None

    def _left(self, ends: float) -> float:
        left = ends - self._clock()
        if left <= 0:
            raise TooSlow
        return left


_ACCEPTED = """
    SELECT l.number, l.sequence, l.segment, r.destination, r.lane, r.first, r.last
      FROM (SELECT * FROM {table} WHERE number > %(after)s AND number <= %(upto)s AND accepted_destination IS NOT NULL ORDER BY number OFFSET 0) AS l
     CROSS JOIN LATERAL unnest(l.accepted_destination, l.accepted_lane, l.accepted_first, l.accepted_last) AS r (destination, lane, first, last)
     LIMIT %(limit)s"""
_EVENTS = """
    SELECT l.number, l.at, l.epoch, e.kind, e.subscription, e.value, e.other, e.other_lane, e.other_position
      FROM (SELECT * FROM {table}
             WHERE number > %(after)s AND number <= %(upto)s
               AND (%(destination)s = ANY (accepted_destination) OR offered_subscription && %(subscriptions)s::int4[]
                    OR settled_subscription && %(subscriptions)s::int4[] OR failures_subscription && %(subscriptions)s::int4[]
                    OR %(destination)s = ANY (traced_destination) OR %(destination)s = ANY (traced_to))
             ORDER BY number DESC OFFSET 0) AS l
     CROSS JOIN LATERAL (
        SELECT 'accepted' AS kind, 0 AS subscription, 0::int8 AS value, 0 AS other, 0::int2 AS other_lane, 0::int8 AS other_position
          FROM unnest(l.accepted_destination, l.accepted_lane, l.accepted_first, l.accepted_last) AS r (destination, lane, first, last)
         WHERE r.destination = %(destination)s AND r.lane = %(lane)s AND %(at)s BETWEEN r.first AND r.last
        UNION ALL
        SELECT 'offered', r.subscription, r.link, 0, 0::int2, 0::int8
          FROM unnest(l.offered_subscription, l.offered_lane, l.offered_first, l.offered_last, l.offered_link) AS r (subscription, lane, first, last, link)
         WHERE r.subscription = ANY (%(subscriptions)s) AND r.lane = %(lane)s AND %(at)s BETWEEN r.first AND r.last
        UNION ALL
        SELECT 'settled', r.subscription, r.outcome, 0, 0::int2, 0::int8
          FROM unnest(l.settled_subscription, l.settled_lane, l.settled_first, l.settled_last, l.settled_outcome)
            AS r (subscription, lane, first, last, outcome)
         WHERE r.subscription = ANY (%(subscriptions)s) AND r.lane = %(lane)s AND %(at)s BETWEEN r.first AND r.last
        UNION ALL
        SELECT 'failed', r.subscription, r.count, 0, 0::int2, 0::int8
          FROM unnest(l.failures_subscription, l.failures_lane, l.failures_position, l.failures_count) AS r (subscription, lane, position, count)
         WHERE r.subscription = ANY (%(subscriptions)s) AND r.lane = %(lane)s AND r.position = %(at)s
        UNION ALL
        SELECT 'went', 0, r.kind, r.there, r.there_lane, r.there_first + %(at)s - r.first
          FROM unnest(l.traced_destination, l.traced_lane, l.traced_first, l.traced_last, l.traced_kind, l.traced_to, l.traced_to_lane, l.traced_to_first)
            AS r (destination, lane, first, last, kind, there, there_lane, there_first)
         WHERE r.destination = %(destination)s AND r.lane = %(lane)s AND %(at)s BETWEEN r.first AND r.last
        UNION ALL
        SELECT 'came', 0, r.kind, r.destination, r.lane, r.first + %(at)s - r.there_first
          FROM unnest(l.traced_destination, l.traced_lane, l.traced_first, l.traced_last, l.traced_kind, l.traced_to, l.traced_to_lane, l.traced_to_first)
            AS r (destination, lane, first, last, kind, there, there_lane, there_first)
         WHERE r.destination > 0 AND r.there = %(destination)s AND r.there_lane = %(lane)s AND %(at)s BETWEEN r.there_first AND r.there_first + r.last - r.first
     ) AS e
     LIMIT %(limit)s"""
"""Of commits %(after)s to %(upto)s, the newest first. A range's first and last columns as the store's ledger has them."""
