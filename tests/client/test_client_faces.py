"""One contract for both faces, threads and asyncio: what is sent, committed and refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from broker_core.client import (
    AcknowledgeMode,
    DeliveryMode,
    IllegalStateException,
    InvalidDestinationException,
    InvalidSelectorException,
    JMSException,
    Message,
    Queue,
    TextMessage,
    Topic,
)
from broker_core.client.machine.window import MESSAGES_MAX
from tests.client.faces import QUIET, Face, Threads, becomes, doing, ends, is_waiting, told
from tests.client.listening import SECONDS, ListeningBroker

A = Queue("a")
T = Topic("t")
NON_PERSISTENT = DeliveryMode.NON_PERSISTENT


# -- sending --------------------------------------------------------------------------------------------------------------------------
async def test_a_send_returns_when_the_broker_has_answered_and_not_before(connection: Any, broker: ListeningBroker) -> None:
    broker.confirming = False
    producer = await (await connection.create_session()).create_producer(A)
    sending = doing(producer.send("x"))
    assert (await told(broker, "SEND")).headers["persistent"] == "true"
    assert await is_waiting(sending)
    broker.confirms()
    await ends(sending)


async def test_a_message_that_is_not_persistent_is_not_waited_for(connection: Any, broker: ListeningBroker) -> None:
    broker.confirming = False
    producer = await (await connection.create_session()).create_producer(A)
    await producer.send({"count": 3}, delivery_mode=NON_PERSISTENT, priority=7)
    frame = await told(broker, "SEND")
    assert (frame.receipt, frame.headers["priority"], frame.body) == (None, "7", b'{"count":3}')


async def test_what_a_producer_is_set_to_holds_for_all_it_sends(connection: Any, broker: ListeningBroker) -> None:
    producer = await (await connection.create_session()).create_producer(A)
    producer.priority, producer.delivery_mode, producer.time_to_live, producer.delivery_delay = 9, NON_PERSISTENT, 60, 5
    message = TextMessage("x")
    await producer.send(message)
    frame = await told(broker, "SEND")
    assert (frame.headers["priority"], frame.headers["delay"], "persistent" in frame.headers) == ("9", "5000", False)
    assert int(frame.headers["expires"]) == message.jms_expiration == message.jms_timestamp + 60_000


async def test_those_that_wait_at_the_same_time_each_get_their_own_answer(connection: Any) -> None:
    async def send_many() -> None:
        async with await connection.create_session() as session:
            producer = await session.create_producer(A)
            for number in range(100):
                await producer.send(str(number))

    await asyncio.gather(*(send_many() for _ in range(4)))


async def test_a_broker_that_does_not_answer_in_time_is_not_waited_for(face: Face, broker: ListeningBroker) -> None:
    broker.confirming = False
    async with face.connection(broker, ack_timeout=QUIET) as connection:
        producer = await (await connection.create_session()).create_producer(A)
        with pytest.raises(JMSException, match=r"not answered within 0\.1 s; the message may or may not have been stored") as late:
            await producer.send("x")
        assert late.value.error_code == "ACK_TIMEOUT"


async def test_asynchronous_sends_wait_when_as_many_are_unconfirmed_as_may_be(connection: Any, broker: ListeningBroker) -> None:
    broker.confirming = False
    producer = await (await connection.create_session()).create_producer(A)
    answered: list[object] = []

    async def send_many() -> None:
        for _ in range(MESSAGES_MAX + 10):
            await producer.send("x", completion_listener=lambda message, _: answered.append(message))

    sending = doing(send_many())
    await becomes(lambda: broker.frames.qsize() == MESSAGES_MAX)
    assert await is_waiting(sending)
    assert broker.frames.qsize() == MESSAGES_MAX
    broker.confirming = True
    broker.confirms()
    await ends(sending)
    await producer.flush(SECONDS)
    assert len(answered) == MESSAGES_MAX + 10


async def test_sends_that_nobody_confirms_wait_when_the_broker_does_not_read(connection: Any, broker: ListeningBroker) -> None:
    producer = await (await connection.create_session()).create_producer(A)
    broker.reading.clear()

    async def send_many() -> None:
        for _ in range(300):
            await producer.send(b"x" * 100_000, delivery_mode=NON_PERSISTENT)

    sending = doing(send_many())
    await asyncio.sleep(4 * QUIET)
    assert not sending.done()
    broker.reading.set()
    await ends(sending)
    await connection.close()
    assert sum(frame.command == "SEND" for frame in list(broker.frames.queue)) == 300


async def test_what_is_sent_in_a_burst_arrives_complete_and_in_order(connection: Any, broker: ListeningBroker) -> None:
    producer = await (await connection.create_session()).create_producer(A)
    for number in range(1000):
        await producer.send(str(number), delivery_mode=NON_PERSISTENT)
    await connection.close()
    assert [int(frame.body) for frame in list(broker.frames.queue) if frame.command == "SEND"] == list(range(1000))


async def test_closing_waits_for_the_answers_to_asynchronous_sends(connection: Any, broker: ListeningBroker) -> None:
    broker.confirming = False
    answered: list[JMSException | None] = []
    session = await connection.create_session()
    producer = await session.create_producer(A)
    await producer.send("x", completion_listener=lambda _, error: answered.append(error))
    closing = doing(session.close())
    await told(broker, "SEND")
    assert await is_waiting(closing)
    assert not answered
    broker.confirms()
    await ends(closing)
    assert answered == [None]


async def test_but_not_for_ever(face: Face, broker: ListeningBroker, caplog: pytest.LogCaptureFixture) -> None:
    broker.confirming = False
    answered: list[str] = []
    async with face.connection(broker, async_send_completion_wait_timeout=QUIET) as connection:
        producer = await (await connection.create_session()).create_producer(A)
        await producer.send("x", completion_listener=lambda _, error: answered.append(error.error_code if error else ""))
        with pytest.raises(JMSException, match=r"1 messages were not confirmed within 0\.05 s"):
            await producer.flush(0.05)
    assert "Closing without them" in caplog.text
    await becomes(lambda: answered == ["CONNECTION_LOST"])


async def test_a_completion_listener_that_fails_is_logged_and_the_next_is_told(connection: Any, caplog: pytest.LogCaptureFixture) -> None:
    answered: list[object] = []
    producer = await (await connection.create_session()).create_producer(A)
    await producer.send("x", completion_listener=lambda *_: 1 / 0)
    await producer.send("y", completion_listener=lambda message, _: answered.append(message.body))
    await producer.flush(SECONDS)
    assert answered == ["y"]
    assert "A completion listener failed" in caplog.text


# -- transactions ---------------------------------------------------------------------------------------------------------------------
async def test_a_commit_says_all_of_it_and_waits(connection: Any, broker: ListeningBroker) -> None:
    session = await connection.create_session(transacted=True)
    consumer, producer = await session.create_consumer(A), await session.create_producer(Queue("b"))
    broker.delivers("2", b"x", b"y")
    for _ in range(2):
        await producer.send((await consumer.receive(SECONDS)).body.upper())
    await session.commit()
    await producer.send("z")
    await session.rollback()
    await becomes(lambda: broker.frames.queue[-1].command == "ABORT")
    said = [
        f"{frame.command} {frame.headers['transaction']} {frame.headers.get('id', frame.body.decode())}".strip()
        for frame in list(broker.frames.queue)
        if frame.command != "SUBSCRIBE"
    ]
    assert said == ["BEGIN 1t1", "SEND 1t1 X", "SEND 1t1 Y", "ACK 1t1 2.2", "COMMIT 1t1", "BEGIN 1t2", "SEND 1t2 z", "ABORT 1t2"]


# -- the rest of JMS ------------------------------------------------------------------------------------------------------------------
async def test_browsing_shows_all_and_ends(connection: Any, broker: ListeningBroker) -> None:
    session = await connection.create_session()
    browser = await session.create_browser(A)
    assert browser.queue == A

    async def look() -> list[str]:
        return [message.body async for message in browser]

    looking = doing(look())
    assert (await told(broker, "SUBSCRIBE")).headers["browser"] == "true"
    broker.delivers("2", b"red", b"blue")
    broker.says(b"MESSAGE\nsubscription:2\nmessage-id:e\ndestination:/queue/a\nbrowser:end\ncontent-length:0\n\n\0")
    assert await ends(looking) == ["red", "blue"]
    assert (await told(broker, "UNSUBSCRIBE")).headers["id"] == "2"
    await browser.close()
    with pytest.raises(IllegalStateException, match="create another one"):
        await look()
    browser = await session.create_durable_browser(T, "d", client_id="two")
    assert (browser.topic, browser.name, browser.message_selector) == (T, "d", "")
    looking = doing(look())
    asked = await told(broker, "SUBSCRIBE")
    assert (asked.headers["durable-subscription-name"], asked.headers["client-id"]) == ("d", "two")
    broker.says(b"MESSAGE\nsubscription:%b\nmessage-id:e\nbrowser:end\ncontent-length:0\n\n\0" % asked.headers["id"].encode())
    assert await ends(looking) == []


async def test_a_temporary_queue_is_called_by_its_full_name_and_deleted_when_nobody_consumes(connection: Any, broker: ListeningBroker) -> None:
    session = await connection.create_session()
    replies = await session.create_temporary_queue()
    assert replies.name == "n-1-7.1"
    consumer = await session.create_consumer(replies)
    assert (await told(broker, "SUBSCRIBE")).headers["destination"] == "/temp-queue/1"
    with pytest.raises(IllegalStateException, match="has a consumer"):
        replies.delete()
    await consumer.close()
    assert "id" in (await told(broker, "UNSUBSCRIBE")).headers
    replies.delete()
    assert (await told(broker, "UNSUBSCRIBE")).headers == {"temporary-destination": "/temp-queue/1"}
    with pytest.raises(InvalidDestinationException, match="was deleted"):
        await session.create_consumer(replies)


async def test_a_durable_subscription_is_made_shared_and_ended(face: Face, broker: ListeningBroker) -> None:
    prices = Topic("prices")
    async with face.connection(broker, configured_client_id="shop") as connection:
        session = await connection.create_session()
        await (await session.create_durable_consumer(prices, "till", no_local=True)).close()
        await (await session.create_shared_durable_consumer(prices, "others")).close()
        await (await session.create_shared_consumer(prices, "many")).close()
        await session.unsubscribe("till")
        own, others, many = [await told(broker, "SUBSCRIBE") for _ in range(3)]
        assert (own.headers["durable-subscription-name"], own.headers["no-local"]) == ("till", "true")
        assert (others.headers["durable-subscription-name"], others.headers["shared"]) == ("others", "true")
        assert (many.headers["subscription-name"], many.headers["shared"]) == ("many", "true")
        await connection.close()
    ended = [frame.headers.get("durable-subscription-name") for frame in list(broker.frames.queue) if frame.command == "UNSUBSCRIBE"]
    assert ended[-1] == "till"


async def test_misuse_is_said_in_the_same_words(connection: Any) -> None:
    session = await connection.create_session()
    consumer = await session.create_consumer(A)
    for call, kind, sentence in [
        (session.commit(), IllegalStateException, "transacted=True"),
        (session.acknowledge_this_message(Message.received(b"MESSAGE", b"", None, None)), IllegalStateException, "acknowledges by itself"),
        (session.create_consumer(A, "1 +"), InvalidSelectorException, "is not valid"),
        (session.create_durable_consumer(Topic("t"), "d"), IllegalStateException, "belongs to a client identifier"),
        (connection.create_session(AcknowledgeMode.SESSION_TRANSACTED), JMSException, "transacted=True"),
        (session.create_producer(Topic("a.*")), InvalidDestinationException, "is a pattern"),
    ]:
        with pytest.raises(kind, match=sentence):
            await call
    await consumer.close()
    with pytest.raises(IllegalStateException, match="the consumer is closed"):
        await consumer.receive(0)
    await session.close()
    with pytest.raises(IllegalStateException, match="the session is closed"):
        await session.create_producer(A)
    await connection.close()
    with pytest.raises(IllegalStateException, match="the connection is closed"):
        await connection.create_session()


async def test_a_session_receives_or_listens_and_a_listener_does_not_close_what_it_is_called_by(connection: Any, broker: ListeningBroker) -> None:
    refused: list[str] = []
    session = await connection.create_session()
    consumer = await session.create_consumer(A)
    face = vars(connection)["_face"]
    if isinstance(face, Threads):

        def listener(message: Message) -> None:  # by the session's own thread
            for closing in (session.it.close, connection.it.close, connection.it.stop):
                with pytest.raises(IllegalStateException, match="a message listener cannot") as told_so:
                    closing()
                refused.append(str(told_so.value))

        consumer.it.message_listener = listener
    else:

        async def listener_of_tasks(message: Message) -> None:
            for closing in (session.it.close, connection.it.close, connection.it.stop):
                with pytest.raises(IllegalStateException, match="a message listener cannot") as told_so:
                    await closing()
                refused.append(str(told_so.value))

        consumer.it.message_listener = listener_of_tasks
    with pytest.raises(IllegalStateException, match="receive in another session"):
        await consumer.receive(0)
    broker.delivers("2", b"x")
    await becomes(lambda: len(refused) == 3)
