"""What a producer sends: accepted or refused."""

from __future__ import annotations

from .accounting import discard_body
from .commands import Direction, Send
from .destination import Destination
from .effects import Confirmed, Refused
from .message import Message
from .placing import obtain, place, why_not_create
from .refusal import Refusal
from .shard import Shard
from .topics import publish


def send(shard: Shard, command: Send) -> None:
    destination = shard.destinations.get(command.address)
    if destination is None or destination.state & Direction.PRODUCERS:
        refusal = why_not(shard, command.address)
        if refusal is not None:
            shard.batch.outputs.append(Refused(command.peer, command.token, refusal, command.address))
            discard_body(shard, command.message)
            return
        destination = obtain(shard, command.address)
    accept(shard, destination, command.message)
    if command.token is not None:
        shard.batch.outputs.append(Confirmed(command.peer, command.token))


def accept(shard: Shard, destination: Destination, message: Message) -> None:
    """The message becomes visible; nothing may be against it."""
    if destination.is_topic:
        publish(shard, destination, message)
    else:
        place(shard, destination, message)


def why_not(shard: Shard, address: str) -> Refusal | None:
    """Why a message may not be sent there; None: it may."""
    destination = shard.destinations.get(address)
    if destination is None:
        return why_not_create(shard, address)
    return Refusal.DESTINATION_PAUSED if destination.state & Direction.PRODUCERS else None
