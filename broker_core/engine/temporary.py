"""Temporary destinations (JMS 6.2.2): a connection makes them and alone consumes them, anybody sends to one whose address he was given, and with
the connection they are gone.

Nothing of them is ever stored: they have no definition, and their messages lie in volatile lanes whatever their mode (R19). So making and ending one
costs the database nothing, and recovery finds nothing of them. Their numbers are negative, apart from those that definitions and rows have.

One a connection and thousands of requests is how they are meant. A client that makes one a request must not fill the broker all the same: those whose
consumers have gone end when they have been idle for a while, as automatic destinations do, or as soon as their maker has as many as it may have.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from .accounting import empty, forget_delayed
from .address import is_temporary
from .commands import CreateTemporary, EndTemporary
from .destination import Destination
from .settings import Settings
from .outputs import Confirmed, Refused
from .link import Peer
from .refusal import Refusal
from .registering import begin
from .shard import Shard
from .subscription import Subscription

NUMBERS = (1 << 31) - 1
"""Rows that spill carry the number in 32 bits. At a thousand a second the first comes up again after 24 days, when nobody remembers it."""


def create_temporary(shard: Shard, command: CreateTemporary) -> None:
    refusal = ensure(shard, command.peer, command.address)
    if refusal is not None:
        shard.batch.outputs.append(Refused(command.peer, command.token, refusal, command.address))
    elif command.token is not None:
        shard.batch.outputs.append(Confirmed(command.peer, command.token))


def end_own(shard: Shard, command: EndTemporary) -> None:
    """Nothing if it is gone already."""
    destination, peer = shard.destinations.get(command.address), shard.peers.get(command.peer)
    if peer is None:
        return
    if destination is not None and (destination.owner is not peer or destination.consumers):
        refusal = Refusal.DESTINATION_IN_USE if destination.owner is peer else Refusal.NOT_THE_OWNER
        shard.batch.outputs.append(Refused(command.peer, command.token, refusal, command.address))
        return
    if destination is not None:
        end_temporary(shard, destination)
    if command.token is not None:
        shard.batch.outputs.append(Confirmed(command.peer, command.token))


def ensure(shard: Shard, peer: int, address: str) -> Refusal | None:
    """The peer's temporary destination is there from now on; else why not."""
    if address in shard.destinations:
        return None
    owner = shard.peers.get(peer)
    refusal = why_not_make(shard, owner, address)
    if refusal is None:
        make(shard, owner, address)
    return refusal


def is_own(peer: Peer | None, address: str) -> bool:
    """Whether it is, or would be, a temporary destination of this peer: their names begin with its session."""
    return peer is not None and peer.session != "" and is_temporary(address) and address.partition("/")[2].startswith(f"{peer.session}.")


def why_not_make(shard: Shard, peer: Peer | None, address: str) -> Refusal | None:
    """Why the peer's use may not make this temporary destination, whose name is valid; None: it may."""
    if peer is None or not is_own(peer, address):
        return Refusal.TEMPORARY_DESTINATION_GONE
    limits = shard.limits
    if len(peer.temporaries) >= limits.temporaries_max and _deserted(peer) is None:
        return Refusal.TOO_MANY_TEMPORARIES
    if len(shard.destinations) >= limits.destinations_max and _deserted(peer) is None:
        return Refusal.TOO_MANY_DESTINATIONS
    return None


def make(shard: Shard, owner: Peer | None, address: str) -> Destination:
    """Only if why_not_make has nothing against it."""
    assert owner is not None
    limits = shard.limits
    if len(owner.temporaries) >= limits.temporaries_max or len(shard.destinations) >= limits.destinations_max:
        unused = _deserted(owner)
        if unused is not None:
            end_temporary(shard, unused)
    destination = Destination(_number(shard), address, shard.now, False, _settings(limits.settings))
    destination.owner = owner
    owner.temporaries[destination] = None
    shard.destinations[address] = shard.numbered[destination.number] = destination
    shard.watched[destination] = None
    if not destination.is_topic:
        begin(shard, Subscription(shard.next_subscription(durable=False), destination, durable=False))
    return destination


@lru_cache(maxsize=1)
def _settings(settings: Settings) -> Settings:
    """What nobody took in time concerns nobody but the connection: among the dead it would only hide what an operator must see."""
    return replace(settings, use_dead=False)


def _number(shard: Shard) -> int:
    while True:
        shard.last_temporary = shard.last_temporary % NUMBERS + 1
        if -shard.last_temporary not in shard.numbered:
            return -shard.last_temporary


def _deserted(owner: Peer) -> Destination | None:
    """The one that can go to make room: empty, and without consumers for the longest. One that was given messages since stays: its owner may come back."""
    while owner.deserted:
        destination = next(iter(owner.deserted))
        if not (destination.depth or destination.scheduled):
            return destination
        del owner.deserted[destination]
    return None


def end_temporary(shard: Shard, destination: Destination) -> None:
    """It has no consumers. What it holds is discarded: it was for them."""
    owner = destination.owner
    assert owner is not None
    for subscription in destination.subscriptions:
        for cursor in subscription.order:
            empty(shard, cursor)
        shard.batch.dirty.pop(subscription, None)
        shard.subscriptions.pop(subscription.number, None)
    forget_delayed(shard, destination)
    del shard.destinations[destination.address], shard.numbered[destination.number]
    del owner.temporaries[destination]
    owner.deserted.pop(destination, None)
    if destination.number in shard.listed:
        shard.listed.remove(destination.number)
        shard.unlisted.append(destination.number)


def end_temporaries(shard: Shard, owner: Peer) -> None:
    """The owner is gone, and its links are closed."""
    for destination in list(owner.temporaries):
        end_temporary(shard, destination)
