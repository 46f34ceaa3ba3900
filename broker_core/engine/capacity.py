"""What a destination may hold, and what becomes of a message for which there is no room (Open MQ's limitBehavior; docs/semantics.md).

A destination without limits has no capacity, and its messages pay for one attribute test. One that has keeps how many messages are known to fit in
still: consumers only ever make that more, so nothing is counted before it is used up.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from .accounting import discard_body
from .blocking import block, unblock
from .commands import SEND_OCTETS, Send
from .message import STORED, Message
from .noting import note_refused
from .outputs import Confirmed, Refused, Waiting
from .refusal import Refusal
from .settings import FLOW_CONTROL, REJECT_NEWEST, REMOVING, UNLIMITED

if TYPE_CHECKING:
    from .destination import Destination
    from .link import Peer
    from .shard import Batch, Shard
    from .subscription import Subscription

BEYOND = 1 << 60
"""More than any limit."""
COUNTED_AT_ONCE = 20
"""Subscriptions, for every message that may be too much: 10 us."""
COUNT_EFFORT = 8
"""Subscriptions that are counted in a microsecond, about."""


class Withheld:
    """The answer to a commit that filled destinations: it is given when there is room in all of them again."""

    __slots__ = ("answer", "left", "peer")

    def __init__(self, peer: Peer, answer: Confirmed, left: int) -> None:
        self.peer = peer
        self.answer = answer
        self.left = left
        """Destinations that are full still."""


class Inherited(Send):
    """It waited for another destination of the name, which was destroyed: what this one says about it is asked when it comes in."""

    __slots__ = ()


class Capacity:
    """Of a destination with limits."""

    __slots__ = ("_counted_in", "messages", "octets", "producers", "promised", "promised_octets", "waiting")

    def __init__(self) -> None:
        self.messages = self.octets = -1
        """That fit in besides what is there, for certain. Less than 0: to be counted first."""
        self.promised = self.promised_octets = 0
        """Of these messages of the commit that is being done: they have their room and are not there yet."""
        self.producers: dict[int, None] = {}
        """Peers, if they are counted."""
        self.waiting: deque[Send | Withheld] = deque()
        """Sends for which there is no room, and answers: under FLOW_CONTROL, first come first served."""
        self._counted_in: Batch | None = None

    def take(self, shard: Shard, destination: Destination, messages: int, octets: int) -> bool:
        """Whether so much fits in; then it is counted as being there."""
        if messages > self.messages or octets > self.octets:
            self._count(shard, destination)
            if messages > self.messages or octets > self.octets:
                return False
        self.messages -= messages
        self.octets -= octets
        return True

    def _count(self, shard: Shard, destination: Destination) -> None:
        """Of a topic with many subscriptions once a batch."""
        if len(destination.subscriptions) > COUNTED_AT_ONCE:
            if self._counted_in is shard.batch:
                return
            self._counted_in = shard.batch
            shard.effort += len(destination.subscriptions) // COUNT_EFFORT
        settings = destination.settings
        messages, octets = held(destination)
        self.messages = BEYOND if settings.max_messages == UNLIMITED else settings.max_messages - messages - self.promised
        self.octets = BEYOND if settings.max_octets == UNLIMITED else settings.max_octets - octets - self.promised_octets

    def exceed(self) -> None:
        """One enters for which there is no room."""
        self.messages = self.octets = -1

    def sends_of(self, peer: int) -> list[Send]:
        """Of what waits, in order."""
        return [what for what in self.waiting if isinstance(what, Send) and what.peer == peer]

    def forget(self) -> None:
        """More is there than was known, or less, or the limits are others."""
        self.messages = self.octets = -1
        self._counted_in = None


def held(destination: Destination) -> tuple[int, int]:
    """Messages and octets that count: of a topic those of the subscription that holds most, on average octets."""
    if not destination.is_topic:
        return depth_of(destination.subscriptions[0]), destination.octets
    depths = [depth_of(subscription) for subscription in destination.subscriptions]
    most = max(depths, default=0)
    return most, destination.octets * most // sum(depths) if most else 0


def depth_of(subscription: Subscription) -> int:
    """Less what was acknowledged in the open batch."""
    return subscription.depth - sum([len(cursor.accepted) for cursor in subscription.order])


def follow_limits(shard: Shard, destination: Destination) -> None:
    """The settings are others, or new."""
    capacity, settings = destination.capacity, destination.settings
    if capacity is not None:
        capacity.forget()
    if settings.limits_messages:
        destination.capacity = capacity or Capacity()
    elif capacity is not None and not capacity.waiting:
        destination.capacity = None


def why_never(shard: Shard, destination: Destination, send: Send) -> tuple[Refusal | None, str]:
    """Why this message of this peer's may not be there, however much room there is."""
    settings = destination.settings
    if detail := too_large(destination, send.message.size):
        return Refusal.MESSAGE_TOO_LARGE, detail
    if settings.max_producers != UNLIMITED and not _is_producer(shard, destination, send.peer):
        return Refusal.TOO_MANY_PRODUCERS, f"max_producers of {destination.address} is {settings.max_producers}"
    return None, ""


