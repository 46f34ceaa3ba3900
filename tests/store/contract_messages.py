"""What the port promises of messages and large bodies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from broker_core.engine.definitions import DestinationDefined, SegmentClosed
from broker_core.engine.message import Encoding, Header, Message, StoredBody
from broker_core.engine.reads import RETAINED, ExpiredWanted, PageWanted, PositionsWanted
from broker_core.engine.selector import compile_selector
from broker_core.engine.subscription import Filter
from broker_core.engine.upkeep import CompactSegment, SweepRetained
from broker_core.engine.writes import Copy
from broker_core.store import BodyMissing
from tests.store.rows import PLAIN, QUICK, RICH, Rig, body_of, chunks, close_segment, commit, message, messages, page, positions, told


class MessageContract:
    """Messages go in and come out."""

    @pytest.mark.parametrize("count", [1, 200], ids=["as literals", "by COPY"])
    async def test_a_message_comes_back_as_it_was(self, rig: Rig, count: int) -> None:
        store = await rig.open()
        await store.recover()
        body = await store.write_body(chunks(b"large"))
        kinds = [
            lambda p: message(p, body=bytes(range(256)) * 4),
            lambda p: message(p, header=RICH, body=b"it's \\ \0 binary"),
            lambda p: message(p, body=b""),
            lambda p: message(p, body=b"z" * 20_000),
            lambda p: message(p, body=StoredBody(body, 5)),
            lambda p: message(p, header=Header(b"", 0, 4)),
        ]
        for number, kind in enumerate(kinds, 1):
            rows = [kind(position) for position in range(number * 1000, number * 1000 + count)]
            await store.commit(commit(number, rows))
            found, complete = await store.read(page(number * 1000 - 1, number * 1000 + 999, lane=rows[0].header.lane, bytes_max=1 << 30))
            assert complete
            assert [told(row) for row in found] == [told(row) for row in rows]

    async def test_an_expiration_beyond_all_bounds_is_never(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        rows = [message(position, header=Header(b"h", 4, 4, expiration)) for position, expiration in enumerate([1 << 80, -5, 7], 1)]
        copy = Copy(1, (1, 4, 1), message(4, header=Header(b"h", 4, 4, 1 << 90)))
        await store.commit(commit(1, rows, copies=[copy]))
        found, _ = await store.read(page(0, 9))
        assert [row.header.expiration for row in found] == [(1 << 63) - 1, 0, 7, (1 << 63) - 1]

    async def test_what_no_text_column_holds_is_replaced_not_fatal(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        asked = await rig.request("purge", "queue/a", {}, 0)
        answer = {"why": "a\0b", "list": ["\ud800", {"\0": 1}]}
        await store.commit(commit(3, answers=[(asked, True, answer)], definitions=[DestinationDefined(1, "queue/a", 1, True, 0, {"t": "\0"})]))
        header = Header(b"a:b\n", 4, 4, message_id="a\0b", client_id="\ud800c")
        await store.commit(commit(4, [message(1, header=header)]))
        await store.commit(commit(5, messages(2, 30, header=header)))
        found, _ = await store.read(page(0, 99))
        assert {(row.header.message_id, row.header.client_id) for row in found} == {("a\ufffdb", "?c")}
        assert len(found) == 30

    async def test_a_page_is_cut_by_rows_by_octets_and_by_its_interval(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await store.commit(commit(1, messages(1, 20, body=b"x" * 100)))
        size = message(1, body=b"x" * 100).size

        async def read(wanted: PageWanted) -> tuple[list[int], bool]:
            rows, complete = await store.read(wanted)
            return [row.position for row in rows], complete

        assert await read(page(0, 20)) == (list(range(1, 21)), True)
        assert await read(page(5, 9)) == ([6, 7, 8, 9], True)
        assert await read(page(0, 20, limit=3)) == ([1, 2, 3], False)
        assert await read(page(17, 20, limit=3)) == ([18, 19, 20], True)
        assert await read(page(0, 20, bytes_max=1)) == ([1], False)
        assert await read(page(0, 20, bytes_max=3 * size)) == ([1, 2, 3], False)
        assert await read(page(0, 20, bytes_max=4 * size - 1)) == ([1, 2, 3], False)
        assert await read(page(20, 30)) == ([], True)
        assert await read(page(0, 20, lane=5)) == ([], True)
        assert await read(page(0, 20, segments=[])) == ([], True)

    async def test_a_page_for_a_filter_has_no_bodies_weighs_header_sections_and_may_leave_out_only_what_does_not_match(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        red, blue = (Header(f"colour:{colour}".encode(), 4, 4, client_id="me") for colour in ("red", "blue"))
        rows = [message(position, header=red if position % 4 == 0 else blue, body=b"x" * 100) for position in range(1, 21)]
        await store.commit(commit(1, rows))

        async def read(wanted: Filter, **how: Any) -> tuple[list[int], bool]:
            found, complete = await store.read(replace(page(0, 20, **how), wanted=wanted))
            assert [row.body for row in found] == [None] * len(found)
            assert [told(row)[:9] for row in found] == [told(rows[row.position - 1])[:9] for row in found]
            return [row.position for row in found], complete

        wanted = Filter(compile_selector("colour = 'red'"))
        assert await read(wanted) == ([4, 8, 12, 16, 20], True)
        assert await read(wanted, limit=2) == ([4, 8], False)
        assert await read(wanted, limit=5) == ([4, 8, 12, 16, 20], True)
        assert await read(wanted, bytes_max=1) == ([4], False)
        assert await read(wanted, bytes_max=2 * len(red.octets)) == ([4, 8], False)
        assert await read(Filter(sender="me")) == ([], True)
        assert len((await read(Filter(compile_selector("colour = colour"))))[0]) == 20

    async def test_a_page_spans_segments_and_the_retained_table_in_order(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await close_segment(store, 1, 1, 10, 1)
        await close_segment(store, 2, 11, 20, 2)
        await store.commit(commit(3, messages(21, 25), segment=3))
        await store.compact_segment(CompactSegment(2, [(1, 4, 12, 13), (1, 4, 19, 19)]))
        assert await positions(store, page(8, 23, segments=[RETAINED, 1, 3])) == [9, 10, 12, 13, 19, 21, 22, 23]
        assert await positions(store, page(8, 23, segments=[RETAINED, 1, 3], limit=4)) == [9, 10, 12, 13]
        read = PositionsWanted(1, 1, 4, [25, 3, 12, 14, 9], [RETAINED, 1, 3])
        assert [row.position for row in (await store.read(read))[0]] == [3, 9, 12, 25]

    async def test_a_page_for_a_filter_reaches_what_lies_behind_a_whole_segment_of_what_it_leaves_out(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await close_segment(store, 1, 1, 10, 1)
        red = Header(b"colour:red", 4, 4)
        await store.commit(commit(2, [message(11, header=red), message(12, header=red)], segment=2))
        wanted = Filter(compile_selector("colour = 'red'"))
        found, complete = await store.read(replace(page(0, 12, segments=[1, 2], limit=5), wanted=wanted))
        assert ([row.position for row in found], complete) == ([11, 12], True)

    async def test_expired_messages_are_found_in_order_of_expiration_whatever_their_destination(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        rows = [message(n, header=Header(b"h", n % 10, 4, expiration), destination=n, sequence=n) for n, expiration in enumerate([0, 50, 30, 50, 90, 10], 1)]
        await store.commit(commit(1, rows[:3]))
        await store.commit(commit(2, rows[3:], definitions=[SegmentClosed(1, 6, {(n, n % 10): (n, n) for n in range(1, 7)})]))
        await store.compact_segment(CompactSegment(1, [(3, 3, 3, 3), (6, 6, 6, 6)]))

        async def read(after: tuple[int, int], upto: int, limit: int, segments: list[int]) -> tuple[list[int], bool]:
            found, complete = await store.read(ExpiredWanted(1, after, upto, limit, segments, 1000))
            assert all(row.body is None and row.header.octets == b"" and row.size for row in found)
            return [row.sequence for row in found], complete

        assert await read((0, 0), 60, 10, [1]) == ([6, 3, 2, 4], True)
        assert await read((0, 0), 60, 3, [1]) == ([6, 3, 2], False)
        assert await read((50, 2), 60, 3, [1]) == ([4], True)
        assert await read((0, 0), 60, 10, [RETAINED]) == ([6, 3], True)
        assert await read((0, 0), 60, 10, [RETAINED, 1]) == ([6, 3, 2, 4], True)

    async def test_spilled_messages_that_expired_come_whole_and_in_order_with_the_others(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        body = await store.write_body(chunks(b"large"))
        rows = {n: message(n, header=Header(b"a:b", 4, 4 if n % 2 else 1, 10 + n), body=b"n%d" % n) for n in range(1, 6)}
        rows[4].keep_apart(body)
        twin = message(6, header=Header(b"c:d", 4, 4, 16).unstored(), body=b"stored for nobody")
        for row in (*rows.values(), twin):
            row.sequence = row.position
        await store.commit(commit(1, [rows[1], rows[3], rows[5]], spilled=[rows[2], rows[4], twin]))

        async def read(after: int, limit: int, bytes_max: int) -> tuple[list[tuple[int, object]], bool]:
            found, complete = await store.read(ExpiredWanted(1, (10 + after, after), 50, limit, [1], bytes_max))
            return [(row.sequence, row.body) for row in found], complete

        everything = [(1, None), (2, b"n2"), (3, None), (4, StoredBody(body, 2)), (5, None), (6, b"stored for nobody")]
        assert await read(0, 10, 1000) == (everything, True)
        assert await read(0, 3, 1000) == (everything[:3], False)
        assert await read(1, 10, 6) == (everything[1:3], False)
        assert await read(1, 10, 1) == (everything[1:2], False)
        assert await read(5, 10, 1) == (everything[5:], False)

    async def test_expired_messages_come_with_their_header_sections_where_those_hold_a_wish_or_all_are_asked_for(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        sections = (b"a:b", b"JMS_SUN_LOG_DEAD_MESSAGES:true", b"c:d\nJMS_SUN_X:y", b"e:f")
        await store.commit(commit(1, [message(n, header=Header(octets, 4, 4, 10 + n)) for n, octets in enumerate(sections, 1)]))

        async def read(after: int, bytes_max: int, *, every: bool) -> tuple[list[bytes], bool]:
            found, complete = await store.read(ExpiredWanted(1, (10 + after, after), 50, 10, [1], bytes_max, every))
            assert all(row.body is None for row in found)
            return [row.header.octets for row in found], complete

        assert await read(0, 1000, every=False) == ([b"", sections[1], sections[2], b""], True)
        assert await read(0, 1000, every=True) == (list(sections), True)
        assert await read(0, 10, every=False) == ([b""], False)
        assert await read(1, 10, every=False) == ([sections[1]], False)
        assert await read(2, 40, every=True) == (list(sections[2:]), True)
        assert await read(2, 1, every=True) == ([sections[2]], False)

    async def test_spilled_messages_are_read_like_others_until_the_next_term(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await store.commit(commit(1, messages(1, 2), spilled=messages(1, 30, header=QUICK), synchronous=False))
        await store.commit(commit(2, spilled=messages(31, 31, header=QUICK), synchronous=False))
        assert await positions(store, page(0, 99, lane=14)) == list(range(1, 32))
        assert await positions(store, page(0, 99, lane=4)) == [1, 2]
        again = await rig.open()
        found = await again.recover()
        assert await positions(again, page(0, 99, lane=14)) == []
        assert await positions(again, page(0, 99, lane=4)) == [1, 2]
        assert found.open_lanes == {(1, 4): (1, 2)}
        await again.commit(commit(3, spilled=messages(1, 1, header=QUICK)))
        assert await positions(again, page(0, 99, lane=14)) == [1]

    @pytest.mark.parametrize("odd", [{"client_id": "a\0b"}, {"delay": 5}])
    async def test_a_volatile_message_of_a_stored_level_is_found_where_it_was_placed(self, rig: Rig, odd: dict[str, Any]) -> None:
        """R19: nobody's durable subscription wanted it; its row is what its columns give back."""
        store = await rig.open()
        await store.recover()
        await store.commit(commit(1, spilled=[message(1, header=Header(b"x", 4, 4, **odd).unstored())]))
        assert await positions(store, page(0, 99, lane=14)) == [1]
        assert await positions(store, page(0, 99, lane=4)) == []

    async def test_a_copy_has_the_sources_octets_and_body_under_the_targets_header(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        amqp = Header(b"source", 9, 3, 5, Encoding.AMQP, "", "sender")
        await store.commit(commit(1, [message(1, header=amqp, body=b"kept")]))
        header = Header(b"ignored", 2, 4, 77, Encoding.STOMP, "ID:x'", "sender", '{"a":"\'"}')
        target = Message(header, None, 10)
        target.destination, target.position, target.sequence, target.accepted_at = 9, 5, 8, 123
        await store.commit(commit(2, copies=[Copy(1, (1, 9, 1), target)]))
        (found,), _ = await store.read(PageWanted(1, 9, 2, 0, 9, 10, 1000, [1]))
        expected = Message(Header(b"source", 2, 4, 77, Encoding.AMQP, "ID:x'", "sender", '{"a":"\'"}'), b"kept", 10)
        expected.destination, expected.position, expected.sequence, expected.accepted_at = 9, 5, 8, 123
        assert told(found) == told(expected)

    async def test_a_copy_that_is_cut_has_the_sources_octets_and_no_body_and_weighs_what_its_target_does(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        large = await store.write_body(chunks(b"large"))
        first = SegmentClosed(1, 2, {(1, 4): (1, 2)})
        await store.commit(commit(1, [message(1), message(2, body=StoredBody(large, 5))], definitions=[first]))
        targets = [message(position, destination=9, sequence=10 + position, header=Header(b"ignored", 4, 4), size=6) for position in (1, 2, 3)]
        sources = [(1, 4, 1), (1, 4, 2), (1, 4, 1)]
        copies = [Copy(1, source, target, cut) for source, target, cut in zip(sources, targets, (True, True, False), strict=True)]
        closed = SegmentClosed(2, 13, {(9, 4): (1, 3)})
        await store.commit(commit(2, segment=2, copies=copies, definitions=[closed]))
        found, _ = await store.read(PageWanted(1, 9, 4, 0, 9, 10, 1000, [2]))
        assert [(row.body, row.size, row.header.octets) for row in found[:2]] == [(b"", 6, PLAIN.octets)] * 2
        assert (found[2].body, found[2].size) == (b"body", len(PLAIN.octets) + 4)
        assert await store.drop_segment(1)
        with pytest.raises(BodyMissing):
            await body_of(store, large)

    async def test_copies_come_from_segments_from_the_retained_table_and_from_the_commit_itself(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        await close_segment(store, 1, 1, 10, 1)
        await store.compact_segment(CompactSegment(1, [(1, 4, 3, 3)]))
        await store.commit(commit(2, messages(11, 12), segment=2))

        def to(position: int) -> Message:
            return message(position, destination=2, sequence=100 + position)

        copies = [Copy(RETAINED, (1, 4, 3), to(1)), Copy(2, (1, 4, 11), to(2)), Copy(3, (1, 4, 13), to(3)), Copy(3, (2, 4, 3), to(4))]
        await store.commit(commit(3, messages(13, 13, body=b"now"), segment=3, copies=copies))
        found, _ = await store.read(PageWanted(1, 2, 4, 0, 9, 10, 1000, [3]))
        assert [(row.position, row.sequence, row.body) for row in found] == [(1, 101, b"body"), (2, 102, b"body"), (3, 103, b"now"), (4, 104, b"now")]


class BodyContract:
    """Large bodies (R16)."""

    async def test_a_large_body_is_streamed_back_and_outlives_its_term_once_a_commit_named_it(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        octets = bytes(range(256)) * 10_000
        body = await store.write_body(chunks(octets[:7], b"", octets[7:1_500_000], octets[1_500_000:]))
        empty = await store.write_body(chunks())
        await store.commit(commit(1, [message(1, body=StoredBody(body, len(octets)))]))
        assert await body_of(store, body) == octets
        assert await body_of(store, empty) == b""
        again = await rig.open()
        await again.recover()
        assert await body_of(again, body) == octets
        with pytest.raises(BodyMissing):
            await body_of(again, empty)

    async def test_the_body_of_a_spilled_message_outlives_its_row(self, rig: Rig) -> None:
        """It may be that of a dead message by now, which is in memory: when it goes the engine says, or the next term."""
        store = await rig.open()
        await store.recover()
        body = await store.write_body(chunks(b"one"))
        closed = SegmentClosed(1, 1, {(1, 14): (1, 1)})
        await store.commit(commit(1, spilled=[message(1, header=QUICK, body=StoredBody(body, 3))], definitions=[closed]))
        assert await store.drop_segment(1)
        assert await body_of(store, body) == b"one"
        again = await rig.open()
        await again.recover()
        with pytest.raises(BodyMissing):
            await body_of(again, body)

    async def test_a_body_goes_with_the_last_row_that_names_it(self, rig: Rig) -> None:
        store = await rig.open()
        await store.recover()
        body = await store.write_body(chunks(b"one"))
        closed = SegmentClosed(1, 1, {(1, 4): (1, 1)})
        await store.commit(commit(1, [message(1, body=StoredBody(body, 3))], definitions=[closed]))
        copied = message(1, destination=2, sequence=2, body=StoredBody(body, 3))
        closed = SegmentClosed(2, 2, {(2, 4): (1, 1)})
        await store.commit(commit(2, segment=2, copies=[Copy(1, (1, 4, 1), copied)], definitions=[closed]))
        await store.compact_segment(CompactSegment(1, [(1, 4, 1, 1)]))
        assert await store.drop_segment(1)
        assert await body_of(store, body) == b"one"
        assert await store.drop_segment(2)
        assert await body_of(store, body) == b"one"
        await store.sweep_retained(SweepRetained([(1, 4, 1, 1)]))
        with pytest.raises(BodyMissing):
            await body_of(store, body)
