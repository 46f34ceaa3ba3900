"""A queue, or a durable subscription, as a stream: each message is in one batch, once, and is acknowledged when Spark's checkpoint has committed that batch.

Offsets name the messages of the batch that ends there, by their identifiers: nothing else says which they were, for selectors, priorities, other consumers and
redelivery make a queue's order what it is. While the broker has not heard that a batch is committed, its messages stay in the queue, held by the stream:

- Spark dies before its checkpoint has the batch: they come back, and are read for another one.
- Spark dies after the checkpoint knows the batch, and before it is committed: Spark asks for the same batch again, which is put together by browsing.
- Spark dies after it is committed, and before the broker has heard: what comes back and is named by the offset where the stream goes on is acknowledged, and
  dropped. What has not come back yet is named by the following offsets (`left`) until it has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Row
from pyspark.sql.datasource import DataSourceStreamReader, DataSourceStreamWriter, InputPartition, WriterCommitMessage
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from broker_core.client import AcknowledgeMode, Connection, ConnectionFactory, Message, MessageConsumer, Queue, Session, Topic

from .browsing import BROWSED, ROWS, Looking, browser, row_of
from .columns import Frame
from .sink import Target, send

BATCH_ROWS, BATCH_ROWS_MAX = 1_000, 10_000
OCTETS_MAX = 8 << 20
"""Of one batch's bodies, one message at least: the broker lets twice as much be outstanding."""
FIRST_S = 0.2
"""For the first message of a batch a reading waits so long; then Spark asks again."""
NEXT_S = 0.02
LAST_S = 10.0
"""So long a query that ends waits for what a browser shows and nobody has delivered: the first match of a selector in a deep queue takes seconds, and what a
reader that died had held comes back. What other consumers hold for longer is left to them."""
NEWER_BATCHES_MAX = 100
"""So many batches in a row of nothing but what came after such a query began are taken for the sake of what waits behind it; then that, too, is left."""
QUERY, BATCH = "sql.streaming.queryId", "streaming.sql.batchId"
"""Spark's names for what a task of a stream works for."""
_NUMBERED = re.compile(r"(.*\D)(0|[1-9][0-9]{0,17})")

Offset = dict[str, Any]


class MessagesLost(RuntimeError):
    """One sentence: messages of a batch that Spark asks for again are not there any more."""


@dataclass(slots=True, frozen=True)
class Streamed:
    """What is read as a stream."""

    looking: Looking
    rows: int = BATCH_ROWS
    """Of one batch, at the most."""
    fails_on_loss: bool = True


def names(told: Iterable[Any]) -> Iterator[str]:
    """Identifiers as an offset has them: one by one, or [what all begin with, the first number, the last one]."""
    for one in told:
        if isinstance(one, str):
            yield one
        else:
            yield from (f"{one[0]}{number}" for number in range(one[1], one[2] + 1))


def shortened(identifiers: Iterable[str]) -> list[Any]:
    """The opposite of `names`: neighbours become one."""
    told: list[Any] = []
    for identifier in identifiers:
        found = _NUMBERED.fullmatch(identifier)
        if found is None:
            told.append(identifier)
            continue
        prefix, number = found[1], int(found[2])
        if told and isinstance(told[-1], list) and told[-1][0] == prefix and told[-1][2] == number - 1:
            told[-1][2] = number
        else:
            told.append([prefix, number, number])
    return told


