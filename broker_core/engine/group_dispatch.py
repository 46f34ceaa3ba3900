"""Dispatch where there are message groups: each message goes to the owner of its group, if there is one, and to whose turn it is if not.

A link in its turn takes what is set aside for it and what comes next in the lanes, whichever is of the higher priority or older. What comes next
and is another's is set aside for that one, so that it holds up nobody; each message is once at most, as long as owners stay. A lane
in which no more can be set aside is *stalled*: it waits for the owner of what comes next, and lower priorities do not wait for it.
"""

from __future__ import annotations

from heapq import heappop

from .cursor import Cursor
from .dead import expire
from .delivering import OCTETS_STEP, Taken, deliver, room_of
from .grouping import choose, close, first_aside, may_set_aside, owner_of, set_aside, take_aside
from .link import Link, Tier
from .message import BEYOND, Message, Reliability
from .scanning import head, remove
from .selection import Scan, Selection
from .shard import Shard
from .subscription import Subscription
from .waiting import forget_stale, free, withdraw

Place = Cursor | Scan
"""Where messages of one lane wait for a link that takes whatever comes, or for a selective one."""


class Turn:
    """Of one link, to take up to `count` messages."""

    __slots__ = ("chooses", "count", "is_over", "moved", "own_only", "stalled")

    def __init__(self, count: int, groups: int, stalled: set[Place], *, own_only: bool = False) -> None:
        self.count = count
        self.own_only = own_only
        """Nothing that another might get as well."""
        self.chooses = groups
        """Groups without an owner that the link may still become the owner of."""
        self.stalled = stalled
        self.moved = False
        """Some message is not where it was."""
        self.is_over = False


