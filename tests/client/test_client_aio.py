"""What is asyncio's own: calls that are cancelled, many tasks in one session, a loop that ends."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from broker_core.client.aio import (
    AcknowledgeMode,
    Connection,
    ConnectionFactory,
    DeliveryMode,
    IllegalStateException,
    JMSException,
    Message,
    Queue,
)
from broker_core.client.aio.link import UNSENT_OCTETS_MAX, Link
from broker_core.client.machine.window import MESSAGES_MAX
from tests.client.faces import QUIET, becomes, doing, ends, is_waiting, told
from tests.client.listening import SECONDS, ListeningBroker

A = Queue("a")


@pytest.fixture
async def connection(broker: ListeningBroker) -> AsyncIterator[Connection]:
    async with ConnectionFactory(address_list=broker.address).create_connection() as connection:
        yield connection


async def cancelled(task: asyncio.Task[object]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# -- what is cancelled ----------------------------------------------------------------------------------------------------------------
async def test_a_receive_that_is_cancelled_while_nothing_comes_leaves_the_next_message_to_the_next(
    connection: Connection, broker: ListeningBroker
) -> None:
    consumer = await connection.create_session().create_consumer(A)
    receiving = doing(consumer.receive())
    assert await is_waiting(receiving)
    await cancelled(receiving)
    broker.delivers("2", b"x")
    message = await consumer.receive(SECONDS)
    assert message is not None and message.body == "x"


async def test_a_receive_that_is_cancelled_in_the_same_turn_as_its_message_comes_does_not_take_it(
    connection: Connection, broker: ListeningBroker
) -> None:
    session = connection.create_session()
    consumer = await session.create_consumer(A)
    receiving = doing(consumer.receive())
    assert await is_waiting(receiving)
    broker.delivers("2", b"x")
    await becomes(lambda: connection._machine.held == 1 or not receiving.done())
    session.notify()
    await cancelled(receiving)
    message = await consumer.receive(SECONDS)
    assert message is not None and message.body == "x"


async def test_a_message_whose_acknowledgement_was_not_awaited_is_the_next_ones(connection: Connection, broker: ListeningBroker) -> None:
    """AUTO: the broker believes that it was received, so nobody else gets it."""
    consumer = await connection.create_session().create_consumer(A)
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


async def test_a_listener_gets_what_a_cancelled_receive_left(connection: Connection, broker: ListeningBroker) -> None:
    seen = []

    async def listener(message: Message) -> None:
        seen.append(message.body)

    consumer = await connection.create_session().create_consumer(A)
    broker.silent_about = ("ACK",)
    broker.delivers("2", b"x", b"y")
    receiving = doing(consumer.receive())
    await told(broker, "ACK")
    await cancelled(receiving)
    broker.silent_about = ()
    consumer.message_listener = listener
    assert (await told(broker, "ACK")).headers["id"] == "2.2"
    assert seen == ["x", "y"]


async def test_a_send_that_is_cancelled_while_it_waits_for_the_answer_has_been_sent(connection: Connection, broker: ListeningBroker) -> None:
    broker.confirming = False
    producer = connection.create_session().create_producer(A)
    sending = doing(producer.send("x"))
    assert (await told(broker, "SEND")).body == b"x"
    await cancelled(sending)
    broker.confirming = True
    broker.confirms()
    await producer.send("y")
    assert (await told(broker, "SEND")).body == b"y"
    assert connection._machine.window.messages == 0


async def test_a_send_that_is_cancelled_while_it_waits_for_room_has_not_been_sent(connection: Connection, broker: ListeningBroker) -> None:
    broker.confirming = False
    producer = connection.create_session().create_producer(A)
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


async def test_a_commit_that_is_cancelled_was_said_and_the_session_goes_on(connection: Connection, broker: ListeningBroker) -> None:
    session = connection.create_session(transacted=True)
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


async def test_a_consumer_whose_making_is_cancelled_is_not_made(connection: Connection, broker: ListeningBroker) -> None:
    session = connection.create_session()
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
    connection: Connection, broker: ListeningBroker
) -> None:
    entered, ended = asyncio.Event(), asyncio.Event()

    async def listener(message: Message) -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    consumer = await connection.create_session().create_consumer(A)
    consumer.message_listener = listener
    broker.delivers("2", b"x")
    await entered.wait()
    closing = doing(connection.close())
    assert await is_waiting(closing)
    await cancelled(closing)
    await asyncio.wait_for(ended.wait(), SECONDS)
    await told(broker, "DISCONNECT")
    assert connection.is_closed
    with pytest.raises(JMSException):
        connection.create_session()


async def test_closing_a_session_that_is_cancelled_leaves_the_connection_usable(connection: Connection, broker: ListeningBroker) -> None:
    entered, ended = asyncio.Event(), asyncio.Event()

    async def listener(message: Message) -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    session = connection.create_session()
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
    await connection.create_session().create_producer(A).send("y")


async def test_a_listener_in_which_something_was_cancelled_has_failed_and_is_called_again(
    connection: Connection, broker: ListeningBroker, caplog: pytest.LogCaptureFixture
) -> None:
    seen = []

    async def listener(message: Message) -> None:
        seen.append(message.body)
        if message.body == "bad":
            raise asyncio.CancelledError

    (await connection.create_session().create_consumer(A)).message_listener = listener
    broker.delivers("2", b"bad", b"good")
    assert (await told(broker, "NACK")).headers["id"] == "2.1"
    assert (await told(broker, "ACK")).headers["id"] == "2.2"
    assert seen == ["bad", "good"]
    assert "something it awaited was cancelled" in caplog.text


# -- many tasks -----------------------------------------------------------------------------------------------------------------------
async def test_many_tasks_send_in_one_session_at_once_and_in_the_order_of_their_calls(connection: Connection, broker: ListeningBroker) -> None:
    """Each waits for its own answer, so that one fsync of the broker serves many."""
    producer = connection.create_session().create_producer(A)
    count = 2 * MESSAGES_MAX + 500
    await asyncio.gather(*(producer.send(str(number)) for number in range(count)))
    await becomes(lambda: broker.frames.qsize() == count)
    assert [int(frame.body) for frame in list(broker.frames.queue)] == list(range(count))


async def test_who_comes_while_others_wait_for_room_comes_after_them(connection: Connection, broker: ListeningBroker) -> None:
    broker.confirming = False
    producer = connection.create_session().create_producer(A)
    newcomers = []

    def completed(*_: object) -> None:
        newcomers.append(asyncio.create_task(producer.send("newcomer")))

    for _ in range(MESSAGES_MAX - 1):
        await producer.send("x", completion_listener=lambda *_: None)
    await producer.send("x", completion_listener=completed)
    waiting = [doing(producer.send(name)) for name in ("one", "two", "three")]
    await becomes(lambda: broker.frames.qsize() == MESSAGES_MAX)
    assert await is_waiting(waiting[0])
    broker.confirming = True
    broker.confirms()
    await asyncio.gather(*waiting)
    await asyncio.gather(*newcomers)
    await becomes(lambda: broker.frames.qsize() == MESSAGES_MAX + 4)
    assert [frame.body for frame in list(broker.frames.queue)[MESSAGES_MAX:]] == [b"one", b"two", b"three", b"newcomer"]


async def test_many_tasks_receive_in_one_session_and_each_message_goes_to_one(connection: Connection, broker: ListeningBroker) -> None:
    consumer = await connection.create_session().create_consumer(A)
    receiving = [doing(consumer.receive(SECONDS)) for _ in range(10)]
    broker.delivers("2", *[str(number).encode() for number in range(10)])
    assert sorted([int((await ends(task)).body) for task in receiving]) == list(range(10))


async def test_a_task_that_only_sends_lets_others_have_their_turn(connection: Connection) -> None:
    producer = connection.create_session().create_producer(A)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = doing(other())
    for _ in range(100):
        await producer.send(b"x" * 10_000, delivery_mode=DeliveryMode.NON_PERSISTENT)
    beside.cancel()
    assert turns >= 10


async def test_what_a_broker_does_not_read_is_bounded(connection: Connection, broker: ListeningBroker) -> None:
    producer = connection.create_session().create_producer(A)
    broker.reading.clear()

    async def send_many() -> None:
        for _ in range(300):
            await producer.send(b"x" * 100_000, delivery_mode=DeliveryMode.NON_PERSISTENT)

    sending = doing(send_many())
    await asyncio.sleep(4 * QUIET)
    link = connection._driver._link
    assert link is not None and not sending.done()
    assert link._transport.get_write_buffer_size() + connection._machine.out_octets < 2 * UNSENT_OCTETS_MAX + 200_000
    broker.reading.set()
    await ends(sending)


async def test_waiting_in_vain_leaves_nothing_behind(connection: Connection) -> None:
    session = connection.create_session()
    consumer = await session.create_consumer(A)
    for _ in range(20):
        assert await consumer.receive(0.001) is None
    assert not session._signal._waiting


async def test_a_broker_that_hangs_up_before_it_is_spoken_to_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    open_link = Link.open

    async def open_and_wait(link: Link, *arguments: Any) -> None:
        await open_link(link, *arguments)
        await link._gone

    monkeypatch.setattr(Link, "open", open_and_wait)
    async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0) as server:
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with asyncio.timeout(SECONDS):
            with pytest.raises(JMSException, match="the broker closed the connection"):
                await ConnectionFactory(address_list=address).create_connection()


# -- how it is asked ------------------------------------------------------------------------------------------------------------------
async def test_what_is_opened_is_awaited_or_entered(broker: ListeningBroker) -> None:
    connection = await ConnectionFactory(address_list=broker.address).create_connection()
    await connection.start()
    async with connection.create_session() as session, session.create_consumer(A) as consumer:
        broker.delivers("2", b"x")
        assert (await anext(consumer)).body == "x"
    with pytest.raises(IllegalStateException, match="the session is closed"):
        await consumer.receive()
    await connection.close()


async def test_messages_have_no_colour_and_say_who_acknowledges_them(connection: Connection, broker: ListeningBroker) -> None:
    consumer = await connection.create_session(AcknowledgeMode.CLIENT).create_consumer(A)
    broker.delivers("2", b"x")
    message = await consumer.receive(SECONDS)
    assert message is not None
    for name in ("acknowledge", "acknowledge_this_message", "acknowledge_up_through_this_message"):
        with pytest.raises(IllegalStateException, match=rf"await session.{name}\(message\)"):
            getattr(message, name)()


async def test_a_look_that_is_left_ends_with_its_browser(connection: Connection, broker: ListeningBroker) -> None:
    async with connection.create_session().create_browser(A) as browser:
        look = aiter(browser)
        first = doing(anext(look))
        await told(broker, "SUBSCRIBE")
        broker.delivers("2", b"red", b"blue")
        assert (await ends(first)).body == "red"
    assert (await told(broker, "UNSUBSCRIBE")).headers["id"] == "2"
    with pytest.raises(IllegalStateException, match="the browser is closed"):
        await anext(look)


async def test_the_client_identifier_is_set_once_and_before_anything_else(broker: ListeningBroker) -> None:
    connection = await ConnectionFactory(address_list=broker.address).create_connection()
    await connection.set_client_id("mine")
    assert connection.client_id == "mine"
    with pytest.raises(IllegalStateException, match="and once"):
        await connection.set_client_id("other")
    await connection.close()
    assert ["client-id" in broker.connects.get(timeout=SECONDS).headers for _ in range(2)] == [False, True]


# -- the loop -------------------------------------------------------------------------------------------------------------------------
def test_a_connection_belongs_to_its_loop(broker: ListeningBroker) -> None:
    async def send_from_another(connection: Connection) -> None:
        with pytest.raises(IllegalStateException, match="belongs to another event loop"):
            await connection.start()

    async def main() -> None:
        async with ConnectionFactory(address_list=broker.address).create_connection() as connection:
            await asyncio.to_thread(asyncio.run, send_from_another(connection))

    asyncio.run(main())


def test_a_loop_that_ends_before_the_connection_was_closed_takes_it_along(broker: ListeningBroker, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> Connection:
        connection = await ConnectionFactory(address_list=broker.address).create_connection()
        await connection.start()
        session = connection.create_session()

        async def listener(message: Message) -> None: ...

        (await session.create_consumer(A)).message_listener = listener
        return connection

    connection = asyncio.run(main())
    gc.collect()
    assert connection.is_closed
    assert "was not closed before its event loop" in caplog.text


async def test_nothing_is_left_of_a_connection_that_was_closed(broker: ListeningBroker) -> None:
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    async def use() -> None:
        async def listener(message: Message) -> None: ...

        async with ConnectionFactory(address_list=broker.address).create_connection() as connection:
            session = connection.create_session()
            (await session.create_consumer(A)).message_listener = listener
            await session.create_producer(A).send("x")

    await use()
    await becomes(lambda: broker._connection is not None)
    with suppress(OSError):
        broker.drops()
    before = descriptors()
    for _ in range(5):
        await use()
    assert len(asyncio.all_tasks()) == 1
    await becomes(lambda: descriptors() <= before + 1)
