"""What outlives its segment for the data pipeline."""

from __future__ import annotations

import pytest

from broker_core.engine.definitions import SegmentClosed
from broker_core.engine.message import StoredBody
from broker_core.engine.upkeep import CompactSegment
from broker_core.store import archive
from tests.store.rows import body_of, chunks, commit, message, messages
from tests.store.test_postgres import PostgresRig, rig  # noqa: F401

MARKED, OTHER = 1, 2
ARCHIVED = "SELECT sequence, position, destination, segment, body FROM surety.archive ORDER BY sequence"


@pytest.fixture
def marked(rig: PostgresRig) -> PostgresRig:  # noqa: F811
    for destination, settings in ((MARKED, '{"archive_ms": 1000}'), (OTHER, "{}"), (3, '{"archive_ms": 0}')):
        rig.execute(f"INSERT INTO surety.destination VALUES (0, {destination}, 'queue/{destination}', 1, true, 0, '{settings}')")
    return rig


async def test_what_is_archived_and_was_not_read_is_kept_when_its_segment_goes(marked: PostgresRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "STEP_ROWS", 2)
    store = await marked.open()
    await store.recover()
    large = await store.write_body(chunks(b"large"))
    kept = [*messages(1, 5), message(6, body=StoredBody(large, 5)), message(1, destination=OTHER, sequence=7), message(1, destination=3, sequence=8)]
    await store.commit(commit(1, kept, definitions=[SegmentClosed(1, 8, {(MARKED, 4): (1, 6), (OTHER, 4): (1, 1), (3, 4): (1, 1)})]))
    marked.execute("INSERT INTO surety.archive_reader VALUES (0, 2)")
    await store.compact_segment(CompactSegment(1, [(MARKED, 4, 5, 5)]))
    assert await store.drop_segment(1)
    assert marked.query(ARCHIVED) == [(3, 3, 1, 1, b"body"), (4, 4, 1, 1, b"body"), (5, 5, 1, 1, b"body"), (6, 6, 1, 1, None)]
    assert await body_of(store, large) == b"large"
    again = await marked.open()
    await again.recover()
    assert await body_of(again, large) == b"large"


async def test_a_segment_that_somebody_reads_is_archived_once(marked: PostgresRig) -> None:
    store = await marked.open()
    await store.recover()
    await store.commit(commit(1, messages(1, 3), definitions=[SegmentClosed(1, 3, {(MARKED, 4): (1, 3)})]))
    await marked.hold(1)
    assert not await store.drop_segment(1)
    assert len(marked.query(ARCHIVED)) == 3
    marked.execute("DELETE FROM surety.archive WHERE sequence <= 2; INSERT INTO surety.archive_reader VALUES (0, 2)")
    await marked.let_go()
    assert await store.drop_segment(1)
    assert [row[0] for row in marked.query(ARCHIVED)] == [3]


async def test_what_a_full_archive_cannot_take_is_told(marked: PostgresRig) -> None:
    store = await marked.open()
    await store.recover()
    store._segments.archive_octets_max = 0
    await store.commit(commit(1, messages(1, 3), definitions=[SegmentClosed(1, 3, {(MARKED, 4): (1, 3)})]))
    assert await store.drop_segment(1)
    assert marked.query(ARCHIVED) == []
    assert marked.query("SELECT segment, destination, first_sequence, last_sequence, messages FROM surety.archive_gap") == [(1, MARKED, 1, 3, 3)]


async def test_a_full_disk_does_not_keep_a_segment(marked: PostgresRig) -> None:
    store = await marked.open()
    await store.recover()
    marked.execute(
        "CREATE FUNCTION surety.no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = 'disk_full'; END $$; "
        "CREATE TRIGGER no_room BEFORE INSERT ON surety.archive FOR EACH ROW EXECUTE FUNCTION surety.no_room()"
    )
    await store.commit(commit(1, messages(1, 3), definitions=[SegmentClosed(1, 3, {(MARKED, 4): (1, 3)})]))
    assert await store.drop_segment(1)
    assert marked.query("SELECT destination, messages FROM surety.archive_gap") == [(MARKED, 3)]
