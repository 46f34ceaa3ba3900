"""What operators do with a delayed message before it is due: cancel it, deliver it now, or at another time.

Its number and the instant at which it is due name it. If it is not in memory its row is read, and the request is answered when that has come: only a row that
is there can be dealt with, and what left it meanwhile (it became due, another operator was first) is remembered as long as such a read is on its way.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from .capacity import entered
from .commands import Control
from .message import Message, Reliability, StoredBody
from .message_group import recognize
from .reads import ScheduledWanted
from .refusal import Declined, Refusal
from .scheduling import enter, schedule

if TYPE_CHECKING:
    from .commands import PageLoaded
    from .shard import Shard

READS_MAX = 100
"""On their way at a time; each may be of a row of a megabyte."""
READ_OCTETS = 1 << 20
Answer = dict[str, Any]


class Action(Enum):
    CANCEL = "cancel"
    DELIVER = "deliver"
    """Now."""
    MOVE = "reschedule"
    """To another instant."""


@dataclass(slots=True)
class Asked:
    """A request whose row is being read."""

    command: Control


def change(shard: Shard, command: Control) -> Answer | None:
    """None: it is answered later."""
    number, due = command.arguments["schedule"], command.arguments["due_at"]
    waiting = shard.schedule
    message = waiting.find(number)
    if message is not None:
        return _act(shard, command, message, in_memory=True)
    if number in waiting.gone or len(waiting.asked) >= READS_MAX:
        raise Declined(Refusal.NO_SUCH_DELAYED if number in waiting.gone else Refusal.TRY_AGAIN, str(number))
    read = shard.next_read()
    waiting.asked[read] = Asked(command)
    shard.batch.reads.append(ScheduledWanted(read, (due, number - 1), due, 1, READ_OCTETS))
    return None


def row_loaded(shard: Shard, command: PageLoaded) -> tuple[int, bool, Answer]:
    """The answer to the request for which the row was read."""
    waiting = shard.schedule
    asked = waiting.asked.pop(command.read).command
    number = asked.arguments["schedule"]
    try:
        message = waiting.find(number)
        in_memory = message is not None
        if message is None:
            found = [row for row in command.messages if row.sequence == number and number not in waiting.gone and row.destination in shard.numbered]
            if not found:
                raise Declined(Refusal.NO_SUCH_DELAYED, str(number))
            recognize(shard, found)
            (message,) = found
        return asked.request, True, _act(shard, asked, message, in_memory=in_memory)
    except Declined as no:
        return asked.request, False, no.answer
    finally:
        waiting.forget_gone()


def _act(shard: Shard, command: Control, message: Message, *, in_memory: bool) -> Answer:
    destination = shard.numbered[message.destination]
    if destination.address != command.address:
        raise Declined(Refusal.NO_SUCH_DELAYED, f"{message.sequence} of {command.address}")
    action = Action(command.arguments["action"])
    waiting, before, body = shard.schedule, shard.schedule.memory, message.body
    waiting.withdraw(message, in_memory=in_memory)
    destination.scheduled -= 1
    destination.scheduled_octets -= message.size
    shard.watched[destination] = None
    if message.header.reliability != Reliability.BEST_EFFORT:
        shard.batch.due.append(message.sequence)
    shard.memory += waiting.memory - before
    again = Message(message.header, body, message.size)
    if action is Action.CANCEL:
        if isinstance(body, StoredBody):
            shard.batch.discarded.append(body.body)
        return {"cancelled": message.sequence}
    if action is Action.DELIVER:
        enter(shard, destination, again)
        if destination.capacity is not None:
            entered(shard, destination)
        return {"delivered": message.sequence}
    due = command.arguments["at"]
    schedule(shard, destination, again, due - message.header.delay)
    return {"rescheduled": message.sequence, "schedule": getattr(again, "sequence", None), "due_at": due}
