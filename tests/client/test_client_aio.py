"""What is asyncio's own: many tasks in one session, what is awaited or entered, a loop that ends."""

from __future__ import annotations

import asyncio
import gc
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


# -- many tasks -----------------------------------------------------------------------------------------------------------------------
async def test_many_tasks_send_in_one_session_at_once_and_in_the_order_of_their_calls(of_tasks: Connection, broker: ListeningBroker) -> None:
    """Each waits for its own answer, so that one fsync of the broker serves many."""
    producer = of_tasks.create_session().create_producer(A)
    count = 2 * MESSAGES_MAX + 500
    await asyncio.gather(*(producer.send(str(number)) for number in range(count)))
    await becomes(lambda: broker.frames.qsize() == count)
    assert [int(frame.body) for frame in list(broker.frames.queue)] == list(range(count))


async def test_who_comes_while_others_wait_for_room_comes_after_them(of_tasks: Connection, broker: ListeningBroker) -> None:
    broker.confirming = False
    producer = of_tasks.create_session().create_producer(A)
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


async def test_many_tasks_receive_in_one_session_and_each_message_goes_to_one(of_tasks: Connection, broker: ListeningBroker) -> None:
    consumer = await of_tasks.create_session().create_consumer(A)
    receiving = [doing(consumer.receive(SECONDS)) for _ in range(10)]
    broker.delivers("2", *[str(number).encode() for number in range(10)])
    assert sorted([int((await ends(task)).body) for task in receiving]) == list(range(10))


async def test_a_task_that_only_sends_lets_others_have_their_turn(of_tasks: Connection) -> None:
    producer = of_tasks.create_session().create_producer(A)
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


async def test_what_a_broker_does_not_read_is_bounded(of_tasks: Connection, broker: ListeningBroker) -> None:
    producer = of_tasks.create_session().create_producer(A)
    broker.reading.clear()

    async def send_many() -> None:
        for _ in range(300):
            await producer.send(b"x" * 100_000, delivery_mode=DeliveryMode.NON_PERSISTENT)

    sending = doing(send_many())
    await asyncio.sleep(4 * QUIET)
    link = of_tasks._driver._link
    assert link is not None and not sending.done()
    assert link._transport.get_write_buffer_size() + of_tasks._machine.out_octets < 2 * UNSENT_OCTETS_MAX + 200_000
    broker.reading.set()
    await ends(sending)


async def test_waiting_in_vain_leaves_nothing_behind(of_tasks: Connection) -> None:
    session = of_tasks.create_session()
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


async def test_what_cannot_be_entered_is_closed(broker: ListeningBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    async def start(connection: Connection) -> None:
        raise JMSException("it cannot be started")

    monkeypatch.setattr(Connection, "start", start)
    with pytest.raises(JMSException, match="cannot be started"):
        async with ConnectionFactory(address_list=broker.address).create_connection():
            pytest.fail("it was entered")
    await told(broker, "DISCONNECT")


async def test_messages_have_no_colour_and_say_who_acknowledges_them(of_tasks: Connection, broker: ListeningBroker) -> None:
    consumer = await of_tasks.create_session(AcknowledgeMode.CLIENT).create_consumer(A)
    broker.delivers("2", b"x")
    message = await consumer.receive(SECONDS)
    assert message is not None
    for name in ("acknowledge", "acknowledge_this_message", "acknowledge_up_through_this_message"):
        with pytest.raises(IllegalStateException, match=rf"await session.{name}\(message\)"):
            getattr(message, name)()


async def test_a_look_that_is_left_ends_with_its_browser(of_tasks: Connection, broker: ListeningBroker) -> None:
    async with of_tasks.create_session().create_browser(A) as browser:
        look = aiter(browser)
        first = doing(anext(look))
        await told(broker, "SUBSCRIBE")
        broker.delivers("2", b"red", b"blue")
        assert (await ends(first)).body == "red"
    assert (await told(broker, "UNSUBSCRIBE")).headers["id"] == "2"
    with pytest.raises(IllegalStateException, match="the browser is closed"):
        await anext(look)


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
