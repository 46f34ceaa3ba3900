"""Limits of destinations, and transactions: they count at the commit, for all that it sends and takes away, and a refused commit does nothing.

Under FLOW_CONTROL a commit that asks for a receipt is done, and where it filled a destination beyond its limit the receipt is withheld until there is
room again. Meanwhile the same connection commits nothing more to it, so that each exceeds the limit by one transaction at the most.
"""

from __future__ import annotations

from collections.abc import Iterable

from .accounting import discard_body
from .capacity import REMOVING, Withheld, bound_life, fullness, is_known, wait, why_never
from .commands import Send
from .destination import Destination
from .effects import Confirmed, Outcome
from .link import Peer, Transaction
from .message import STORED, Message
from .policy import settings_for
from .refusal import Refusal
from .sending import reset
from .settings import FLOW_CONTROL, UNLIMITED
from .shard import Shard


class Room:
    """What a commit does to destinations with limits."""

    __slots__ = ("_beyond", "_promised", "_waits")

    def __init__(self, *, waits: bool) -> None:
        self._waits = waits
        """Its peer waits for a receipt."""
        self._beyond: dict[Destination, None] = {}
        """What it fills beyond the limit."""
        self._promised: dict[Message, Destination] = {}
        """Persistent messages for which there is room: what is not persistent does not take it."""

    def why_not(self, shard: Shard, peer: Peer, transaction: Transaction) -> tuple[Refusal | None, str]:
        """And the particulars. If there is nothing against it, room is taken for its persistent messages."""
        persistent: dict[Destination, list[Message]] = {}
        new: dict[str, list[Message]] = {}
        for send in transaction.sends:
            destination = shard.destinations.get(send.address)
            if destination is None:
                new.setdefault(send.address, []).append(send.message)
                continue
            if destination.capacity is None:
                continue
            reset(destination, send.message)
            if send.message.header.reliability < STORED:
                continue
            refusal, detail = why_never(shard, destination, send)
            if refusal is not None:
                return refusal, detail
            if not send.message.header.delay and not is_known(shard, destination, send):
                persistent.setdefault(destination, []).append(send.message)
        for destination, messages in persistent.items():
            if not self._takes(shard, peer, destination, [message.size for message in messages], transaction):
                for other in persistent:
                    assert other.capacity is not None
                    other.capacity.forget()
                return Refusal.DESTINATION_FULL, fullness(destination)
        refusal, detail = self._why_not_new(shard, new)
        if refusal is None:
            self._promise(persistent)
        return refusal, detail

    def _promise(self, persistent: dict[Destination, list[Message]]) -> None:
        for destination, messages in persistent.items():
            capacity, settings = destination.capacity, destination.settings
            assert capacity is not None
            if settings.bounds_depth and settings.limit_behavior not in REMOVING:
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
            sizes = [m.size for m in messages if m.header.reliability >= STORED and not m.header.delay]
            for most in (settings.max_message_octets, settings.max_octets):
                if UNLIMITED < most < max(sizes, default=0):
                    return Refusal.MESSAGE_TOO_LARGE, f"{address}: {most} octets at most"
            waits = self._waits and settings.limit_behavior == FLOW_CONTROL
            full = UNLIMITED < settings.max_messages < len(sizes) or UNLIMITED < settings.max_octets < sum(sizes)
            if full and not waits and settings.limit_behavior not in REMOVING:
                return Refusal.DESTINATION_FULL, f"{address}: max_messages is {settings.max_messages}, max_octets is {settings.max_octets}"
        return None, ""

    def _takes(self, shard: Shard, peer: Peer, destination: Destination, sizes: list[int], transaction: Transaction) -> bool:
        capacity, settings = destination.capacity, destination.settings
        assert capacity is not None
        if not settings.bounds_depth or settings.limit_behavior in REMOVING:
            return True
        freed = [message.size for message in _accepted(destination, transaction)]
        messages, octets = len(sizes) - len(freed), sum(sizes) - sum(freed)
        if (messages <= 0 and octets <= 0) or (not capacity.waiting and capacity.take(shard, destination, messages, octets)):
            return True
        if not (self._waits and settings.limit_behavior == FLOW_CONTROL) or any(isinstance(w, Withheld) and w.peer is peer for w in capacity.waiting):
            return False
        self._beyond[destination] = None
        return True

    def admits(self, shard: Shard, destination: Destination, send: Send) -> bool:
        """Whether the message enters as the commit is done; only a non-persistent one does not, and is dropped."""
        capacity, settings, message = destination.capacity, destination.settings, send.message
        assert capacity is not None
        persistent = message.header.reliability >= STORED
        if self._promised.pop(message, None) is not None:
            capacity.promised -= 1
            capacity.promised_octets -= message.size
        refusal = None if persistent else why_never(shard, destination, send)[0]
        removes = settings.limit_behavior in REMOVING
        counts = settings.bounds_depth and (removes or not persistent) and not message.header.delay
        full = counts and refusal is None and not is_known(shard, destination, send) and not capacity.take(shard, destination, 1, message.size)
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


def _accepted(destination: Destination, transaction: Transaction) -> Iterable[Message]:
    """What the commit takes away from it."""
    for subscription, outcome, messages in transaction.settles:
        if subscription.destination is destination and outcome is Outcome.ACCEPTED and not destination.is_topic:
            yield from messages