def serve_with_groups(shard: Shard, hungry: Tier) -> None:
    """What the lanes hold is shared out evenly, in runs, as where there are no groups; of several hungry links each becomes the owner of one group a turn."""
    source = hungry.source
    stalled: set[Place] = set()
    turns = share = 0
    while hungry and shard.batch.room > 0 and _foremost(shard, source, None, stalled) is not None:
        if not turns:
            turns = len(hungry)
            share = -(-sum([place.deliverable for place in source.order]) // turns)
        turns -= 1
        link = hungry.popleft()
        room = room_of(shard, link)
        if room > 0:
            _take_turn(shard, link, Turn(min(share, room, shard.batch.room), 1 if hungry else room, stalled))
            room = room_of(shard, link)
        if room > 0:
            hungry.append(link)
        else:
            link.hungry = False


def serve_owners(shard: Shard, subscription: Subscription) -> bool:
    """What is set aside for links that have room goes to them; whether anything went anywhere."""
    owners = subscription.owners
    moved = False
    for link in list(owners.queues) if owners is not None else ():
        room = min(room_of(shard, link), shard.batch.room)
        if room > 0:
            turn = Turn(room, 0, set(), own_only=True)
            _take_turn(shard, link, turn)
            moved = moved or turn.moved
    return moved


def _take_turn(shard: Shard, link: Link, turn: Turn) -> None:
    while turn.count > 0 and not turn.is_over and (place := _foremost(shard, link.source, link, turn.stalled)) is not None:
        messages = _take(shard, link, place, turn)
        turn.count -= len(messages)
        deliver(shard, link, Taken(place if isinstance(place, Cursor) else place.cursor, messages), len(messages))
        if room_of(shard, link) <= 0 or shard.batch.room <= 0:
            return


# -- what comes next --------------------------------------------------------------------------------------------------------------------
def _foremost(shard: Shard, source: Subscription | Selection, link: Link | None, stalled: set[Place]) -> Place | None:
    """Where the message is that the link gets next, if it does: of the highest priority that has anything; between stored and volatile the older one.
    As elsewhere lower priorities wait while what comes first is being read. Without a link: for whoever comes."""
    found: Place | None = None
    foremost, oldest = -1, 0
    for place in source.order:
        if place.priority < foremost:
            break
        message = _next_for(shard, link, place, stalled)[0]
        if message is not None:
            foremost = place.priority
            if found is None or message.sequence < oldest:
                found, oldest = place, message.sequence
        elif isinstance(place, Cursor) and place not in stalled and place.holds_up:
            foremost = place.priority
            if not place.subscription.durable:  # what it gets of one producer and mode may lie in both lanes (topics.publish)
                return None
    return found


def _next_for(shard: Shard, link: Link | None, place: Place, stalled: set[Place]) -> tuple[Message | None, bool]:
    """The next message of the lane, and whether it was set aside for the link."""
    if isinstance(place, Cursor):
        if place.missing:  # what they belong to is not at hand: order comes first
            return None, False
        following = place.head if place.returned or place.ready else None
        come = place.ready[0].position if place.ready else place.horizon
        cursor = place
    else:
        if place.unseen:
            return None, False
        following = head(shard, place)
        come = place.at if place.is_behind else BEYOND
        cursor = place.cursor
    if following is not None and following.position < come:
        come = following.position
    own = first_aside(link, cursor) if link is not None else None
    if own is not None and own.position < come:
        return own, True
    # What a selective consumer has set aside further on waits for what lies before it, which may be of its group.
    return (following if following is not None and following.body is not None and place not in stalled else None), False


# -- taking it --------------------------------------------------------------------------------------------------------------------------
def _take(shard: Shard, link: Link, place: Place, turn: Turn) -> list[Message]:
    """Up to the turn's count of messages of one lane; those of others on the way are set aside for them."""
    cursor = place if isinstance(place, Cursor) else place.cursor
    messages: list[Message] = []
    room = shard.limits.link_octets - link.octets
    until = BEYOND if cursor.subscription.durable else _next_of_twin(shard, link, cursor, turn)
    octets = 0
    while len(messages) < turn.count and octets < room:
        message, is_own = _next_for(shard, link, place, turn.stalled)
        if message is None or message.sequence > until:
            break
        expired = 0 < message.header.expiration <= shard.now
        if is_own:
            take_aside(shard, link, cursor, message)
        else:
            owner = link if expired else _assign(shard, link, place, message, turn)
            if owner is None:
                break
            _remove(shard, place, message)
            if owner is not link:
                set_aside(shard, cursor, message, owner)
        turn.moved = True
        if expired:
            expire(shard, cursor, message)
            if shard.batch.room <= 0:
                break
        elif is_own or owner is link:
            if message.header.reliability == Reliability.ASSURED:
                shard.batch.synchronous = True
            messages.append(message)
            octets += message.size
    link.octets += octets
    shard.batch.room -= len(messages) + octets // OCTETS_STEP
    return messages


def _next_of_twin(shard: Shard, link: Link, cursor: Cursor, turn: Turn) -> int:
    """The sequence of what comes next in the other lane of its priority: of one producer and mode some may lie there (topics.publish)."""
    twins = [other for other in cursor.subscription.order if other.priority == cursor.priority and other is not cursor]
    found = [message for twin in twins if (message := _next_for(shard, link, twin, turn.stalled)[0]) is not None]
    return found[0].sequence if found else BEYOND


def _assign(shard: Shard, link: Link, place: Place, message: Message, turn: Turn) -> Link | None:
    """Who gets the message: the owner of its group, which the link becomes if there is none. None: nobody does now, it stays where it is."""
    cursor = place if isinstance(place, Cursor) else place.cursor
    group = message.header.group
    if group is None:
        turn.is_over = turn.own_only
        return None if turn.own_only else link
    owner = owner_of(shard, cursor.subscription, message)
    # What comes back has closed its group: who owns the name now owns the group that came after.
    is_last = group.closes and (owner is None or message.position not in cursor.returned)
    if owner is None:
        if not turn.chooses:
            turn.is_over = True
            return None
        turn.chooses -= 1
        choose(shard, link, group)
        owner = link
    elif owner is not link and not may_set_aside(shard, cursor, message, owner, room_of(shard, owner)):
        turn.stalled.add(place)
        return None
    if is_last:
        close(shard, cursor.subscription, group)
    return owner


def _remove(shard: Shard, place: Place, message: Message) -> None:
    """From where it waited, the next of its lane."""
    if isinstance(place, Scan):
        remove(shard, place, message.position)
        withdraw(shard, place.cursor, message)
        return
    if place.returned:
        del place.returned[heappop(place.lowest)]
    else:
        place.ready.popleft()
    free(shard, place, message.weight)
    if place.stale:
        forget_stale(shard, place)
