"""What waits in a queue, the dead message queue included, or in a durable subscription, as rows: seen by a browser of the client's, which consumes nothing.
What can be said as a selector is asked of the broker, so that only those messages travel."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceReader, EqualTo, Filter, GreaterThan, GreaterThanOrEqual, In, InputPartition, LessThan, LessThanOrEqual, StringStartsWith,
)  # fmt: skip
from pyspark.sql.types import BinaryType, BooleanType, ByteType, MapType, StringType, StructField, StructType, TimestampType

from broker_core.client import ConnectionFactory, DeliveryMode, Message, Queue, QueueBrowser, Session, SubscriptionBrowser, Topic

from .columns import Frame

ROWS = 500
"""In one batch."""


def _column(name: str, kind: StringType | BinaryType | BooleanType | ByteType | TimestampType | MapType, meaning: str) -> StructField:
    return StructField(name, kind, nullable=True, metadata={"comment": meaning})


BROWSED = StructType(
    [
        _column("message_id", StringType(), "JMSMessageID."),
        _column("timestamp", TimestampType(), "When it was sent."),
        _column("expiration", TimestampType(), "When it expires. Null: never."),
        _column("priority", ByteType(), "0 to 9."),
        _column("persistent", BooleanType(), "Its delivery mode."),
        _column("redelivered", BooleanType(), "It may have been delivered before."),
        _column("correlation_id", StringType(), "As its sender set it."),
        _column("type", StringType(), "JMSType."),
        _column("reply_to", StringType(), "An address."),
        _column("text", StringType(), "The body, if it is text. Null: it is not."),
        _column("body", BinaryType(), "The body's octets; of an object its JSON."),
        _column("properties", MapType(StringType(), StringType()), "As text; of dead messages with reason, time and origin."),
    ]
)
"""One row for each message, the highest priority first, within it in the order of arrival."""
_HEADERS = {"message_id": "JMSMessageID", "correlation_id": "JMSCorrelationID", "type": "JMSType", "priority": "JMSPriority"}


@dataclass(slots=True, frozen=True)
class Looking:
    """At what, and for what."""

    address_list: str
    username: str
    password: str
    name: str
    """Of the queue, or of the topic."""
    selector: str
    """Empty: everything."""
    subscription: str = ""
    """A durable one of the topic. Empty: a queue is looked at."""
    client_id: str = ""
    """Whose subscription it is. Empty: one that is shared, and of no client."""


def selector_of(condition: Filter) -> str:
    """The condition in the selector's words, or nothing if it has none there. What is said is never narrower than what is meant."""
    match condition:
        case EqualTo((str(name),), str() | int() as value) if name in _HEADERS and not isinstance(value, bool):
            return f"{_HEADERS[name]} = {_literal(value)}"
        case In((str(name),), values) if name in _HEADERS and name != "priority" and values and all(isinstance(value, str) for value in values):
            return f"{_HEADERS[name]} IN ({', '.join(map(_literal, values))})"
        case GreaterThan(("priority",), int(value)):
            return f"JMSPriority > {value}"
        case GreaterThanOrEqual(("priority",), int(value)):
            return f"JMSPriority >= {value}"
        case LessThan(("priority",), int(value)):
            return f"JMSPriority < {value}"
        case LessThanOrEqual(("priority",), int(value)):
            return f"JMSPriority <= {value}"
        case StringStartsWith((str(name),), str(value)) if name in _HEADERS and not set(value) & set("%_\\"):
            return f"{_HEADERS[name]} LIKE {_literal(value + '%')}"
        case _:
            return ""


def _literal(value: str | int) -> str:
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


class BrowseReader(DataSourceReader):
    """One look, by one task: there is one order."""

    def __init__(self, looking: Looking) -> None:
        self._looking = looking

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 -- Spark's name
        """Spark looks at all of them again: a selector's NULL is not SQL's everywhere."""
        said = [text for text in map(selector_of, filters) if text]
        whole = " AND ".join([f"({self._looking.selector})"] * bool(self._looking.selector) + said)
        self._looking = replace(self._looking, selector=whole)
        return filters

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Raises JMSException."""
        looking, frame = self._looking, Frame(BROWSED)
        factory = ConnectionFactory(address_list=looking.address_list, username=looking.username, password=looking.password)
        with closing(factory.create_connection()) as connection, connection.create_session() as session:
            connection.start()
            shown = iter(browser(session, looking))
            while rows := [row_of(message) for message in islice(shown, ROWS)]:
                yield frame.of_rows(rows)


def browser(session: Session, looking: Looking) -> QueueBrowser | SubscriptionBrowser:
    """Raises JMSException."""
    if looking.subscription:
        return session.create_durable_browser(Topic(looking.name), looking.subscription, looking.selector, client_id=looking.client_id)
    return session.create_browser(Queue(looking.name), looking.selector)


def row_of(message: Message) -> tuple[object, ...]:
    """In the order of BROWSED."""
    body = message.body
    text = body if isinstance(body, str) else None
    reply_to = message.jms_reply_to
    return (
        message.jms_message_id, _instant(message.jms_timestamp), _instant(message.jms_expiration), message.jms_priority,
        message.jms_delivery_mode == DeliveryMode.PERSISTENT, message.jms_redelivered, message.jms_correlation_id, message.jms_type,
        None if reply_to is None else reply_to.address, text, _octets(body), [(name, str(value)) for name, value in message.properties.items()],
    )  # fmt: skip


def _octets(body: object) -> bytes | None:
    """Objects travel as JSON."""
    if body is None or isinstance(body, bytes):
        return body
    return body.encode() if isinstance(body, str) else json.dumps(body, separators=(",", ":")).encode()


def _instant(milliseconds: int | None) -> datetime | None:
    return datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds and milliseconds < 1 << 47 else None
