"""What the port promises of recovery."""

from __future__ import annotations

from dataclasses import replace

import pytest

from broker_core.engine.definitions import (
    AliasDefined, AliasDeleted, DestinationDefined, DestinationDestroyed, PolicyDefined, PolicyDropped, SegmentClosed, SubscriptionDefined,
    SubscriptionDestroyed,
)  # fmt: skip
from broker_core.engine.outcome import Outcome
from broker_core.engine.reads import RETAINED
from broker_core.engine.recovered import Recovered
from broker_core.engine.upkeep import CompactSegment, SweepRetained
from broker_core.engine.writes import Checkpoint
from broker_core.store import SegmentMissing
from tests.store.rows import QUICK, RICH, Rig, close_segment, commit, define, message, messages, page, positions


class RecoveryContract:
    """What a term finds of the terms before."""

    async def test_a_new_database_is_empty_and_its_name_and_rising_epoch_are_kept(self, rig: Rig) -> None:
        first = await (await rig.open()).recover()
        second = await (await rig.open()).recover()
        assert second.epoch > first.epoch
        assert second.instance == first.instance != ""
        assert second.clock_ms >= first.clock_ms
        second.epoch, second.clock_ms = 0, 0
        assert second == Recovered(0, 0, Checkpoint(0, 0, 0), instance=first.instance)

    async def test_recovering_twice_finds_the_same(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await close_segment(store, 1, 1, 10, 1)
        await store.commit(commit(2, messages(11, 12), segment=2))
        await store.checkpoint(Checkpoint(1, 5, 10, lanes=[(1, 4, 11)]))
        again = await rig.open()
        first, second = await again.recover(), await again.recover()
        first.clock_ms = second.clock_ms = 0
        assert first == second

    async def test_the_ledger_after_the_checkpoint_comes_back_column_by_column(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await store.commit(commit(1, messages(1, 2)))
        full = commit(
            2, messages(3, 4), offered=[(1, 4, 1, 2, 7), (2, 4, 1, 1, 1 << 40)], settled=[(1, 4, 1, 1, Outcome.ACCEPTED), (1, 9, 1, 1, Outcome.PURGED)],
            failures=[(1, 4, 2, 3)], octets=[(1, 55, 60), (2, -7, 0)], blocked=[(2, 17, 60_017), (1, 0, 5)], synchronous=False,
            traces=[(1, 4, 1, 1, 0, 0, 0), (1, 4, 2, 2, 0, 0, 0), (0, 0, 0, 0, 2, 4, 7)],
            definitions=[SubscriptionDefined(3, 1), DestinationDestroyed(2), SubscriptionDestroyed(3)],
        )  # fmt: skip
        await store.commit(full)
        await store.commit(commit(3, settled=[(1, 4, 2, 2, Outcome.REJECTED)]))
        await store.checkpoint(Checkpoint(1, 1, 2))
        rows = (await (await rig.open()).recover()).ledger
        assert [row.number for row in rows] == [2, 3]
        for name in ("number", "at", "sequence", "segment", "accepted", "offered", "settled", "failures", "octets", "blocked"):
            assert getattr(rows[0], name) == getattr(full, name), name
        assert rows[0].traced == [(1, 4, 1, 2, 0, 0, 0, 0), (0, 0, 0, 0, 0, 2, 4, 7)]
        assert (rows[0].begun, rows[0].ended) == ([(3, 1)], [(0, 2), (3, 0)])
        assert (rows[1].accepted, rows[1].settled) == ([], [(1, 4, 2, 2, 1)])

    async def test_a_checkpoint_replaces_what_it_names_and_deletes_what_it_empties(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await store.commit(define(1, 2))
        await store.commit(commit(2))
        bits = bytes(range(256)) * 2
        await store.checkpoint(
            Checkpoint(
                1,
                10,
                5,
                lanes=[(1, 4, 5), (2, 0, 9)],
                cursors=[(1, 4, 3, 4), (2, 0, 8, 8)],
                blocks=[(1, 4, 0, bits), (1, 4, 1, b"\1")],
                failures=[(1, 4, 3, 2), (2, 0, 8, 1)],
                counters=[(1, 100, 5, 4, 3, 2, 1), (2, 0, 9, 9, 0, 0, 0)],
            )
        )
        await store.checkpoint(
            Checkpoint(2, 20, 6, lanes=[(1, 4, 6)], cursors=[(1, 4, 5, 5)], blocks=[(1, 4, 0, b""), (1, 4, 9, b"")], failures=[(1, 4, 3, 0)])
        )
        found = (await (await rig.open()).recover()).checkpoint
        assert (found.number, found.at, found.sequence) == (2, 20, 6)
        assert sorted(found.lanes) == [(1, 4, 6), (2, 0, 9)]
        assert sorted(found.cursors) == [(1, 4, 5, 5), (2, 0, 8, 8)]
        assert found.blocks == [(1, 4, 1, b"\1")]
        assert found.failures == [(2, 0, 8, 1)]
        assert sorted(found.counters) == [(1, 100, 5, 4, 3, 2, 1), (2, 0, 9, 9, 0, 0, 0)]

    async def test_aliases_are_replaced_and_deleted(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        first, second = AliasDefined("queue/b'", "queue/1", "inherit", "assured", True), AliasDefined("queue/a", "queue/b'", "inherit", "inherit", True)
        await store.commit(commit(1, definitions=[first, second, AliasDefined("topic/t", "topic/u", "express", "express", False)]))
        changed = AliasDefined("queue/b'", 'queue/"2" ü', "express", "reliable", False)
        await store.commit(commit(2, definitions=[changed, AliasDeleted("topic/t"), AliasDeleted("topic/none")]))
        assert (await (await rig.open()).recover()).aliases == [second, changed]

    async def test_definitions_are_replaced_and_destroyed_and_numbers_are_remembered(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await store.commit(define(1, 2))
        changed = DestinationDefined(1, "queue/1", 5, False, 3, {"limit": None, "text": 'it\'s \\ "quoted" ü'})
        await store.commit(commit(2, definitions=[changed, DestinationDestroyed(2)]))
        await store.checkpoint(Checkpoint(2, 1, 1, lanes=[(2, 4, 7)], cursors=[(2, 4, 7, 7)], counters=[(2, 1, 1, 1, 1, 1, 1)]))
        reborn = DestinationDefined(3, "queue/2", 6, True, 0, {})
        await store.commit(commit(3, definitions=[reborn, SubscriptionDefined(3, 3, "n'", "c")]))
        await store.commit(commit(4, definitions=[DestinationDestroyed(3)]))
        found = await (await rig.open()).recover()
        assert found.destinations == [changed]
        assert found.subscriptions == [SubscriptionDefined(1, 1)]
        assert (found.last_destination, found.last_subscription) == (3, 3)
        assert (found.checkpoint.lanes, found.checkpoint.cursors, found.checkpoint.counters) == ([], [], [])

    async def test_durable_subscriptions_come_back_as_they_were_made_until_they_are_ended(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await store.commit(define(1, 1))
        kept = SubscriptionDefined(2, 1, "it's \\ ü", "me", False, "a = 'b' AND c LIKE '%\\'", True, "o'hara")
        await store.commit(commit(2, definitions=[kept, SubscriptionDefined(3, 1, "s", "", True, "", False)]))
        await store.checkpoint(Checkpoint(2, 1, 1, cursors=[(2, 4, 7, 7), (3, 4, 5, 5)], blocks=[(3, 4, 1, b"\1")], failures=[(3, 4, 6, 1)]))
        await store.commit(commit(3, definitions=[SubscriptionDestroyed(3)]))
        found = await (await rig.open()).recover()
        assert found.subscriptions == [SubscriptionDefined(1, 1), kept]
        assert found.last_subscription == 3
        assert (found.checkpoint.cursors, found.checkpoint.blocks, found.checkpoint.failures) == ([(2, 4, 7, 7)], [], [])

    async def test_policies_are_replaced_and_dropped(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        first = PolicyDefined("queue/it's \\\\ ü.*", {"max_messages": 5, "limit_behavior": "REJECT_NEWEST", "dead_queue": "queue/o'dead"})
        await store.commit(commit(1, definitions=[first, PolicyDefined("topic/**", {"use_dead": False}), PolicyDefined("queue/a", {})]))
        changed = PolicyDefined("queue/a", {"redelivery_multiplier": 1.5})
        await store.commit(commit(2, definitions=[changed, PolicyDropped("topic/**"), PolicyDropped("queue/never")]))
        assert (await (await rig.open()).recover()).policies == [changed, first]

    async def test_a_pattern_and_its_members_begin_and_end_together_however_many_they_are(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await store.commit(define(1, 1))
        whole = SubscriptionDefined(2, 0, "it's", "me", True, "a = 'b'", True, "guest", pattern="topic/p.*")
        topics = [DestinationDefined(number, f"topic/p.{number}", 1, True, 0, {}) for number in range(2, 52)]
        members = [SubscriptionDefined(number + 1, number, "it's", "me", True, "a = 'b'", True, "guest") for number in range(2, 52)]
        again = replace(members[0], shared=False)
        await store.commit(commit(2, definitions=[*topics, whole, *members, again]))
        found = await (store := await rig.open()).recover()
        assert found.subscriptions == [SubscriptionDefined(1, 1), whole, again, *members[1:]]
        await store.commit(commit(3, definitions=[SubscriptionDestroyed(one.subscription) for one in [whole, *members]]))
        found = await (await rig.open()).recover()
        assert found.subscriptions == [SubscriptionDefined(1, 1)]
        assert found.last_subscription == 52

    async def test_what_was_buried_of_a_topic_is_kept_with_its_progress_until_it_is_destroyed(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await store.commit(define(1, 3))
        cursors = [(3, 4, 1, 1), (-2, 4, 7, -1), (-3, 4, 9, -1)]
        await store.checkpoint(Checkpoint(1, 1, 1, cursors=cursors, blocks=[(-2, 4, 1, b"\1"), (-3, 4, 1, b"\2")]))
        await store.commit(commit(2, definitions=[DestinationDestroyed(2)]))
        found = (await (await rig.open()).recover()).checkpoint
        assert (sorted(found.cursors), found.blocks) == ([(-3, 4, 9, -1), (3, 4, 1, 1)], [(-3, 4, 1, b"\2")])

    async def test_when_a_subscription_lost_its_last_consumer_is_known_however_it_is_defined_meanwhile(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await store.commit(define(1, 1))
        one, two, gone = (SubscriptionDefined(number, 1, f"s{number}", "me", account="guest") for number in (2, 3, 4))
        await store.commit(commit(2, definitions=[one, two, gone]))
        await store.checkpoint(Checkpoint(2, 1, 1, idle=[(2, 1_700_000_000_000), (3, 5), (4, 6)]))
        await store.commit(commit(3, definitions=[replace(one, shared=True), SubscriptionDestroyed(4)]))
        await store.checkpoint(Checkpoint(3, 1, 1, idle=[(3, 0), (4, 7)]))
        found = await (await rig.open()).recover()
        assert found.subscriptions == [SubscriptionDefined(1, 1), replace(one, shared=True, idle_since=1_700_000_000_000), two]

    async def test_the_open_segment_is_known_without_counting(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await store.commit(commit(1, [*messages(1, 3), message(1, header=RICH, destination=2, sequence=4)]))
        await store.commit(commit(2, messages(4, 6)))
        await store.checkpoint(Checkpoint(1, 1, 4, lanes=[(1, 4, 4), (2, 9, 2)]))
        await store.commit(commit(3, [message(1, header=RICH, destination=3, sequence=8)], spilled=messages(1, 9, header=QUICK)))
        rows = [*messages(1, 6), *(message(1, header=RICH) for _ in range(2))]
        found = await (await rig.open()).recover()
        assert found.open_segment == 1
        assert found.open_lanes == {(1, 4): (1, 6), (2, 9): (1, 1), (3, 9): (1, 1)}
        assert found.open_rows == 8
        assert found.open_octets == sum(row.size for row in rows)

    async def test_a_checkpoint_behind_the_commits_does_not_mix_up_segments(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await store.commit(commit(1, messages(1, 3)))
        await store.commit(commit(2, messages(4, 5), definitions=[SegmentClosed(1, 5, {(1, 4): (1, 5)})]))
        await store.commit(commit(3, messages(6, 7), segment=2))
        await store.checkpoint(Checkpoint(1, 1, 3, lanes=[(1, 4, 4)]))
        store = await rig.open()
        found = await store.recover()
        assert (found.open_segment, found.open_lanes, found.open_rows) == (2, {(1, 4): (6, 7)}, 2)
        await store.checkpoint(Checkpoint(3, 3, 7, lanes=[(1, 4, 8)]))
        store = await rig.open()
        found = await store.recover()
        assert (found.open_segment, found.open_lanes, found.open_rows) == (2, {(1, 4): (6, 7)}, 2)
        await store.commit(commit(4, messages(8, 8), segment=2, definitions=[SegmentClosed(2, 8, {(1, 4): (6, 8)})]))
        store = await rig.open()
        found = await store.recover()
        assert (found.open_segment, found.open_lanes, found.open_rows, found.open_octets) == (3, {}, 0, 0)
        assert [(s.segment, s.last_sequence, s.lanes) for s in found.segments] == [(1, 5, {(1, 4): (1, 5)}), (2, 8, {(1, 4): (6, 8)})]
        await store.checkpoint(Checkpoint(4, 4, 8, lanes=[(1, 4, 9)]))
        await store.commit(commit(5, messages(9, 9), segment=3))
        found = await (await rig.open()).recover()
        assert (found.open_segment, found.open_lanes, found.open_rows) == (3, {(1, 4): (9, 9)}, 1)

    async def test_a_segment_that_was_dropped_is_not_opened_again(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await close_segment(store, 1, 1, 3, 1)
        assert await store.drop_segment(1)
        found = await (await rig.open()).recover()
        assert (found.open_segment, found.open_lanes, found.open_rows, found.open_octets) == (2, {}, 0, 0)
        assert found.segments == []

    async def test_a_compacted_segment_is_dropped_at_the_next_term_and_its_survivors_stay_until_swept(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await close_segment(store, 1, 1, 30, 1)
        await store.commit(commit(2, messages(31, 31), segment=2))
        await store.compact_segment(CompactSegment(1, [(1, 4, 2, 3), (1, 4, 29, 29)]))
        store = await rig.open()
        found = await store.recover()
        assert found.segments == []
        assert found.retained == {(1, 4): (2, 29)}
        with pytest.raises(SegmentMissing):
            await store.read(page(0, 99, segments=[1]))
        assert await positions(store, page(0, 99, segments=[RETAINED, 2])) == [2, 3, 29, 31]
        await store.sweep_retained(SweepRetained([(1, 4, 1, 3)]))
        assert await positions(store, page(0, 99, segments=[RETAINED, 2])) == [29, 31]
        assert (await (await rig.open()).recover()).retained == {(1, 4): (29, 29)}

    async def test_what_is_swept_between_survivors_goes_and_they_stay(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await close_segment(store, 1, 1, 30, 1)
        await store.compact_segment(CompactSegment(1, [(1, 4, 2, 9), (1, 4, 20, 29)]))
        await store.sweep_retained(SweepRetained([(1, 4, 4, 5), (1, 4, 7, 21), (1, 4, 23, 28), (2, 4, 2, 29)]))
        assert await positions(store, page(0, 99, segments=[RETAINED])) == [2, 3, 6, 22, 29]
        assert (await (await rig.open()).recover()).retained == {(1, 4): (2, 29)}

    async def test_what_a_segment_takes_on_disk_goes_when_it_is_dropped(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await close_segment(store, 1, 1, 30, 1)
        before, retained = await store.segment_octets(1), await store.segment_octets(RETAINED)
        assert before > 0
        await store.compact_segment(CompactSegment(1, [(1, 4, 2, 3)]))
        assert await store.segment_octets(RETAINED) - retained < before
        assert await store.segment_octets(RETAINED) > 0
        assert await store.drop_segment(1)
        assert await store.segment_octets(1) == 0

    async def test_control_requests_wait_in_order_until_a_commit_answers_them(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        first = await rig.request("purge", "queue/a", {"depth": 5}, 99)
        second = await rig.request("create", "queue/b", {}, 0)
        waiting = await store.control_requests()
        assert [(r.request, r.verb, r.address, r.arguments, r.deadline) for r in waiting] == [
            (first, "purge", "queue/a", {"depth": 5}, 99),
            (second, "create", "queue/b", {}, 0),
        ]
        await store.commit(commit(1, answers=[(first, False, {"why": "it's too late"})]))
        assert [r.request for r in await store.control_requests()] == [second]
        assert await rig.answer(first) == (False, {"why": "it's too late"})
        assert await rig.answer(second) is None
