"""What the port promises of delayed messages and of duplicates."""

from __future__ import annotations

import pytest

from broker_core.engine.definitions import DestinationDestroyed, SegmentClosed
from broker_core.engine.message import Header, Reliability, StoredBody
from broker_core.engine.reads import ScheduledWanted
from broker_core.engine.upkeep import TrimDuplicates
from broker_core.store import BodyMissing, CommitLost
from tests.store.rows import PLAIN, RICH, Rig, body_of, chunks, commit, define, delayed, message, messages, page, positions, told


class ScheduleContract:
    """Messages that are not due yet (R3)."""

    async def test_delayed_messages_are_read_in_the_order_in_which_they_are_due_and_cut_by_rows_octets_and_instant(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        rows = [delayed(number, due) for number, due in ((1, 300), (2, 100), (3, 200), (4, 100), (5, 400))]
        await store.commit(commit(1, scheduled=rows))
        size = rows[0].size

        async def read(after: tuple[int, int] = (0, 0), upto: int = 1000, limit: int = 99, bytes_max: int = 1 << 20) -> tuple[list[int], bool]:
            found, complete = await store.read(ScheduledWanted(1, after, upto, limit, bytes_max))
            return [row.sequence for row in found], complete

        assert await read() == ([2, 4, 3, 1, 5], True)
        assert await read(upto=300) == ([2, 4, 3, 1], True)
        assert await read(after=(100, 2)) == ([4, 3, 1, 5], True)
        assert await read(after=(100, 4), upto=199) == ([], True)
        assert await read(after=(200, (1 << 63) - 1)) == ([1, 5], True)
        assert await read(limit=2) == ([2, 4], False)
        assert await read(bytes_max=1) == ([2], False)
        assert await read(bytes_max=3 * size - 1) == ([2, 4], False)
        assert await positions(store, page(0, 99)) == []

    async def test_a_delayed_message_comes_back_as_it_was(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        body = await store.write_body(chunks(b"large"))
        slow = Header(b"a:b", 4, Reliability.ASSURED, delay=99)
        rows = [
            delayed(1, 10, header=RICH, body=b"it's \\ \0 binary"),
            delayed(2, 10, body=b""),
            delayed(3, 10, body=StoredBody(body, 5)),
            delayed(4, (1 << 63) - 1, header=slow, destination=7),
        ]
        await store.commit(commit(1, scheduled=rows))
        store = await rig.open()
        await store.recover()
        found, complete = await store.read(ScheduledWanted(1, (0, 0), (1 << 63) - 1, 99, 1 << 20))
        assert complete
        assert [told(row) for row in found] == [told(row) for row in rows]
        assert found[3].header.delay == 0

    async def test_a_large_body_that_is_moved_to_another_time_stays_and_that_of_a_cancelled_message_may_go(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        moved, cancelled = await store.write_body(chunks(b"moved")), await store.write_body(chunks(b"cancelled"))
        await store.commit(commit(1, scheduled=[delayed(1, 10, body=StoredBody(moved, 5)), delayed(2, 10, body=StoredBody(cancelled, 9))]))
        await store.commit(commit(2, due=[1, 2], scheduled=[delayed(3, 99, body=StoredBody(moved, 5))]))
        await store.discard_bodies([cancelled])
        store = await rig.open()  # a new term sweeps what nobody names
        await store.recover()
        found, _ = await store.read(ScheduledWanted(1, (0, 0), 1000, 99, 1 << 20))
        assert [(row.sequence, row.body) for row in found] == [(3, StoredBody(moved, 5))]
        assert await body_of(store, moved) == b"moved"
        with pytest.raises(BodyMissing):
            await body_of(store, cancelled)

    async def test_the_commit_that_makes_a_message_visible_takes_it_from_the_schedule(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        body = await store.write_body(chunks(b"large"))
        large = StoredBody(body, 5)
        await store.commit(commit(1, scheduled=[delayed(1, 10), delayed(2, 10, body=large), delayed(3, 10)]))
        await rig.cut_off(store)
        with pytest.raises(CommitLost):
            await store.commit(commit(2, messages(1, 1, sequence=4), due=[1]))
        store = await rig.open()
        assert (await store.recover()).scheduled == [(1, 3, 2 * delayed(1, 10).size + len(PLAIN.octets) + 5)]
        closed = SegmentClosed(1, 5, {(1, 4): (1, 2)})
        await store.commit(commit(2, [message(1, sequence=4), message(2, sequence=5, body=large)], due=[1, 2], definitions=[closed]))
        assert await body_of(store, body) == b"large"
        store = await rig.open()
        assert (await store.recover()).scheduled == [(1, 1, delayed(1, 10).size)]
        assert await body_of(store, body) == b"large"
        assert await store.drop_segment(1)
        with pytest.raises(BodyMissing):
            await body_of(store, body)

    async def test_a_message_scheduled_and_due_in_one_commit_leaves_nothing_in_the_schedule(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await store.commit(commit(1, messages(1, 1, sequence=2), scheduled=[delayed(1, 10)], due=[1]))
        assert (await (await rig.open()).recover()).scheduled == []

    async def test_volatile_delayed_messages_go_with_their_term_and_so_do_their_large_bodies(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        bodies = [await store.write_body(chunks(b"large")) for _ in range(2)]
        express, reliable = Header(b"", 4, Reliability.EXPRESS), Header(b"", 4, Reliability.RELIABLE)
        rows = [delayed(1, 10, header=express, body=StoredBody(bodies[0], 5)), delayed(2, 10, header=reliable, body=StoredBody(bodies[1], 5))]
        await store.commit(commit(1, scheduled=rows, synchronous=False))
        found, _ = await store.read(ScheduledWanted(1, (0, 0), 99, 99, 1 << 20))
        assert [row.sequence for row in found] == [1, 2]
        store = await rig.open()
        assert (await store.recover()).scheduled == [(1, 1, 5)]
        assert await body_of(store, bodies[1]) == b"large"
        with pytest.raises(BodyMissing):
            await body_of(store, bodies[0])

    async def test_what_waits_for_a_destroyed_destination_is_told_until_it_is_discarded_with_its_bodies(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await store.commit(define(1, 2))
        body = await store.write_body(chunks(b"large"))
        rows = [delayed(number, 10, destination=2) for number in range(1, 1500)]
        await store.commit(commit(2, scheduled=[*rows, delayed(1500, 10, destination=2, body=StoredBody(body, 5)), delayed(1501, 10)]))
        await store.commit(commit(3, definitions=[DestinationDestroyed(2)]))
        store = await rig.open()
        assert [(number, count) for number, count, _ in (await store.recover()).scheduled] == [(1, 1), (2, 1500)]
        await store.discard_scheduled(2)
        await store.discard_scheduled(2)
        with pytest.raises(BodyMissing):
            await body_of(store, body)
        store = await rig.open()
        assert [(number, count) for number, count, _ in (await store.recover()).scheduled] == [(1, 1)]

    async def test_a_body_that_the_schedule_names_outlives_the_segments_that_name_it_too(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        large = StoredBody(await store.write_body(chunks(b"large")), 5)
        closed = SegmentClosed(1, 1, {(1, 4): (1, 1)})
        await store.commit(commit(1, [message(1, body=large)], scheduled=[delayed(2, 10, body=large)], definitions=[closed]))
        assert await store.drop_segment(1)
        assert await body_of(store, large.body) == b"large"
        await store.commit(commit(2, messages(2, 2, body=large, sequence=3), segment=2, due=[2]))
        assert await body_of(store, large.body) == b"large"


ODD = ["it's", '"quoted"', "\\", "{a,b}", "NULL", "", " ", "ü", "\U0001f600", "a\nb", "x" * 255]
"""Identifiers that could mean something on their way."""


class DuplicateContract:
    """Identifiers of accepted messages."""

    async def test_identifiers_are_as_durable_as_the_messages_of_their_commit(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await store.commit(commit(1, messages(1, 2), remembered=[(1, ["a", "b"])]))
        await rig.cut_off(store)
        with pytest.raises(CommitLost):
            await store.commit(commit(2, messages(3, 3), remembered=[(1, ["lost"])]))
        store = await rig.open()
        assert (await store.recover()).duplicates == [(1, [1_700_000_000_001] * 2, ["a", "b"])]

    async def test_they_come_back_as_they_were_in_the_order_of_the_commits(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        at = 1_700_000_000_000
        await store.commit(commit(9, messages(1, 1), at=at, remembered=[(2, ODD), (1, ["1"])]))
        await store.commit(commit(10, messages(2, 2), at=at, remembered=[(1, ["2"])]))
        await store.commit(commit(11, messages(3, 3), at=at + 1, remembered=[(1, ["3"])]))
        assert (await (await rig.open()).recover()).duplicates == [(1, [at, at, at + 1], ["1", "2", "3"]), (2, [at] * len(ODD), ODD)]

    async def test_those_before_an_instant_are_deleted_however_many_they_are(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        at = 1_700_000_000_000
        many = [(destination, [f"{destination}"]) for destination in range(3, 2503)]
        await store.commit(commit(1, messages(1, 1), at=at, remembered=[(1, ["a"]), (2, ["b"]), *many]))
        await store.commit(commit(2, messages(2, 2), at=at + 5, remembered=[(1, ["c"]), (2, ["d"])]))
        await store.trim_duplicates(TrimDuplicates([(destination, at + 1) for destination, _ in many]))
        assert (await store.recover()).duplicates == [(1, [at, at + 5], ["a", "c"]), (2, [at, at + 5], ["b", "d"])]
        await store.trim_duplicates(TrimDuplicates([(1, at + 5), (2, at), (99, at + 9)]))
        await store.trim_duplicates(TrimDuplicates([(1, at + 5)]))
        assert (await (await rig.open()).recover()).duplicates == [(1, [at + 5], ["c"]), (2, [at, at + 5], ["b", "d"])]
