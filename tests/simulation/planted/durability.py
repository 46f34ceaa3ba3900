"""What is durable, and what is said of it: commits, checkpoints, recovery."""

from __future__ import annotations

from typing import Any

from broker_core.engine import engine, recovery, settlement
from broker_core.engine.effects import Effects
from broker_core.engine.outputs import Confirmed
from broker_core.server.host import Host
from broker_core.server.reporter import Reporter

from tests.simulation import term
from .plant import Plant


def speak_before_write(plant: Plant) -> None:
    """Receipts leave while the commit that carries what they promise is on its way."""
    flush = term.Watched.flush

    def eager(self: Any, now: int, **how: Any) -> Effects:
        effects = flush(self, now, **how)
        self.host._release([output for output in effects.outputs if isinstance(output, Confirmed)])
        effects.outputs = [output for output in effects.outputs if not isinstance(output, Confirmed)]
        return effects

    plant.put(term.Watched, "flush", eager)


def sequence_reused(plant: Plant) -> None:
    """After a recovery positions start where the checkpoint left them, whatever the ledger took since."""
    right = recovery._replay

    def replay(shard: Any, row: Any) -> None:
        row.accepted = []
        right(shard, row)

    plant.put(recovery, "_replay", replay)


def settled_without_ledger(plant: Plant) -> None:
    """Acknowledgements are known to the engine and to its checkpoint, and are missing in the ledger."""
    right = settlement.settle_accepted

    def settle_accepted(shard: Any) -> None:
        kept = len(shard.batch.settled)
        right(shard)
        del shard.batch.settled[kept:]

    plant.put(engine, "settle_accepted", settle_accepted)


def checkpoint_ahead(plant: Plant) -> None:
    """A checkpoint is written before the commit that it includes."""
    right, begin = Host._commit, Reporter.begin

    def begin_and_keep(self: Any, effects: Effects) -> None:
        begin(self, effects)
        self.early = effects

    async def commit(self: Any, what: Any) -> None:
        early = self._reporter.early
        point, early.checkpoint = early.checkpoint, None
        if point is not None:
            await self._space.patiently(lambda: self._store.checkpoint(point))
        await right(self, what)

    plant.put(Reporter, "begin", begin_and_keep)
    plant.put(Host, "_commit", commit)


def ledger_ignored(plant: Plant) -> None:
    """Recovery believes the checkpoint and does not replay what was settled after it."""
    right = recovery._replay

    def replay(shard: Any, row: Any) -> None:
        row.settled = []
        right(shard, row)

    plant.put(recovery, "_replay", replay)


BUGS = (
    speak_before_write,
    sequence_reused,
    settled_without_ledger,
    checkpoint_ahead,
    ledger_ignored,
)
