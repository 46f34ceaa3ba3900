"""What a producer sends: accepted or refused."""

from __future__ import annotations

from .access import CREATE, PRODUCE, is_allowed
from .accounting import discard_body
from .capacity import admit, bound_life, entered, why_not_taken
from .aliases import redirect, target_of
from .commands import Direction, MayProduce, Request, Send, TakeOver
from .dead import refuse
from .destination import Destination
from .duplicates import is_duplicate, remember
from .outputs import Confirmed, Refused
from .foreign import bury_refused
from .message import Message
from .message_group import recognize
from .noting import note_refused
from .placing import obtain, why_not_create
from .refusal import Refusal
from .scheduling import enter, schedule
from .shard import Shard
from .temporary import ensure

NOBODY = 0
"""Stands for a peer where none asks; theirs are numbered from 1."""


def send(shard: Shard, command: Send) -> None:
    destination = shard.destinations.get(command.address)
    if destination is None or destination.state & Direction.PRODUCERS or destination.is_reserved or destination.levels is not None or shard.access is not None:
        refusal, detail = why_not_send(shard, command)
        if refusal is not None:
            if not bury_refused(shard, command, refusal, detail):
                shard.batch.outputs.append(Refused(command.peer, command.token, refusal, detail))
                note_refused(shard, command, refusal, detail)
                drop(shard, command, refusal)
            return
        destination = obtain(shard, command.peer, command.address)
        reset(destination, command.message)
    message = command.message
    if destination.capacity is not None and not admit(shard, destination, command):
        return
    header = message.header
    if header.delay or header.duplicate_id:
        accept(shard, destination, message, shard.now)
    else:
        enter(shard, destination, message)
    if command.token is not None:
        shard.batch.outputs.append(Confirmed(command.peer, command.token))


def request(shard: Shard, command: Request) -> None:
    refusal = ensure(shard, command.peer, command.reply_to)
    if refusal is None:
        send(shard, command)
    else:
        shard.batch.outputs.append(Refused(command.peer, command.token, refusal, command.reply_to))
        note_refused(shard, command, refusal, command.reply_to)
        discard_body(shard, command.message)


def may_produce(shard: Shard, command: MayProduce) -> None:
    if command.peer not in shard.peers:
        return
    address, denied = target_of(shard, command.address), ""
    if not is_allowed(shard, command.peer, PRODUCE, address):
        denied = PRODUCE
    elif address not in shard.destinations and not is_allowed(shard, command.peer, CREATE, address):
        denied = CREATE
    if denied:
        shard.batch.outputs.append(Refused(command.peer, command.token, Refusal.ACCESS_DENIED, f"{denied} {address}"))
    else:
        shard.batch.outputs.append(Confirmed(command.peer, command.token))


def take_over(shard: Shard, command: TakeOver) -> None:
    """What a session of the database sent: its row goes with the batch's commit, whatever becomes of the message. That commit waits for the disk: else a
    crash of the database would bring the row back, and with it a message that was seen already."""
    batch, message = shard.batch, command.message
    batch.taken.append(command.entry)
    batch.synchronous = True
    send = Send(NOBODY, None, command.address, message)
    too_large = message.size - len(message.header.octets) > shard.limits.message_octets_max
    refusal = Refusal.MESSAGE_TOO_LARGE if too_large else why_not_send(shard, send)[0]
    if refusal is not None:
        refuse(shard, command.address, message, refusal, command.sent_at)
        return
    recognize(shard, (message,))
    destination = obtain(shard, NOBODY, send.address)
    reset(destination, message)
    if destination.capacity is not None:
        refusal = why_not_taken(shard, destination, send)
        if refusal is not None:
            refuse(shard, command.address, message, refusal, command.sent_at)
            return
        bound_life(destination, message, command.sent_at)
    accept(shard, destination, message, command.sent_at)
    if destination.capacity is not None:
        entered(shard, destination)


def accept(shard: Shard, destination: Destination, message: Message, sent_at: int) -> None:
    """The message, sent then, becomes visible or waits for its delay to pass; nothing may be against it. One that is there already is dropped."""
    header = message.header
    detects = destination.known_ids is not None and header.duplicate_id != ""
    if detects and is_duplicate(shard, destination, message):
        return
    stored = schedule(shard, destination, message, sent_at) if header.delay else enter(shard, destination, message)
    if detects:
        remember(shard, destination, header.duplicate_id, stored=stored)


def drop(shard: Shard, send: Send, refusal: Refusal) -> None:
    """It is refused."""
    discard_body(shard, send.message)
    if refusal is Refusal.TEMPORARY_DESTINATION_GONE:
        shard.sends_to_the_gone += 1


def why_not_send(shard: Shard, send: Send) -> tuple[Refusal | None, str]:
    """Why the message, which has just come, may not be sent there, and the particulars. One that was sent to an alias goes to its target from now on."""
    if send.address in shard.aliases:
        refusal, detail = redirect(shard, send)
        if refusal is not None:
            return refusal, detail
    refusal = why_not(shard, send)
    return refusal, "" if refusal is None else particulars(shard, send, refusal)


def why_not(shard: Shard, send: Send) -> Refusal | None:
    """Why the message may not be sent there; None: it may."""
    if shard.access is not None and not is_allowed(shard, send.peer, PRODUCE, send.address):
        return Refusal.ACCESS_DENIED
    destination = shard.destinations.get(send.address)
    if destination is None:
        return why_not_create(shard, send.peer, send.address)
    if destination.is_reserved:
        return Refusal.DESTINATION_RESERVED
    if destination.state & Direction.PRODUCERS:
        return Refusal.DESTINATION_PAUSED
    if destination.levels is not None and destination.levels.exceeds(send.message.header):
        return Refusal.RELIABILITY_EXCEEDED
    return None


def particulars(shard: Shard, send: Send, refusal: Refusal) -> str:
    """Of a refusal by why_not."""
    if refusal is Refusal.ACCESS_DENIED:
        return f"{CREATE if is_allowed(shard, send.peer, PRODUCE, send.address) else PRODUCE} {send.address}"
    destination = shard.destinations.get(send.address)
    if refusal is Refusal.RELIABILITY_EXCEEDED and destination is not None and destination.levels is not None:
        return destination.levels.detail(send.address, send.message.header)
    return send.address


def reset(destination: Destination, message: Message) -> None:
    """The message gets the level that it has there."""
    if destination.levels is not None:
        message.header = destination.levels.apply(message.header)
