"""Building the engine from what the store found: the last checkpoint, then the ledger rows after it, in order. Start, crash and failover
are this one path."""

from __future__ import annotations

from .aliases import Alias
from .accounting import correct_octets, forget_failures_within
from .address import DEAD_MESSAGE_QUEUE
from .capacity import follow_limits
from .cursor import Cursor
from .dead import ONCE
from .destination import Destination, Lane
from .settings import Settings
from .duplicates import follow_settings, restore, restored
from .foreign import follow_foreign
from .definitions import SubscriptionDefined
from .outcome import Outcome
from .engine import Engine
from .limits import Limits
from .matching import adopt, register_wildcard
from .message import LANES, PRIORITIES
from .operating import restore as restore_operation
from .placing import create, open_lane
from .policy import Policy
from .prepared import restore as restore_branches
from .recovered import LedgerRow, Recovered
from .registering import register
from .selector import compile_selector
from .settings import REMOVE_OLDEST
from .shard import Decode, Shard, nothing
from .subscription import Filter, Subscription
from .undoing import restore as restore_undo
from .wildcard import WildcardSubscription

SEQUENCES_SKIPPED = 1 << 24
"""Volatile messages since the last durable mark had sequences, too, and message-ids made of them: none is given out a second time. A checkpoint a
second holds the mark; at 100,000 messages/s this covers two minutes without one, and 2^39 recoveries fit into 63 bits."""


def recover(found: Recovered, limits: Limits, instance: str, decode: Decode = nothing) -> Engine:
    """The engine as of the last durable commit. Nothing is loaded but progress: messages are paged in when someone wants them."""
    shard = Shard(limits, instance, decode)
    _define(shard, found)
    _restore_checkpoint(shard, found)
    for row in found.ledger:
        _replay(shard, row)
    shard.sequence += SEQUENCES_SKIPPED
    _restore_segments(shard, found)
    _restore_schedule(shard, found)
    _restore_duplicates(shard, found)
    for subscription in shard.subscriptions.values():
        for cursor in subscription.order:
            cursor.offered_before = cursor.offered
            cursor.loaded = cursor.progress.floor
        if subscription.destination.is_topic and not subscription.idle_since:  # its consumers were lost with the node
            subscription.idle_since = shard.now
            shard.changed_subscriptions[subscription] = None
    for destination in shard.numbered.values():
        destination.octets_committed = destination.octets
        if destination.is_topic:
            destination.published, destination.published_octets = destination.depth, destination.octets
            destination.estimated = True  # for all that is known
            correct_octets(destination)  # that nothing is left may have been found out by a batch that had nothing to commit
        destination.idle_since = shard.now
        shard.watched[destination] = None
    restore_branches(shard, found.prepared)
    for purge in found.undo:
        restore_undo(shard, purge)
    for operation in found.operations:
        restore_operation(shard, operation)
    if DEAD_MESSAGE_QUEUE not in shard.destinations:
        create(shard, DEAD_MESSAGE_QUEUE, Settings(use_dead=False, limit_behavior=REMOVE_OLDEST), automatic=False)
    return Engine(shard)


def _define(shard: Shard, found: Recovered) -> None:
    known = Settings().as_dict()
    for row in found.destinations:
        settings = Settings(**{name: value for name, value in row.settings.items() if name in known})
        destination = Destination(row.destination, row.address, row.created_at, row.automatic, settings)
        destination.state = row.state
        shard.destinations[row.address] = shard.numbered[row.destination] = destination
    for one in found.aliases:
        shard.aliases[one.address] = Alias(one.target, one.default_reliability, one.maximum_reliability, one.reliability_override)
    for entry in sorted(found.subscriptions, key=lambda entry: not entry.pattern):  # wildcard subscriptions first, then their members
        _define_subscription(shard, entry)
    for policy in found.policies:
        named = {name: value for name, value in policy.settings.items() if name in known}
        shard.policies[policy.pattern] = Policy(policy.pattern, named)
    shard.last_destination, shard.last_subscription = found.last_destination, found.last_subscription


def _define_subscription(shard: Shard, entry: SubscriptionDefined) -> None:
    selector = compile_selector(entry.selector) if entry.selector else None
    wanted = Filter(selector, entry.client_id if entry.no_local else "")
    if entry.pattern:
        wildcard = WildcardSubscription(
            entry.subscription, entry.pattern, entry.name, entry.client_id, entry.account, shared=entry.shared, wanted=wanted
        )  # fmt: skip
        wildcard.idle_since = entry.idle_since
        register_wildcard(shard, wildcard)
        return
    destination = shard.numbered.get(entry.destination)
    if destination is None:
        return
    subscription = Subscription(entry.subscription, destination, entry.name, entry.client_id, entry.account, shared=entry.shared, wanted=wanted)
    subscription.idle_since = entry.idle_since
    named = shard.named.get((entry.client_id, entry.name)) if entry.name else None
    if isinstance(named, WildcardSubscription):
        adopt(named, subscription)
    register(shard, subscription)


