"""The Python client runtime against a really running node: what an application does, end to end."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from broker_core.client import (
    AcknowledgeMode,
    Connection,
    ConnectionFactory,
    DeliveryMode,
    IllegalStateException,
    InvalidClientIDException,
    InvalidDestinationException,
    JMSException,
    JMSSecurityException,
    MapMessage,
    Message,
    MessageConsumer,
    Queue,
    TextMessage,
    Topic,
)
from tests.support.clients import Connection as StompConnection
from tests.support.service import Service, await_true

AUTO, CLIENT, DUPS_OK, INDIVIDUAL, NO_ACKNOWLEDGE = (
    AcknowledgeMode.AUTO, AcknowledgeMode.CLIENT, AcknowledgeMode.DUPS_OK, AcknowledgeMode.INDIVIDUAL, AcknowledgeMode.NO_ACKNOWLEDGE,
)  # fmt: skip
SOON = 10.0
"""Seconds after which what should come is taken for lost."""
QUIET = 0.3
"""Seconds after which nothing more is expected."""


def factory(service: Service, **settings: Any) -> ConnectionFactory:
    return ConnectionFactory(**({"address_list": f"stomp://127.0.0.1:{service.stomp_port}"} | settings))


@pytest.fixture
def connection(service: Service) -> Iterator[Connection]:
    with factory(service).create_connection() as connection:
        yield connection


_numbers = itertools.count(1)


@pytest.fixture
def orders() -> Queue:
    """A queue that nobody else uses."""
    return Queue(f"python.{next(_numbers)}")


@pytest.fixture
def prices() -> Topic:
    """A topic that nobody else uses."""
    return Topic(f"python.{next(_numbers)}")


def fill(connection: Connection, destination: Queue | Topic, *texts: str) -> None:
    with connection.create_session() as session:
        producer = session.create_producer(destination)
        for text in texts:
            producer.send(text)


def texts(consumer: MessageConsumer, count: int) -> list[str]:
    received = []
    for _ in range(count):
        message = consumer.receive(SOON)
        assert message is not None, f"only {received} came"
        received.append(message.body)
    return received


def left(service: Service, destination: Queue) -> list[str]:
    """What another client finds, with an R for each that may have been delivered before."""
    with factory(service).create_connection() as connection, connection.create_session() as session:
        consumer = session.create_consumer(destination)
        found = []
        while (message := consumer.receive(QUIET if found else 2.0)) is not None:
            found.append(message.body + (" R" if message.jms_redelivered else ""))
        return found


# -- sending and receiving --------------------------------------------------------------------------------------------------------------
def test_a_message_arrives_with_all_that_it_says(connection: Connection, orders: Queue) -> None:
    session = connection.create_session()
    message = MapMessage({"item": "apple", "count": 3})
    message.jms_correlation_id, message.jms_type, message.jms_reply_to = "c:1", "order", Queue("answers")
    message.properties.update({"urgent": True, "weight": 0.5, "region": "north:west"})
    session.create_producer(orders).send(message, priority=7, time_to_live=60)
    arrived = session.create_consumer(orders).receive(SOON)
    assert isinstance(arrived, MapMessage)
    assert (arrived.map, arrived.jms_correlation_id, arrived.jms_type) == ({"item": "apple", "count": 3}, "c:1", "order")
    assert (arrived.jms_reply_to, arrived.jms_destination, arrived.jms_priority) == (Queue("answers"), orders, 7)
    assert (arrived.jms_delivery_mode, arrived.jms_expiration) == (DeliveryMode.PERSISTENT, message.jms_expiration)
    assert arrived.jms_message_id and abs(arrived.jms_timestamp - time.time() * 1000) < 60_000
    assert dict(arrived.properties) == {"urgent": True, "weight": 0.5, "region": "north:west", "JMSXDeliveryCount": 1}


def test_other_stomp_clients_read_what_it_sends_and_it_reads_what_they_send(service: Service, connection: Connection, orders: Queue) -> None:
    session = connection.create_session()
    with StompConnection(service.stomp_port) as other:
        other.subscribe(orders.address)
        message = TextMessage("grüß dich")
        message.properties["count"] = 3
        session.create_producer(orders).send(message)
        frame = other.receive(SOON)
        assert frame is not None
        assert (frame.body.decode(), frame.headers["count"], frame.headers["content-type"]) == ("grüß dich", "3", "text/plain;charset=utf-8")
        other.confirmed("ACK", {"id": frame.headers["ack"]})
        other.confirmed("UNSUBSCRIBE", {"id": "0"})
        other.send(orders.address, b"plain", {"colour": "red"})
    arrived = session.create_consumer(orders).receive(SOON)
    assert isinstance(arrived, TextMessage)
    assert (arrived.text, arrived.properties["colour"]) == ("plain", "red")


@pytest.mark.parametrize("octets", [0, 300_000, 3_000_000])
def test_bodies_of_any_size_arrive(connection: Connection, orders: Queue, octets: int) -> None:
    session = connection.create_session()
    body = bytes(range(256)) * (octets // 256)
    session.create_producer(orders).send(body)
    arrived = session.create_consumer(orders).receive(SOON)
    assert arrived is not None and arrived.body == body


def test_ten_thousand_messages_are_sent_without_waiting_and_all_are_confirmed(connection: Connection, orders: Queue) -> None:
    told: list[JMSException | None] = []
    session = connection.create_session(DUPS_OK)
    producer = session.create_producer(orders)
    for number in range(10_000):
        producer.send(str(number), completion_listener=lambda _, error: told.append(error))
    producer.flush(SOON)
    assert told == [None] * 10_000
    assert texts(session.create_consumer(orders), 10_000) == [str(number) for number in range(10_000)]


def test_nothing_comes_before_the_connection_is_started_nor_while_it_is_stopped(service: Service, orders: Queue) -> None:
    connection = factory(service).create_connection()
    try:
        fill(connection, orders, "one", "two")
        consumer = connection.create_session().create_consumer(orders)
        assert consumer.receive(QUIET) is None
        connection.start()
        assert texts(consumer, 1) == ["one"]
        connection.stop()
        assert consumer.receive(QUIET) is None
        connection.start()
        assert texts(consumer, 1) == ["two"]
    finally:
        connection.close()


def test_a_receive_ends_when_its_consumer_is_closed_by_another_thread(connection: Connection, orders: Queue) -> None:
    consumer = connection.create_session().create_consumer(orders)
    received: list[Message | None] = []
    thread = threading.Thread(target=lambda: received.append(consumer.receive()))
    thread.start()
    time.sleep(0.1)
    consumer.close()
    thread.join(SOON)
    assert received == [None]
    with pytest.raises(IllegalStateException, match="create another one"):
        consumer.receive_no_wait()


def test_iterating_over_a_consumer_receives_until_it_is_closed(connection: Connection, orders: Queue) -> None:
    fill(connection, orders, "a", "b", "c")
    consumer = connection.create_session().create_consumer(orders)
    received = []
    for message in consumer:
        received.append(message.body)
        if message.body == "c":
            consumer.close()
    assert received == ["a", "b", "c"]


# -- acknowledging ------------------------------------------------------------------------------------------------------------------------
def test_what_auto_receives_is_gone_when_receive_returns(service: Service, orders: Queue) -> None:
    connection = factory(service).create_connection()
    fill(connection, orders, "one", "two", "three")
    connection.start()
    assert texts(connection.create_session(AUTO).create_consumer(orders), 2) == ["one", "two"]
    crash(connection)
    assert left(service, orders) == ["three R"]


def crash(connection: Connection) -> None:
    """The process of the client dies: nothing is said any more."""
    driver = connection._driver
    with driver.lock:
        driver._channel._socket._socket.shutdown(2)  # type: ignore[union-attr]
    await_true(lambda: connection.is_closed, SOON, "the connection does not notice")
    connection.close()


def test_of_dups_ok_at_most_nine_come_again_when_the_client_dies(service: Service, orders: Queue) -> None:
    connection = factory(service).create_connection()
    fill(connection, orders, *map(str, range(25)))
    connection.start()
    texts(connection.create_session(DUPS_OK).create_consumer(orders), 19)
    time.sleep(QUIET)
    crash(connection)
    assert left(service, orders) == [f"{number} R" for number in range(10, 25)]


def test_client_mode_acknowledges_one_message_alone_if_asked(service: Service, orders: Queue) -> None:
    connection = factory(service).create_connection()
    fill(connection, orders, *map(str, range(6)))
    connection.start()
    consumer = connection.create_session(CLIENT).create_consumer(orders)
    messages = [consumer.receive(SOON) for _ in range(6)]
    for number in (2, 4):
        message = messages[number]
        assert message is not None
        message.acknowledge_this_message()
    crash(connection)
    assert left(service, orders) == ["0 R", "1 R", "3 R", "5 R"]


def test_what_client_mode_did_not_acknowledge_comes_again(service: Service, orders: Queue) -> None:
    connection = factory(service).create_connection()
    fill(connection, orders, *map(str, range(6)))
    connection.start()
    consumer = connection.create_session(CLIENT).create_consumer(orders)
    messages = [consumer.receive(SOON) for _ in range(5)]
    assert messages[2] is not None and messages[3] is not None
    messages[2].acknowledge_up_through_this_message()
    crash(connection)
    assert left(service, orders) == ["3 R", "4 R", "5 R"]


def test_individual_mode_leaves_out_what_was_not_acknowledged(service: Service, orders: Queue) -> None:
    connection = factory(service).create_connection()
    fill(connection, orders, *map(str, range(4)))
    connection.start()
    consumer = connection.create_session(INDIVIDUAL).create_consumer(orders)
    for number in range(4):
        message = consumer.receive(SOON)
        assert message is not None
        if number % 2:
            message.acknowledge()
    connection.close()
    assert left(service, orders) == ["0 R", "2 R"]


def test_no_acknowledge_leaves_nothing(service: Service, orders: Queue) -> None:
    connection = factory(service).create_connection()
    fill(connection, orders, *map(str, range(4)))
    connection.start()
    assert texts(connection.create_session(NO_ACKNOWLEDGE).create_consumer(orders), 4) == ["0", "1", "2", "3"]
    crash(connection)
    assert left(service, orders) == []


def test_recover_brings_back_what_was_received_marked_so(connection: Connection, orders: Queue) -> None:
    fill(connection, orders, "one", "two")
    session = connection.create_session(CLIENT)
    consumer = session.create_consumer(orders)
    assert texts(consumer, 2) == ["one", "two"]
    session.recover()
    again = [consumer.receive(SOON) for _ in range(2)]
    assert [(message.body, message.jms_redelivered, message.properties["JMSXDeliveryCount"]) for message in again if message] == [
        ("one", True, 2), ("two", True, 2),
    ]  # fmt: skip
    assert again[0] is not None
    again[0].acknowledge()


def test_a_closed_consumers_messages_can_be_acknowledged(service: Service, connection: Connection, orders: Queue) -> None:
    fill(connection, orders, "one", "two")
    session = connection.create_session(CLIENT)
    consumer = session.create_consumer(orders)
    message = consumer.receive(SOON)
    consumer.close()
    assert message is not None
    message.acknowledge()
    assert left(service, orders) == ["two R"]


# -- transactions -------------------------------------------------------------------------------------------------------------------------
def test_what_is_sent_and_received_in_a_transaction_counts_when_it_commits(service: Service, connection: Connection, orders: Queue) -> None:
    done = Queue(f"{orders.name}.done")
    fill(connection, orders, "one")
    session = connection.create_session(transacted=True)
    assert session.acknowledge_mode is AcknowledgeMode.SESSION_TRANSACTED
    consumer, producer = session.create_consumer(orders), session.create_producer(done)
    assert texts(consumer, 1) == ["one"]
    producer.send("half done")
    session.rollback()
    assert texts(consumer, 1) == ["one"]
    producer.send("done")
    assert left(service, done) == []
    session.commit()
    session.close()
    assert (left(service, done), left(service, orders)) == (["done"], [])


def test_a_transaction_may_be_larger_than_the_prefetch(service: Service, orders: Queue) -> None:
    with factory(service, consumer_flow_limit=10).create_connection() as connection:
        fill(connection, orders, *map(str, range(35)))
        session = connection.create_session(transacted=True)
        assert texts(session.create_consumer(orders), 35) == [str(number) for number in range(35)]
        session.commit()
    assert left(service, orders) == []


# -- listeners ----------------------------------------------------------------------------------------------------------------------------
def test_listeners_of_a_session_are_called_one_at_a_time_in_a_thread_of_its_own(connection: Connection, orders: Queue) -> None:
    others = Queue(f"{orders.name}.others")
    fill(connection, orders, *["a"] * 50)
    fill(connection, others, *["b"] * 50)
    called: list[str] = []
    threads: set[str] = set()
    running = threading.Lock()

    def listener(message: Message) -> None:
        assert running.acquire(blocking=False), "two listeners run at once"
        threads.add(threading.current_thread().name)
        called.append(message.body)
        running.release()

    session = connection.create_session()
    for destination in (orders, others):
        session.create_consumer(destination).message_listener = listener
    await_true(lambda: len(called) == 100, SOON, "not all came")
    assert threads == {"surety-session"}
    with pytest.raises(IllegalStateException, match="receive in another session"):
        session.create_consumer(orders).receive(0)
    session.close()


def test_what_a_listener_fails_with_comes_again(connection: Connection, orders: Queue, caplog: pytest.LogCaptureFixture) -> None:
    fill(connection, orders, "one", "two")
    seen: list[tuple[str, bool]] = []

    def listener(message: Message) -> None:
        seen.append((message.body, message.jms_redelivered))
        if seen == [("one", False)]:
            raise ValueError("not today")

    with connection.create_session() as session:
        session.create_consumer(orders).message_listener = listener
        await_true(lambda: len(seen) == 3, SOON, "it does not come again")
    assert seen == [("one", False), ("two", False), ("one", True)]
    assert "A message listener failed" in caplog.text and "not today" in caplog.text


def test_closing_waits_for_the_listener_that_runs(service: Service, orders: Queue) -> None:
    with factory(service).create_connection() as connection:
        fill(connection, orders, "one", "two")
        entered, ended = threading.Event(), threading.Event()

        def listener(message: Message) -> None:
            entered.set()
            time.sleep(QUIET)
            ended.set()

        session = connection.create_session()
        session.create_consumer(orders).message_listener = listener
        assert entered.wait(SOON)
        session.close()
        assert ended.is_set()
    assert left(service, orders) == ["two R"]


def test_a_listener_cannot_close_what_calls_it(connection: Connection, orders: Queue) -> None:
    fill(connection, orders, "one")
    raised: list[str] = []
    session = connection.create_session()

    def listener(message: Message) -> None:
        for use in (session.close, connection.close, connection.stop):
            try:
                use()
            except IllegalStateException as error:
                raised.append(error.reason)

    session.create_consumer(orders).message_listener = listener
    await_true(lambda: len(raised) == 3, SOON, "nothing was raised")
    assert all("let another thread do it" in reason for reason in raised)


def test_a_completion_listener_cannot_wait_for_the_broker(connection: Connection, orders: Queue) -> None:
    raised: list[JMSException] = []
    session = connection.create_session()
    producer = session.create_producer(orders)

    def listener(message: Message, error: JMSException | None) -> None:
        try:
            producer.send("and another")
        except IllegalStateException as wrong:
            raised.append(wrong)

    producer.send("one", completion_listener=listener)
    producer.flush(SOON)
    assert len(raised) == 1


# -- topics -------------------------------------------------------------------------------------------------------------------------------
def test_each_subscriber_gets_what_is_published_while_it_is_there(connection: Connection, prices: Topic) -> None:
    session = connection.create_session()
    producer = session.create_producer(prices)
    producer.send("nobody hears it")
    one, two = session.create_consumer(prices), session.create_consumer(prices, "region = 'north'")
    message = TextMessage("first")
    message.properties["region"] = "north"
    producer.send(message)
    producer.send("second")
    assert texts(one, 2) == ["first", "second"]
    assert texts(two, 1) == ["first"]
    assert two.receive(QUIET) is None


def test_a_durable_subscription_collects_while_nobody_is_there(service: Service, connection: Connection, prices: Topic) -> None:
    with factory(service, configured_client_id=f"id.{prices.name}").create_connection() as durable:
        session = durable.create_session()
        consumer = session.create_durable_consumer(prices, "sub")
        fill(connection, prices, "one")
        assert texts(consumer, 1) == ["one"]
    fill(connection, prices, "two")
    with factory(service, configured_client_id=f"id.{prices.name}").create_connection() as durable:
        session = durable.create_session()
        consumer = session.create_durable_consumer(prices, "sub")
        assert texts(consumer, 1) == ["two"]
        with pytest.raises(IllegalStateException, match="close it before unsubscribing"):
            session.unsubscribe("sub")
        consumer.close()
        session.unsubscribe("sub")
        fill(connection, prices, "three")
        again = session.create_durable_consumer(prices, "sub")
        assert again.receive(QUIET) is None


def test_consumers_share_a_subscription(service: Service, connection: Connection, prices: Topic) -> None:
    session = connection.create_session()
    consumers = [session.create_shared_durable_consumer(prices, f"shared.{prices.name}") for _ in range(2)]
    fill(connection, prices, *map(str, range(10)))
    received = [message.body for consumer in consumers for _ in range(10) if (message := consumer.receive(QUIET)) is not None]
    assert sorted(received) == [str(number) for number in range(10)]
    for consumer in consumers:
        consumer.close()
    session.unsubscribe(f"shared.{prices.name}")


# -- temporary destinations and browsers ----------------------------------------------------------------------------------------------------
def test_a_request_is_answered_to_a_temporary_queue(service: Service, connection: Connection, orders: Queue) -> None:
    def answer(message: Message) -> None:
        reply = TextMessage(message.body.upper())
        reply.jms_correlation_id = message.jms_correlation_id
        answers.send(reply, message.jms_reply_to)

    with factory(service).create_connection() as server:
        serving = server.create_session()
        answers = serving.create_producer()
        serving.create_consumer(orders).message_listener = answer
        session = connection.create_session()
        replies = session.create_temporary_queue()
        consumer = session.create_consumer(replies)
        producer = session.create_producer(orders)
        for number in range(3):
            request = TextMessage(f"question {number}")
            request.jms_reply_to, request.jms_correlation_id = replies, str(number)
            producer.send(request, time_to_live=SOON)
        received = [consumer.receive(SOON) for _ in range(3)]
    assert [(reply.body, reply.jms_correlation_id, reply.jms_destination) for reply in received if reply] == [
        (f"QUESTION {number}", str(number), replies) for number in range(3)
    ]  # fmt: skip
    consumer.close()
    replies.delete()
    with pytest.raises(InvalidDestinationException, match="was deleted"):
        session.create_consumer(replies)


def test_a_browser_shows_what_a_queue_holds_and_leaves_it_there(service: Service, connection: Connection, orders: Queue) -> None:
    fill(connection, orders, *map(str, range(2500)))
    session = connection.create_session()
    browser = session.create_browser(orders)
    assert [message.body for message in browser] == [str(number) for number in range(2500)]
    for message in browser:  # a look may be broken off
        assert message.body == "0"
        break
    assert [message.body for message in session.create_browser(Queue(f"{orders.name}.nothing"))] == []
    assert texts(session.create_consumer(orders), 2500) == [str(number) for number in range(2500)]


def test_a_browser_chooses_by_a_selector(connection: Connection, orders: Queue) -> None:
    session = connection.create_session()
    producer = session.create_producer(orders)
    for colour in ("red", "blue", "red"):
        message = TextMessage(colour)
        message.properties["colour"] = colour
        producer.send(message)
    assert [message.body for message in session.create_browser(orders, "colour = 'red'")] == ["red", "red"]


# -- when and where -----------------------------------------------------------------------------------------------------------------------
def test_a_delayed_message_comes_when_its_time_has_come(connection: Connection, orders: Queue) -> None:
    session = connection.create_session()
    producer, consumer = session.create_producer(orders), session.create_consumer(orders)
    producer.delivery_delay = 1.0
    message = TextMessage("later")
    producer.send(message)
    producer.delivery_delay = 0.0
    producer.send("now")
    assert texts(consumer, 1) == ["now"]
    arrived = consumer.receive(SOON)
    assert arrived is not None and arrived.body == "later"
    assert message.jms_delivery_time == message.jms_timestamp + 1000
    assert arrived.jms_delivery_time >= message.jms_delivery_time - 50  # the broker's clock may differ in what it rounds


def test_an_expired_message_does_not_come(connection: Connection, orders: Queue) -> None:
    session = connection.create_session()
    session.create_producer(orders).send("too late", time_to_live=0.05)
    session.create_producer(orders).send("in time", time_to_live=60)
    time.sleep(QUIET)
    assert texts(session.create_consumer(orders), 1) == ["in time"]


def test_consumers_of_a_queue_choose_by_selectors(connection: Connection, orders: Queue) -> None:
    session = connection.create_session()
    producer = session.create_producer(orders)
    for number in range(10):
        message = TextMessage(str(number))
        message.properties.update({"number": number, "odd": bool(number % 2)})
        producer.send(message)
    odd, large = session.create_consumer(orders, "odd = TRUE"), session.create_consumer(orders, "number > 5 AND odd = FALSE")
    assert texts(odd, 5) == ["1", "3", "5", "7", "9"]
    assert texts(large, 2) == ["6", "8"]
    assert texts(session.create_consumer(orders), 3) == ["0", "2", "4"]


def test_one_consumer_hears_all_topics_of_a_pattern(connection: Connection, prices: Topic) -> None:
    session = connection.create_session()
    consumer = session.create_consumer(Topic(f"{prices.name}.*.eur"))
    for fruit in ("apple", "pear"):
        fill(connection, Topic(f"{prices.name}.{fruit}.eur"), fruit)
        fill(connection, Topic(f"{prices.name}.{fruit}.usd"), "not asked for")
    received = [consumer.receive(SOON) for _ in range(2)]
    assert [(message.body, message.jms_destination) for message in received if message] == [
        (fruit, Topic(f"{prices.name}.{fruit}.eur")) for fruit in ("apple", "pear")
    ]  # fmt: skip
    assert consumer.receive(QUIET) is None


# -- who may ------------------------------------------------------------------------------------------------------------------------------
def test_a_wrong_password_is_refused_at_once(service: Service) -> None:
    with pytest.raises(JMSSecurityException, match="login or passcode is wrong"):
        factory(service).create_connection("guest", "wrong")


def test_a_client_identifier_belongs_to_one_connection(service: Service, prices: Topic) -> None:
    name = f"id.{prices.name}"
    with factory(service).create_connection() as first:
        assert first.client_id == ""
        with pytest.raises(IllegalStateException, match="before the connection is used"):
            first.client_id = name
    first = factory(service).create_connection()
    first.client_id = name
    second = factory(service).create_connection()
    with pytest.raises(InvalidClientIDException, match="in use by another connection"):
        second.client_id = name
    assert first.client_id == name
    first.close()
    second = factory(service).create_connection()
    second.client_id = name
    with pytest.raises(IllegalStateException, match="and once"):
        second.client_id = "other"
    second.close()


def test_no_broker_is_said_so_with_its_address() -> None:
    with pytest.raises(JMSException, match=r"no broker can be reached: stomp://127\.0\.0\.1:1: .*refused") as error:
        ConnectionFactory(address_list="127.0.0.1:1").create_connection()
    assert error.value.error_code == "NO_BROKER"


def test_the_next_address_is_tried(service: Service) -> None:
    with factory(service, address_list=f"127.0.0.1:1,127.0.0.1:{service.stomp_port}").create_connection() as connection:
        assert not connection.is_closed


def test_the_exception_listener_is_told_when_the_connection_is_lost(service: Service) -> None:
    told: list[JMSException] = []
    connection = factory(service).create_connection()
    connection.exception_listener = told.append
    consumer = connection.create_session().create_consumer(Queue("nothing"))
    connection.start()
    raised: list[JMSException] = []

    def receive() -> None:
        try:
            consumer.receive()
        except JMSException as error:
            raised.append(error)

    thread = threading.Thread(target=receive)
    thread.start()
    crash(connection)
    thread.join(SOON)
    await_true(lambda: bool(told), SOON, "nobody is told")
    assert told[0].error_code == raised[0].error_code == "CONNECTION_LOST"
