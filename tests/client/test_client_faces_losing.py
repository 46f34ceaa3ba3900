"""One contract for both faces when the connection is lost: who waits, what comes again, what is in doubt, when it has failed."""

from __future__ import annotations

import asyncio
import time

import pytest

from broker_core.client import IllegalStateException, JMSException, JMSSecurityException, Message, Queue, TransactionRolledBackException
from tests.client.faces import QUIET, Face, becomes, doing, ends, is_waiting, told
from tests.client.listening import SECONDS, ListeningBroker
from tests.support.service import free_ports

A = Queue("a")
AGAIN = {"reconnect_enabled": True, "reconnect_interval": 0.05}


async def test_what_waits_while_the_connection_is_lost_goes_on_when_it_is_back(face: Face, broker: ListeningBroker) -> None:
    async with face.connection(broker, **AGAIN) as connection:
        producer = await (await connection.create_session()).create_producer(A)
        consumer = await (await connection.create_session()).create_consumer(A)
        receiving = doing(consumer.receive())
        assert await is_waiting(receiving)
        await told(broker, "SUBSCRIBE")
        broker.drops()
        assert (await told(broker, "SUBSCRIBE")).headers["id"] == "3"
        await producer.send("x")
        broker.delivers("3", b"y")
        assert (await ends(receiving)).body == "y"
    assert broker.connects.qsize() == 2


async def test_a_send_whose_answer_was_lost_says_so_and_the_next_is_sent(face: Face, broker: ListeningBroker) -> None:
    broker.confirming = False
    async with face.connection(broker, **AGAIN) as connection:
        producer = await (await connection.create_session()).create_producer(A)
        sending = doing(producer.send("x"))
        await told(broker, "SEND")
        broker.drops()
        with pytest.raises(JMSException, match="may or may not have been stored"):
            await ends(sending)
        broker.confirming = True
        await producer.send("y")


async def test_a_transaction_during_which_the_connection_was_lost_can_only_be_rolled_back(face: Face, broker: ListeningBroker) -> None:
    async with face.connection(broker, **AGAIN) as connection:
        session = await connection.create_session(transacted=True)
        producer = await session.create_producer(A)
        await producer.send("x")
        await told(broker, "SEND")
        broker.drops()
        await becomes(lambda: broker.connects.qsize() == 2)
        with pytest.raises(TransactionRolledBackException, match="do its work again"):
            await session.commit()
        await producer.send("again")
        await session.commit()
        assert (await told(broker, "COMMIT")).headers["transaction"] == "1t2"


async def test_the_next_address_takes_over(face: Face, broker: ListeningBroker) -> None:
    with ListeningBroker() as other:
        async with face.connection(broker, address_list=f"{broker.address},{other.address}", **AGAIN) as connection:
            broker.stops_listening()
            broker.drops()
            assert await asyncio.to_thread(other.connects.get, timeout=SECONDS)
            await (await (await connection.create_session()).create_producer(A)).send("x")
            assert await told(other, "SEND")


async def test_when_no_broker_comes_back_the_connection_has_failed(face: Face, broker: ListeningBroker) -> None:
    heard: list[JMSException] = []

    async def listener(error: JMSException) -> None:
        heard.append(error)

    connection = await face.opened(broker, reconnect_enabled=True, reconnect_attempts=2, reconnect_interval=0.01)
    connection.exception_listener = listener
    await connection.start()
    consumer = await (await connection.create_session()).create_consumer(A)
    receiving = doing(consumer.receive())
    broker.stops_listening()
    broker.drops()
    with pytest.raises(JMSException, match="no broker can be reached"):
        await ends(receiving)
    await becomes(lambda: len(heard) == 1)
    assert heard[0].error_code == "NO_BROKER"
    with pytest.raises(JMSException, match="no broker can be reached"):
        await connection.create_session()
    assert connection.is_closed
    await connection.close()


async def test_without_reconnecting_it_has_failed_at_once(face: Face, broker: ListeningBroker, caplog: pytest.LogCaptureFixture) -> None:
    async with face.connection(broker) as connection:
        consumer = await (await connection.create_session()).create_consumer(A)
        receiving = doing(consumer.receive())
        broker.drops()
        with pytest.raises(JMSException, match="connection"):
            await ends(receiving)
        await becomes(lambda: "The connection has failed" in caplog.text)


