"""What operators do to many messages at a time."""

from __future__ import annotations

from typing import Any

from broker_core.engine import bulk, operating, performing
from broker_core.engine.outcome import Outcome

from .plant import Plant


def move_is_not_in_the_ledger(plant: Plant) -> None:
    """That messages have gone elsewhere is known in memory only: after a kill they are in both places."""
    right = bulk.settle_range

    def settle_range(shard: Any, cursor: Any, *rest: Any) -> None:
        right(shard, cursor, *rest)
        if rest[-1] is Outcome.MOVED and cursor.durable:
            shard.batch.settled.pop()

    plant.put(bulk, "settle_range", settle_range)


def page_is_believed(plant: Plant) -> None:
    """What was settled since the page was read is moved all the same."""
    plant.put(operating, "_is_meant", lambda operation, _cursor, message: operation.selected is None)
    plant.put(performing, "take_out", lambda _shard, _cursor, message: message)


def retried_are_dead_still(plant: Plant) -> None:
    """What goes back keeps the mark of those that have died: when it dies again it is gone."""
    right = performing._revived

    def revived(*given: Any) -> Any:
        expiration, _ = right(*given)
        return expiration, None

    plant.put(performing, "_revived", revived)


BUGS = (
    move_is_not_in_the_ledger,
    page_is_believed,
    retried_are_dead_still,
)
