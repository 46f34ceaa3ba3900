"""What sessions of the database send (R17)."""

from __future__ import annotations

from typing import Any

from broker_core.engine import engine
from broker_core.engine.commands import TakeOver
from broker_core.store.memory import MemoryStore

from .plant import Plant


def row_stays_in_the_inbox(plant: Plant) -> None:
    """What was taken over is not deleted: it is taken again, and again."""
    right = engine._commit

    def commit(shard: Any) -> Any:
        made = right(shard)
        if made is not None:
            made.taken = []
        return made

    plant.put(engine, "_commit", commit)


def later_numbers_only(plant: Plant) -> None:
    """Rows are asked for by "those after the last": what a transaction that took long put there is passed over."""
    right, seen = MemoryStore.inbox, {0: 0}

    async def inbox(self: Any, limit: int, bytes_max: int) -> list[TakeOver]:
        found = [arrival for arrival in await right(self, 1_000, 1 << 20) if arrival.entry > seen.get(id(self._database), 0)]
        seen[id(self._database)] = max([arrival.entry for arrival in found], default=seen.get(id(self._database), 0))
        return found[:limit]

    plant.put(MemoryStore, "inbox", inbox)


def deleted_when_read(plant: Plant) -> None:
    """Rows go when they are read, not with the commit that takes them: one that is lost loses them."""
    right, write = MemoryStore.inbox, MemoryStore._write

    async def inbox(self: Any, limit: int, bytes_max: int) -> list[TakeOver]:
        found = await right(self, limit, bytes_max)
        for arrival in found:
            del self._tables.inbox[arrival.entry]
        return found

    def without(self: Any, commit: Any) -> None:
        commit.taken = []
        write(self, commit)

    plant.put(MemoryStore, "inbox", inbox)
    plant.put(MemoryStore, "_write", without)


BUGS = (
    row_stays_in_the_inbox,
    later_numbers_only,
    deleted_when_read,
)