@dataclass(slots=True)
class Slice(InputPartition):
    """The rows of a batch travel with its task."""

    rows: list[tuple[object, ...]]


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Lives in a process beside the driver as long as the query runs. A connection that is lost ends the query; begun again, it goes on."""

    def __init__(self, streamed: Streamed) -> None:
        self._streamed = streamed
        self._connection: Connection | None = None
        self._session: Session
        self._consumer: MessageConsumer
        self._held: dict[str, Message] = {}
        """Of the batch that Spark works on."""
        self._begun: Offset | None = None
        """Where that batch begins."""
        self._ended: Offset = {}
        """And where it ends."""
        self._committed: set[str] = set()
        """Of batches that Spark has committed, what has not come back yet to be acknowledged."""
        self._until: int | None = None
        """For a query that ends: messages of later than this instant, in ms, are not waited for."""
        self._newer = 0
        """For such a query: of so many batches, one after the other, every message was later."""
        self._is_over = False

    # -- offsets ------------------------------------------------------------------------------------------------------------------------
    def initialOffset(self) -> Offset:  # noqa: N802 -- Spark's name
        return {"batch": 0, "messages": [], "left": []}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._streamed.rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._is_over, self._newer, self._until = False, 0, 0

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Spark has committed what is up to `start`, else it would not ask. Raises JMSException."""
        if self._begun == start:  # asked twice before it went on
            return self._ended
        self._go_on(start)
        self.commit(start)
        if self._newer and self._until is not None:  # what came before may wait behind it, for its priority
            self._is_over = self._is_over or self._newer >= NEWER_BATCHES_MAX or not self._shows_more(start, self._until)
        if self._is_over:
            return start
        most = min(self._streamed.rows, limit.max_rows if isinstance(limit, ReadMaxRows) else self._streamed.rows)
        taken = self._take(most, FIRST_S)
        if not taken and self._until is not None and self._shows_more(start, self._until):
            taken = self._take(most, LAST_S)
        if not taken:
            self._is_over = self._until is not None
            return start
        is_newer = self._until is not None and all((message.jms_timestamp or 0) > self._until for message in taken.values())
        self._newer = self._newer + 1 if is_newer else 0
        self._held, self._begun = taken, start
        self._ended = {
            "batch": start["batch"] + 1,
            "messages": shortened(taken),
            "left": shortened(sorted(self._committed)),
        }
        return self._ended

    def commit(self, end: Offset) -> None:
        """Acknowledge what Spark has committed, if that is not done. Raises JMSException."""
        if self._held and self._ended == end:
            *_, last = self._held.values()
            self._session.acknowledge(last)  # with all before it
            self._held, self._begun = {}, None

    def stop(self) -> None:
        """What is not acknowledged goes back."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # -- consuming ----------------------------------------------------------------------------------------------------------------------
    def _factory(self) -> ConnectionFactory:
        looking = self._streamed.looking
        return ConnectionFactory(
            address_list=looking.address_list, username=looking.username, password=looking.password, consumer_flow_limit=self._streamed.rows
        )

    def _go_on(self, start: Offset) -> None:
        """Where Spark's checkpoint says that it is."""
        if self._connection is not None:
            return
        looking = self._streamed.looking
        if self._until == 0:
            self._until = self._newest()
        committed = {*names(start["messages"]), *names(start["left"])}
        self._committed = committed & {message.jms_message_id for message in self._shown(committed)} if committed else set()
        self._connection = self._factory().create_connection()
        if looking.client_id:
            self._connection.client_id = looking.client_id
        self._session = self._connection.create_session(acknowledge_mode=AcknowledgeMode.CLIENT)
        self._consumer = _consumer(self._session, looking)
        self._connection.start()

    def _take(self, most: int, first_s: float) -> dict[str, Message]:
        """Of what is there so many, or so much, in the order in which it came; the first is waited for."""
        taken: dict[str, Message] = {}
        octets = 0
        while len(taken) < most and octets < OCTETS_MAX:
            message = self._consumer.receive(NEXT_S if taken else first_s)
            if message is None:
                break
            identifier = message.jms_message_id or ""
            if identifier in self._committed:
                self._committed.discard(identifier)
                self._session.acknowledge_this_message(message)
                continue
            taken[identifier] = message
            octets += len(message.body) if isinstance(message.body, str | bytes) else 0
        return taken

    # -- browsing -----------------------------------------------------------------------------------------------------------------------
    def _shown(self, wanted: set[str]) -> Iterator[Message]:
        """Those of the wanted that are there, held by somebody or not. Ends when all are found."""
        left = set(wanted)
        for message in self._browsed():
            if message.jms_message_id in left:
                left.remove(message.jms_message_id)
                yield message
                if not left:
                    return

    def _shows_more(self, start: Offset, until: int) -> bool:
        """Something is there that the broker got by then and is in no batch, held by somebody or not."""
        known = {*names(start["messages"]), *self._committed}
        return any(message.jms_message_id not in known and (message.jms_timestamp or 0) <= until for message in self._browsed())

    def _browsed(self) -> Iterator[Message]:
        """What is there. No selector may ask for the time: of a message sent by AMQP it has that of the sender's clock, and what is delivered the broker's."""
        with closing(self._factory().create_connection()) as connection, connection.create_session() as session:
            connection.start()
            yield from browser(session, self._streamed.looking)

    def _newest(self) -> int:
        """By the broker's clock: a message that it gets now, and nobody else."""
        with closing(self._factory().create_connection()) as connection, connection.create_session() as session:
            connection.start()
            queue = session.create_temporary_queue()
            session.create_producer(queue).send("")
            message = session.create_consumer(queue).receive(10.0)
            return (message.jms_timestamp or 0) if message is not None else 0

    # -- batches ------------------------------------------------------------------------------------------------------------------------
    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """Raises JMSException, MessagesLost."""
        if start == end:
            return [Slice([])]
        found = self._held
        wanted = list(names(end["messages"]))
        if not self._held or self._ended != end:
            found = {message.jms_message_id or "": message for message in self._shown(set(wanted))}
        missing = [identifier for identifier in wanted if identifier not in found]
        if missing and self._streamed.fails_on_loss:
            raise MessagesLost(
                f"of batch {end['batch']}, which Spark has begun and asks for again, {len(missing)} of {len(wanted)} messages are not there any more "
                f"({missing[0]}, ...): they expired, or somebody else took them. Say option failOnDataLoss false to go on without them"
            )
        return [Slice([row_of(found[identifier]) for identifier in wanted if identifier in found])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Slice)
        frame = Frame(BROWSED)
        for first in range(0, len(partition.rows), ROWS):
            yield frame.of_rows(partition.rows[first : first + ROWS])


def _consumer(session: Session, looking: Looking) -> MessageConsumer:
    if not looking.subscription:
        return session.create_consumer(Queue(looking.name), looking.selector)
    if looking.client_id:
        return session.create_durable_consumer(Topic(looking.name), looking.subscription, looking.selector)
    return session.create_shared_durable_consumer(Topic(looking.name), looking.subscription, looking.selector)


class StreamWriter(DataSourceStreamWriter):
    """Of batches: one that is run again sends what is missing, for its messages are named by the query, the batch and their places."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None
        send(self._target, f"{self._target.name or context.getLocalProperty(QUERY)}-{context.getLocalProperty(BATCH)}", iterator)
        return WriterCommitMessage()

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 -- Spark's name
        """It was sent by its tasks, each transaction for itself."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Spark runs the batch again."""
