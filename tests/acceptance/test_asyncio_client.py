"""The Python client for asyncio against a really running node: what an application does, end to end, and what cancelling costs."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from broker_core.client.aio import (
    AcknowledgeMode,
    Connection,
    ConnectionFactory,
    InvalidClientIDException,
    JMSException,
    JMSSecurityException,
    MapMessage,
    Message,
    MessageConsumer,
    Queue,
    TextMessage,
    Topic,
    TransactionRolledBackException,
)
from tests.acceptance.python_client import QUIET, SOON, left
from tests.support.service import Service

LONG = 60.0
"""Seconds within which a killed node is there again, and everything delivered."""
_numbers = itertools.count(1)


def factory(service: Service, **settings: Any) -> ConnectionFactory:
    return ConnectionFactory(**({"address_list": f"stomp://127.0.0.1:{service.stomp_port}"} | settings))


@pytest.fixture
async def connection(service: Service) -> AsyncIterator[Connection]:
    async with factory(service).create_connection() as connection:
        yield connection


@pytest.fixture
def orders() -> Queue:
    """A queue that nobody else uses."""
    return Queue(f"asyncio.{next(_numbers)}")


@pytest.fixture
def prices() -> Topic:
    """A topic that nobody else uses."""
    return Topic(f"asyncio.{next(_numbers)}")


async def fill(connection: Connection, destination: Queue | Topic, *texts: str) -> None:
    async with connection.create_session() as session:
        producer = session.create_producer(destination)
        await asyncio.gather(*(producer.send(text) for text in texts))


async def texts(consumer: MessageConsumer, count: int) -> list[str]:
    received: list[str] = []
    for _ in range(count):
        message = await consumer.receive(SOON)
        assert message is not None, f"only {received} came"
        received.append(message.body)
    return received


async def remains(service: Service, destination: Queue) -> list[str]:
    """What a client of the other colour finds, with an R for each that may have been delivered before."""
    return await asyncio.to_thread(left, service, destination)


async def until(condition: Any, seconds: float = SOON) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.02)


async def test_what_was_sent_arrives_as_it_was_sent(connection: Connection, orders: Queue) -> None:
    session = connection.create_session()
    message = MapMessage({"item": "apple", "count": 3})
    message.jms_type, message.jms_correlation_id, message.properties["urgent"] = "order", "basket-17", True
    await session.create_producer(orders).send(message, priority=7, time_to_live=60)
    async with session.create_consumer(orders, "urgent = TRUE") as consumer:
        arrived = await consumer.receive(SOON)
    assert isinstance(arrived, MapMessage) and arrived.map == {"item": "apple", "count": 3}
    assert (arrived.jms_priority, arrived.jms_type, arrived.jms_correlation_id) == (7, "order", "basket-17")
    assert arrived.jms_expiration == message.jms_expiration


@pytest.mark.parametrize("octets", [0, 300_000, 3_000_000])
async def test_bodies_of_any_size_arrive(connection: Connection, orders: Queue, octets: int) -> None:
    session = connection.create_session()
    body = bytes(range(256)) * (octets // 256)
    await session.create_producer(orders).send(body)
    arrived = await (await session.create_consumer(orders)).receive(SOON)
    assert arrived is not None and arrived.body == body


async def test_thousands_of_tasks_send_in_one_session_and_order_is_kept(connection: Connection, orders: Queue) -> None:
    producer = connection.create_session().create_producer(orders)
    await asyncio.gather(*(producer.send(str(number)) for number in range(5_000)))
    async with connection.create_session(AcknowledgeMode.DUPS_OK) as session, session.create_consumer(orders) as consumer:
        assert await texts(consumer, 5_000) == [str(number) for number in range(5_000)]


@pytest.mark.parametrize("seed", range(3))
async def test_receives_that_are_cancelled_at_any_moment_take_nothing_away(connection: Connection, orders: Queue, seed: int) -> None:
    """AUTO: while it waits for a message, in the turn in which one comes, while the acknowledgement is on its way."""
    chance = random.Random(seed)
    count = 300
    received: list[int] = []
    cancelled = 0
    async with connection.create_session() as session, session.create_consumer(orders) as consumer:
        filling = asyncio.create_task(fill(connection, orders, *map(str, range(count))))
        async with asyncio.timeout(LONG):
            while len(received) < count:
                receiving = asyncio.create_task(consumer.receive())
                for _ in range(chance.choice((0, 1, 2, 3, 5, 20, 200))):
                    await asyncio.sleep(0)
                receiving.cancel()
                try:
                    message = await receiving
                except asyncio.CancelledError:
                    cancelled += 1
                else:
                    assert message is not None
                    received.append(int(message.body))
        await filling
        assert received == list(range(count))
        assert await consumer.receive(QUIET) is None
    assert cancelled > 50


async def test_a_transaction_counts_as_a_whole_or_not_at_all(service: Service, connection: Connection, orders: Queue) -> None:
    out = Queue(f"{orders.name}.out")
    await fill(connection, orders, "one", "two")
    async with connection.create_session(transacted=True) as session, session.create_consumer(orders) as consumer:
        producer = session.create_producer(out)
        for end in (session.rollback, session.commit):
            message = await consumer.receive(SOON)
            assert message is not None
            await producer.send(message.body.upper())
            await end()
        committed = message.body
    assert await remains(service, out) == [committed.upper()]
    assert [committed, *(each.removesuffix(" R") for each in await remains(service, orders))] in (["one", "two"], ["two", "one"])


async def test_a_commit_that_is_cancelled_is_done_or_not_and_never_half(service: Service, connection: Connection, orders: Queue) -> None:
    out = Queue(f"{orders.name}.out")
    await fill(connection, orders, *map(str, range(20)))
    async with connection.create_session(transacted=True) as session, session.create_consumer(orders) as consumer:
        producer = session.create_producer(out)
        for turns in range(20):
            message = await consumer.receive(SOON)
            assert message is not None
            await producer.send(message.body)
            committing = asyncio.create_task(session.commit())
            for _ in range(turns):
                await asyncio.sleep(0)
            committing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await committing
    done, undone = await remains(service, out), await remains(service, orders)
    assert sorted([*done, *(each.removesuffix(" R") for each in undone)], key=int) == [str(number) for number in range(20)]


async def test_client_mode_acknowledges_what_it_is_asked_to(service: Service, orders: Queue) -> None:
    async with factory(service).create_connection() as connection:
        await fill(connection, orders, *map(str, range(6)))
        session = connection.create_session(AcknowledgeMode.CLIENT)
        consumer = await session.create_consumer(orders)
        messages = [await consumer.receive(SOON) for _ in range(5)]
        assert messages[1] is not None and messages[3] is not None
        await session.acknowledge_this_message(messages[3])
        await session.acknowledge_up_through_this_message(messages[1])
    assert await remains(service, orders) == ["2 R", "4 R", "5 R"]


async def test_a_listener_answers_and_the_answer_comes(connection: Connection, service: Service, orders: Queue) -> None:
    async with factory(service).create_connection() as serving:
        answering = serving.create_session()
        answers = answering.create_producer()

        async def answer(message: Message) -> None:
            reply = TextMessage(message.body[::-1])
            reply.jms_correlation_id = message.jms_correlation_id
            await answers.send(reply, message.jms_reply_to)

        (await answering.create_consumer(orders)).message_listener = answer
        session = connection.create_session()
        replies = await session.create_temporary_queue()
        async with session.create_consumer(replies) as consumer:
            question = TextMessage("stressed")
            question.jms_reply_to, question.jms_correlation_id = replies, "1"
            await session.create_producer(orders).send(question, time_to_live=30)
            arrived = await consumer.receive(SOON)
        assert arrived is not None and (arrived.body, arrived.jms_correlation_id) == ("desserts", "1")
        replies.delete()


async def test_a_listener_that_fails_has_the_message_delivered_again(connection: Connection, orders: Queue) -> None:
    seen: list[tuple[str, bool]] = []

    async def listener(message: Message) -> None:
        seen.append((message.body, message.jms_redelivered))
        if not message.jms_redelivered:
            raise ValueError(message.body)

    await fill(connection, orders, "x")
    (await connection.create_session().create_consumer(orders)).message_listener = listener
    await until(lambda: len(seen) == 2)
    assert seen == [("x", False), ("x", True)]


async def test_a_durable_subscription_collects_while_nobody_consumes(service: Service, prices: Topic) -> None:
    async with factory(service, configured_client_id="asyncio-shop").create_connection() as connection:
        session = connection.create_session()
        await (await session.create_durable_consumer(prices, "till")).close()
        await session.create_producer(prices).send("1.20")
        with pytest.raises(InvalidClientIDException):
            await factory(service, configured_client_id="asyncio-shop").create_connection()
    async with factory(service, configured_client_id="asyncio-shop").create_connection() as connection:
        session = connection.create_session()
        async with session.create_durable_consumer(prices, "till") as consumer:
            assert await texts(consumer, 1) == ["1.20"]
        await session.unsubscribe("till")


async def test_browsing_consumes_nothing(connection: Connection, service: Service, orders: Queue) -> None:
    await fill(connection, orders, *map(str, range(50)))
    async with connection.create_session().create_browser(orders) as browser:
        assert [message.body async for message in browser] == [str(number) for number in range(50)]
        async for message in browser:
            assert message.body == "0"
            break
    assert len(await remains(service, orders)) == 50


async def test_a_wrong_password_is_said_so(service: Service) -> None:
    with pytest.raises(JMSSecurityException):
        await factory(service, password="wrong").create_connection()


async def test_a_node_that_is_killed_takes_nothing_along_and_tasks_go_on(mortal: Service) -> None:
    again = factory(mortal, reconnect_enabled=True, reconnect_attempts=-1, reconnect_interval=0.1, ping_interval=2)
    jobs = Queue("aio.jobs")
    received: list[str] = []
    confirmed: list[str] = []
    in_doubt: list[str] = []

    async def work(message: Message) -> None:
        received.append(message.body)

    async def send_many(connection: Connection) -> None:
        producer = connection.create_session().create_producer(jobs)
        for number in itertools.count():
            try:
                await producer.send(str(number))
                confirmed.append(str(number))
            except JMSException as error:
                in_doubt.append(f"{number} {error.error_code}")

    async with again.create_connection() as connection, again.create_connection() as consuming:
        (await consuming.create_session().create_consumer(jobs)).message_listener = work
        transacted = connection.create_session(transacted=True)
        await transacted.create_producer(Queue("aio.elsewhere")).send("never seen")
        sending = asyncio.create_task(send_many(connection))
        await until(lambda: len(confirmed) > 200, LONG)
        await asyncio.to_thread(mortal.kill, "node")
        sent = len(confirmed)
        await until(lambda: len(confirmed) > sent + 200, LONG)
        sending.cancel()
        await until(lambda: set(confirmed) <= set(received), LONG)
        with pytest.raises(TransactionRolledBackException):
            await transacted.commit()
    assert [each.split()[1] for each in in_doubt] == ["CONNECTION_LOST"] * len(in_doubt) and len(in_doubt) <= 1
    first = list(dict.fromkeys(received))
    assert first == sorted(first, key=int), "the order was lost"
