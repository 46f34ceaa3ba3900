"""What is counted as being in memory, and who waits for it to have room."""

from __future__ import annotations

from broker_core.engine import placing
from broker_core.engine.message import Message, StoredBody

from .plant import Plant


def large_bodies_weigh_all_of_it(plant: Plant) -> None:
    """A body that is in the store takes memory as if it were there."""

    def keep_apart(self: Message, body: int) -> None:
        self.body = StoredBody(body, self.size - len(self.header.octets))

    plant.put(Message, "keep_apart", keep_apart)


def full_memory_holds_up_who_waits(plant: Plant) -> None:
    """Whether somebody waits for a message is not asked: there is no room for it."""
    plant.put(placing, "_leaves_at_once", lambda *_: False)


BUGS = (large_bodies_weigh_all_of_it, full_memory_holds_up_who_waits)
