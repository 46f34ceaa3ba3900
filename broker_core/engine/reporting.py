"""What leaves the engine about itself: checkpoints of its progress, statistics for operators."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from .cursor import Cursor
from .destination import Destination
from .effects import DestinationStatistics
from .growth import note_depths
from .message import LANES, Message
from .paging import want_head
from .shard import Shard
from .subscription import Subscription
from .writes import Checkpoint

HEADS = 50
"""Oldest messages read from disk in one report, for destinations that nobody consumes: a bounded trickle of reads."""


def checkpoint(shard: Shard) -> Checkpoint | None:
    """What changed since the last one, as of the commit being flushed; None: nothing."""
    if not (shard.changed_lanes or shard.changed_cursors or shard.changed_destinations or shard.changed_subscriptions):
        return None
    report = Checkpoint(shard.commit_number, shard.now, shard.sequence)
    for lane in shard.changed_lanes:
        report.lanes.append((lane.destination.number, lane.index, lane.tail))
    for cursor in shard.changed_cursors:
        cursor.changed = False
        number, index = cursor.subscription.number, cursor.index
        if number not in shard.subscriptions or not cursor.durable:
            cursor.progress.dirty.clear()
            continue
        cursor.forget_offers()
        report.cursors.append((number, index, cursor.progress.floor, cursor.offered))
        report.blocks.extend((number, index, block, bits) for block, bits in cursor.progress.changed_blocks())
        report.blocks.extend((number, index + LANES, block, bits) for block, bits in cursor.ahead.changed_blocks())
        report.failures.extend((number, index, position, cursor.failures.get(position, 0)) for position in cursor.failures_changed)
        cursor.failures_changed = {}
    for lane in shard.changed_burials:
        report.cursors.append((-lane.destination.number, lane.index, lane.buried.floor, -1))
        report.blocks.extend((-lane.destination.number, lane.index, block, bits) for block, bits in lane.buried.changed_blocks())
    for d in [d for d in shard.changed_destinations if d.number in shard.numbered and d.owner is None]:
        report.counters.append((d.number, d.octets_committed, d.accepted, d.settled, d.dead, d.expired, d.redelivered))
    report.idle = [(s.number, s.idle_since) for s in shard.changed_subscriptions if s.number in shard.subscriptions]
    shard.changed_lanes, shard.changed_cursors, shard.changed_destinations, shard.changed_subscriptions = {}, {}, {}, {}
    shard.changed_burials = {}
    return report


def statistics(shard: Shard) -> list[DestinationStatistics]:
    """Of the destinations that changed since the last call."""
    watched, shard.watched = shard.watched | dict.fromkeys(shard.blocked) | shard.told_blocked, {}
    shard.told_blocked = dict.fromkeys(shard.blocked)
    heads = 0
    rows = []
    for destination in watched:
        if destination.number not in shard.numbered:
            continue
        depths = [subscription.depth for subscription in destination.subscriptions]
        if destination.is_topic:
            note_depths(destination, depths, shard.now)
        slowest = destination.subscriptions[depths.index(max(depths))] if depths else None
        row = _describe(destination, sum(depths), slowest, shard.now)
        if slowest is not None and row.depth and row.oldest_at is None:
            shard.watched[destination] = None
            if heads < HEADS:
                heads += 1
                for cursor in slowest.order:
                    want_head(shard, cursor)
        rows.append(row)
        if destination.owner is not None:
            shard.listed.add(destination.number)
    return rows


def _describe(d: Destination, depth: int, slowest: Subscription | None, now: int) -> DestinationStatistics:
    """Of a topic the subscription that holds most holds the oldest message, too."""
    capacity, observed = d.capacity, d.observed
    return DestinationStatistics(
        destination=d.number,
        address=d.address,
        state=d.state,
        automatic=d.automatic,
        depth=depth,
        octets=d.octets,
        consumers=d.consumers,
        unsettled=sum(s.outstanding for s in d.subscriptions),
        accepted=d.accepted,
        settled=d.settled,
        dead=d.dead,
        expired=d.expired,
        redelivered=d.redelivered,
        scheduled=d.scheduled,
        scheduled_octets=d.scheduled_octets,
        oldest_at=None if slowest is None else _oldest_at(slowest),
        waiting=len(capacity.waiting) if capacity is not None else 0,
        oldest_unsettled_at=_oldest_unsettled_at(d, now),
        waited=() if observed is None else (*observed.waited, observed.waited_ms),
        died=() if observed is None else tuple(observed.died),
    )


def _oldest_at(subscription: Subscription) -> int | None:
    """Of what is in memory; exact, since the oldest message is in memory unless nobody consumes and it was never read."""
    ages = []
    for link in subscription.links.values() if subscription.wildcard is None else ():
        ages += [message.accepted_at for message in list(link.unsettled.values())[:1]]
    for cursor in subscription.order:
        ages += [message.accepted_at for message in _heads(cursor)]
    return min(ages, default=None)


def _oldest_unsettled_at(destination: Destination, now: int) -> int | None:
    """Of all its consumers but those of patterns, who hold messages of other topics, too. Each report marks deliveries first; what has no mark is made now."""
    ages = [
        link.marks[0][1] if link.marks else now
        for subscription in destination.subscriptions
        if subscription.links and subscription.wildcard is None
        for link in subscription.links.values()
        if link.unsettled
    ]
    return min(ages, default=None)


def _heads(cursor: Cursor) -> Iterator[Message]:
    """The first of each place where messages wait."""
    yield from islice(cursor.missing.values(), 1)
    yield from islice(cursor.delayed.values(), 1)
    yield from islice(cursor.aside.values(), 1)
    yield from islice(cursor.ready, 1)
    if not cursor.ready and cursor.lane.keeps(cursor.horizon):
        low, _ = next(cursor.progress.unsettled(cursor.horizon, cursor.lane.tail - 1), (0, 0))
        yield from [message for message in [cursor.lane.kept.get(low)] if message is not None]
    if cursor.returned:
        yield cursor.head