async def test_closing_while_it_connects_again_does_not_wait_for_that(face: Face, broker: ListeningBroker) -> None:
    connection = await face.opened(broker, reconnect_enabled=True, reconnect_attempts=-1, reconnect_interval=60)
    producer = await (await connection.create_session()).create_producer(A)
    broker.stops_listening()
    broker.drops()
    await becomes(connection.it._machine.awaits_socket)
    sending = doing(producer.send("x"))
    assert await is_waiting(sending)
    began = time.monotonic()
    await connection.close()
    assert time.monotonic() - began < 2
    with pytest.raises(IllegalStateException, match="the connection is closed"):
        await ends(sending)


async def test_a_password_that_is_not_accepted_any_more_ends_the_attempts(face: Face, broker: ListeningBroker) -> None:
    heard: list[JMSException] = []

    async def listener(error: JMSException) -> None:
        heard.append(error)

    async with face.connection(broker, reconnect_enabled=True, reconnect_attempts=-1, reconnect_interval=0.01) as connection:
        connection.exception_listener = listener
        broker.refusal = "login or passcode is wrong, or the account may not connect from here"
        broker.drops()
        await becomes(lambda: len(heard) == 1)
        assert isinstance(heard[0], JMSSecurityException)


async def test_one_that_is_lost_as_soon_as_it_is_there_is_not_made_as_fast_as_can_be(face: Face, broker: ListeningBroker) -> None:
    async with face.connection(broker, reconnect_enabled=True, reconnect_interval=0.2) as connection:
        broker.hanging_up = True
        broker.drops()
        await asyncio.sleep(0.7)
        broker.hanging_up = False
        assert 3 <= broker.connects.qsize() <= 5
        await (await (await connection.create_session()).create_producer(A)).send("x")


async def test_a_listener_goes_on_when_the_connection_is_back(face: Face, broker: ListeningBroker) -> None:
    seen: list[str] = []

    async def listener(message: Message) -> None:
        seen.append(message.body)

    async with face.connection(broker, **AGAIN) as connection:
        (await (await connection.create_session()).create_consumer(A)).message_listener = listener
        await told(broker, "SUBSCRIBE")
        broker.delivers("2", b"one")
        await becomes(lambda: seen == ["one"])
        await told(broker, "ACK")
        broker.drops()
        await told(broker, "SUBSCRIBE")
        broker.delivers("2", b"two")
        await becomes(lambda: seen == ["one", "two"])


async def test_what_was_received_before_it_was_lost_cannot_be_acknowledged(face: Face, broker: ListeningBroker) -> None:
    async with face.connection(broker, **AGAIN) as connection:
        session = await connection.create_session(face.module.AcknowledgeMode.CLIENT)
        consumer = await session.create_consumer(A)
        await told(broker, "SUBSCRIBE")
        broker.delivers("2", b"x")
        message = await consumer.receive(SECONDS)
        broker.drops()
        await told(broker, "SUBSCRIBE")
        with pytest.raises(JMSException, match="will be delivered again"):
            await session.acknowledge(message)


async def test_a_broker_that_lets_nobody_in_is_not_waited_for(face: Face, broker: ListeningBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    for driver in ("driver", "aio.driver"):
        monkeypatch.setattr(f"broker_core.client.{driver}.LOGIN_SECONDS", QUIET)
    broker.reading.clear()
    with pytest.raises(JMSException, match=r"has not let us in within 0\.1 s"):
        await face.opened(broker)


async def test_nobody_there_is_said_at_once(face: Face) -> None:
    (port,) = free_ports(1)
    with pytest.raises(JMSException, match=f"127.0.0.1:{port}: .*111"):
        await face.opened(f"stomp://127.0.0.1:{port}")


async def test_a_wrong_password_is_said_so(face: Face, broker: ListeningBroker) -> None:
    broker.refusal = "login or passcode is wrong, or the account may not connect from here"
    with pytest.raises(JMSSecurityException, match="login or passcode is wrong"):
        await face.opened(broker)
