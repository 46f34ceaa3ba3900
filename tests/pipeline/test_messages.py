"""What is asked of the broker when a queue is looked at, and which rows become messages."""

from __future__ import annotations

import pytest
from pyspark.sql.datasource import EqualTo, Filter, GreaterThanOrEqual, In, LessThan, StringStartsWith
from pyspark.sql.types import DataType, IntegerType, MapType, StringType, StructField, StructType

from broker_core.engine.selector import compile_selector
from broker_core.pipeline.browsing import BROWSED, BrowseReader, Looking, selector_of
from broker_core.pipeline.connector import InvalidOption, Surety
from broker_core.pipeline.sink import InvalidRows, Writer, check
from broker_core.pipeline.streaming import names, shortened

TEXT, WHOLE, MAP = StringType(), IntegerType(), MapType(StringType(), StringType())


def rows(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


@pytest.mark.parametrize(
    ("condition", "selector"),
    [
        (EqualTo(("type",), "it's"), "JMSType = 'it''s'"),
        (EqualTo(("priority",), 4), "JMSPriority = 4"),
        (GreaterThanOrEqual(("priority",), 5), "JMSPriority >= 5"),
        (LessThan(("priority",), 5), "JMSPriority < 5"),
        (In(("correlation_id",), ("a", "b")), "JMSCorrelationID IN ('a', 'b')"),
        (StringStartsWith(("message_id",), "ID:a"), "JMSMessageID LIKE 'ID:a%'"),
        (StringStartsWith(("type",), "100%"), ""),
        (EqualTo(("text",), "a"), ""),
        (EqualTo(("properties", "a"), "b"), ""),
        (EqualTo(("priority",), True), ""),
    ],
)
def test_conditions_that_a_selector_can_say_are_asked_of_the_broker(condition: Filter, selector: str) -> None:
    assert selector_of(condition) == selector
    if selector:
        compile_selector(selector)


def test_they_are_asked_together_with_the_selector_and_by_spark_again() -> None:
    reader = BrowseReader(Looking("", "", "", "orders", "a = 1 OR b = 2"))
    conditions: list[Filter] = [EqualTo(("type",), "x"), EqualTo(("text",), "y"), LessThan(("priority",), 3)]
    assert reader.pushFilters(conditions) == conditions
    assert reader._looking.selector == "(a = 1 OR b = 2) AND JMSType = 'x' AND JMSPriority < 3"


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (rows(body=TEXT, wrong=WHOLE), "column wrong of type int"),
        (rows(body=WHOLE), "column body of type int"),
        (rows(id=TEXT), "a column body is missing"),
    ],
)
def test_rows_that_cannot_be_messages_are_refused(columns: StructType, sentence: str) -> None:
    with pytest.raises(InvalidRows, match=sentence):
        check(columns)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "option destination is ''"),
        ({"destination": "queue/mq.sys.dmq"}, "not queue/NAME or topic/NAME"),
        ({"destination": "temp-queue/a"}, "not queue/NAME or topic/NAME"),
        ({"destination": "queue/a", "transaction": "0"}, "option transaction is 0"),
    ],
)
def test_a_write_that_has_nowhere_to_go_is_refused(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidOption, match=sentence):
        Surety(options).writer(rows(body=TEXT), overwrite=False)


def test_what_was_sent_is_not_overwritten() -> None:
    told = Surety({"destination": "queue/a"})
    assert isinstance(told.writer(rows(body=TEXT, properties=MAP), overwrite=False), Writer)
    with pytest.raises(InvalidOption, match="not taken back"):
        told.writer(rows(body=TEXT), overwrite=True)


def test_offsets_name_neighbours_by_their_ends() -> None:
    known = ["ID:a-7", "ID:a-8", "ID:a-9", "ID:b-10", "order 5", "order 05", "x", "ID:a-1"]
    told = shortened(known)
    assert told == [["ID:a-", 7, 9], ["ID:b-", 10, 10], ["order ", 5, 5], "order 05", "x", ["ID:a-", 1, 1]]
    assert list(names(told)) == known


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "option stream is missing"),
        ({"stream": "topic/a"}, "option subscription is missing"),
        ({"stream": "queue/a", "subscription": "s"}, "option stream names no topic"),
        ({"stream": "queue/"}, "option stream is 'queue/'"),
        ({"stream": "queue/a", "rows": "0"}, "a batch has 1 to 10000"),
        ({"stream": "queue/a", "failOnDataLoss": "maybe"}, "neither true nor false"),
    ],
)
def test_a_stream_that_cannot_be_read_is_refused(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidOption, match=sentence):
        Surety(options).streamReader(BROWSED)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"browse": "topic/a"}, "option subscription is missing"),
        ({"browse": "queue/a", "subscription": "s"}, "a queue has no subscriptions"),
        ({"browse": "topic/", "subscription": "s"}, "neither queue/NAME nor topic/NAME"),
    ],
)
def test_what_cannot_be_looked_at_is_refused(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidOption, match=sentence):
        Surety(options).reader(BROWSED)


def test_a_subscription_is_looked_at_and_streamed_by_its_topic_its_name_and_its_client() -> None:
    asked = {"subscription": "s", "client": "two", "selector": "x = 1"}
    meant = Looking("stomp://localhost:61613", "guest", "guest", "a.>", "x = 1", "s", "two")
    assert Surety(asked | {"browse": "/topic/a.>"}).looking("browse") == meant
    assert Surety(asked | {"stream": "/topic/a.>"}).streamed().looking == meant
