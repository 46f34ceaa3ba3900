"""What the port promises of operations: copies of many messages by the store itself, and rows that say how far each operation is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from broker_core.engine.definitions import SegmentClosed
from broker_core.engine.message import Header, StoredBody
from broker_core.engine.reads import RETAINED, PageWanted
from broker_core.engine.upkeep import CompactSegment
from broker_core.engine.writes import BulkCopy, OperationRow, OperationState
from broker_core.store import BodyMissing, CommitLost
from tests.store.rows import PLAIN, RICH, Rig, body_of, chunks, close_segment, commit, define, message, messages, told

ODD = "O'Brien \\ \"ü\", {x}"


def bulk(*positions: int, segment: int = 1, source: tuple[int, int] = (1, 4), **how: object) -> BulkCopy:
    """To the beginning of lane 4 of destination 2."""
    made = BulkCopy(segment, source, list(positions), 2, 4, 100, 1, 1_700_000_009_999, 10, "ID:me-")
    return replace(made, **how)  # type: ignore[arg-type]


def copied(bulk: BulkCopy) -> tuple[int, int, int, int]:
    """What the ledger says of it."""
    return bulk.destination, bulk.lane, bulk.position, bulk.position + len(bulk.positions) - 1


def operation(number: int = 5, **how: object) -> OperationRow:
    arguments = {"verb": "move", "filter": {"selector": ODD}, "messages": [[4, 1]]}
    place = {"subscription": 1, "lanes": [[4, 9, 2]]}
    return replace(OperationRow(number, "move", "queue/1", arguments, OperationState.RUNNING, 4, 3, 2, 1, None, place, 77, None, ODD), **how)  # type: ignore[arg-type]


TARGET = PageWanted(1, 2, 4, 0, 99, 100, 1 << 20, [1, 2])


class OperationContract:
    async def test_many_are_copied_at_once_and_keep_all_but_their_place(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await store.commit(define(1, 2))
        rich = replace_priority(RICH, 4)
        rows = [message(1, header=PLAIN, body=b"one"), message(2, header=rich, body=b"two"), message(3, header=PLAIN, body=b"three")]
        await store.commit(commit(2, rows))
        made = bulk(1, 2, 3)
        await store.commit(commit(3, bulk_copies=[made], accepted=[copied(made)]))
        found, complete = await store.read(TARGET)
        assert complete
        for number, (row, source) in enumerate(zip(found, rows, strict=True)):
            assert row.header.message_id == (source.header.message_id or f"ID:me-{source.sequence}")
            row.header = replace_id(row.header, source.header.message_id)
            source.destination, source.sequence, source.position, source.accepted_at = 2, 100 + number, 1 + number, 1_700_000_009_999
            assert told(row) == told(source)

    async def test_their_lane_time_to_live_and_annotations_may_be_others(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await store.commit(define(1, 2))
        await store.commit(commit(2, [message(1, header=replace_priority(RICH, 4)), message(2)]))
        made = bulk(1, 2, lane=9, expirations=[0, 5_000_000_000_000], annotations=["", f'{{"a":"{ODD}"}}'])
        await store.commit(commit(3, bulk_copies=[made], accepted=[copied(made)]))
        found, _ = await store.read(replace(TARGET, lane=9))
        assert [(row.header.priority, row.header.expiration, row.header.annotations) for row in found] == [
            (9, 0, ""), (9, 5_000_000_000_000, f'{{"a":"{ODD}"}}'),
        ]  # fmt: skip

    async def test_a_large_body_is_shared_and_goes_with_the_last_who_names_it(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await store.commit(define(1, 2))
        large = StoredBody(await store.write_body(chunks(b"large")), 5)
        closed = SegmentClosed(1, 1, {(1, 4): (1, 1)})
        await store.commit(commit(2, [message(1, body=large)], definitions=[closed]))
        made = bulk(1)
        after = SegmentClosed(2, 100, {(2, 4): (1, 1)})
        await store.commit(commit(3, segment=2, bulk_copies=[made], accepted=[copied(made)], definitions=[after]))
        assert await store.drop_segment(1)
        (row,) = (await store.read(replace(TARGET, segments=[2])))[0]
        assert row.body == large
        assert await body_of(store, large.body) == b"large"
        assert await store.drop_segment(2)
        with pytest.raises(BodyMissing):
            await body_of(store, large.body)

    async def test_what_was_compacted_is_copied_from_where_it_is(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await store.commit(define(1, 2))
        await close_segment(store, 2, 1, 9, 1)
        await store.compact_segment(CompactSegment(1, [(1, 4, 3, 3), (1, 4, 7, 7)]))
        made = bulk(3, 7, segment=RETAINED)
        await store.commit(commit(3, segment=2, bulk_copies=[made], accepted=[copied(made)]))
        found, _ = await store.read(replace(TARGET, segments=[2]))
        assert [(row.position, row.header.message_id) for row in found] == [(1, "ID:me-3"), (2, "ID:me-7")]

    @pytest.mark.parametrize("missing", [(2, 4), (2, 3, 4), (7, 8)], ids=["among others", "at the end of neighbours", "all neighbours"])
    async def test_a_source_that_is_not_there_costs_the_commit(self, rig: Rig, missing: tuple[int, ...]) -> None:
        store = await rig.open()
        await store.recover()
        await store.commit(define(1, 2))
        await store.commit(commit(2, messages(1, 3)))
        with pytest.raises(CommitLost):
            await store.commit(commit(3, bulk_copies=[bulk(*missing)], accepted=[(2, 4, 1, len(missing))]))
        store = await rig.open()
        assert (await store.recover()).ledger[-1].number == 2

    async def test_the_open_segment_counts_what_was_copied(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await store.commit(define(1, 2))
        await store.commit(commit(2, messages(1, 5)))
        made = bulk(1, 3, 5)
        await store.commit(commit(3, bulk_copies=[made], accepted=[copied(made)]))
        store = await rig.open()
        found = await store.recover()
        assert (found.open_rows, found.open_lanes[2, 4]) == (8, (1, 3))

    async def test_an_operation_comes_back_as_its_last_commit_left_it(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await store.commit(commit(1, operations=[operation(6, state=OperationState.WAITING, started_at=0, total=7), operation()]))
        await store.commit(commit(2, operations=[operation(looked_at=9, done=8, place={"subscription": 1, "lanes": []}, results=[["failed", ODD, [[4, 1]]]])]))
        store = await rig.open()
        found = (await store.recover()).operations
        assert found == [
            operation(looked_at=9, done=8, place={"subscription": 1, "lanes": []}, results=[["failed", ODD, [[4, 1]]]]),
            operation(6, state=OperationState.WAITING, started_at=0, total=7),
        ]  # fmt: skip

    async def test_one_that_has_ended_does_not_come_back(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await store.commit(commit(1, operations=[operation(), operation(6)]))
        await store.commit(commit(2, operations=[operation(state=OperationState.CANCELLED, ended_at=99)]))
        store = await rig.open()
        assert [one.operation for one in (await store.recover()).operations] == [6]

    async def test_progress_is_lost_with_its_commit(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await store.commit(commit(1, operations=[operation()]))
        await rig.cut_off(store)
        with pytest.raises(CommitLost):
            await store.commit(commit(2, operations=[operation(done=99)]))
        store = await rig.open()
        assert [one.done for one in (await store.recover()).operations] == [3]


def replace_priority(header: Header, priority: int) -> Header:
    return replace(header, priority=priority)


def replace_id(header: Header, message_id: str) -> Header:
    return replace(header, message_id=message_id)
