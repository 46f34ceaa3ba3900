"""What becomes of calls that are cancelled: the connection and the session stay usable, and no message is taken away."""

from __future__ import annotations

import asyncio

import pytest

from broker_core.client.aio import (
    Connection,
    ConnectionFactory,
    IllegalStateException,
    JMSException,
    Message,
    Queue,
)
from broker_core.client.machine.window import MESSAGES_MAX
from tests.client.faces import becomes, doing, ends, is_waiting, told
from tests.client.listening import SECONDS, ListeningBroker

A = Queue("a")



async def cancelled(task: asyncio.Task[object]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_receive_that_is_cancelled_while_nothing_comes_leaves_the_next_message_to_the_next(
    of_tasks: Connection, broker: ListeningBroker
) -> None:
    consumer = await of_tasks.create_session().create_consumer(A)
    receiving = doing(consumer.receive())
    assert await is_waiting(receiving)
    await cancelled(receiving)
    broker.delivers("2", b"x")
    message = await consumer.receive(SECONDS)
    assert message is not None and message.body == "x"


async def test_a_receive_that_is_cancelled_in_the_same_turn_as_its_message_comes_does_not_take_it(
    of_tasks: Connection, broker: ListeningBroker
) -> None:
    session = of_tasks.create_session()
    consumer = await session.create_consumer(A)
    receiving = doing(consumer.receive())
    assert await is_waiting(receiving)
    broker.delivers("2", b"x")
    await becomes(lambda: of_tasks._machine.held == 1 or not receiving.done())
    session.notify()
    await cancelled(receiving)
    message = await consumer.receive(SECONDS)
    assert message is not None and message.body == "x"


async def test_a_message_whose_acknowledgement_was_not_awaited_is_the_next_ones(of_tasks: Connection, broker: ListeningBroker) -> None:
    """AUTO: the broker believes that it was received, so nobody else gets it."""
    consumer = await of_tasks.create_session().create_consumer(A)
    broker.silent_about = ("ACK",)
    broker.delivers("2", b"x", b"y")
    receiving = doing(consumer.receive())
    await told(broker, "ACK")
    await cancelled(receiving)
    again = doing(consumer.receive())
    assert await is_waiting(again)
    broker.silent_about = ()
    broker.confirms()
    assert [(await ends(again)).body, (await consumer.receive(SECONDS)).body] == ["x", "y"]  # type: ignore[union-attr]
    assert (await told(broker, "ACK")).headers["id"] == "2.2"


async def test_a_listener_gets_what_a_cancelled_receive_left(of_tasks: Connection, broker: ListeningBroker) -> None:
    seen = []

    async def listener(message: Message) -> None:
        seen.append(message.body)

    consumer = await of_tasks.create_session().create_consumer(A)
    broker.silent_about = ("ACK",)
    broker.delivers("2", b"x", b"y")
    receiving = doing(consumer.receive())
    await told(broker, "ACK")
    await cancelled(receiving)
    broker.silent_about = ()
    consumer.message_listener = listener
    assert (await told(broker, "ACK")).headers["id"] == "2.2"
    assert seen == ["x", "y"]


async def test_a_send_that_is_cancelled_while_it_waits_for_the_answer_has_been_sent(of_tasks: Connection, broker: ListeningBroker) -> None:
    broker.confirming = False
    producer = of_tasks.create_session().create_producer(A)
    sending = doing(producer.send("x"))
    assert (await told(broker, "SEND")).body == b"x"
    await cancelled(sending)
    broker.confirming = True
    broker.confirms()
    await producer.send("y")
    assert (await told(broker, "SEND")).body == b"y"
    assert of_tasks._machine.window.messages == 0


async def test_a_send_that_is_cancelled_while_it_waits_for_room_has_not_been_sent(of_tasks: Connection, broker: ListeningBroker) -> None:
    broker.confirming = False
    producer = of_tasks.create_session().create_producer(A)
    first = [doing(producer.send("x")) for _ in range(MESSAGES_MAX)]
    waiting, last = doing(producer.send("never")), doing(producer.send("last"))
    await becomes(lambda: broker.frames.qsize() == MESSAGES_MAX)
    assert await is_waiting(last)
    await cancelled(waiting)
    broker.confirming = True
    broker.confirms()
    await asyncio.gather(*first, last)
    await becomes(lambda: broker.frames.qsize() > MESSAGES_MAX)
    assert [frame.body for frame in list(broker.frames.queue)] == [b"x"] * MESSAGES_MAX + [b"last"]


async def test_a_commit_that_is_cancelled_was_said_and_the_session_goes_on(of_tasks: Connection, broker: ListeningBroker) -> None:
    session = of_tasks.create_session(transacted=True)
    producer = session.create_producer(A)
    await producer.send("x")
    broker.silent_about = ("COMMIT",)
    committing = doing(session.commit())
    await told(broker, "COMMIT")
    await cancelled(committing)
    broker.silent_about = ()
    await producer.send("y")
    await session.commit()
    assert (await told(broker, "COMMIT")).headers["transaction"] == "1t2"


async def test_a_consumer_whose_making_is_cancelled_is_not_made(of_tasks: Connection, broker: ListeningBroker) -> None:
    session = of_tasks.create_session()
    broker.silent_about = ("SUBSCRIBE",)
    making = doing(session.create_consumer(A))
    subscribed = await told(broker, "SUBSCRIBE")
    await cancelled(making)
    assert (await told(broker, "UNSUBSCRIBE")).headers["id"] == subscribed.headers["id"]


async def test_a_connection_whose_making_is_cancelled_leaves_nothing(broker: ListeningBroker) -> None:
    broker.reading.clear()
    making = doing(ConnectionFactory(address_list=broker.address).create_connection())
    assert await is_waiting(making)
    await cancelled(making)
    await becomes(lambda: len(asyncio.all_tasks()) == 1)


async def test_closing_that_is_cancelled_cancels_the_listener_it_waits_for_and_leaves(
    of_tasks: Connection, broker: ListeningBroker
) -> None:
    entered, ended = asyncio.Event(), asyncio.Event()

    async def listener(message: Message) -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    consumer = await of_tasks.create_session().create_consumer(A)
    consumer.message_listener = listener
    broker.delivers("2", b"x")
    await entered.wait()
    closing = doing(of_tasks.close())
    assert await is_waiting(closing)
    await cancelled(closing)
    await asyncio.wait_for(ended.wait(), SECONDS)
    await told(broker, "DISCONNECT")
    assert of_tasks.is_closed
    with pytest.raises(JMSException):
        of_tasks.create_session()


async def test_closing_a_session_that_is_cancelled_leaves_the_connection_usable(of_tasks: Connection, broker: ListeningBroker) -> None:
    entered, ended = asyncio.Event(), asyncio.Event()

    async def listener(message: Message) -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    session = of_tasks.create_session()
    (await session.create_consumer(A)).message_listener = listener
    broker.delivers("2", b"x")
    await entered.wait()
    closing = doing(session.close())
    assert await is_waiting(closing)
    await cancelled(closing)
    await told(broker, "UNSUBSCRIBE")
    await asyncio.wait_for(ended.wait(), SECONDS)
    with pytest.raises(IllegalStateException, match="the session is closed"):
        session.create_producer(A)
    await of_tasks.create_session().create_producer(A).send("y")


async def test_a_listener_in_which_something_was_cancelled_has_failed_and_is_called_again(
    of_tasks: Connection, broker: ListeningBroker, caplog: pytest.LogCaptureFixture
) -> None:
    seen = []

    async def listener(message: Message) -> None:
        seen.append(message.body)
        if message.body == "bad":
            raise asyncio.CancelledError

    (await of_tasks.create_session().create_consumer(A)).message_listener = listener
    broker.delivers("2", b"bad", b"good")
    assert (await told(broker, "NACK")).headers["id"] == "2.1"
    assert (await told(broker, "ACK")).headers["id"] == "2.2"
    assert seen == ["bad", "good"]
    assert "something it awaited was cancelled" in caplog.text
