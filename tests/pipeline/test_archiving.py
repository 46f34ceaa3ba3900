"""Bodies are read where they are, each once; and what is sent again has the header section that it needs."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession

from broker_core.amqp.sections import open_message
from broker_core.engine.message import Encoding
from broker_core.pipeline import archiving, replaying, replays
from broker_core.pipeline.archiving import Part, bodies_of, last_sequence, parts
from broker_core.pipeline.lake import File, Lake
from broker_core.pipeline.runs import Run
from broker_core.store.segments import _create
from tests.pipeline.ledgers import LedgerDatabase

DAY_MS = 86_400_000
MARKED, OTHER = 1, 2
AT = 1_790_000_000_000


class Store:
    """Segments and the archive, as the janitor leaves them."""

    def __init__(self, database: LedgerDatabase) -> None:
        self.url, self.connection = database.url, database.connection
        self.database = database
        for destination, kept in ((MARKED, 10_000 * DAY_MS), (OTHER, 0)):
            database.destination(destination, f"queue/{destination}")
            self.connection.execute("UPDATE surety.destination SET settings = %s WHERE destination = %s", [f'{{"archive_ms": {kept}}}', destination])

    def segment(self, number: int, *sequences: int, destination: int = MARKED, stored: int | None = None) -> None:
        """A table with these messages; with none it is empty."""
        if self.connection.execute("SELECT FROM surety.segment WHERE segment = %s", [number]).fetchone() is None:
            self.connection.execute(_create(f"surety.message_0_{number}", False).encode())
            self.connection.execute("INSERT INTO surety.segment (shard, segment) VALUES (0, %s)", [number])
        self._rows(f"surety.message_0_{number} (", "", sequences, destination, stored)

    def archived(self, number: int, *sequences: int, stored: int | None = None) -> None:
        self._rows("surety.archive (shard, segment, ", f"0, {number}, ", sequences, MARKED, stored)

    def _rows(self, into: str, before: str, sequences: tuple[int, ...], destination: int, stored: int | None) -> None:
        columns = "sequence, position, accepted_at, expiration, destination, size, priority, reliability, encoding, stored_body, headers, body"
        body = "NULL" if stored is not None else "convert_to('body ' || s, 'UTF8')"
        self.connection.execute(
            f"INSERT INTO {into}{columns}) SELECT {before}s, s, {AT} + s, 0, %s, 20, 4, 4, 0, %s, 'a:b', {body} FROM unnest(%s::int8[]) AS s".encode(),
            [destination, stored, list(sequences)],
        )

    def read(self, after: int = 0, upto: int = 1_000) -> list[tuple[int, bytes]]:
        with psycopg.connect(self.url) as connection:
            wanted = parts(connection, 0, after, upto)
        return sorted(row for part in wanted for row in read(self.url, part))


def read(url: str, part: Part) -> list[tuple[int, bytes]]:
    return [(row["sequence"], row["body"]) for batch in bodies_of(url, part) for row in batch.to_pylist()]


@pytest.fixture
def store(database: LedgerDatabase) -> Store:
    return Store(database)


def test_each_body_is_read_once_where_it_is(store: Store) -> None:
    store.segment(3, 6, 7)
    store.segment(3, 8, destination=OTHER)
    store.segment(2, 4, 5)
    store.archived(2, 4, 5)  # its table is about to go
    store.archived(1, 1, 2, 3)
    assert [sequence for sequence, _ in store.read()] == [1, 2, 3, 4, 5, 6, 7]
    assert store.read(after=2, upto=4) == [(3, b"body 3"), (4, b"body 4")]


def test_a_segment_that_goes_after_the_planning_is_read_from_the_archive(store: Store) -> None:
    store.segment(2, 4, 5)
    part = Part(0, 2, (), 0, 10)
    store.archived(2, 4, 5)
    store.connection.execute("DROP TABLE surety.message_0_2; DELETE FROM surety.segment")
    assert [sequence for sequence, _ in read(store.url, part)] == [4, 5]
    assert read(store.url, Part(0, None, (2,), 0, 10)) == []


def test_large_bodies_are_put_together(store: Store) -> None:
    store.connection.execute("INSERT INTO surety.body (shard, body, size, epoch) OVERRIDING SYSTEM VALUE VALUES (0, 7, 6, 1)")
    store.connection.execute("INSERT INTO surety.body_chunk VALUES (0, 7, 1, 'two'), (0, 7, 0, 'one')")
    store.archived(1, 1, stored=7)
    assert store.read() == [(1, b"onetwo")]


def test_where_nothing_is_marked_nothing_is_read(store: Store) -> None:
    store.segment(1, 1)
    store.connection.execute("UPDATE surety.destination SET settings = '{}'")
    assert store.read() == []
    assert last_sequence(store.connection, 0) == 0
    store.database.commit()
    assert last_sequence(store.connection, 0) == 10


@pytest.mark.parametrize(("kept_days", "over"), [(2, False), (1, True), (None, True)])
def test_a_file_is_over_when_all_of_its_day_is(kept_days: int | None, over: bool) -> None:
    file = File("bodies", "bodies/run=1/date=2026-11-20/destination=1/a.parquet", 1, 1)
    kept = {1: kept_days * DAY_MS} if kept_days is not None else {}
    assert archiving._is_over(file, kept, datetime(2026, 11, 22, 12, tzinfo=UTC)) is over


@pytest.mark.slow
def test_bodies_come_into_the_lake_once_and_leave_it_when_their_time_has_passed(spark: SparkSession, store: Store, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path / "lake")
    said: list[str] = []
    store.connection.execute("INSERT INTO surety.body (shard, body, size, epoch) OVERRIDING SYSTEM VALUE VALUES (0, 7, 3, 1)")
    store.connection.execute("INSERT INTO surety.body_chunk VALUES (0, 7, 0, 'one')")
    store.connection.execute("INSERT INTO surety.body_reference VALUES (0, -4, 7)")
    store.archived(1, 1, stored=7)
    store.segment(2, 2, 3)
    store.database.commit()

    def go_on() -> list[int]:
        with Run(store.url, "ingest") as run:
            archiving.archive(lake, run, store.url, lake.manifest(), tell=said.append)
        return sorted(row.sequence for row in lake.frame("bodies").collect())

    mark: Any = archiving._let_go
    archiving._let_go = lambda *_: None  # it dies after it has published
    try:
        assert go_on() == [1, 2, 3]
    finally:
        archiving._let_go = mark
    assert go_on() == [1, 2, 3]
    left = "SELECT (SELECT count(*) FROM surety.archive), (SELECT count(*) FROM surety.body_chunk), (SELECT sequence FROM surety.archive_reader)"
    assert store.connection.execute(left.encode()).fetchone() == (0, 0, 10)
    store.segment(3, 11, 12)
    store.database.commit()
    assert go_on() == [1, 2, 3, 11, 12]
    store.connection.execute("UPDATE surety.destination SET settings = '{}'")
    assert go_on() == []


# -- what is sent -----------------------------------------------------------------------------------------------------------------------
def test_a_header_section_is_for_its_new_destination_and_says_nothing_of_the_first_sending() -> None:
    octets = b"destination:/queue/a\nexpires:17\nduplicate-id:x\ncorrelation-id:c\\cd\na:1"
    assert replaying.section(Encoding.STOMP, octets, "queue/b:c") == b"destination:/queue/b\\cc\ncorrelation-id:c\\cd\na:1"


def test_amqp_messages_lose_nothing_but_when_they_expired() -> None:
    octets = b"\0\x53\x73\xc0\x0e\x09\x40\x40\x40\x40\x40\x40\x40\x40\x83" + (17).to_bytes(8, "big")
    octets = octets[:4] + bytes([len(octets) - 5]) + octets[5:]
    opening = open_message(replaying.section(Encoding.AMQP, octets + b"\0\x53\x75\xa0\x01x", "queue/b"))
    assert opening is not None and opening.properties().absolute_expiry_time is None


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ({"address": "orders"}, "is no destination whose messages are archived"),
        ({"address": "queue/a", "into": "queue/mq.sys.dmq"}, "nothing can be sent to"),
        ({"address": "queue/a", "rate": 0}, "rate must be 1"),
        ({"address": "queue/a", "selector": "a ="}, "."),
        ({"address": "queue/a", "identifiers": ("",)}, "identifiers of 1 to"),
        ({"address": "queue/a", "accepted_from": datetime(2026, 1, 2, tzinfo=UTC), "accepted_to": datetime(2026, 1, 1, tzinfo=UTC)}, "ends before it begins"),
    ],
)
def test_what_cannot_be_replayed_is_refused_with_what_is_wrong(wanted: dict[str, Any], sentence: str) -> None:
    with pytest.raises(replays.InvalidReplay, match=sentence):
        replays.check(replays.Wanted(**wanted))
