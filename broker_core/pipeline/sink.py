"""Rows of a DataFrame become messages: in transactions, and once, however often Spark tries.

Spark may run a task again though some of its transactions were committed. So every message has an identifier that follows from what it is: the column `id`,
or the name of the write, the partition and the row's place in it. The broker drops what it knows already, for as long as the destination's
`duplicate_window_ms` says; without one, messages of a task that is run again come twice.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from pyspark import TaskContext
from pyspark.sql import Row
from pyspark.sql.datasource import DataSourceWriter, WriterCommitMessage
from pyspark.sql.types import BinaryType, ByteType, DataType, IntegerType, LongType, MapType, ShortType, StringType, StructType

from broker_core.client import BytesMessage, ConnectionFactory, Message, Queue, TextMessage, Topic

TRANSACTION_ROWS = 500
"""Messages of one transaction, unless the option `transaction` says otherwise; the broker takes 10,000 and 64 MiB."""
IDENTIFIER = "_AMQ_DUPL_ID"

_WHOLE = (ByteType, ShortType, IntegerType, LongType)
COLUMNS: Mapping[str, tuple[type[DataType], ...]] = {
    "body": (StringType, BinaryType), "id": (StringType,), "priority": _WHOLE, "time_to_live_ms": _WHOLE, "correlation_id": (StringType,),
    "type": (StringType,), "properties": (MapType,),
}  # fmt: skip
"""What rows may have; a body they must have."""


class InvalidRows(ValueError):
    """The message says which column is wrong, and what there may be."""


@dataclass(slots=True, frozen=True)
class Target:
    """Where messages go, and by whom."""

    address_list: str
    username: str
    password: str
    destination: str
    """queue/NAME or topic/NAME."""
    name: str
    """Of the write."""
    transaction: int = TRANSACTION_ROWS

    def written_to(self) -> Queue | Topic:
        kind, _, name = self.destination.lstrip("/").partition("/")
        return Topic(name) if kind == "topic" else Queue(name)


def check(rows: StructType) -> None:
    """Raises InvalidRows."""
    for column in rows:
        allowed = COLUMNS.get(column.name)
        if allowed is None or not isinstance(column.dataType, allowed):
            kinds = "; ".join(f"{name}: {' or '.join(kind.typeName() for kind in types)}" for name, types in COLUMNS.items())
            raise InvalidRows(f"column {column.name} of type {column.dataType.simpleString()} cannot be written; there may be {kinds}")
    if "body" not in rows.names:
        raise InvalidRows("a column body is missing: it is what the messages hold")


def send(target: Target, batch: str, rows: Iterator[Row]) -> int:
    """The rows of one task, in transactions. Returns how many. Raises JMSException."""
    context = TaskContext.get()
    partition = context.partitionId() if context is not None else 0
    factory = ConnectionFactory(address_list=target.address_list, username=target.username, password=target.password)
    count = 0
    with closing(factory.create_connection()) as connection, connection.create_session(transacted=True) as session:
        producer = session.create_producer(target.written_to())
        for row in rows:
            told = row.asDict()
            message = _message(told)
            message.properties[IDENTIFIER] = told.get("id") or f"{batch}-{partition}-{count}"
            priority, lives = told.get("priority"), told.get("time_to_live_ms")
            producer.send(message, priority=4 if priority is None else priority, time_to_live=0 if lives is None else lives / 1000)
            count += 1
            if count % target.transaction == 0:
                session.commit()
        session.commit()
    return count


def _message(told: dict[str, Any]) -> Message:
    body = told["body"]
    message: Message = TextMessage(body) if isinstance(body, str) else BytesMessage(bytes(body or b""))
    message.properties.update(told.get("properties") or {})
    if told.get("correlation_id") is not None:
        message.jms_correlation_id = told["correlation_id"]
    if told.get("type") is not None:
        message.jms_type = told["type"]
    return message


class Writer(DataSourceWriter):
    """Of a DataFrame that ends. A write that fails has sent some of its transactions: repeated under its name, it sends the rest."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        send(self._target, self._target.name, iterator)
        return WriterCommitMessage()


def unnamed() -> str:
    """The name of a write that has none: its tasks may be run again, the write as a whole is another one."""
    return uuid.uuid4().hex
