"""What the port promises of purges that may be undone: they come back as commits left them, until a commit ends them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from broker_core.engine.definitions import UndoEnd, UndoEnded, UndoKept
from broker_core.store import CommitLost
from tests.store.rows import Rig, commit, define

NAME = "queue/O'Brien"


def kept(number: int = 5, **how: object) -> UndoKept:
    made = UndoKept(number, "purge", NAME, 1, 1_700_000_000_000, 1_700_000_003_600, 77, 12, 340, [(1, 4, 0, 9, -1), (1, 9, 5_000_000_000, 5_000_000_001, 3)])
    return replace(made, **how)  # type: ignore[arg-type]


class UndoContract:
    async def test_what_may_be_undone_comes_back(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await store.commit(define(1, 2))
        await store.commit(commit(2, definitions=[kept(6), kept()]))
        store = await rig.open()
        assert (await store.recover()).undo == [kept(), kept(6)]

    async def test_what_later_commits_discard_is_added(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await store.commit(commit(1, definitions=[kept(lapses_at=0)]))
        more = kept(lapses_at=0, messages=13, octets=350, ranges=[(2, 4, 7, 7, 0)])
        await store.commit(commit(2, definitions=[more]))
        await store.commit(commit(3, definitions=[kept(messages=13, octets=350, ranges=[])]))
        store = await rig.open()
        assert (await store.recover()).undo == [kept(messages=13, octets=350, ranges=[*kept().ranges, (2, 4, 7, 7, 0)])]

    @pytest.mark.parametrize("how", list(UndoEnd))
    async def test_what_has_ended_does_not(self, rig: Rig, how: UndoEnd) -> None:
        store = await rig.open()
        await store.recover()
        await store.commit(commit(1, definitions=[kept(), kept(6)]))
        await store.commit(commit(2, definitions=[UndoEnded(5, how)]))
        store = await rig.open()
        assert [one.undo for one in (await store.recover()).undo] == [6]

    async def test_its_end_is_lost_with_its_commit(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await store.commit(commit(1, definitions=[kept()]))
        await rig.cut_off(store)
        with pytest.raises(CommitLost):
            await store.commit(commit(2, definitions=[UndoEnded(5, UndoEnd.UNDONE)]))
        store = await rig.open()
        assert (await store.recover()).undo == [kept()]
