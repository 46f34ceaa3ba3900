"""Messages into lanes: those of producers, and copies of dead ones. Here a message gets its sequence and its position (R2, R3)."""

from __future__ import annotations

from .access import CREATE, is_allowed
from .accounting import discard_body, settle_now
from .address import is_reserved, is_temporary, is_topic, is_valid
from .capacity import follow_limits, inherit
from .commands import Direction
from .cursor import Cursor
from .destination import Destination, Lane
from .settings import Settings
from .duplicates import follow_settings
from .definitions import DestinationDefined
from .outcome import Outcome
from .keeping import spill
from .matching import topic_created, would_join
from .link import Tier
from .memory import SMALL, VOLATILE_SHARE, is_cooling
from .message import VOLATILE, Message, Reliability
from .policy import settings_for
from .refusal import Refusal
from .registering import begin
from .scanning import arrive, matches
from .selection import Selection
from .shard import Shard
from .subscription import Subscription
from .temporary import make, why_not_make

CREATE_EFFORT = 20


def why_not_create(shard: Shard, peer: int, address: str) -> Refusal | None:
    """Why the peer's use may not create the destination; None: it may."""
    if not is_valid(address):
        return Refusal.INVALID_DESTINATION
    if is_temporary(address):
        return why_not_make(shard, shard.peers.get(peer), address)
    if shard.access is not None and not is_allowed(shard, peer, CREATE, address):
        return Refusal.ACCESS_DENIED
    if is_reserved(address) or not shard.limits.auto_create:
        return Refusal.NO_SUCH_DESTINATION
    if len(shard.destinations) >= shard.limits.destinations_max:
        return Refusal.TOO_MANY_DESTINATIONS
    return why_no_members(shard, address)


def why_no_members(shard: Shard, address: str) -> Refusal | None:
    """Why those who subscribed to patterns that it matches could not have the new destination; None: they could."""
    if not shard.patterns or not is_topic(address):
        return None
    limits, members = shard.limits, would_join(shard, address)
    too_many = members > limits.topic_subscriptions_max or shard.topic_subscriptions + members > limits.subscriptions_max
    return Refusal.TOO_MANY_SUBSCRIPTIONS if too_many and members else None


def obtain(shard: Shard, peer: int, address: str) -> Destination:
    """The destination, created on the peer's first use. Only if why_not_create has nothing against it."""
    known = shard.destinations.get(address)
    if known is not None:
        return known
    if is_temporary(address):
        return make(shard, shard.peers.get(peer), address)
    return create(shard, address, settings_for(shard, address), automatic=True)


def create(shard: Shard, address: str, settings: Settings, *, automatic: bool) -> Destination:
    shard.last_destination += 1
    shard.effort += CREATE_EFFORT
    destination = Destination(shard.last_destination, address, shard.now, automatic, settings)
    shard.destinations[address] = shard.numbered[destination.number] = destination
    shard.watched[destination] = None
    follow_settings(shard, destination)
    follow_limits(shard, destination)
    if settings.foreign_link:
        shard.foreign[destination] = None
    if shard.blocked:
        inherit(shard, destination)
    define(shard, destination)
    if destination.is_topic:
        topic_created(shard, destination)
    else:
        begin(shard, Subscription(shard.next_subscription(durable=True), destination))
    return destination


def define(shard: Shard, destination: Destination) -> None:
    """What it is becomes durable, unless it ends with a connection anyway."""
    if destination.owner is None:
        number, settings = destination.number, destination.settings.as_dict()
        created_at, automatic, state = destination.created_at, destination.automatic, destination.state
        shard.batch.definitions.append(DestinationDefined(number, destination.address, created_at, automatic, state, settings))


