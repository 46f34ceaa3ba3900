"""The memory store keeps the port's promises, and breaks them exactly where it is told to."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core.engine.commands import TakeOver
from broker_core.engine.definitions import SegmentClosed
from broker_core.engine.message import Header, Message, Reliability, StoredBody
from broker_core.engine.upkeep import CompactSegment
from broker_core.stomp.escaping import canonical
from broker_core.store import CommitLost, SpaceExhausted
from broker_core.store.memory import MemoryDatabase, MemoryStore
from broker_core.store.memory_tables import Fault
from tests.store.contract import StoreContract
from tests.store.engine_contract import EngineContract
from tests.store.rows import commit, messages, page, positions


class MemoryRig:
    """A memory database whose faults are planned call by call."""

    def __init__(self) -> None:
        self.planned: dict[str, list[Fault]] = {}
        self.standing: dict[str, Fault] = {}
        self.database = MemoryDatabase(self._choose)

    def _choose(self, method: str) -> Fault:
        if self.planned.get(method):
            return self.planned[method].pop(0)
        return self.standing.get(method, Fault.NONE)

    async def open(self) -> MemoryStore:
        return self.database.open(1_000)

    async def cut_off(self, _store: MemoryStore) -> None:
        self.planned["commit"] = [Fault.LOST]

    async def fill_disk(self) -> None:
        self.standing["commit"] = Fault.FULL

    async def free_disk(self) -> None:
        del self.standing["commit"]

    async def hold(self, _segment: int) -> None:
        self.standing["drop_segment"] = Fault.LOCKED

    async def let_go(self) -> None:
        del self.standing["drop_segment"]

    async def break_compaction(self) -> None:
        self.planned["compact_segment"] = [Fault.LOST]

    async def sent(self, address: str, *bodies: bytes) -> list[int]:
        entries = []
        for body in bodies:
            kept: bytes | StoredBody = body
            if len(body) > 262_144:  # as surety.send does
                self.database.tables.last_body += 1
                kept = StoredBody(self.database.tables.last_body, len(body))
                self.database.tables.bodies[kept.body] = (self.database.epoch, [body])
            entry = self.database.number()
            lines = canonical({"destination": f"/{address}"}) + b"\npersistent:true"
            header = Header(lines, reliability=Reliability.ASSURED, message_id=f"ID:memory-sql-{entry}")
            self.database.send(TakeOver(entry, address, Message(header, kept, len(header.octets) + len(body)), 1_000))
            entries.append(entry)
        return entries

    async def request(self, verb: str, address: str, arguments: dict[str, Any], deadline: int) -> int:
        return self.database.request(verb, address, arguments, deadline)

    async def answer(self, request: int) -> tuple[bool, dict[str, Any]] | None:
        return self.database.answer(request)


@pytest.fixture
def rig() -> MemoryRig:
    return MemoryRig()


class TestMemoryStore(StoreContract):
    pass


class TestEngineOverMemory(EngineContract):
    pass


async def test_a_commit_may_be_kept_and_yet_be_lost_to_its_caller(rig: MemoryRig) -> None:
    store = await rig.open()
    await store.recover()
    rig.planned["commit"] = [Fault.KEPT]
    with pytest.raises(CommitLost):
        await store.commit(commit(1, messages(1, 3)))
    again = await rig.open()
    assert [row.number for row in (await again.recover()).ledger] == [1]
    assert await positions(again, page(0, 9)) == [1, 2, 3]


async def test_a_crash_of_the_database_takes_what_did_not_wait_for_the_disk(rig: MemoryRig) -> None:
    store = await rig.open()
    await store.recover()
    await store.commit(commit(1, messages(1, 1)))
    await store.commit(commit(2, messages(2, 2), synchronous=False))
    await store.commit(commit(3, messages(3, 3), synchronous=False, definitions=[SegmentClosed(1, 3, {(1, 4): (1, 3)})]))
    rig.planned["commit"] = [Fault.CRASH]
    with pytest.raises(CommitLost):
        await store.commit(commit(4, messages(4, 4), segment=2))
    again = await rig.open()
    found = await again.recover()
    assert [row.number for row in found.ledger] == [1]
    assert (found.open_segment, found.open_lanes, found.segments) == (1, {(1, 4): (1, 1)}, [])


async def test_a_synchronous_commit_takes_all_before_it_to_the_disk(rig: MemoryRig) -> None:
    store = await rig.open()
    await store.recover()
    await store.commit(commit(1, messages(1, 1), synchronous=False))
    await store.commit(commit(2, messages(2, 2)))
    rig.database.crash()
    again = await rig.open()
    assert [row.number for row in (await again.recover()).ledger] == [1, 2]


async def test_a_page_may_be_cut_after_its_first_row(rig: MemoryRig) -> None:
    store = await rig.open()
    await store.recover()
    await store.commit(commit(1, messages(1, 3)))
    rig.planned["read"] = [Fault.CUT]
    found, complete = await store.read(page(0, 9))
    assert ([row.position for row in found], complete) == ([1], False)


async def test_no_room_for_maintenance_is_told(rig: MemoryRig) -> None:
    store = await rig.open()
    await store.recover()
    await store.commit(commit(1, messages(1, 3), definitions=[SegmentClosed(1, 3, {(1, 4): (1, 3)})]))
    rig.planned["compact_segment"] = [Fault.FULL]
    with pytest.raises(SpaceExhausted):
        await store.compact_segment(CompactSegment(1, [(1, 4, 1, 1)]))


def test_its_coroutines_never_wait() -> None:
    store = MemoryDatabase().open(0)
    with pytest.raises(StopIteration):
        store.recover().send(None)
    with pytest.raises(StopIteration):
        store.commit(commit(1, messages(1, 3))).send(None)
    with pytest.raises(StopIteration):
        store.read(page(0, 9)).send(None)
