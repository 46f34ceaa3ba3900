"""What accounts may do."""

from __future__ import annotations

from typing import Any

from broker_core.engine import guarding, sending

from .plant import Plant


def rule_closes_nobody(plant: Plant) -> None:
    """It holds for those who come; who consumes already goes on."""
    plant.put(guarding, "expel", lambda _shard, _link, _refusal, _detail: None)


def producers_are_not_asked(plant: Plant) -> None:
    plant.put(sending, "is_allowed", lambda _shard, _peer, _operation, _address: True)


BUGS: tuple[Any, ...] = (
    rule_closes_nobody,
    producers_are_not_asked,
)
