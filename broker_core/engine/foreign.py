"""Foreign destinations: queues whose messages another broker gets, over a link (items 119 to 121). They take sends, keep them and say their limits as any
queue; their only consumer is the forwarder, a peer of the node's own (`Open.forwards`).

What the forwarder brings from elsewhere is sent by a peer whose sender is not there to hear a refusal: what is wrong with one message has it dead.
"""

from __future__ import annotations

from .commands import Attach, Send
from .dead import refuse
from .destination import Destination
from .link import Peer
from .outputs import Confirmed
from .policy import settings_for
from .refusal import Refusal
from .shard import Shard

OF_THE_MESSAGE = (Refusal.RELIABILITY_EXCEEDED, Refusal.MESSAGE_TOO_LARGE)
"""Sent again it would be refused again. All else may pass, and concerns every message that goes there: it stays where it is meanwhile."""


def follow_foreign(shard: Shard, destination: Destination) -> None:
    """The settings are others, or new."""
    if destination.settings.foreign_link:
        shard.foreign[destination] = None
    else:
        shard.foreign.pop(destination, None)


def far_address(destination: Destination) -> str:
    """What the far broker calls it."""
    return destination.settings.foreign_address or f"/{destination.address}"


def routes(shard: Shard) -> dict[str, tuple[str, str]]:
    """Of each foreign destination, by its address: the link, and its address at the far end."""
    return {destination.address: (destination.settings.foreign_link, far_address(destination)) for destination in shard.foreign}


# -- consumers ----------------------------------------------------------------------------------------------------------------------
def why_not_consume(shard: Shard, peer: Peer, command: Attach) -> str | None:
    """The particulars of why nobody but the forwarder consumes from it, nor the forwarder from any other; None: the peer may."""
    known = shard.destinations.get(command.address)
    settings = known.settings if known is not None else settings_for(shard, command.address) if shard.policies else None
    foreign = settings is not None and settings.foreign_link != ""
    if foreign == peer.forwards:
        return None
    if not foreign:
        return f"{command.address} is not forwarded any more"
    assert settings is not None
    return f"{command.address} is forwarded over link {settings.foreign_link} to {settings.foreign_address or '/' + command.address}: consume there"


# -- what comes from elsewhere --------------------------------------------------------------------------------------------------------
def bury_refused(shard: Shard, send: Send, refusal: Refusal, detail: str) -> bool:
    """What the forwarder brought and may never be sent here is in the dead message queue, and confirmed. False: its sender hears the refusal."""
    peer = shard.peers.get(send.peer)
    if peer is None or not peer.forwards or refusal not in OF_THE_MESSAGE:
        return False
    shard.sequence = send.message.sequence = shard.sequence + 1  # its name, as it never had a place
    refuse(shard, send.address, send.message, refusal, shard.now, detail)
    if send.token is not None:
        shard.batch.outputs.append(Confirmed(send.peer, send.token))
    return True
