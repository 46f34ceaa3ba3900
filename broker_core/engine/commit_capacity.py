"""Limits of destinations, and transactions: they count at the commit, for all that it sends and takes away, and a refused commit does nothing.

Under FLOW_CONTROL a commit that asks for a receipt is done, and where it filled a destination beyond its limit the receipt is withheld until there is
room again. Meanwhile the same connection commits nothing more to it, so that each exceeds the limit by one transaction at the most, and by what it had sent
there before, which must not be overtaken.
"""

from __future__ import annotations

from collections.abc import Iterable

from .accounting import discard_body
from .capacity import COUNT_EFFORT, Withheld, bound_life, fullness, is_known, wait, why_never
from .commands import Send
from .destination import Destination
from .holding import let_in_all
from .levels import Levels, levels_of
from .link import Peer, Transaction
from .message import Message, Reliability
from .outcome import Outcome
from .outputs import Confirmed
from .policy import settings_for
from .refusal import Refusal
from .sending import reset
from .settings import FLOW_CONTROL, REMOVING, UNLIMITED
from .shard import Shard


class Room:
    """What a commit does to destinations with limits."""

    __slots__ = ("_behind", "_beyond", "_new", "_promised", "_waits")

    def __init__(self, *, waits: bool) -> None:
        self._waits = waits
        """Its peer waits for a receipt."""
        self._beyond: dict[Destination, None] = {}
        """What it fills beyond the limit."""
        self._promised: dict[Message, Destination] = {}
        """Messages for which there is room: best effort does not take it."""
        self._new: dict[str, list[Message]] = {}
        """The same of destinations that it creates, until it has."""
        self._behind: dict[Destination, Peer | None] = {}
        """Where earlier sends of its peer wait: who they come in with. None: they do not, and only best effort is sent, and dropped."""

    def why_not(self, shard: Shard, peer: Peer, transaction: Transaction) -> tuple[Refusal | None, str]:
        """And the particulars. If there is nothing against it, room is taken for its messages but best effort, which may be lost
        alone."""
        together: dict[Destination, list[Message]] = {}
        new: dict[str, list[Message]] = {}
        for send in transaction.sends:
            destination = shard.destinations.get(send.address)
            if destination is None:
                new.setdefault(send.address, []).append(send.message)
                continue
            if destination.capacity is None:
                continue
            if destination in peer.blocked:
                self._sees_waiting(shard, destination, peer)
            reset(destination, send.message)
            if send.message.header.reliability == Reliability.BEST_EFFORT:
                continue
            refusal, detail = why_never(shard, destination, send)
            if refusal is not None:
                return refusal, detail
            if not send.message.header.delay and not is_known(shard, destination, send):
                together.setdefault(destination, []).append(send.message)
        for destination, messages in together.items():
            if not self._takes(shard, peer, destination, [message.size for message in messages], transaction):
                for other in together:
                    assert other.capacity is not None
                    other.capacity.forget()
                return Refusal.DESTINATION_FULL, fullness(destination)
        refusal, detail = self._why_not_new(shard, new)
        if refusal is None:
            self._promise(together)
        return refusal, detail

    def _promise(self, together: dict[Destination, list[Message]]) -> None:
        for destination, messages in together.items():
            capacity = destination.capacity
            assert capacity is not None
            if destination.settings.turns_away:
                self._promised.update(dict.fromkeys(messages, destination))
                capacity.promised = len(messages)
                capacity.promised_octets = sum([message.size for message in messages])

    def ends(self) -> None:
        """Everything is there, or will not be."""
        for destination in self._promised.values():
            if destination.capacity is not None:
                destination.capacity.promised = destination.capacity.promised_octets = 0
        self._promised = {}

    def _why_not_new(self, shard: Shard, new: dict[str, list[Message]]) -> tuple[Refusal | None, str]:
        """Of destinations that the commit creates: they are empty, and a policy may limit them."""
        for address, messages in new.items():
            settings = settings_for(shard, address)
            levels = levels_of(settings)
            together = self._new[address] = [m for m in messages if _level(levels, m) != Reliability.BEST_EFFORT and not m.header.delay]
            sizes = [m.size for m in together]
            for most in (settings.max_message_octets, settings.max_octets):
                if UNLIMITED < most < max(sizes, default=0):
                    return Refusal.MESSAGE_TOO_LARGE, f"{address}: {most} octets at most"
            waits = self._waits and settings.limit_behavior == FLOW_CONTROL
            if settings.turns_away and settings.exceeded_by(len(sizes), sum(sizes)) and not waits:
                return Refusal.DESTINATION_FULL, f"{address}: max_messages is {settings.max_messages}, max_octets is {settings.max_octets}"
        return None, ""

    def _takes(self, shard: Shard, peer: Peer, destination: Destination, sizes: list[int], transaction: Transaction) -> bool:
        capacity = destination.capacity
        assert capacity is not None
        if not destination.settings.turns_away:
            return True
        freed = [message.size for message in _accepted(destination, transaction)]
        messages, octets = len(sizes) - len(freed), sum(sizes) - sum(freed)
        fits = (messages <= 0 and octets <= 0) or (not capacity.waiting and capacity.take(shard, destination, messages, octets))
        if fits and destination not in self._behind:
            return True
        if not self._may_exceed(destination, peer):
            return False
        self._beyond[destination] = None
        return True

    def _may_exceed(self, destination: Destination, peer: Peer) -> bool:
        """The receipt waits for room instead, one at a time."""
        capacity = destination.capacity
        assert capacity is not None
        waits = self._waits and destination.settings.limit_behavior == FLOW_CONTROL
        return waits and not any(isinstance(what, Withheld) and what.peer is peer for what in capacity.waiting)

    def _sees_waiting(self, shard: Shard, destination: Destination, peer: Peer) -> None:
        """Earlier sends of the peer to the destination may wait for room: what the commit sends must not overtake them."""
        capacity = destination.capacity
        assert capacity is not None
        if destination in self._behind:
            return
        shard.effort += len(capacity.waiting) // COUNT_EFFORT
        if capacity.sends_of(peer.number):
            admitted = not destination.settings.turns_away or self._may_exceed(destination, peer)
            self._behind[destination] = peer if admitted else None

    def begins(self, shard: Shard) -> None:
        """The commit, or the prepare, is done from now on: earlier sends of its peer that wait where it sends to come in before it, whatever the limit.
        Its receipt is withheld for them, too."""
        for destination, peer in self._behind.items():
            if peer is None:
                continue
            let_in_all(shard, destination, peer)
            if self._waits and destination.settings.limit_behavior == FLOW_CONTROL:
                self._beyond[destination] = None

    def admits(self, shard: Shard, destination: Destination, send: Send) -> bool:
        """Whether the message enters as the commit is done; only a best-effort one does not, and is dropped."""
        capacity, settings, message = destination.capacity, destination.settings, send.message
        assert capacity is not None
        if self._new and destination.address in self._new:
            self._promise({destination: self._new.pop(destination.address)})
        alone = message.header.reliability == Reliability.BEST_EFFORT
        if self._promised.pop(message, None) is not None:
            capacity.promised -= 1
            capacity.promised_octets -= message.size
        refusal = why_never(shard, destination, send)[0] if alone else None
        removes = settings.limit_behavior in REMOVING
        counts = settings.bounds_depth and (removes or alone) and not message.header.delay
        full = counts and refusal is None and not is_known(shard, destination, send) and not self._has_room(shard, destination, message)
        if full and removes:
            shard.overfull[destination] = None
        elif full and self._waits and settings.limit_behavior == FLOW_CONTROL:
            self._beyond[destination] = None
        elif full or refusal is not None:
            shard.turned_away += 1
            discard_body(shard, message)
            return False
        bound_life(destination, message, message.accepted_at)
        return True

    def _has_room(self, shard: Shard, destination: Destination, message: Message) -> bool:
        """For one that may be lost alone, or may make room."""
        capacity = destination.capacity
        assert capacity is not None
        if destination in self._behind and self._behind[destination] is None:
            return False
        return capacity.take(shard, destination, 1, message.size)

    def withholds(self, shard: Shard, peer: Peer, answer: Confirmed) -> bool:
        """Whether the commit's answer waits, as it filled destinations beyond their limits."""
        if not self._beyond:
            return False
        withheld = Withheld(peer, answer, len(self._beyond))
        for destination in self._beyond:
            assert destination.capacity is not None
            destination.capacity.forget()
            wait(shard, destination, peer, withheld)
        return True


def may_limit_new(shard: Shard) -> bool:
    """Destinations that are created may have limits."""
    return bool(shard.policies) or shard.limits.settings.limits_messages


def _accepted(destination: Destination, transaction: Transaction) -> Iterable[Message]:
    """What the commit takes away from it."""
    for subscription, outcome, messages in transaction.settles:
        if subscription.destination is destination and outcome is Outcome.ACCEPTED and not destination.is_topic:
            yield from messages


def _level(levels: Levels | None, message: Message) -> int:
    """That it will have where it goes."""
    header = message.header
    return (header if levels is None or levels.exceeds(header) else levels.apply(header)).reliability
