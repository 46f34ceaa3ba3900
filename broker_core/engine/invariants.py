"""What must hold after every flush, checked from scratch: tests and the simulator call `check`; the service never does, it is O(messages in memory).

An AssertionError names what is broken and where.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from .branch_invariants import check_transactions
from .capacity_invariants import check_capacities
from .cursor import Cursor
from .destination import Destination, Lane
from .duplicate_invariants import check_duplicates
from .engine import Engine
from .fan_out import Reminder
from .group_invariants import check_groups
from .link_invariants import check_browsers, check_links, check_peers, lane_name
from .message import VOLATILE, Message, weight_of
from .operation import Operation
from .paging import Shares
from .progress import BLOCK, Progress
from .scan_invariants import check_selections
from .schedule_invariants import check_schedule
from .selection import Scan
from .shard import Shard
from .temporary_invariants import check_temporaries, check_temporary
from .topic_invariants import check_lanes, check_routes, check_subscriptions
from .waiting import waiting as in_memory
from .wildcard_invariants import check_patterns

Waiting = dict[Cursor | Lane, dict[int, list[Message]]]
"""What timers wait for, or have found, by place and position."""


def check(engine: Engine) -> None:
    """Between a flush and the next command. Raises AssertionError."""
    shard = engine.shard
    assert not shard.batch.dirty and not shard.batch.settling, "the flush left work in the batch"
    memory = sum(octets for _, _, octets in shard.reading.values()) + shard.schedule.memory
    memory += sum(browser.octets for browser in shard.browsing.browsers.values())
    memory += sum(page.octets for operation in shard.operations.known.values() for page in operation.pages)
    waiting = _waiting(shard)
    owned = 0
    foreign = [destination for destination in shard.destinations.values() if destination.settings.foreign_link]
    assert set(shard.foreign) == set(foreign), "the forwarder does not know what is foreign"
    assert shard.aliases.keys().isdisjoint(shard.destinations), "a name is a destination's and an alias's"
    for destination in shard.destinations.values():
        assert shard.numbered.get(destination.number) is destination, f"{destination.address} is not the destination of its number"
        check_temporary(shard, destination)
        known = 0
        complete = True
        for subscription in destination.subscriptions:
            assert shard.subscriptions.get(subscription.number) is subscription, f"subscription {subscription.number} is not registered"
            if subscription.wildcard is None:
                check_links(shard, subscription)
            memory += check_selections(shard, subscription)
            owned += check_groups(shard, subscription)
            for cursor in subscription.order:
                places = _check_places(cursor)
                _check_progress(cursor)
                _check_reading(shard, cursor)
                _check_segments(shard, cursor)
                _check_timed(shard, cursor, waiting)
                memory += cursor.octets
                known += sum(message.size for message in places.values())
                complete = complete and cursor.horizon == cursor.lane.tail
        check_routes(shard, destination)
        assert all(s.place == place for place, s in enumerate(destination.subscriptions)), f"subscriptions of {destination.address} are out of place"
        _check_octets(destination, known, complete)
    memory += check_lanes(shard) + sum(handing.octets for handing in shard.handing)
    assert shard.owned == owned, f"{shard.owned} groups are said to be owned, it is {owned}"
    assert shard.memory == memory, f"memory is said to hold {shard.memory} octets, it holds {memory}"
    _check_readers(shard)
    check_schedule(shard)
    check_duplicates(shard)
    check_peers(shard)
    check_browsers(shard)
    check_temporaries(shard)
    check_patterns(shard)
    check_capacities(shard)
    check_subscriptions(shard)
    check_transactions(shard)


# -- where messages are ---------------------------------------------------------------------------------------------------------------
def _places(cursor: Cursor) -> Iterator[tuple[str, Message]]:
    yield from (("ready", message) for message in cursor.ready if message.position not in cursor.gone)
    yield from (("returned", message) for message in cursor.returned.values())
    yield from (("missing", message) for message in cursor.missing.values())
    yield from (("delayed", message) for message in cursor.delayed.values())
    yield from (("aside", message) for message in cursor.aside.values())
    yield from (("reserved", message) for message in cursor.reserved.values())
    yield from (("outstanding", message) for message in cursor.subscription.delivered() if message.header.lane == cursor.index)


LOOKED_AT_OR_NOT = ("outstanding", "reserved", "returned", "missing", "aside")
"""Where a message may be unflagged although it left: its consumer may have said that nobody has looked at it."""


def _check_places(cursor: Cursor) -> dict[int, Message]:
    """Every unsettled position below `loaded`, and of the others those that are gone from there, is in exactly one place, and nothing settled is in
    any. The messages by position."""
    name, progress = lane_name(cursor), cursor.progress
    found: dict[int, Message] = {}
    places: dict[int, str] = {}
    for place, message in _places(cursor):
        position = message.position
        assert position not in places, f"position {position} of {name} is {places[position]} and {place}"
        assert not progress.is_settled(position), f"position {position} of {name} is settled and {place}"
        assert position < cursor.frontier or position in cursor.gone or place == "ready", f"position {position} of {name} is {place} and not gone"
        assert message.header.lane == cursor.index, f"position {position} of {name} is a message of lane {message.header.lane}"
        assert message.body is not None or place not in ("ready", "returned", "aside"), f"position {position} of {name} is {place} without its body"
        waits = place not in LOOKED_AT_OR_NOT and not message.redelivered
        assert not (waits and cursor.durable and cursor.may_have_left(position)), f"position {position} of {name} is {place}, told of, and never left"
        places[position] = place
        found[position] = message
    ranges = progress.unsettled(progress.floor, cursor.loaded - 1)
    lost = [position for first, last in ranges for position in range(first, last + 1) if position not in places]
    lost += [position for position in cursor.gone if not progress.is_settled(position) and position not in places]
    assert not lost, f"unsettled positions {lost} of {name} are nowhere"
    _check_gone(cursor)
    delayed = sum(weight_of(message) for message in cursor.delayed.values() if message.body is not None)
    assert cursor.delayed_octets == delayed, f"{cursor.delayed_octets} octets of {name} are said to wait for their back-off, {delayed} do"
    octets = delayed + sum(weight_of(message) for message in [*cursor.ready, *cursor.returned.values(), *cursor.aside.values()])
    assert cursor.octets == octets, f"{name} is said to hold {cursor.octets} octets, it holds {octets}"
    assert not cursor.accepted, f"acknowledgements of {name} were left behind: {cursor.accepted}"
    assert not [p for p in cursor.failures if progress.is_settled(p)], f"{name} remembers failures of settled messages"
    return found


def _check_gone(cursor: Cursor) -> None:
    name, gone = lane_name(cursor), cursor.gone
    positions = [message.position for message in cursor.ready]
    assert all(a < b for a, b in pairwise(positions)), f"ready of {name} is not ascending: {positions}"
    assert not positions or (positions[-1] < cursor.loaded and positions[0] not in gone), f"ready of {name} is {positions}, gone are {gone}"
    stale = sum(position in gone for position in positions)
    assert cursor.stale == stale <= len(positions) / 2, f"{cursor.stale} of ready of {name} are said to be gone, {stale} are"
    kept = [p for p in gone if p >= cursor.loaded and cursor.progress.is_settled(p)]
    assert not kept, f"{name} remembers as gone what is settled and not in memory: {kept}"
    assert set(cursor.returned) <= set(cursor.lowest), f"{name} would not find some of what came back: {set(cursor.returned) - set(cursor.lowest)}"


def _check_progress(cursor: Cursor) -> None:
    name, progress, tail = lane_name(cursor), cursor.progress, cursor.lane.tail
    assert 0 <= progress.floor <= tail, f"the floor of {name} is {progress.floor}, its tail {tail}"
    assert 0 <= cursor.loaded <= tail, f"{name} is loaded up to {cursor.loaded}, its tail is {tail}"
    ahead = sum(bits.bit_count() for bits in progress.blocks.values())
    assert progress.ahead == ahead, f"{name}: {progress.ahead} are said to be settled above the floor, {ahead} are"
    assert not progress.blocks or _is_normal(progress), f"{name}: the floor {progress.floor} is settled, or a block is empty or below it"
    unsettled = progress.count_unsettled(progress.floor, tail - 1)
    assert cursor.depth == unsettled, f"the depth of {name} is said to be {cursor.depth}, {unsettled} are unsettled"
    assert cursor.offered < tail, f"{name} offered {cursor.offered}, its tail is {tail}"


def _is_normal(progress: Progress) -> bool:
    blocks, floor = progress.blocks, progress.floor
    below = blocks.get(floor // BLOCK, 0) & ((1 << floor % BLOCK + 1) - 1)
    return below == 0 and min(blocks) >= floor // BLOCK and all(blocks.values())


def _check_octets(destination: Destination, known: int, complete: bool) -> None:
    """What is on disk only is not known one by one: then the sum is a lower bound, unless averages stand for some of it."""
    address, octets, volatile = destination.address, destination.octets, destination.octets_volatile
    exact = octets == known if complete else octets >= known
    assert exact or (destination.estimated and octets >= 0), f"{address} is said to hold {octets} octets, it holds {known}"
    assert 0 <= volatile <= octets, f"of {octets} octets of {address} {volatile} are said to be volatile"
    assert destination.depth or not octets, f"{address} is empty and is said to hold {octets} octets"


# -- reads, segments, timers ----------------------------------------------------------------------------------------------------------
def _check_reading(shard: Shard, cursor: Cursor) -> None:
    """A read that is on its way is known, and one that is needed is on its way."""
    name = lane_name(cursor)
    if any(handing.read.read == cursor.reading and cursor in handing.rest for handing in shard.handing if isinstance(handing, Shares)):
        return
    if cursor.reading:
        reader = shard.reading[cursor.reading][0]
        readers = (reader, *shard.joined.get(cursor.reading, ()))
        assert sum(each is cursor for each in readers) == 1, f"read {cursor.reading} of {name} is another's"
        return
    if cursor.subscription.takes_all and cursor.subscription not in shard.unserved:
        assert not cursor.missing, f"bodies of {name} are missing and nobody reads them"
        wanted = cursor.horizon < cursor.lane.tail and not cursor.ready and not cursor.lane.keeps(cursor.horizon)
        assert not wanted or _comes_by_portions(shard, cursor), f"{name} is loaded up to {cursor.loaded} of {cursor.lane.tail} and nobody reads on"


def _comes_by_portions(shard: Shard, cursor: Cursor) -> bool:
    """It is handed out what it lacks, or will be reminded to read; in the end at the latest if its filter has left everything out."""
    if any(handing.reaches(cursor.subscription) for handing in shard.handing if isinstance(handing, Reminder)):
        return True
    fan_out = cursor.lane.destination.fan_out
    if fan_out is None:
        return False
    rest = next(cursor.progress.unsettled(cursor.horizon, cursor.lane.tail - 1), None)
    return rest is None or (rest[0] >= cursor.lane.handed and fan_out.reaches(cursor, rest[0]))


def _check_segments(shard: Shard, cursor: Cursor) -> None:
    """Whatever may have to be read can be found: unsettled rows, of volatile lanes those that spilled."""
    start = cursor.progress.floor if cursor.index < VOLATILE else cursor.horizon
    if start >= cursor.lane.tail:
        return
    key = (cursor.lane.destination.number, cursor.index)
    segments = shard.segments
    held = [segment.lanes[key] for segment in segments.closed.values() if key in segment.lanes]
    held += [ranges[key] for ranges in (segments.retained, segments.lanes) if key in ranges]
    for low, high in cursor.progress.unsettled(start, cursor.lane.tail - 1):
        position = low
        while position <= high:
            if cursor.lane.keeps(position):
                assert position in cursor.lane.kept or position in cursor.gone, f"{position} of {lane_name(cursor)} is not kept"
                position += 1
                continue
            ends = [last for first, last in held if first <= position <= last]
            assert ends, f"no segment holds {position} of {lane_name(cursor)}"
            position = max(ends) + 1


def _check_readers(shard: Shard) -> None:
    segments = shard.segments
    for segment in [*segments.closed.values(), *segments.leaving.values()]:
        readers = segments.readers_of(segment.number)
        assert segment.readers == readers, f"segment {segment.number} has {readers} readers and counts {segment.readers}"
    for number in shard.reading:
        reader = shard.reading[number][0]
        if isinstance(reader, Operation):
            assert reader.reading == number, f"read {number} belongs to no operation"
            continue
        cursor = reader.cursor if isinstance(reader, Scan) else reader
        gone = cursor.subscription.number not in shard.subscriptions
        assert gone or reader.reading == number, f"read {number} belongs to nobody"
    for number, others in shard.joined.items():
        assert number in shard.reading, f"{len(others)} cursors wait for read {number}, which is not on its way"
        assert all(other.reading == number for other in others), f"who joined read {number} waits for another"


def _waiting(shard: Shard) -> Waiting:
    found: Waiting = {}
    for place, message in shard.timers.entries():
        assert message.body is None, f"a timer keeps the body of {message.position}"
        found.setdefault(place, {}).setdefault(message.position, []).append(message)
    for run in shard.expiring:
        for message in run.messages:
            found.setdefault(run.lane, {}).setdefault(message.position, []).append(message)
    return found


def _check_timed(shard: Shard, cursor: Cursor, waiting: Waiting) -> None:
    """Back-offs end; what waits in memory and is to expire has a timer, or a row that a sweep will find."""
    timed = waiting.get(cursor, {})
    for position, message in cursor.delayed.items():
        assert any(entry.failures == message.failures for entry in timed.get(position, ())), f"no timer brings {position} of {lane_name(cursor)} back"
    if cursor.stored:
        return
    timed = waiting.get(cursor.lane, {})
    for message in in_memory(cursor):
        due = message.header.expiration
        assert not due or message.position in timed or _is_to_be_swept(shard, message), f"{message.position} of {lane_name(cursor)} expires unseen"


def _is_to_be_swept(shard: Shard, message: Message) -> bool:
    due, key = message.header.expiration, (message.destination, message.header.lane)
    ahead = (due, message.sequence) > shard.expiry_from or (shard.expiry_again is not None and due >= shard.expiry_again)
    return ahead and bool(shard.segments.overlapping(key, message.position, message.position))
