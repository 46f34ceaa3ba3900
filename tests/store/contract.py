"""What the port promises, asked of every store. A test module derives from StoreContract and gives it a `rig`: a database, and ways to trouble it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

import pytest

from broker_core.engine.effects import (
    RETAINED,
    Checkpoint,
    Commit,
    CompactSegment,
    Copy,
    DestinationDefined,
    DestinationDestroyed,
    ExpiredWanted,
    Outcome,
    PageWanted,
    PositionsWanted,
    ScheduledWanted,
    SegmentClosed,
    SubscriptionDefined,
    SubscriptionDestroyed,
    SweepRetained,
    TrimDuplicates,
)
from broker_core.engine.message import Encoding, Header, Message, Reliability, StoredBody
from broker_core.engine.recovered import Recovered
from broker_core.engine.selector import compile_selector
from broker_core.engine.subscription import Filter
from broker_core.store import BodyMissing, CommitLost, SegmentMissing, SpaceExhausted, Store

PLAIN = Header(b"content-type:text/plain\n", 4, Reliability.ASSURED)
RICH = Header("Grüße:ß\n".encode(), 9, Reliability.RELIABLE, 1_800_000_000_000, Encoding.AMQP, 'ID:it\'s \\ "mine"', "クライアント", '{"reason":"EXPIRED"}')
QUICK = Header(b"a:b\n", 4, Reliability.EXPRESS)


class Rig(Protocol):
    """A database under test."""

    async def open(self) -> Store:
        """A new term: a store that has the lease. The one before is fenced."""

    async def cut_off(self, store: Store) -> None:
        """The store's next commit finds its connection gone."""

    async def fill_disk(self) -> None:
        """From now on there is no room."""

    async def free_disk(self) -> None: ...

    async def hold(self, segment: int) -> None:
        """Somebody reads the segment and keeps it from being dropped."""

    async def let_go(self) -> None: ...

    async def break_compaction(self) -> None:
        """The next compaction is interrupted half way."""

    async def request(self, verb: str, address: str, arguments: dict[str, Any], deadline: int) -> int:
        """File a control request."""

    async def answer(self, request: int) -> tuple[bool, dict[str, Any]] | None: ...


def message(position: int, *, header: Header = PLAIN, body: bytes | StoredBody = b"body", destination: int = 1, sequence: int = 0) -> Message:
    octets = body.size if isinstance(body, StoredBody) else len(body)
    made = Message(header, body, len(header.octets) + octets)
    made.destination, made.position, made.sequence, made.accepted_at = destination, position, sequence or position, 1_700_000_000_000 + position
    return made


def messages(first: int, last: int, **how: Any) -> list[Message]:
    return [message(position, **how) for position in range(first, last + 1)]


def delayed(number: int, due: int, **how: Any) -> Message:
    """A row of the schedule."""
    made = message(0, sequence=number, **how)
    made.accepted_at = due
    return made


def commit(number: int, rows: Sequence[Message] = (), *, segment: int = 1, **more: Any) -> Commit:
    """A commit whose ledger row accounts for its stored rows."""
    lanes: dict[tuple[int, int], list[int]] = {}
    for row in [*rows, *(copy.target for copy in more.get("copies", ()))]:
        lanes.setdefault((row.destination, row.header.lane), []).append(row.position)
    accepted = [(*key, min(positions), max(positions)) for key, positions in lanes.items()]
    sequence = max((row.sequence for row in rows), default=number)
    more = {"accepted": accepted, "sequence": sequence, "synchronous": True, "at": 1_700_000_000_000 + number} | more
    return Commit(number=number, segment=segment, messages=list(rows), **more)


def page(after: int, upto: int, *, segments: Sequence[int] = (1,), lane: int = 4, limit: int = 1000, bytes_max: int = 1 << 20) -> PageWanted:
    return PageWanted(1, 1, lane, after, upto, limit, bytes_max, list(segments))


def told(message: Message) -> tuple[object, ...]:
    """Everything a stored message says, comparable."""
    h = message.header
    return (
        h.octets, h.priority, h.reliability, h.expiration, h.encoding, h.message_id, h.client_id, h.annotations, h.lane,
        message.body, message.size, message.destination, message.sequence, message.position, message.accepted_at, message.redelivered, message.failures,
    )  # fmt: skip


async def positions(store: Store, wanted: PageWanted) -> list[int]:
    return [row.position for row in (await store.read(wanted))[0]]


async def chunks(*octets: bytes) -> AsyncIterator[bytes]:
    for part in octets:
        yield part


async def body_of(store: Store, number: int) -> bytes:
    return b"".join([part async for part in store.read_body(number)])


async def close_segment(store: Store, number: int, first: int, last: int, segment: int) -> None:
    """Fill a segment with positions of destination 1, lane 4, and close it."""
    closed = SegmentClosed(segment, last, {(1, 4): (first, last)})
    await store.commit(commit(number, messages(first, last), segment=segment, definitions=[closed]))


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
        for read in (page(0, 9, segments=[1, 2]), PositionsWanted(1, 1, 4, [2], [1]), ExpiredWanted(1, (0, 0), 9, 9, [1])):
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
            found, complete = await store.read(ExpiredWanted(1, after, upto, limit, segments))
            assert all(row.body is None and row.header.octets == b"" and row.size for row in found)
            return [row.sequence for row in found], complete

        assert await read((0, 0), 60, 10, [1]) == ([6, 3, 2, 4], True)
        assert await read((0, 0), 60, 3, [1]) == ([6, 3, 2], False)
        assert await read((50, 2), 60, 3, [1]) == ([4], True)
        assert await read((0, 0), 60, 10, [RETAINED]) == ([6, 3], True)
        assert await read((0, 0), 60, 10, [RETAINED, 1]) == ([6, 3, 2, 4], True)

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
            failures=[(1, 4, 2, 3)], octets=[(1, 55), (2, -7)], synchronous=False,
        )  # fmt: skip
        await store.commit(full)
        await store.commit(commit(3, settled=[(1, 4, 2, 2, Outcome.REJECTED)]))
        await store.checkpoint(Checkpoint(1, 1, 2))
        rows = (await (await rig.open()).recover()).ledger
        assert [row.number for row in rows] == [2, 3]
        for name in ("number", "at", "sequence", "segment", "accepted", "offered", "settled", "failures", "octets"):
            assert getattr(rows[0], name) == getattr(full, name), name
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


class StoreContract(FailureContract, MessageContract, BodyContract, ScheduleContract, DuplicateContract, RecoveryContract):
    """All of it."""


def define(number: int, *destinations: int) -> Commit:
    """Destinations 1 to n, each a queue with a subscription of its number."""
    definitions: list[Any] = []
    for destination in range(1, max(destinations) + 1):
        definitions += [DestinationDefined(destination, f"queue/{destination}", 1, True, 0, {}), SubscriptionDefined(destination, destination)]
    return commit(number, definitions=definitions)
