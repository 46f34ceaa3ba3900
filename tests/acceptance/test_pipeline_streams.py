"""A queue as a stream of Spark's: each message is in one batch, whoever dies in between, and leaves the queue when that batch is committed."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from broker_core.client import MessageConsumer, Queue, Topic
from broker_core.pipeline import streaming
from broker_core.pipeline.browsing import Looking
from broker_core.pipeline.streaming import MessagesLost, Slice, Streamed, StreamReader
from tests.acceptance.operators import ask
from tests.acceptance.python_client import factory, fill, left
from tests.pipeline.conftest import spark  # noqa: F401
from tests.support.service import Service

pytestmark = pytest.mark.slow


def looking(service: Service, name: str) -> Looking:
    return Looking(f"stomp://127.0.0.1:{service.stomp_port}", "guest", "guest", name, "")


def reader(service: Service, queue: str, rows: int = 10, *, fails_on_loss: bool = True) -> StreamReader:
    return StreamReader(Streamed(looking(service, queue), rows, fails_on_loss))


def send(service: Service, queue: str, *bodies: str) -> None:
    with factory(service).create_connection() as connection:
        fill(connection, Queue(queue), *bodies)


def bodies(found: StreamReader, start: dict[str, object], end: dict[str, object]) -> list[object]:
    (part,) = found.partitions(start, end)
    assert isinstance(part, Slice)
    return [body for batch in found.read(part) for body in batch.column("text").to_pylist()]


def next_of(found: StreamReader, start: dict[str, object]) -> dict[str, object]:
    """Spark asks again and again."""
    for _ in range(50):
        end = found.latestOffset(start, found.getDefaultReadLimit())
        if end != start:
            return end
    raise AssertionError("nothing came")


def comes_back(found: StreamReader, start: dict[str, object]) -> None:
    """All that was committed, and nothing else."""
    for _ in range(50):
        assert found.latestOffset(start, found.getDefaultReadLimit()) == start
        if not found._committed:
            return
    raise AssertionError("it did not come back")


def send_by_clock_ahead(service: Service, queue: str, *bodies: str) -> None:
    """By AMQP, with the time that its sender takes it to be."""
    from tests.acceptance import proton_client  # it skips where there is no proton

    with proton_client.connected(service) as connection:
        sender = connection.create_sender(f"queue://{queue}")
        for body in bodies:
            sender.send(proton_client.Message(body=body, durable=True, creation_time=time.time() + 3_600))


def test_a_batch_that_was_begun_is_the_same_one_again_and_stays_in_the_queue(service: Service) -> None:
    send(service, "spark.begun", *"abc")
    first = reader(service, "spark.begun", 2)
    start = first.initialOffset()
    end = next_of(first, start)
    assert bodies(first, start, end) == ["a", "b"]
    again = reader(service, "spark.begun", 2)
    assert bodies(again, start, end) == ["a", "b"], "the first reader is still there and holds them"
    first.stop()
    following = next_of(again, end)
    assert bodies(again, end, following) == ["c"]
    again.commit(following)
    again.stop()
    assert left(service, Queue("spark.begun")) == []


def test_what_was_committed_and_not_acknowledged_is_dropped_when_it_comes_back(service: Service) -> None:
    send(service, "spark.dropped", *"ab")
    first = reader(service, "spark.dropped")
    end = next_of(first, first.initialOffset())
    first.stop()
    send(service, "spark.dropped", "c")
    second = reader(service, "spark.dropped")
    following = next_of(second, end)
    assert bodies(second, end, following) == ["c"]
    second.stop()
    assert left(service, Queue("spark.dropped")) == ["c R"], "Spark has not said that it has it"


def test_a_senders_clock_that_is_ahead_hides_nothing(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    send_by_clock_ahead(service, "spark.ahead", *"ab")
    first = reader(service, "spark.ahead", 1)
    start = first.initialOffset()
    end = next_of(first, start)
    again = reader(service, "spark.ahead", 1)
    assert bodies(again, start, end) == ["a"]
    second = reader(service, "spark.ahead", 1)
    following = next_of(second, end)
    assert (bodies(second, end, following), following["left"]) == (["b"], end["messages"]), "the first reader holds a still"
    second.stop()
    first.stop()
    receive = MessageConsumer.receive
    monkeypatch.setattr(MessageConsumer, "receive", lambda consumer, seconds: receive(consumer, seconds) if seconds >= 1 else None)
    ends = reader(service, "spark.ahead")
    ends.prepareForTriggerAvailableNow()
    last = ends.latestOffset(start, ends.getDefaultReadLimit())
    assert last != start, "it waits for what was there"
    ends.stop()


def test_a_query_that_ends_leaves_nothing_behind_what_came_later_and_goes_first(service: Service) -> None:
    send(service, "spark.urgent", *"abc")
    found = reader(service, "spark.urgent", 1)
    found.prepareForTriggerAvailableNow()
    offset, read = found.initialOffset(), list[object]()
    for _ in range(10):
        end = found.latestOffset(offset, found.getDefaultReadLimit())
        if end == offset:
            break
        read += bodies(found, offset, end)
        if len(read) == 1:
            time.sleep(0.01)
            with factory(service).create_connection() as connection, connection.create_session() as session:
                session.create_producer(Queue("spark.urgent")).send("urgent", priority=9)
        offset = end
    found.stop()
    assert sorted(map(str, read)) == ["a", "b", "c", "urgent"]
    assert left(service, Queue("spark.urgent")) == []


def test_a_query_that_ends_does_not_wait_for_ever_for_what_others_hold_while_more_comes(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "NEWER_BATCHES_MAX", 2)
    send(service, "spark.others", "held")
    other = reader(service, "spark.others", 1)
    next_of(other, other.initialOffset())
    found = reader(service, "spark.others", 1)
    found.prepareForTriggerAvailableNow()
    offset, read = found.initialOffset(), list[object]()
    found._go_on(offset)
    time.sleep(0.01)
    send(service, "spark.others", *"abc")
    while (end := found.latestOffset(offset, found.getDefaultReadLimit())) != offset:
        read += bodies(found, offset, end)
        offset = end
    found.stop()
    other.stop()
    assert read == ["a", "b"]


def test_what_comes_back_later_is_known_by_the_following_batches(service: Service) -> None:
    send(service, "spark.late", "a")
    first = reader(service, "spark.late")
    end = next_of(first, first.initialOffset())
    first.stop()
    with factory(service).create_connection() as connection, connection.create_session() as session:
        session.create_producer(Queue("spark.late")).send("urgent", priority=9)
    second = reader(service, "spark.late", 1)
    following = next_of(second, end)
    assert (bodies(second, end, following), following["left"]) == (["urgent"], end["messages"])
    second.stop()
    third = reader(service, "spark.late", 1)
    comes_back(third, following)
    third.stop()
    assert left(service, Queue("spark.late")) == []


def test_what_comes_back_later_is_known_though_it_is_younger_than_what_came_meanwhile(service: Service) -> None:
    send(service, "spark.younger", "old")
    time.sleep(0.01)
    with factory(service).create_connection() as connection, connection.create_session() as session:
        session.create_producer(Queue("spark.younger")).send("young", priority=9)
    dead = reader(service, "spark.younger", 1)
    start = dead.initialOffset()
    end = next_of(dead, start)
    assert bodies(dead, start, end) == ["young"]
    second = reader(service, "spark.younger", 1)
    following = next_of(second, end)
    assert (bodies(second, end, following), following["left"]) == (["old"], end["messages"])
    second.commit(following)
    second.stop()
    dead.stop()
    third = reader(service, "spark.younger", 1)
    comes_back(third, following)
    third.stop()
    assert left(service, Queue("spark.younger")) == []


def test_a_query_that_ends_waits_for_what_is_there_and_not_for_what_others_hold(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a selector's matches in a deep queue the first takes seconds."""
    receive = MessageConsumer.receive
    monkeypatch.setattr(MessageConsumer, "receive", lambda consumer, seconds: receive(consumer, seconds) if seconds >= 1 else None)
    monkeypatch.setattr(streaming, "LAST_S", 1.0)
    send(service, "spark.deep", *"ab")
    found = reader(service, "spark.deep")
    found.prepareForTriggerAvailableNow()
    start = found.initialOffset()
    end = found.latestOffset(start, found.getDefaultReadLimit())
    assert bodies(found, start, end) == ["a"]
    following = found.latestOffset(end, found.getDefaultReadLimit())
    assert bodies(found, end, following) == ["b"]
    assert found.latestOffset(following, found.getDefaultReadLimit()) == following, "b is there still, and is in a batch"
    send(service, "spark.deep", "c")
    other = reader(service, "spark.deep")
    other.prepareForTriggerAvailableNow()
    assert found.latestOffset(following, found.getDefaultReadLimit()) == following, "it was sent after the query began"
    found.stop()
    assert bodies(other, start, other.latestOffset(start, other.getDefaultReadLimit())) == ["c"]
    late = reader(service, "spark.deep")
    late.prepareForTriggerAvailableNow()
    assert late.latestOffset(start, late.getDefaultReadLimit()) == start
    late.stop()
    other.stop()


