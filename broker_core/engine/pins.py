"""Large bodies on their way to browsers. A consumer's delivery keeps its message, and so the body, as long as it is outstanding; a copy that was browsed keeps
nothing. So its body is pinned until it has left, whatever becomes of the message meanwhile: else the frame that has begun could not end."""

from __future__ import annotations

from .accounting import discard
from .commands import Settle
from .link import Peer
from .message import VOLATILE, Message, StoredBody
from .segments import LaneKey
from .shard import Shard


def pin(shard: Shard, peer: Peer, link: int, tag: int, message: Message) -> None:
    """Only for a message that is not settled: then its body is there."""
    assert isinstance(message.body, StoredBody)
    peer.pins[link, tag] = message
    if message.header.lane >= VOLATILE:
        shard.bodies[message.body.body] = shard.bodies.get(message.body.body, 1) + 1
    else:
        pinned = shard.pinned.setdefault((message.destination, message.header.lane), {})
        pinned[message.position] = pinned.get(message.position, 0) + 1


def is_of_browser(shard: Shard, settle: Settle) -> bool:
    """Copies are settled without effect; of one with a large body it says that the body has left, perhaps after the browser was closed."""
    peer = shard.peers.get(settle.peer)
    if peer is None:
        return False
    left = [peer.pins.pop((settle.link, tag)) for tag in settle.tags if (settle.link, tag) in peer.pins]
    for message in left:
        _release(shard, message)
    return bool(left) or settle.link in peer.browsers


def pinned_within(shard: Shard, key: LaneKey, first: int, last: int) -> list[int]:
    """Those pinned within the interval."""
    return [position for position in shard.pinned.get(key, ()) if first <= position <= last]


def unpin_all(shard: Shard, peer: Peer) -> None:
    """The peer is gone."""
    for message in peer.pins.values():
        _release(shard, message)
    peer.pins = {}


def _release(shard: Shard, message: Message) -> None:
    assert isinstance(message.body, StoredBody)
    key = message.destination, message.header.lane
    if message.header.lane >= VOLATILE:
        discard(shard, message.body)
        return
    pinned = shard.pinned[key]
    pinned[message.position] -= 1
    if not pinned[message.position]:
        del pinned[message.position]
    if not pinned:
        del shard.pinned[key]
