"""A queue as a stream of Spark's: each message is in one batch, whoever dies in between, and leaves the queue when that batch is committed."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from broker_core.client import Queue
from broker_core.pipeline.browsing import Looking
from broker_core.pipeline.streaming import MessagesLost, Slice, Streamed, StreamReader
from tests.acceptance.operators import ask
from tests.acceptance.python_client import factory, fill, left
from tests.pipeline.conftest import spark  # noqa: F401
from tests.support.service import Service

pytestmark = pytest.mark.slow


def reader(service: Service, queue: str, rows: int = 10, *, fails_on_loss: bool = True) -> StreamReader:
    looking = Looking(f"stomp://127.0.0.1:{service.stomp_port}", "guest", "guest", queue, "")
    return StreamReader(Streamed(looking, rows, fails_on_loss))


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
    assert third.latestOffset(following, third.getDefaultReadLimit()) == following
    third.stop()
    assert left(service, Queue("spark.late")) == []


def test_messages_of_a_begun_batch_that_somebody_took_are_missed(service: Service) -> None:
    send(service, "spark.taken", "a", "b")
    first = reader(service, "spark.taken")
    start = first.initialOffset()
    end = next_of(first, start)
    first.stop()
    assert left(service, Queue("spark.taken")) == ["a R", "b R"]
    with pytest.raises(MessagesLost, match="2 of 2 messages are not in the queue any more"):
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
