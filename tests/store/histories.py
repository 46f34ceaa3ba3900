"""What the simulator's engine asks of its store in one history, call by call: to be asked of another store, which must answer alike."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import pytest

from broker_core.engine.commands import TakeOver
from broker_core.engine.message import Message
from broker_core.store.memory import MemoryDatabase, MemoryStore, no_faults
from broker_core.store.memory_tables import Chooser
from tests.simulation import world

COMMANDS = 4_000


@dataclass(slots=True, frozen=True)
class Call:
    """`open` begins a term. Argument and answer are as they were then: the engine goes on with both."""

    method: str
    argument: Any = None
    answer: Any = None


def history(seed: int, monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """The calls of the seed's history. Nodes are killed in it, and there are no faults of the database: those differ by nature."""
    made: list[Call] = []

    def record(method: str, argument: Any = None, answer: Any = None) -> None:
        made.append(Call(method, argument, deepcopy(answer)))

    class Database(MemoryDatabase):
        def __init__(self, _choose: Chooser, instance: str) -> None:
            super().__init__(no_faults, instance)

        def open(self, clock_ms: int) -> MemoryStore:
            self.epoch += 1
            record("open")
            return _Recorder(self, self.epoch, clock_ms, record)

        def send(self, *arrivals: TakeOver) -> None:
            super().send(*arrivals)
            record("sent", deepcopy(arrivals))

        def crash(self) -> None:
            self.journal.flush()
            self.epoch += 1

    with monkeypatch.context() as patched:
        patched.setattr(world, "MemoryDatabase", Database)
        verdict, _ = world.run_seed(seed, commands=COMMANDS)
    assert verdict.problem == "", verdict.where
    return made


class _Recorder(MemoryStore):
    def __init__(self, database: MemoryDatabase, epoch: int, clock_ms: int, record: Callable[..., None]) -> None:
        super().__init__(database, epoch, clock_ms)
        self._record = record

    async def recover(self) -> Any:
        found = await super().recover()
        self._record("recover", None, found)
        return found

    async def commit(self, commit: Any, on_sent: Callable[[], None] = lambda: None) -> None:
        said = deepcopy(commit)
        await super().commit(commit, on_sent)
        self._record("commit", said)

    async def read(self, read: Any) -> tuple[list[Message], bool]:
        found = await super().read(read)
        self._record("read", deepcopy(read), found)
        return found

    async def inbox(self, limit: int, bytes_max: int) -> list[TakeOver]:
        found = await super().inbox(limit, bytes_max)
        self._record("inbox", (limit, bytes_max), found)
        return found

    async def write_body(self, chunks: AsyncIterator[bytes]) -> int:
        body = [octets async for octets in chunks]

        async def again() -> AsyncIterator[bytes]:
            for octets in body:
                yield octets

        number = await super().write_body(again())
        self._record("write_body", body, number)
        return number

    async def discard_bodies(self, bodies: Sequence[int]) -> None:
        await super().discard_bodies(bodies)
        self._record("discard_bodies", list(bodies))

    async def drop_segment(self, segment: int) -> bool:
        dropped = await super().drop_segment(segment)
        self._record("drop_segment", segment, dropped)
        return dropped


def _recorded(method: str) -> Callable[..., Any]:
    """Of a method that answers nothing."""

    async def call(self: _Recorder, argument: Any) -> None:
        said = deepcopy(argument)
        await getattr(MemoryStore, method)(self, argument)
        self._record(method, said)

    return call


for _method in ("checkpoint", "freeze_segment", "compact_segment", "sweep_retained", "discard_scheduled", "trim_duplicates"):
    setattr(_Recorder, _method, _recorded(_method))