def _restore_checkpoint(shard: Shard, found: Recovered) -> None:
    point = found.checkpoint
    shard.commit_number, shard.sequence = point.number, point.sequence
    shard.now = max(found.clock_ms, point.at)
    for number, index, tail in point.lanes:
        if lane := _lane(shard, number, index):
            lane.tail = tail
    for number, index, floor, offered in point.cursors:
        if number < 0 and (lane := _lane(shard, -number, index)):
            lane.buried.floor = floor
        if cursor := _cursor(shard, number, index):
            cursor.progress.floor, cursor.offered = floor, offered
    for number, index, block, bits in point.blocks:
        if number < 0 and (lane := _lane(shard, -number, index)):
            lane.buried.load(block, bits)
            shard.keeping[lane] = None
        if cursor := _cursor(shard, number, index % LANES):
            (cursor.progress if index < LANES else cursor.ahead).load(block, bits)
    for number, index, position, failures in point.failures:
        if cursor := _cursor(shard, number, index):
            cursor.failures[position] = failures
    for number, octets, *totals in point.counters:
        if destination := shard.numbered.get(number):
            destination.octets = octets
            destination.accepted, destination.settled, destination.dead, destination.expired, destination.redelivered = totals


def _replay(shard: Shard, row: LedgerRow) -> None:
    # A restored checkpoint's sequence is ahead: what the broker gave out after the backup is not given again.
    shard.commit_number, shard.sequence, shard.now = row.number, max(shard.sequence, row.sequence), max(shard.now, row.at)
    for number, index, first, last in row.accepted:
        if lane := _lane(shard, number, index):
            lane.tail = max(lane.tail, last + 1)
            lane.destination.accepted += last - first + 1
            shard.changed_lanes[lane] = None
            shard.changed_destinations[lane.destination] = None
    for number, index, position, failures in row.failures:
        if cursor := _cursor(shard, number, index):
            cursor.failures[position] = failures
            cursor.failures_changed[position] = None
            shard.change(cursor)
    for number, index, first, last, outcome in row.settled:
        if cursor := _cursor(shard, number, index):
            _settle(shard, cursor, first, last, outcome)
    for number, index, first, last, _ in row.offered:
        if cursor := _cursor(shard, number, index):
            _offer(cursor, first, last)
            shard.change(cursor)
    for number, change, _ in row.octets:
        if destination := shard.numbered.get(number):
            destination.octets += change
            shard.changed_destinations[destination] = None


def _settle(shard: Shard, cursor: Cursor, first: int, last: int, outcome: int) -> None:
    if outcome == Outcome.RESTORED:
        cursor.reopen(first, last)
        shard.change(cursor)
        return
    cursor.progress.settle(first, last)
    if outcome in ONCE and cursor.subscription.destination.is_topic:
        shard.has_buried(cursor.lane, first, last)
    destination = cursor.subscription.destination
    if outcome == Outcome.ACCEPTED:
        destination.settled += last - first + 1
    elif outcome == Outcome.EXPIRED:
        destination.expired += last - first + 1
    forget_failures_within(cursor, first, last)
    shard.change(cursor)


def _offer(cursor: Cursor, first: int, last: int) -> None:
    """In its turn, or ahead of some that still wait."""
    for low, high in cursor.progress.unsettled(cursor.offered + 1, first - 1):
        if any(True for _ in cursor.ahead.unsettled(low, high)):
            cursor.offer_ahead(first, last)
            return
    cursor.offered = max(cursor.offered, last)


def _restore_segments(shard: Shard, found: Recovered) -> None:
    segments = shard.segments
    segments.current = found.open_segment
    segments.lanes = dict(found.open_lanes)
    segments.rows, segments.octets = found.open_rows, found.open_octets
    segments.retained = dict(found.retained)
    for closed in found.segments:
        segments.adopt(closed)


def _restore_schedule(shard: Shard, found: Recovered) -> None:
    """Only counts: the first rows are read when the engine runs."""
    for number, count, octets in found.scheduled:
        destination = shard.numbered.get(number)
        if destination is None:
            shard.schedule.discarding[number] = None
            continue
        destination.scheduled, destination.scheduled_octets = count, octets
        shard.schedule.rows += count


def _restore_duplicates(shard: Shard, found: Recovered) -> None:
    for destination in shard.numbered.values():
        follow_settings(shard, destination)
        follow_limits(shard, destination)
        follow_foreign(shard, destination)
    for number, instants, identifiers in found.duplicates:
        restore(shard, number, instants, identifiers, found.clock_ms)
    restored(shard)


def _lane(shard: Shard, number: int, index: int) -> Lane | None:
    destination = shard.numbered.get(number)
    if destination is None or index >= PRIORITIES:
        return None
    return destination.lanes[index] or open_lane(destination, index)


def _cursor(shard: Shard, number: int, index: int) -> Cursor | None:
    subscription = shard.subscriptions.get(number)
    if subscription is None:
        return None
    lane = _lane(shard, subscription.destination.number, index)
    return subscription.cursor(lane) if lane else None
