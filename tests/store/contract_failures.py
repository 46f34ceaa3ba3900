"""What the port promises of what goes wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from broker_core.engine.definitions import SegmentClosed
from broker_core.engine.message import StoredBody
from broker_core.engine.reads import RETAINED, ExpiredWanted, PositionsWanted
from broker_core.engine.upkeep import CompactSegment, SweepRetained, TrimDuplicates
from broker_core.engine.writes import Checkpoint, Copy
from broker_core.store import BodyMissing, CommitLost, SegmentMissing, SpaceExhausted
from tests.store.rows import Rig, body_of, chunks, close_segment, commit, message, messages, page, positions


class FailureContract:
    """What goes wrong, and what then holds."""

    async def test_a_commit_on_a_lost_connection_is_lost_and_the_next_term_goes_on_from_the_one_before(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await store.commit(commit(1, messages(1, 3)))
        await rig.cut_off(store)
        with pytest.raises(CommitLost):
            await store.commit(commit(2, messages(4, 5)))
        with pytest.raises(CommitLost):
            await store.commit(commit(3))
        again = await rig.open()
        found = await again.recover()
        assert [row.number for row in found.ledger] == [1]
        assert found.open_lanes == {(1, 4): (1, 3)}
        await again.commit(commit(2, messages(4, 5)))
        assert await positions(again, page(0, 9)) == [1, 2, 3, 4, 5]

    async def test_a_full_disk_refuses_the_commit_whole_and_the_same_commit_succeeds_when_there_is_room(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await rig.fill_disk()
        many, few = commit(1, messages(1, 50)), commit(2, messages(51, 51))
        for refused in (many, few):
            with pytest.raises(SpaceExhausted):
                await store.commit(refused)
        await rig.free_disk()
        await store.commit(many)
        await store.commit(few)
        assert await positions(store, page(0, 99)) == list(range(1, 52))
        found = await (await rig.open()).recover()
        assert [row.number for row in found.ledger] == [1, 2]
        assert found.open_rows == 51

    async def test_a_store_whose_epoch_is_over_changes_nothing(self, rig: Rig) -> None:
        old = await rig.open()
        await old.recover()
        await close_segment(old, 1, 1, 3, 1)
        new = await rig.open()
        epoch = (await new.recover()).epoch
        with pytest.raises(CommitLost):
            await old.checkpoint(Checkpoint(1, 1, 3, cursors=[(1, 4, 2, 3)]))
        with pytest.raises(CommitLost):
            await old.drop_segment(1)
        with pytest.raises(CommitLost):
            await old.compact_segment(CompactSegment(1, [(1, 4, 2, 2)]))
        with pytest.raises(CommitLost):
            await old.sweep_retained(SweepRetained([(1, 4, 1, 3)]))
        with pytest.raises(CommitLost):
            await old.discard_scheduled(1)
        with pytest.raises(CommitLost):
            await old.trim_duplicates(TrimDuplicates([(1, 1)]))
        with pytest.raises(CommitLost):
            await old.commit(commit(2, messages(4, 4), segment=2))
        found = await (await rig.open()).recover()
        assert found.epoch > epoch
        assert found.checkpoint.number == 0
        assert found.checkpoint.cursors == []
        assert [row.number for row in found.ledger] == [1]
        assert [closed.segment for closed in found.segments] == [1]

    async def test_reading_a_segment_that_is_gone_is_an_error_and_one_not_made_yet_is_empty(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await close_segment(store, 1, 1, 3, 1)
        await store.commit(commit(2, messages(4, 4), segment=2))
        assert await store.drop_segment(1)
        for read in (page(0, 9, segments=[1, 2]), PositionsWanted(1, 1, 4, [2], [1]), ExpiredWanted(1, (0, 0), 9, 9, [1], 1000)):
            with pytest.raises(SegmentMissing):
                await store.read(read)
        assert await positions(store, page(0, 9, segments=[2, 77])) == [4]

    async def test_a_segment_with_an_open_reader_is_not_dropped_and_commits_go_on_meanwhile(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await close_segment(store, 1, 1, 3, 1)
        await rig.hold(1)
        assert not await store.drop_segment(1)
        await store.commit(commit(2, messages(4, 4), segment=2))
        assert await positions(store, page(0, 9, segments=[1, 2])) == [1, 2, 3, 4]
        await rig.let_go()
        assert await store.drop_segment(1)
        assert await store.drop_segment(1)

    async def test_an_interrupted_compaction_leaves_the_segment_as_it_was(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await close_segment(store, 1, 1, 40, 1)
        await rig.break_compaction()
        with pytest.raises(CommitLost):
            await store.compact_segment(CompactSegment(1, [(1, 4, 1, 40)]))
        again = await rig.open()
        found = await again.recover()
        assert [closed.segment for closed in found.segments] == [1]
        assert found.retained == {}
        assert await positions(again, page(0, 99, segments=[RETAINED, 1])) == list(range(1, 41))
        await again.compact_segment(CompactSegment(1, [(1, 4, 2, 30)]))
        assert await positions(again, page(0, 99, segments=[RETAINED])) == list(range(2, 31))

    async def test_the_large_bodies_of_an_interrupted_compaction_go_with_their_segment(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        body = StoredBody(await store.write_body(chunks(b"large")), 5)
        rows = [message(1, body=body), *messages(2, 40)]
        await store.commit(commit(1, rows, definitions=[SegmentClosed(1, 40, {(1, 4): (1, 40)})]))
        await rig.break_compaction()
        with pytest.raises(CommitLost):
            await store.compact_segment(CompactSegment(1, [(1, 4, 1, 40)]))
        again = await rig.open()
        await again.recover()
        assert await body_of(again, body.body) == b"large"
        assert await again.drop_segment(1)
        with pytest.raises(BodyMissing):
            await body_of(again, body.body)

    async def test_a_copy_of_a_message_that_is_not_there_makes_no_commit(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await store.commit(commit(1, messages(1, 1)))
        missing = Copy(1, (1, 4, 2), message(1, destination=2, sequence=3))
        with pytest.raises(CommitLost):
            await store.commit(commit(2, messages(2, 2, sequence=2, destination=3), copies=[missing]))
        again = await rig.open()
        assert [row.number for row in (await again.recover()).ledger] == [1]

    async def test_a_body_that_is_not_there_is_missing_and_an_upload_given_up_leaves_none(self, rig: Rig) -> None:
        async def given_up() -> AsyncIterator[bytes]:
            yield b"x" * 2_000_000
            raise ConnectionResetError

        store = await rig.open()
        await store.recover()
        with pytest.raises(ConnectionResetError):
            await store.write_body(given_up())
        first = await store.write_body(chunks(b"y"))
        for number in range(1, first):
            with pytest.raises(BodyMissing):
                await body_of(store, number)
        await store.discard_bodies([first])
        with pytest.raises(BodyMissing):
            await body_of(store, first)
