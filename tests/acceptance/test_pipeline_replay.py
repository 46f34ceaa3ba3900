"""Bodies outlive their messages in the lake, and come again from there: marked, once, whoever dies in between, and not after a cancel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession

from broker_core.client import Queue
from broker_core.pipeline import replaying, replays
from broker_core.pipeline.jobs import Place, run
from broker_core.pipeline.lake import Lake
from broker_core.pipeline.replaying import ReplayUnknown
from broker_core.pipeline.session import SparkSettings
from tests.acceptance.operators import ask
from tests.acceptance.python_client import factory, fill, left
from tests.acceptance.replayed import DAY_MS, forget_lakes, received
from tests.pipeline.conftest import spark  # noqa: F401
from tests.support.service import Service

pytestmark = pytest.mark.slow
LARGE = "x" * 400_000


@pytest.fixture
def place(spark: SparkSession, service: Service, tmp_path: Path) -> Place:  # noqa: F811
    forget_lakes(service)
    return Place(service.dsn(), str(tmp_path / "lake"), SparkSettings(tmp_path / "spark"))


def told(_: str) -> None:
    pass


def asked(place: Place, **wanted: Any) -> int:
    with psycopg.connect(place.url) as connection:
        return replays.ask(connection.cursor(), replays.Wanted(**wanted), "olga")


def row(place: Place, number: int, columns: str) -> tuple[Any, ...]:
    with psycopg.connect(place.url) as connection:
        found = connection.execute(f"SELECT {columns} FROM surety.pipeline_replay WHERE replay = %s".encode(), [number]).fetchone()
    assert found is not None
    return found


def test_what_was_consumed_comes_again_marked_and_only_what_was_asked_for(spark: SparkSession, service: Service, place: Place) -> None:  # noqa: F811
    ask(service, "create", "queue/kept", archive_ms=DAY_MS)
    with factory(service).create_connection() as connection, connection.create_session() as session:
        producer = session.create_producer(Queue("kept"))
        for number, body in enumerate(["first", "second", LARGE]):
            message = session.create_text_message(body)
            message.properties["number"] = number
            producer.send(message, priority=number + 3, time_to_live=60)
        fill(connection, Queue("not.kept"), "other")
    assert left(service, Queue("kept")) == [LARGE, "second", "first"]
    run(place, tell=told)
    lake = Lake(spark, place.lake)
    own = lake.frame("destinations").where("address IN ('queue/kept', 'queue/not.kept')").select("destination")  # other tests archive, too
    bodies = lake.frame("bodies").join(own, "destination").orderBy("sequence").collect()
    assert [bytes(each.body).decode() for each in bodies] == ["first", "second", LARGE]

    number = asked(place, address="queue/kept", into="queue/again", selector="number >= 1 AND JMSPriority > 3")
    result = replaying.replay(place, number, tell=told)
    assert (result.state, result.sent, result.total) == ("done", 2, 2)
    assert received(service, "again", 2) == [(LARGE, bodies[2].message_id), ("second", bodies[1].message_id)]
    with pytest.raises(ReplayUnknown):
        replaying.replay(place, number, tell=told)

    number = asked(place, address="queue/kept", identifiers=(bodies[0].message_id,))
    replaying.replay(place, number, tell=told)
    assert received(service, "kept", 1) == [("first", bodies[0].message_id)]


def test_one_that_died_goes_on_and_one_that_is_cancelled_ends(service: Service, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(service, "create", "queue/died", archive_ms=DAY_MS)
    wanted = [f"message {count}" for count in range(30)]
    with factory(service).create_connection() as connection:
        fill(connection, Queue("died"), *wanted)
    left(service, Queue("died"))
    number = asked(place, address="queue/died", into="queue/once", rate=20)
    send, sent = replaying._send, list[int]()

    def dies(*arguments: Any) -> bool:
        if sent:
            raise RuntimeError("planted")
        sent.append(1)
        return send(*arguments)

    monkeypatch.setattr(replaying, "_send", dies)
    with pytest.raises(RuntimeError, match="planted"):
        replaying.replay(place, number, tell=told)
    assert row(place, number, "state, sent, total, error") == ("failed", 20, 30, "planted")
    monkeypatch.setattr(replaying, "_send", send)
    assert asked(place, address="queue/died", into="queue/once", rate=1_000) == number, "the same again is what is left of it"
    assert replaying.replay(place, number, tell=told).sent == 30
    assert [body for body, _ in received(service, "once", 30)] == wanted

    number = asked(place, address="queue/died", into="queue/once", rate=10)

    def cancels(*arguments: Any) -> bool:
        with psycopg.connect(place.url) as connection:
            assert replays.cancel(connection.cursor(), number) is bool(sent)
            sent.clear()
        return send(*arguments)

    monkeypatch.setattr(replaying, "_send", cancels)
    assert replaying.replay(place, number, tell=told).state == "cancelled"
    assert row(place, number, "state, sent") == ("cancelled", 0)
    assert left(service, Queue("once")) == []


def test_a_message_of_amqp_comes_again_octet_by_octet(service: Service, place: Place) -> None:
    pytest.importorskip("proton", reason="there is no AMQP client to compare with: make verify installs it")
    from tests.acceptance import octets

    ask(service, "create", "queue/amqp.kept", archive_ms=DAY_MS)
    sent = [octets.sent(service, "amqp.kept", number) for number in range(3)]
    assert [octets.taken(service, "amqp.kept")[0] for _ in sent] == sent
    number = asked(place, address="queue/amqp.kept", into="queue/amqp.again")
    assert replaying.replay(place, number, tell=told).sent == 3
    again = [octets.taken(service, "amqp.again") for _ in sent]
    assert [bare for bare, _ in again] == sent
    assert len({replayed for _, replayed in again}) == 3 and None not in [replayed for _, replayed in again]
