"""What must hold of temporary destinations after every flush (see invariants)."""

from __future__ import annotations

from .address import is_temporary
from .destination import Destination
from .message import VOLATILE
from .shard import Shard
from .temporary import is_own


def check_temporary(shard: Shard, destination: Destination) -> None:
    address, owner = destination.address, destination.owner
    assert is_temporary(address) == (owner is not None) == (destination.number < 0), f"{address} has number {destination.number} and owner {owner}"
    if owner is None:
        return
    assert shard.peers.get(owner.number) is owner, f"{address} is still there and its owner is gone"
    assert is_own(owner, address), f"{address} does not belong to peer {owner.number}, whose session is {owner.session!r}"
    assert destination in owner.temporaries, f"{address} is not among what its owner made"
    assert not any(destination.lanes[:VOLATILE]), f"{address} has stored messages"
    links = [link for subscription in destination.subscriptions for link in subscription.links.values()]
    assert all(link.peer is owner for link in links), f"{address} has a consumer that is not its owner"
    assert not (links and destination in owner.deserted), f"{address} is deserted and has consumers"
    assert not any(subscription.durable for subscription in destination.subscriptions), f"{address} has a durable subscription"


def check_temporaries(shard: Shard) -> None:
    made = sorted(destination.address for peer in shard.peers.values() for destination in peer.temporaries)
    there = sorted(destination.address for destination in shard.destinations.values() if destination.owner is not None)
    assert made == there, f"peers made {made}, there are {there}"
    for peer in shard.peers.values():
        assert peer.deserted.keys() <= peer.temporaries.keys(), f"peer {peer.number} has deserted what is not there"
    assert shard.listed <= shard.numbered.keys(), "operators are not told of temporary destinations that are gone"