def too_large(destination: Destination, size: int) -> str:
    """Which limit a message of so many octets is beyond, alone; empty: none."""
    settings = destination.settings
    for name, most in (("max_message_octets", settings.max_message_octets), ("max_octets", settings.max_octets)):
        if UNLIMITED < most < size:
            return f"it has {size} octets, {name} of {destination.address} is {most}"
    return ""


def _is_producer(shard: Shard, destination: Destination, number: int) -> bool:
    """Whether the peer is one, or becomes one now. One that is gone by now is not counted."""
    capacity, peer = destination.capacity, shard.peers.get(number)
    assert capacity is not None
    if number in capacity.producers or peer is None:
        return True
    if len(capacity.producers) >= destination.settings.max_producers:
        return False
    capacity.producers[number] = peer.produces[destination] = None
    return True


def bound_life(destination: Destination, message: Message, sent_at: int) -> None:
    """What the destination says about its time to live, which counts from the send."""
    settings, header = destination.settings, message.header
    expiration = header.expiration
    if not expiration and settings.time_to_live_ms != UNLIMITED:
        expiration = sent_at + settings.time_to_live_ms
    if settings.time_to_live_max_ms != UNLIMITED:
        latest = sent_at + settings.time_to_live_max_ms
        expiration = min(expiration or latest, latest)
    if expiration != header.expiration:
        message.header = replace(header, expiration=expiration, twin=None)


def fullness(destination: Destination) -> str:
    """The limits, for whoever is refused."""
    settings = destination.settings
    limits = [f"{name} is {value}" for name, value in (("max_messages", settings.max_messages), ("max_octets", settings.max_octets)) if value != UNLIMITED]
    return f"{destination.address}: {', '.join(limits)}"


def admit(shard: Shard, destination: Destination, send: Send) -> bool:
    """Whether the message may enter now. If not it waits, or was refused or dropped, and its sender is told what is to be told."""
    capacity, message = destination.capacity, send.message
    assert capacity is not None
    refusal, detail = why_never(shard, destination, send)
    if refusal is not None:
        turn_away(shard, send, refusal, detail)
        return False
    bound_life(destination, message, shard.now)
    settings = destination.settings
    if not (settings.bounds_depth or capacity.waiting) or message.header.delay or is_known(shard, destination, send):
        return True
    peer = shard.peers.get(send.peer)
    removes = settings.limit_behavior in REMOVING or not settings.bounds_depth
    holds = peer is not None and shard.waiting_octets + octets_of(send) <= shard.limits.waiting_octets
    if removes and not (capacity.waiting and holds):
        if not capacity.take(shard, destination, 1, message.size):
            capacity.exceed()
            shard.overfull[destination] = None
        return True
    if not capacity.waiting and capacity.take(shard, destination, 1, message.size):
        return True
    if holds and peer is not None and (removes or (settings.limit_behavior == FLOW_CONTROL and send.token is not None)):
        wait(shard, destination, peer, send)  # where there is always room, until what waited before has come in
        if send.token is not None:
            shard.batch.outputs.append(Waiting(send.peer, send.token))
        return False
    turn_away(shard, send, Refusal.DESTINATION_FULL, fullness(destination))
    return False


def is_known(shard: Shard, destination: Destination, send: Send) -> bool:
    """It was accepted before: it takes no room."""
    known = destination.known_ids
    if known is None or not send.message.header.duplicate_id:
        return False
    return known.has(send.message.header.duplicate_id, shard.now - destination.settings.duplicate_window_ms)