@pytest.mark.parametrize("client", ["", "spark"])
def test_a_durable_subscription_is_a_stream_as_a_queue_is(service: Service, client: str) -> None:
    asked = replace(looking(service, f"spark.news{client}"), subscription="stream", client_id=client)
    first = StreamReader(Streamed(asked, 2))
    start = first.initialOffset()
    assert first.latestOffset(start, first.getDefaultReadLimit()) == start, "it is made"
    first.stop()
    with factory(service).create_connection() as connection:
        fill(connection, Topic(asked.name), *"abc")
    second = StreamReader(Streamed(asked, 2))
    end = next_of(second, start)
    assert bodies(second, start, end) == ["a", "b"]
    second.stop()
    third = StreamReader(Streamed(asked, 2))
    assert bodies(third, start, end) == ["a", "b"], "by browsing"
    following = next_of(third, end)
    assert bodies(third, end, following) == ["c"], "a and b came again, and were dropped"
    third.commit(following)
    third.stop()
    with factory(service).create_connection() as connection, connection.create_session() as session:
        connection.start()
        assert [message.body for message in session.create_durable_browser(Topic(asked.name), "stream", client_id=client)] == []


def test_messages_of_a_begun_batch_that_somebody_took_are_missed(service: Service) -> None:
    send(service, "spark.taken", "a", "b")
    first = reader(service, "spark.taken")
    start = first.initialOffset()
    end = next_of(first, start)
    first.stop()
    assert left(service, Queue("spark.taken")) == ["a R", "b R"]
    with pytest.raises(MessagesLost, match="2 of 2 messages are not there any more"):
        reader(service, "spark.taken").partitions(start, end)
    assert bodies(reader(service, "spark.taken", fails_on_loss=False), start, end) == []


