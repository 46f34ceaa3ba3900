"""One contract for both faces: what the broker would end the connection for is refused where it is asked, and nobody else notices."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from broker_core.client import (
    IllegalStateException,
    InvalidDestinationException,
    InvalidSelectorException,
    JMSException,
    MessageFormatException,
    Queue,
    TextMessage,
    Topic,
)
from tests.client.faces import told
from tests.client.listening import SECONDS, ListeningBroker

A, NUL = Queue("a"), "a\0b"


@asynccontextmanager
async def nobody_else_notices(connection: Any, broker: ListeningBroker) -> AsyncIterator[None]:
    """What is done meanwhile leaves the connection as it is: its other session sends and receives, and the broker has heard of nothing else."""
    other = await connection.create_session(transacted=True)
    consumer, producer = await other.create_consumer(A), await other.create_producer(A)
    await producer.send("before")
    await told(broker, "SEND")
    yield
    broker.delivers("2", b"x")
    assert (await consumer.receive(SECONDS)).body == "x"
    await other.commit()
    assert [(await asyncio.to_thread(broker.frames.get, timeout=SECONDS)).command for _ in range(2)] == ["ACK", "COMMIT"]
    assert broker.frames.empty()
    assert broker.connects.qsize() == 1


def has(name: str, value: object) -> Callable[[TextMessage], None]:
    return lambda message: message.properties.update({name: value})  # type: ignore[dict-item]


def field(name: str, value: object) -> Callable[[TextMessage], None]:
    return lambda message: setattr(message, name, value)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (has("colour", NUL), "'colour' holds a NUL character"), (has("colour", "\ud800"), "'colour' cannot be written as UTF-8"),
        (field("jms_correlation_id", NUL), "jms_correlation_id holds a NUL character"), (field("jms_type", NUL), "jms_type holds a NUL character"),
        (field("jms_correlation_id", 17), "jms_correlation_id is 17: it must be a str"), (field("jms_type", b"x"), "it must be a str"),
        (field("content_type", NUL), "content_type holds a NUL character"), (field("content_type", "a/\ud800"), "cannot be written as UTF-8"),
        (field("content_type", 5), "content_type is 5: it must be a str"), (field("content_type", "x" * 20_000), "too long"),
        (has("AMQ_SCHEDULED_CRON", "* * * * *"), "set the producer's delivery_delay"), (has("AMQ_SCHEDULED_PERIOD", 1000), "delivery_delay"),
        (has("AMQ_SCHEDULED_REPEAT", 3), "delivery_delay"), (has("_AMQ_SCHED_DELIVERY", 1), "delivery_delay"),
        (has("AMQ_SCHEDULED_DELAY", 5000), "delivery_delay"),
        (has("JMS_SUN_DMQ_DELIVERY_COUNT", 1), "the broker's to say of dead messages"),
        (has("JMSXGroupID", "g" * 256), "at most 255 characters"),
        (has("JMSXGroupSeq", "last"), "use a whole number"), (has("JMSXGroupSeq", True), "use a whole number"),
        (has("JMSXGroupSeq", 1.0), "use a whole number"), (has("JMSXGroupSeq", 10**10), "at most 10 digits"),
        (has("_AMQ_DUPL_ID", ""), "1 to 255 octets"), (has("_AMQ_DUPL_ID", "ü" * 128), "1 to 255 octets"),
    ],
)  # fmt: skip
async def test_what_a_message_cannot_say_is_refused(
    connection: Any, broker: ListeningBroker, wrong: Callable[[TextMessage], None], sentence: str
) -> None:
    async with nobody_else_notices(connection, broker):
        session = await connection.create_session(transacted=True)
        producer, message = await session.create_producer(A), TextMessage("x")

        async def send() -> None:
            wrong(message)
            await producer.send(message)

        with pytest.raises(MessageFormatException, match=sentence):
            await send()
        await session.commit()  # there is nothing to commit


@pytest.mark.parametrize(
    ("options", "kind", "sentence"),
    [
        ({"priority": True}, JMSException, "from 0 to 9"), ({"destination": Queue("mq.sys.dmq")}, InvalidDestinationException, "consume from it"),
        ({"message": field("jms_reply_to", "answers")}, InvalidDestinationException, r"use Queue\(name\)"),
    ],
)  # fmt: skip
async def test_how_it_cannot_be_sent_is_refused(
    connection: Any, broker: ListeningBroker, options: dict[str, Any], kind: type[JMSException], sentence: str
) -> None:
    async with nobody_else_notices(connection, broker):
        producer, message = await (await connection.create_session()).create_producer(), TextMessage("x")
        options.get("message", lambda _: None)(message)
        with pytest.raises(kind, match=sentence):
            await producer.send(message, options.get("destination", A), priority=options.get("priority"))


@pytest.mark.parametrize(
    ("what", "kind", "sentence"),
    [
        (lambda session: session.create_consumer(A, f"colour = '{NUL}'"), InvalidSelectorException, "holds a NUL character"),
        (lambda session: session.create_consumer(A, "colour = '\ud800'"), InvalidSelectorException, "cannot be written as UTF-8"),
        (lambda session: session.create_consumer(A, f"colour = '{'€' * 6000}'"), InvalidSelectorException, "too long"),
        (lambda session: session.create_consumer(A, priority=True), JMSException, "-1000 to 1000"),
        (lambda session: session.create_consumer("orders"), InvalidDestinationException, r"use Queue\(name\)"),
        (lambda session: session.create_consumer(Topic("a.**.b.**")), InvalidDestinationException, "once"),
        (lambda session: session.create_durable_consumer(A, "d"), InvalidDestinationException, "a queue keeps its messages anyway"),
        (lambda session: session.create_shared_consumer(A, "s"), InvalidDestinationException, "share it anyway"),
        (lambda session: session.create_durable_consumer(Topic("t"), NUL), IllegalStateException, "holds a NUL character"),
        (lambda session: session.create_shared_consumer(Topic("t"), "\ud800"), IllegalStateException, "cannot be written as UTF-8"),
        (lambda session: session.unsubscribe(NUL), IllegalStateException, "holds a NUL character"),
        (lambda session: session.create_shared_consumer(Topic("t"), None), IllegalStateException, "1 to 255 characters"),
    ],
)  # fmt: skip
async def test_what_cannot_be_consumed_is_refused(
    connection: Any, broker: ListeningBroker, what: Callable[[Any], Any], kind: type[JMSException], sentence: str
) -> None:
    async with nobody_else_notices(connection, broker):
        session = await connection.create_session()
        with pytest.raises(kind, match=sentence):
            await what(session)
        assert connection.it._machine._awaited == {}
