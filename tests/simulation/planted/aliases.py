"""Names that stand for others."""

from __future__ import annotations

from typing import Any

from tests.simulation import term
from broker_core.engine import sending
from .plant import Plant


def aliases_forgotten_at_recovery(plant: Plant) -> None:
    """Recovery does not read them: after it a queue comes into being under the alias's name, from which nobody knows to consume."""
    right = term.recover

    def recover(found: Any, *how: Any) -> Any:
        found.aliases = []
        return right(found, *how)

    plant.put(term, "recover", recover)


def alias_not_followed(plant: Plant) -> None:
    """Consumers go to the target, and messages do not."""
    plant.put(sending, "redirect", lambda _shard, _send: (None, ""))


BUGS = (aliases_forgotten_at_recovery, alias_not_followed)
