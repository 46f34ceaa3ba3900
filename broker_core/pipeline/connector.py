"""The data source `surety`: what Spark reads of the broker, and the messages that it sends.

    session.dataSource.register(Surety)
    session.read.format("surety").option("url", url).option("table", "events").load()

Options: `url` (libpq URI of the broker's database), `table` (schema.TABLES; default events), `shard` (0), `after` and `upto` (commits: after the one, up to the
other, inclusive). Conditions on number and kind are made use of before anything is read.

    session.read.format("surety").option("broker", "stomp://localhost:61613").option("browse", "queue/orders").option("selector", "region = 'north'").load()

Options: `browse` (queue/NAME, the dead message queue is queue/mq.sys.dmq; or topic/NAME with `subscription`, the name of a durable one, and `client`, whose
it is), `selector`, `broker`, `username`, `password`. Conditions on message_id, correlation_id, type and priority go to the broker, too.

    frame.write.format("surety").mode("append").option("broker", "stomp://localhost:61613").option("destination", "queue/orders").save()

Options: `broker` (as the client's address list), `username`, `password`, `destination`, `write` (a name: the same write again sends what is missing),
`transaction` (messages of one). Rows: sink.COLUMNS.

    session.readStream.format("surety").option("stream", "queue/orders").load()

Options: `stream` (queue/NAME; or topic/NAME with `subscription`, which is made if it is not there, and `client`), `selector`, `rows` (of one batch),
`failOnDataLoss`, `broker`, `username`, `password`. `writeStream` has those of a write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource, DataSourceReader, DataSourceStreamReader, DataSourceStreamWriter, DataSourceWriter, EqualTo, Filter, GreaterThan, GreaterThanOrEqual, In,
    InputPartition, LessThan, LessThanOrEqual,
)  # fmt: skip
from pyspark.sql.types import StructType

from broker_core.engine.address import is_reserved, is_temporary, is_valid
from broker_core.engine.pattern import has_wildcards, problem

from . import archiving, schema, sink, tables
from .browsing import BROWSED, BrowseReader, Looking
from .database import snapshot
from .extents import Interval, intervals
from .ledger import commits_of, events_of
from .streaming import BATCH_ROWS, BATCH_ROWS_MAX, Streamed, StreamReader, StreamWriter

NAME = "surety"


class InvalidOption(ValueError):
    """The message says which option, what it holds and what it may hold."""


@dataclass(slots=True)
class Wanted:
    """What is asked for: bounds of commit numbers, after the one and up to the other; kinds of events."""

    url: str
    table: str
    shard: int = 0
    after: int = 0
    upto: int | None = None
    kinds: tuple[str, ...] = schema.KINDS

    def narrow(self, condition: Filter) -> None:
        """Make use of a condition; Spark looks at it again, so what is not made use of harms nothing."""
        match condition:
            case EqualTo(("number",), int(value)):
                self._between(value - 1, value)
            case GreaterThan(("number",), int(value)):
                self._between(value, None)
            case GreaterThanOrEqual(("number",), int(value)):
                self._between(value - 1, None)
            case LessThan(("number",), int(value)):
                self._between(0, value - 1)
            case LessThanOrEqual(("number",), int(value)):
                self._between(0, value)
            case EqualTo(("kind",), value):
                self.kinds = tuple(kind for kind in self.kinds if kind == value)
            case In(("kind",), values):
                self.kinds = tuple(kind for kind in self.kinds if kind in values)
            case _:
                pass

    def _between(self, after: int, upto: int | None) -> None:
        self.after = max(self.after, after)
        if upto is not None:
            self.upto = upto if self.upto is None else min(self.upto, upto)


def _number(options: Any, name: str, default: int | None) -> int | None:
    text = options.get(name)
    if text is None:
        return default
    if not text.isdecimal():
        raise InvalidOption(f"option {name} is {text!r}, not a number from 0")
    return int(text)


class Surety(DataSource):
    """Registered by `session.dataSource.register(Surety)`."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def wanted(self) -> Wanted:
        """Raises InvalidOption."""
        url, table = self.options.get("url"), self.options.get("table", "events")
        if not url:
            raise InvalidOption("option url is missing: a libpq URI of the broker's database")
        if table not in schema.TABLES:
            raise InvalidOption(f"option table is {table!r}, none of {', '.join(schema.TABLES)}")
        after, shard = _number(self.options, "after", 0), _number(self.options, "shard", 0)
        assert after is not None and shard is not None
        return Wanted(url, table, shard, after, _number(self.options, "upto", None))

    def schema(self) -> StructType:
        if "browse" in self.options or "stream" in self.options:
            return BROWSED
        return schema.TABLES[self.wanted().table]

    def reader(self, schema: StructType) -> DataSourceReader:
        return BrowseReader(self.looking("browse")) if "browse" in self.options else TableReader(self.wanted())

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        if overwrite:
            raise InvalidOption("mode overwrite: messages that were sent are not taken back; say mode append")
        return sink.Writer(self.target(schema, sink.unnamed()))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 -- Spark's name
        return StreamReader(self.streamed())

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        if overwrite:
            raise InvalidOption("output mode complete: messages that were sent are not taken back; say append or update")
        return StreamWriter(self.target(schema, ""))

    def streamed(self) -> Streamed:
        """Raises InvalidOption."""
        if "stream" not in self.options:
            raise InvalidOption("option stream is missing: queue/NAME, or topic/NAME with option subscription")
        rows = _number(self.options, "rows", BATCH_ROWS)
        if rows is None or not 0 < rows <= BATCH_ROWS_MAX:
            raise InvalidOption(f"option rows is {rows}: a batch has 1 to {BATCH_ROWS_MAX}")
        loses = self.options.get("failOnDataLoss", "true").lower()
        if loses not in ("true", "false"):
            raise InvalidOption(f"option failOnDataLoss is {loses!r}, neither true nor false")
        return Streamed(self.looking("stream"), rows, loses == "true")

    def looking(self, option: str) -> Looking:
        """At what the option names. Raises InvalidOption."""
        given, name = self.options[option].removeprefix("/"), self.options.get("subscription", "")
        if not given.startswith("topic/"):
            if name:
                raise InvalidOption(f"option subscription is {name!r}, and option {option} names no topic: a queue has no subscriptions")
            return self._queue(option, given.removeprefix("queue/"))
        if not name:
            raise InvalidOption("option subscription is missing: a topic's messages are those of its durable subscriptions, name one")
        topic = given.removeprefix("topic/")
        if not (is_valid(given) or (has_wildcards(given) and not problem(given))):
            raise InvalidOption(f"option {option} is {self.options[option]!r}, neither queue/NAME nor topic/NAME")
        return Looking(*self.broker(), topic, self.options.get("selector", ""), name, self.options.get("client", ""))

    def _queue(self, option: str, name: str) -> Looking:
        if not is_valid(f"queue/{name}"):
            raise InvalidOption(f"option {option} is {self.options[option]!r}, neither queue/NAME nor topic/NAME")
        return Looking(*self.broker(), name, self.options.get("selector", ""))

    def broker(self) -> tuple[str, str, str]:
        """The client's address list, and who connects."""
        given = self.options
        return given.get("broker", "stomp://localhost:61613"), given.get("username", "guest"), given.get("password", "guest")

    def target(self, rows: StructType, unnamed: str) -> sink.Target:
        """`unnamed`: the name of a write that has none. Raises InvalidOption, InvalidRows."""
        sink.check(rows)
        destination = self.options.get("destination", "").lstrip("/")
        if not is_valid(destination) or is_temporary(destination) or is_reserved(destination):
            raise InvalidOption(f"option destination is {destination!r}, not queue/NAME or topic/NAME")
        size = _number(self.options, "transaction", sink.TRANSACTION_ROWS)
        if not size:
            raise InvalidOption("option transaction is 0: it is how many messages are sent together")
        return sink.Target(*self.broker(), destination, self.options.get("write") or unnamed, size)


