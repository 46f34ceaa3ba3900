"""Many messages change their place at a time: settled here, copied to the end of another lane, in one commit. The database copies the rows of stored ones
by itself (R15); what is in memory only goes from one cursor to the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .accounting import settle_now, settle_range
from .capacity import entered, too_large
from .cursor import Cursor
from .destination import Destination
from .keeping import keep
from .message import VOLATILE, Message, Reliability, StoredBody
from .outcome import Outcome
from .placing import drop, has_room_for_volatile, open_lane, place, watch_expiration
from .properties import Properties
from .scanning import arrive
from .settings import REMOVING
from .shard import Shard
from .subscription import Subscription
from .topics import leave_out, leave_to, publish, take_down
from .writes import BulkCopy


class Parcel:
    """A message on its way. What is None stays as it is."""

    __slots__ = ("annotations", "expiration", "message", "subscription")

    def __init__(
        self, message: Message, expiration: int | None = None, annotations: str | None = None, subscription: Subscription | None = None
    ) -> None:
        self.message = message
        self.expiration = expiration
        self.annotations = annotations
        self.subscription = subscription
        """Of a topic, the only one that is to have it. None: whoever takes it."""


# -- settling -------------------------------------------------------------------------------------------------------------------------
def settle_all(shard: Shard, cursor: Cursor, messages: Sequence[Message], outcome: Outcome) -> None:
    """They are over where they were, in order of position; none of them is in a container of the cursor's. Neighbours as ranges."""
    if not cursor.stored:
        for message in messages:
            settle_now(shard, cursor, message, outcome)
        return
    first = 0
    for last, message in enumerate(messages):
        if last + 1 < len(messages) and messages[last + 1].position == message.position + 1:
            continue
        octets = sum([message.size for message in messages[first : last + 1]])
        settle_range(shard, cursor, messages[first].position, message.position, octets, outcome)
        first = last + 1
    if cursor.gone:
        for message in messages:
            cursor.forget_gone(message.position)
    if cursor.durable and any(message.header.reliability == Reliability.ASSURED for message in messages):
        shard.batch.synchronous = True


# -- room -----------------------------------------------------------------------------------------------------------------------------
def why_no_room(shard: Shard, destination: Destination, size: int) -> str:
    """Why a message of this size cannot be placed there; empty: it can, and its room is taken."""
    capacity = destination.capacity
    if capacity is None:
        return ""
    if detail := too_large(destination, size):
        return detail
    if destination.settings.limit_behavior in REMOVING or not destination.settings.bounds_depth:
        return ""
    if not capacity.take(shard, destination, 1, size):
        return f"{destination.address} holds as much as it may"
    capacity.promised += 1
    capacity.promised_octets += size
    return ""


def _arrived(shard: Shard, destination: Destination) -> None:
    """What had its room is there. If others are being handed out now these are not among them: when that is over all look for them."""
    if destination.fan_out is not None:
        destination.fan_out.cut = True
    if destination.capacity is not None:
        destination.capacity.promised = destination.capacity.promised_octets = 0
        entered(shard, destination)


# -- placing --------------------------------------------------------------------------------------------------------------------------
def place_all(shard: Shard, cursor: Cursor, parcels: Sequence[Parcel], destination: Destination, index: int, *, moved: bool) -> None:
    """To the end of a queue's lane; of a topic use `publish_all`. `index`: of the lane. `moved`: they are over where they were."""
    if cursor.stored:
        sequence, position = _extend(shard, destination, index, [parcel.message for parcel in parcels])
        _copy(shard, cursor, parcels, destination, index, (sequence, position))
    else:
        for parcel in parcels:
            place(shard, destination, _again(shard, cursor, parcel, index, moved=moved))
    _arrived(shard, destination)


def publish_all(shard: Shard, cursor: Cursor, parcels: Sequence[Parcel], destination: Destination, *, moved: bool) -> None:
    """To whoever subscribes to the topic now; all of them are wanted by somebody (`is_wanted`)."""
    for parcel in parcels:
        if not cursor.stored:
            publish(shard, destination, _again(shard, cursor, parcel, cursor.index, moved=moved))
            continue
        message = parcel.message
        routes = destination.routes
        groups = routes.takers(Properties(shard, message)) if routes.filtered else list(routes.groups.values())
        place_of = _extend(shard, destination, cursor.index, [message])
        lane = destination.lanes[cursor.index]
        assert lane is not None
        takers, durables = sum([len(group.members) for group in groups]), sum([group.durables for group in groups])
        destination.octets += message.size * (takers - 1)
        destination.octets_volatile += message.size * (takers - durables)
        destination.octets_arrived += message.size * (durables - 1)
        destination.published += 1
        destination.published_octets += message.size
        routed = Message(message.header, None, message.size)
        routed.position = place_of[1]
        take_down(shard, lane, groups, routed)
        for group in groups:
            for subscription in group.active.values():
                shard.mark(subscription)
        _copy(shard, cursor, [parcel], destination, cursor.index, place_of)
    _arrived(shard, destination)


