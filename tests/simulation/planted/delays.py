"""Delayed messages."""

from __future__ import annotations

from typing import Any

from broker_core.engine import engine
from broker_core.engine.schedule import Schedule

from tests.simulation import climates
from .plant import Plant


def due_too_early(plant: Plant) -> None:
    """What is read ahead becomes visible when it is in memory."""
    right = Schedule.pop_due

    def pop_due(self: Schedule, now: int) -> Any:
        return right(self, now + climates.LIMITS.schedule_ahead_ms)

    plant.put(Schedule, "pop_due", pop_due)


def row_stays_in_the_schedule(plant: Plant) -> None:
    """What has become visible is not deleted from the schedule: after a crash it becomes visible again."""
    right = engine.place_due

    def place_due(shard: Any) -> None:
        right(shard)
        shard.batch.due.clear()

    plant.put(engine, "place_due", place_due)


def arrival_within_a_read_forgotten(plant: Plant) -> None:
    """A delayed message that comes while its interval is being read is in neither the answer nor memory."""
    right = Schedule.add

    def add(self: Schedule, message: Any, known_until: int) -> None:
        owned, self.owned = self.owned, None
        right(self, message, known_until)
        self.owned = owned

    plant.put(Schedule, "add", add)


BUGS = (
    due_too_early,
    row_stays_in_the_schedule,
    arrival_within_a_read_forgotten,
)
