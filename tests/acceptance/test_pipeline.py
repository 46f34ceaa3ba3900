"""Spark beside a really running broker: it sends messages, once, and its ledger goes into the lake."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from pyspark.sql import DataFrame, SparkSession

from broker_core.pipeline import ingest
from broker_core.pipeline.lake import Lake
from broker_core.pipeline.runs import Run
from tests.acceptance.ledger import account
from tests.acceptance.operators import ask
from tests.acceptance.python_client import factory
from tests.pipeline.conftest import spark  # noqa: F401
from tests.support.service import Service
from broker_core.client import Queue, Topic

COUNT = 60
WAIT_SECONDS, CLOCKS_APART = 1.5, 0.2
"""The send is on its way for a moment before it waits; the engine counts whole milliseconds."""


def write(frame: DataFrame, service: Service, **options: object) -> None:
    address = f"stomp://127.0.0.1:{service.stomp_port}"
    frame.write.format("surety").mode("append").options(broker=address, **options).save()


def received(service: Service, name: str) -> list[tuple[str, object]]:
    """What is there, and is taken."""
    found = []
    with factory(service).create_connection() as connection, connection.create_session() as session:
        consumer = session.create_consumer(Queue(name))
        while (message := consumer.receive(3 if found else 10)) is not None:
            found.append((message.body, message.properties.get("part")))
    return found


def keep_waiting(service: Service, name: str) -> None:
    """A producer waits for room there until a consumer has taken what is in its way."""
    ask(service, "create", f"queue/{name}", max_messages=1, limit_behavior="FLOW_CONTROL")
    with factory(service).create_connection() as connection, connection.create_session() as session, ThreadPoolExecutor(1) as aside:
        producer = session.create_producer(Queue(name))
        producer.send("first")
        second = aside.submit(producer.send, "second")
        with pytest.raises(TimeoutError):
            second.result(WAIT_SECONDS)
        assert [body for body, _ in received(service, name)] == ["first", "second"]
        second.result(10)


@pytest.mark.slow
def test_rows_are_sent_once_however_often_and_what_happened_is_in_the_lake(spark: SparkSession, service: Service, tmp_path: Path) -> None:  # noqa: F811
    ask(service, "create", "queue/spark.sent", duplicate_window_ms=600_000)
    rows = spark.range(COUNT).selectExpr("concat('message ', id) AS body", "map('part', cast(id % 3 AS string)) AS properties").repartition(3)
    write(rows, service, destination="queue/spark.sent", write="first", transaction=7)
    write(rows, service, destination="queue/spark.sent", write="first", transaction=11)
    address = f"stomp://127.0.0.1:{service.stomp_port}"
    shown = spark.read.format("surety").options(broker=address, browse="queue/spark.sent", selector="part = '1'").load()
    assert shown.where("priority >= 4 AND text LIKE 'message 1%'").count() == len([n for n in range(COUNT) if n % 3 == 1 and str(n).startswith("1")])
    assert shown.where("priority > 4").count() == 0
    with factory(service).create_connection() as connection, connection.create_session() as session:
        session.create_shared_durable_consumer(Topic("spark.topic"), "spark").close()
        for text in ("a", "b"):
            session.create_producer(Topic("spark.topic")).send(text, priority=7 if text == "b" else 4)
    collected = spark.read.format("surety").options(broker=address, browse="topic/spark.topic", subscription="spark").load()
    assert [row.text for row in collected.collect()] == ["b", "a"]
    assert [row.text for row in collected.where("priority < 5").collect()] == ["a"]
    found = received(service, "spark.sent")
    assert sorted(found) == sorted((f"message {number}", str(number % 3)) for number in range(COUNT))

    began = time.monotonic()
    keep_waiting(service, "spark.full")
    took = time.monotonic() - began

    lake = Lake(spark, tmp_path / "lake")
    with Run(service.dsn(), "ingest") as run:
        ingest.ingest(lake, run, service.dsn(), tell=lambda _: None)
    with psycopg.connect(service.dsn()) as connection:
        told = account(connection, "queue/spark.sent")
    events = of(lake, "queue/spark.sent")
    sums = {row[0]: row[1] for row in events.groupBy("kind").sum("messages").collect()}
    assert (sums["accepted"], sums["settled"]) == (told.accepted, sum(told.settled.values())) == (COUNT, COUNT)
    assert sums["offered"] >= COUNT
    octets = events.selectExpr("sum(arrived)", "sum(octets)").first()
    assert octets is not None and octets[0] > COUNT * len("message 1") and octets[1] == 0, "all of it came, and left"
    waited = of(lake, "queue/spark.full").selectExpr("sum(unix_millis(until) - unix_millis(since)) / 1000").first()
    assert waited is not None and WAIT_SECONDS - CLOCKS_APART <= waited[0] <= took


def of(lake: Lake, address: str) -> DataFrame:
    """The events of a destination."""
    return lake.frame("events").join(lake.frame("destinations").where(f"address = '{address}'").select("destination"), "destination")


@pytest.mark.slow
def test_what_cannot_be_sent_is_refused_before_anything_is(spark: SparkSession, service: Service) -> None:  # noqa: F811
    with pytest.raises(Exception, match="column wrong of type string cannot be written"):
        write(spark.sql("SELECT 'a' AS body, 'b' AS wrong"), service, destination="queue/spark.refused")
    with pytest.raises(Exception, match=r"option destination is .queue/mq\.sys\.dmq"):
        write(spark.sql("SELECT 'a' AS body"), service, destination="queue/mq.sys.dmq")