@dataclass(slots=True)
class Part(InputPartition):
    """What one task reads: an interval of the ledger, a segment of messages, or a table as a whole."""

    interval: Interval | None = None
    segment: int | None = None
    known: tuple[int, ...] = ()
    """Segments that others read."""


@dataclass(slots=True)
class BodyPart(InputPartition):
    """What one task reads of the bodies that are archived."""

    part: archiving.Part


class TableReader(DataSourceReader):
    """Of a table that is there now."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 -- Spark's name
        for condition in filters:
            self._wanted.narrow(condition)
        return filters

    def partitions(self) -> list[InputPartition]:
        wanted = self._wanted
        with snapshot(wanted.url) as connection:
            if wanted.table in ("events", "commits"):
                parts = [Part(interval) for interval in intervals(connection, wanted.shard, wanted.after, wanted.upto)]
                return list(parts or [Part(None)])
            if wanted.table == "bodies":
                upto = archiving.last_sequence(connection, wanted.shard)
                return [BodyPart(part) for part in archiving.parts(connection, wanted.shard, 0, upto)] or [Part(None)]
            if wanted.table == "messages":
                known = tuple(tables.message_segments(connection, wanted.shard))
                return [*(Part(None, segment) for segment in known), Part(None, None, known)]
        return [Part(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, BodyPart):
            return archiving.bodies_of(self._wanted.url, partition.part)
        assert isinstance(partition, Part)
        wanted = self._wanted
        url, shard = wanted.url, wanted.shard
        match wanted.table:
            case "events":
                return events_of(url, partition.interval, wanted.kinds) if partition.interval else iter(())
            case "commits":
                return commits_of(url, partition.interval) if partition.interval else iter(())
            case "messages" if partition.segment is not None:
                return tables.messages_of(url, shard, partition.segment)
            case "messages":
                return tables.messages_retained(url, shard, list(partition.known))
            case "bodies":
                return iter(())
            case "destinations":
                return tables.destinations(url, shard)
            case "subscriptions":
                return tables.subscriptions(url, shard)
            case "gaps":
                return tables.gaps(url, shard)
            case _:
                return tables.present_now(url, shard)