def turn_away(shard: Shard, send: Send, refusal: Refusal, detail: str) -> None:
    """Refused if it is persistent; else dropped without a word (Open MQ). What the forwarder brought may be dead."""
    from .foreign import bury_refused  # what is dead needs room, too: it imports this

    if bury_refused(shard, send, refusal, detail):
        return
    if send.message.header.reliability >= STORED:
        shard.batch.outputs.append(Refused(send.peer, send.token, refusal, detail))
        note_refused(shard, send, refusal, detail)
    else:
        shard.turned_away += 1
        if send.token is not None:
            shard.batch.outputs.append(Confirmed(send.peer, send.token))
    discard_body(shard, send.message)


def why_not_taken(shard: Shard, destination: Destination, send: Send) -> Refusal | None:
    """Why what a session of the database sent may not enter: it cannot wait, so FLOW_CONTROL lets it in."""
    capacity, message = destination.capacity, send.message
    assert capacity is not None
    refusal, _ = why_never(shard, destination, send)
    if refusal is not None:
        return refusal
    if destination.settings.limit_behavior != REJECT_NEWEST or message.header.delay or is_known(shard, destination, send):
        return None
    return None if capacity.take(shard, destination, 1, message.size) else Refusal.DESTINATION_FULL


def entered(shard: Shard, destination: Destination) -> None:
    """Messages came that are never refused: delayed ones that are due, dead ones, those of a commit."""
    capacity = destination.capacity
    assert capacity is not None
    capacity.forget()
    may_be_removed(shard, destination)


def may_be_removed(shard: Shard, destination: Destination) -> None:
    """Messages of it, if they are too many: the next flush looks."""
    if destination.settings.limit_behavior in REMOVING:
        shard.overfull[destination] = None


# -- waiting --------------------------------------------------------------------------------------------------------------------------
def octets_of(send: Send) -> int:
    """Of memory, while it waits."""
    return SEND_OCTETS + send.message.weight


def waiter(shard: Shard, what: Send | Withheld) -> Peer:
    """Whose it is."""
    return shard.peers[what.peer] if isinstance(what, Send) else what.peer


def wait(shard: Shard, destination: Destination, peer: Peer, what: Send | Withheld) -> None:
    assert destination.capacity is not None
    destination.capacity.waiting.append(what)
    block(shard, destination)
    peer.blocked[destination] = peer.blocked.get(destination, 0) + 1
    if isinstance(what, Send):
        shard.waiting_octets += octets_of(what)


def waits_no_more(shard: Shard, destination: Destination, peer: Peer, what: Send | Withheld) -> None:
    """It was taken from there."""
    peer.blocked[destination] -= 1
    if not peer.blocked[destination]:
        del peer.blocked[destination]
    if isinstance(what, Send):
        shard.waiting_octets -= octets_of(what)


def forget_waiting(shard: Shard, peer: Peer) -> None:
    """The peer is gone. Nobody was told that these are safe."""
    for destination in peer.blocked:
        capacity = destination.capacity
        assert capacity is not None
        for send in capacity.sends_of(peer.number):
            shard.waiting_octets -= octets_of(send)
            discard_body(shard, send.message)
        others = [what for what in capacity.waiting if (what.peer != peer.number if isinstance(what, Send) else what.peer is not peer)]
        capacity.waiting = deque(others)
    peer.blocked.clear()


def forget_producer(peer: Peer) -> None:
    """The peer is gone."""
    for destination in peer.produces:
        if destination.capacity is not None:
            destination.capacity.producers.pop(peer.number, None)


def inherit(shard: Shard, destination: Destination) -> None:
    """It was just created: what waits for the one of its name that was destroyed waits for it, and nothing that is sent to it overtakes that."""
    for old in [other for other in shard.blocked if other.address == destination.address]:
        destination.capacity = destination.capacity or Capacity()
        assert old.capacity is not None
        waiting, old.capacity.waiting = old.capacity.waiting, deque()
        unblock(shard, old)
        shard.effort += len(waiting) // COUNT_EFFORT
        for what in waiting:
            peer = waiter(shard, what)
            waits_no_more(shard, old, peer, what)
            wait(shard, destination, peer, Inherited(what.peer, what.token, what.address, what.message) if isinstance(what, Send) else what)