def give_back(shard: Shard, cursor: Cursor, parcels: Sequence[Parcel], destination: Destination) -> None:
    """To the one subscription of the topic that each is for, whatever its filter: it took the message before. They are over where they were."""
    leave_out(shard)
    lane = destination.lanes[cursor.index] or open_lane(destination, cursor.index)
    first = lane.tail
    taken: dict[Subscription, list[int]] = {}
    for position, parcel in enumerate(parcels, first):
        assert parcel.subscription is not None
        taken.setdefault(parcel.subscription, []).append(position)
    if cursor.stored:
        _copy(shard, cursor, parcels, destination, cursor.index, _extend(shard, destination, cursor.index, [parcel.message for parcel in parcels]))
    else:
        for parcel in parcels:
            message = _again(shard, cursor, parcel, cursor.index, moved=True)
            place(shard, destination, message)
            if not keep(shard, lane, message, room=has_room_for_volatile(shard, message.weight)):
                drop(shard, parcel.subscription.cursor(lane), message)  # type: ignore[union-attr]
            if message.header.expiration:
                watch_expiration(shard, lane, message)
    leave_to(shard, lane, first, taken)
    destination.published += len(parcels)
    destination.published_octets += sum([parcel.message.size for parcel in parcels])
    _arrived(shard, destination)


def is_wanted(shard: Shard, destination: Destination, message: Message) -> bool:
    """Somebody would get it of the topic; if it is stored a durable subscription must, as nobody keeps its row for others."""
    routes = destination.routes
    groups = routes.takers(Properties(shard, message)) if routes.filtered else list(routes.groups.values())
    return any(group.durables if message.header.lane < VOLATILE else group.members for group in groups)


def _extend(shard: Shard, destination: Destination, index: int, messages: Sequence[Message]) -> tuple[int, int]:
    """The lane grows by these, whose rows are written by copies. The first one's sequence and position there."""
    lane = destination.lanes[index] or open_lane(destination, index)
    batch, count = shard.batch, len(messages)
    sequence, position = shard.sequence + 1, lane.tail
    shard.sequence += count
    lane.tail += count
    destination.accepted += count
    shard.accepted += count
    octets = sum([message.size for message in messages])
    destination.octets += octets
    destination.octets_arrived += octets
    batch.touched[destination] = None
    batch.firsts.setdefault(lane, position)
    if any(message.header.reliability == Reliability.ASSURED for message in messages):
        batch.synchronous = True
    grouped = any(message.header.group is not None for message in messages)
    for subscription in destination.receivers:
        if grouped:
            subscription.meet_groups()
        shard.mark(subscription)
        cursor = subscription.cursors[index]
        if cursor is not None and cursor.scans:
            first = Message(messages[0].header, None, 0)
            first.position = position
            arrive(shard, cursor, first)
    return sequence, position


def _copy(shard: Shard, cursor: Cursor, parcels: Sequence[Parcel], destination: Destination, index: int, place_of: tuple[int, int]) -> None:
    """As few statements as there are segments."""
    sequence, position = place_of
    key = (cursor.lane.destination.number, cursor.index)
    changed = any(parcel.expiration is not None for parcel in parcels)
    first = 0
    while first < len(parcels):
        segment, upto = shard.segments.holding_from(key, parcels[first].message.position)
        last = first + 1
        while last < len(parcels) and parcels[last].message.position <= upto:
            last += 1
        part = parcels[first:last]
        shard.batch.bulk_copies.append(
            BulkCopy(
                segment=segment,
                source=key,
                positions=[parcel.message.position for parcel in part],
                destination=destination.number,
                lane=index,
                sequence=sequence + first,
                position=position + first,
                accepted_at=shard.now,
                octets=sum([parcel.message.size for parcel in part]),
                identifier=f"ID:{shard.instance}-",
                expirations=[_expiration(parcel) for parcel in part] if changed else None,
                annotations=[_annotations(parcel) for parcel in part] if changed else None,
            )
        )
        first = last


def _expiration(parcel: Parcel) -> int:
    return parcel.message.header.expiration if parcel.expiration is None else parcel.expiration


def _annotations(parcel: Parcel) -> str:
    return parcel.message.header.annotations if parcel.annotations is None else parcel.annotations


def _again(shard: Shard, cursor: Cursor, parcel: Parcel, index: int, *, moved: bool) -> Message:
    """Of a message that is not stored, with its body. A large one has a holder more if it stays here, too."""
    message = parcel.message
    header = replace(
        message.header,
        priority=index % VOLATILE,
        expiration=_expiration(parcel),
        annotations=_annotations(parcel),
        message_id=shard.message_id(message),
        twin=None,
        others=None,
    )
    if header.lane < VOLATILE:  # it is a level that is stored, of a message that nobody's durable subscription wanted
        header = header.unstored()
    if not moved and isinstance(message.body, StoredBody):
        shard.bodies[message.body.body] = shard.bodies.get(message.body.body, 1) + 1
    return Message(header, message.body, message.size)
