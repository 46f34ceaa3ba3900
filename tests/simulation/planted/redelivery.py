"""What comes back, and what dies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from broker_core.engine import dead, delivering, settlement
from broker_core.engine.outcome import Outcome
from broker_core.engine.wishes import Wishes
from broker_core.stomp import subscriptions

from tests.simulation import term
from .plant import Plant


def offered_mark_lost(plant: Plant) -> None:
    """What left is not in the ledger: after a crash it is delivered again without its flag."""
    right = delivering._offer

    def offer(shard: Any, *what: Any, **how: bool) -> None:
        right(shard, *what, **how)
        shard.batch.offered.clear()

    plant.put(delivering, "_offer", offer)


def offered_forgotten_at_recovery(plant: Plant) -> None:
    """Recovery takes the offered mark and flags nothing by it."""
    right = term.recover

    def recover(*found: Any) -> Any:
        made = right(*found)
        for subscription in made.shard.subscriptions.values():
            for cursor in subscription.order:
                cursor.offered_before = -1
        return made

    plant.put(term, "recover", recover)


def back_without_flag(plant: Plant) -> None:
    """What a lost link held comes back unflagged."""
    right = settlement.come_back

    def come_back(shard: Any, cursor: Any, message: Any, **how: Any) -> None:
        right(shard, cursor, message, **how)
        if message.position in cursor.returned:
            cursor.returned[message.position].redelivered = False

    plant.put(settlement, "come_back", come_back)


def failures_not_durable(plant: Plant) -> None:
    """Failures are forgotten when their message is read again, so that the maximum is never reached."""
    right = settlement.fail

    def fail(shard: Any, cursor: Any, message: Any, *why: str) -> None:
        message.failures = 0
        right(shard, cursor, message, *why)

    plant.put(settlement, "fail", fail)


def keeping_no_copy(right: Callable[..., None]) -> Callable[..., None]:
    """What buries messages, as if their destinations discarded them."""

    def bury(shard: Any, cursor: Any, *what: Any) -> None:
        settings = cursor.subscription.destination.settings
        object.__setattr__(settings, "use_dead", False)
        try:
            right(shard, cursor, *what)
        finally:
            object.__setattr__(settings, "use_dead", True)

    return bury


def dead_copy_dropped(plant: Plant) -> None:
    """What dies is settled and never copied to the dead message queue."""
    plant.put(settlement, "bury", keeping_no_copy(dead.bury))


def wishes_ignored(plant: Plant) -> None:
    """What wishes to be discarded when it dies is kept."""
    plant.put(dead, "wishes_of", lambda _shard, _header: Wishes())


def rejected_comes_again(plant: Plant) -> None:
    """A NACK that wants no other delivery is taken for one of those that do."""
    plant.put(subscriptions, "_refused_as", lambda _headers: Outcome.FAILED)


BUGS = (
    offered_mark_lost,
    offered_forgotten_at_recovery,
    back_without_flag,
    failures_not_durable,
    dead_copy_dropped,
    wishes_ignored,
    rejected_comes_again,
)