def test_a_stream_from_a_queue_to_another_has_each_message_once(spark: SparkSession, service: Service, tmp_path: Path) -> None:  # noqa: F811
    ask(service, "create", "queue/spark.copies", duplicate_window_ms=600_000)
    wanted = [f"message {number}" for number in range(50)]
    send(service, "spark.stream", *wanted)
    broker = f"stomp://127.0.0.1:{service.stomp_port}"

    def run(frame: DataFrame) -> None:
        query = frame.writeStream.format("surety").options(broker=broker, destination="queue/spark.copies", checkpointLocation=tmp_path / "checkpoint")
        query.trigger(availableNow=True).start().awaitTermination(60)

    stream = spark.readStream.format("surety").options(broker=broker, stream="queue/spark.stream", rows=20).load()
    # The second batch dies when it has sent what it has to send, and is run again.
    died = tmp_path / "died"

    def die_once(text: str) -> str:
        if text == "message 39" and not died.exists():
            died.touch()
            raise RuntimeError("planted")
        return text

    spark.udf.register("die_once", die_once)
    with pytest.raises(Exception, match="planted"):
        run(stream.selectExpr("die_once(text) AS body"))
    run(stream.selectExpr("die_once(text) AS body"))
    assert (left(service, Queue("spark.stream")), left(service, Queue("spark.copies"))) == ([], wanted)
