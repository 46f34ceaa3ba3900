"""What must hold after every flush of destinations with limits, and of what waits for room there (see invariants)."""

from __future__ import annotations

from collections import Counter

from .capacity import held, octets_of
from .commands import Send
from .settings import UNLIMITED
from .shard import Shard


def check_capacities(shard: Shard) -> None:
    waits: Counter[tuple[int, int]] = Counter()
    octets = 0
    for destination in [*shard.destinations.values(), *(d for d in shard.blocked if shard.numbered.get(d.number) is not d)]:
        capacity, settings = destination.capacity, destination.settings
        if capacity is None:
            assert destination.owner is not None or not settings.limits_messages, f"nobody looks at the limits of {destination.address}"
            continue
        assert not capacity.waiting or destination in shard.blocked, f"sends to {destination.address} wait in vain"
        for what in capacity.waiting:
            peer = shard.peers.get(what.peer) if isinstance(what, Send) else what.peer
            assert peer is not None and shard.peers.get(peer.number) is peer, f"a send to {destination.address} waits, and its peer is gone"
            waits[peer.number, destination.number] += 1
            octets += octets_of(what) if isinstance(what, Send) else 0
        messages, held_octets = held(destination)
        for most, there, free in ((settings.max_messages, messages, capacity.messages), (settings.max_octets, held_octets, capacity.octets)):
            room = max(most - there, 0)
            assert most == UNLIMITED or free < 0 or free <= room or destination.is_topic, f"{destination.address} has room for {room}, it is thought for {free}"
    known = {(peer.number, destination.number): count for peer in shard.peers.values() for destination, count in peer.blocked.items()}
    assert known == dict(waits), f"peers are said to wait {sorted(known.values())}, it is {sorted(waits.values())}"
    assert shard.waiting_octets == octets, f"{shard.waiting_octets} octets are said to wait for room, it is {octets}"
    for peer in shard.peers.values():
        assert peer.blocked or not peer.syncs, f"peer {peer.number} has no send that waits and is not answered"
