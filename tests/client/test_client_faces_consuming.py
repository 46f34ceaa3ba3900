"""One contract for both faces, threads and asyncio: receiving, being told of messages, acknowledging."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from broker_core.client import (
    AcknowledgeMode,
    Message,
    Queue,
)
from tests.client.faces import QUIET, Face, becomes, doing, ends, is_waiting, told
from tests.client.listening import SECONDS, ListeningBroker

A = Queue("a")


# -- receiving ------------------------------------------------------------------------------------------------------------------------
async def test_a_receive_waits_for_a_message_and_acknowledges_it(connection: Any, broker: ListeningBroker) -> None:
    consumer = await (await connection.create_session()).create_consumer(A)
    receiving = doing(consumer.receive())
    assert await is_waiting(receiving)
    broker.delivers("2", b"x")
    assert (await ends(receiving)).body == "x"
    assert (await told(broker, "ACK")).headers["id"] == "2.1"


async def test_a_receive_ends_in_time(connection: Any) -> None:
    consumer = await (await connection.create_session()).create_consumer(A)
    assert await consumer.receive(0.02) is None
    assert await consumer.receive_no_wait() is None


async def test_nothing_is_received_before_the_connection_is_started_nor_while_it_is_stopped(face: Face, broker: ListeningBroker) -> None:
    connection = await face.opened(broker)
    consumer = await (await connection.create_session()).create_consumer(A)
    receiving = doing(consumer.receive())
    broker.delivers("2", b"one", b"two")
    assert await is_waiting(receiving)
    await connection.start()
    assert (await ends(receiving)).body == "one"
    await connection.stop()
    assert await consumer.receive(QUIET) is None
    await connection.start()
    assert (await consumer.receive(SECONDS)).body == "two"
    await connection.close()


@pytest.mark.parametrize("closed", ["consumer", "session", "connection"])
async def test_a_receive_ends_when_what_it_belongs_to_is_closed(connection: Any, closed: str) -> None:
    session = await connection.create_session()
    consumer = await session.create_consumer(A)
    receiving = doing(consumer.receive())
    assert await is_waiting(receiving)
    await {"consumer": consumer, "session": session, "connection": connection}[closed].close()
    assert await ends(receiving) is None


async def test_iterating_receives_until_the_consumer_is_closed(connection: Any, broker: ListeningBroker) -> None:
    consumer = await (await connection.create_session()).create_consumer(A)
    broker.delivers("2", b"a", b"b", b"c")
    received = []
    async for message in consumer:
        received.append(message.body)
        if message.body == "c":
            await consumer.close()
    assert received == ["a", "b", "c"]


async def test_a_consumer_without_acknowledgements_that_is_behind_stops_the_reading_and_goes_on(face: Face, broker: ListeningBroker) -> None:
    async with face.connection(broker, consumer_flow_limit=100) as connection:
        consumer = await (await connection.create_session(AcknowledgeMode.NO_ACKNOWLEDGE)).create_consumer(A)
        sending = doing(asyncio.to_thread(broker.delivers, "2", *[b"x" * 100_000] * 300))
        await asyncio.sleep(4 * QUIET)
        assert not sending.done()
        assert connection.it._machine.held < 120
        assert [await consumer.receive(SECONDS) is not None for _ in range(300)] == [True] * 300
        await ends(sending)


# -- listeners ------------------------------------------------------------------------------------------------------------------------
async def test_a_listener_is_told_of_each_message_one_at_a_time(connection: Any, broker: ListeningBroker) -> None:
    running, seen = [], []

    async def listener(message: Message) -> None:
        running.append(message.body)
        await asyncio.sleep(0.01)
        seen.append((message.body, list(running)))
        running.clear()

    session = await connection.create_session()
    (await session.create_consumer(A)).message_listener = listener
    broker.delivers("2", b"one", b"two")
    await becomes(lambda: len(seen) == 2)
    assert seen == [("one", ["one"]), ("two", ["two"])]
    assert [(await told(broker, "ACK")).headers["id"] for _ in range(2)] == ["2.1", "2.2"]


async def test_sessions_of_one_connection_have_their_listeners_called_at_the_same_time(connection: Any, broker: ListeningBroker) -> None:
    entered: list[str] = []
    both = asyncio.Event()

    async def listener(message: Message) -> None:
        entered.append(message.body)
        if len(entered) == 2:
            both.set()
        await both.wait()

    for _ in range(2):
        (await (await connection.create_session()).create_consumer(A)).message_listener = listener
    broker.delivers("2", b"of one")
    broker.delivers("4", b"of the other")
    await becomes(both.is_set)
    assert sorted(entered) == ["of one", "of the other"]
    assert {(await told(broker, "ACK")).headers["id"] for _ in range(2)} == {"2.1", "4.1"}


async def test_a_listener_that_fails_gives_the_message_back_and_is_called_again(
    connection: Any, broker: ListeningBroker, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[str] = []

    async def listener(message: Message) -> None:
        seen.append(message.body)
        if message.body == "bad":
            raise ValueError("no such colour")

    (await (await connection.create_session()).create_consumer(A)).message_listener = listener
    broker.delivers("2", b"bad", b"good")
    assert (await told(broker, "NACK")).headers == {"id": "2.1", "comment": "ValueError: no such colour"}
    assert (await told(broker, "ACK")).headers["id"] == "2.2"
    assert seen == ["bad", "good"]
    assert "A message listener failed" in caplog.text


@pytest.mark.parametrize("closed", ["consumer", "session", "connection"])
async def test_closing_waits_for_the_listener_that_runs_and_none_is_called_after_it(
    connection: Any, broker: ListeningBroker, closed: str
) -> None:
    entered, going, called = asyncio.Event(), asyncio.Event(), []

    async def listener(message: Message) -> None:
        called.append(message.body)
        entered.set()
        await going.wait()

    session = await connection.create_session()
    consumer = await session.create_consumer(A)
    consumer.message_listener = listener
    broker.delivers("2", b"one", b"two")
    await entered.wait()
    closing = doing({"consumer": consumer, "session": session, "connection": connection}[closed].close())
    assert await is_waiting(closing)
    going.set()
    await ends(closing)
    assert called == ["one"]
    assert (await told(broker, "ACK")).headers["id"] == "2.1"


async def test_stopping_waits_for_the_listener_that_runs(connection: Any, broker: ListeningBroker) -> None:
    entered, going, called = asyncio.Event(), asyncio.Event(), []

    async def listener(message: Message) -> None:
        called.append(message.body)
        entered.set()
        await going.wait()

    (await (await connection.create_session()).create_consumer(A)).message_listener = listener
    broker.delivers("2", b"one", b"two")
    await entered.wait()
    stopping = doing(connection.stop())
    assert await is_waiting(stopping)
    going.set()
    await ends(stopping)
    await asyncio.sleep(QUIET)
    assert called == ["one"]
    await connection.start()
    await becomes(lambda: called == ["one", "two"])


# -- acknowledging --------------------------------------------------------------------------------------------------------------------
async def consumed(connection: Any, broker: ListeningBroker, mode: AcknowledgeMode, count: int) -> tuple[Any, list[Message]]:
    """A session of the mode and what it has received."""
    session = await connection.create_session(mode)
    consumer = await session.create_consumer(A)
    broker.delivers("2", *[str(number).encode() for number in range(count)])
    return session, [await consumer.receive(SECONDS) for _ in range(count)]


async def acknowledged(connection: Any, broker: ListeningBroker) -> list[str]:
    """What of it the broker was told until the connection was closed."""
    await connection.close()
    return [frame.headers["id"] + (" only" if "ack" in frame.headers else "") for frame in list(broker.frames.queue) if frame.command == "ACK"]


async def test_client_mode_acknowledges_all_or_one_or_up_to_one(connection: Any, broker: ListeningBroker) -> None:
    session, received = await consumed(connection, broker, AcknowledgeMode.CLIENT, 6)
    await session.acknowledge_this_message(received[4])
    await session.acknowledge_up_through_this_message(received[1])
    await session.acknowledge(received[0])
    assert await acknowledged(connection, broker) == ["2.5 only", "2.2", "2.6"]


async def test_individual_mode_acknowledges_that_message(connection: Any, broker: ListeningBroker) -> None:
    session, received = await consumed(connection, broker, AcknowledgeMode.INDIVIDUAL, 3)
    await session.acknowledge(received[1])
    assert await acknowledged(connection, broker) == ["2.2"]


async def test_dups_ok_acknowledges_ten_at_once_and_the_rest_in_the_end(connection: Any, broker: ListeningBroker) -> None:
    await consumed(connection, broker, AcknowledgeMode.DUPS_OK, 12)
    assert await acknowledged(connection, broker) == ["2.10", "2.12"]


async def test_no_acknowledge_says_nothing(connection: Any, broker: ListeningBroker) -> None:
    await consumed(connection, broker, AcknowledgeMode.NO_ACKNOWLEDGE, 3)
    assert await acknowledged(connection, broker) == []


async def test_acknowledgements_that_wait_leave_in_time_although_nobody_does_anything(face: Face, broker: ListeningBroker) -> None:
    async with face.connection(broker, optimize_acknowledge=True) as connection:
        await consumed(connection, broker, AcknowledgeMode.AUTO, 1)
        assert (await told(broker, "ACK")).headers["id"] == "2.1"


async def test_recovering_gives_back_what_is_not_acknowledged(connection: Any, broker: ListeningBroker) -> None:
    session, _ = await consumed(connection, broker, AcknowledgeMode.CLIENT, 3)
    await session.recover()
    assert (await told(broker, "NACK")).headers["id"] == "2.3"