def place(shard: Shard, destination: Destination, message: Message, *, copied: bool = False) -> None:
    """The message becomes visible: it joins its lane. `copied`: its row is written by a Copy, its body is not at hand."""
    header = message.header
    index = header.lane
    lane = destination.lanes[index] or open_lane(destination, index)
    batch = shard.batch
    shard.sequence = message.sequence = shard.sequence + 1
    message.destination = destination.number
    message.position = position = lane.tail
    message.accepted_at = shard.now
    lane.tail = position + 1
    destination.accepted += 1
    shard.accepted += 1
    destination.octets += message.size
    if index >= VOLATILE:
        destination.octets_volatile += message.size
    batch.touched[destination] = None
    if index < VOLATILE:
        destination.octets_arrived += message.size
        if lane not in batch.firsts:
            batch.firsts[lane] = position
        if not copied:
            batch.messages.append(message)
        if header.reliability == Reliability.ASSURED:
            batch.synchronous = True
    if header.group is not None:
        for subscription in destination.receivers:
            subscription.meet_groups()
    for subscription in destination.receivers:  # of a topic there are none: who takes it is fed by topics.publish
        if not subscription.dirty:
            subscription.dirty = True
            batch.dirty[subscription] = None
        cursor = subscription.cursors[index]
        if cursor.loaded == position and not copied and has_room(shard, cursor, message):  # type: ignore[union-attr,arg-type]
            cursor.ready.append(message)  # type: ignore[union-attr]
            cursor.loaded = position + 1  # type: ignore[union-attr]
            cursor.octets += message.weight  # type: ignore[union-attr]
            shard.memory += message.weight
        elif index >= VOLATILE:
            _spill(shard, cursor, message)  # type: ignore[arg-type]
        if cursor.scans:  # type: ignore[union-attr]
            arrive(shard, cursor, message)  # type: ignore[arg-type]
    if header.expiration and not destination.is_topic:  # of a topic's it is known later where they are
        watch_expiration(shard, lane, message)


def watch_expiration(shard: Shard, lane: Lane, message: Message) -> None:
    """Sweeps find what has a row, in the twins of segments, too: only for what is in memory alone there is a timer. Sweeps may be past its instant already."""
    expiration = message.header.expiration
    if lane.spilled_end == message.position + 1:
        if expiration <= shard.now:
            shard.expiry_again = expiration if shard.expiry_again is None else min(shard.expiry_again, expiration)
    elif lane.index >= VOLATILE or expiration <= shard.now:
        shard.timers.add(expiration, lane, message.bare())


def open_lane(destination: Destination, index: int) -> Lane:
    lane = destination.lanes[index] = Lane(destination, index)
    for subscription in destination.subscriptions:
        subscription.cursor(lane)
    return lane


def has_room(shard: Shard, cursor: Cursor, message: Message) -> bool:
    """Stored messages are only cached: a window of each lane. Volatile ones live in memory: all of it but what pages need."""
    limits, octets = shard.limits, message.weight
    if not cursor.stored:
        return has_room_for_volatile(shard, octets) or _leaves_at_once(shard, cursor, message)
    return (
        shard.memory + octets <= limits.memory_octets
        and len(cursor.ready) < limits.window_rows
        and (cursor.octets + octets <= limits.window_octets or not cursor.ready)
    )


def has_room_for_volatile(shard: Shard, octets: int) -> bool:
    return shard.memory + octets <= shard.limits.memory_octets * VOLATILE_SHARE


def _leaves_at_once(shard: Shard, cursor: Cursor, message: Message) -> bool:
    """Memory is full, whatever with, and a consumer waits for the message: it goes out with this flush, so that it needs no room. If something
    comes between, a small page of it stays."""
    limits, subscription = shard.limits, cursor.subscription
    if cursor.ready and (cursor.octets + message.weight > limits.page_octets // SMALL or len(cursor.ready) >= limits.page_rows):
        return False
    if subscription.destination.state & Direction.CONSUMERS or subscription.returning or is_cooling(shard, subscription):
        return False
    consumed = subscription if subscription.wildcard is None else subscription.wildcard
    return any(_waits_for(shard, tier, message) for tier in consumed.turns if tier)


def _waits_for(shard: Shard, tier: Tier, message: Message) -> bool:
    source = tier.source
    return not isinstance(source, Selection) or (shard.batch.looks > 0 and matches(shard, source, message))


def _spill(shard: Shard, cursor: Cursor, message: Message) -> None:
    """Memory is full: best effort is dropped (checklist item 113), express and reliable non-persistent go to the UNLOGGED twin (R19)."""
    if message.header.reliability == Reliability.BEST_EFFORT:
        drop(shard, cursor, message)
        if cursor.loaded == message.position:
            cursor.loaded = message.position + 1
    else:
        spill(shard, cursor.lane, message)


def drop(shard: Shard, cursor: Cursor, message: Message) -> None:
    settle_now(shard, cursor, message, Outcome.DROPPED)
    discard_body(shard, message)
