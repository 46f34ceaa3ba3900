"""The Python client runtime against a really running node: sending, receiving, acknowledging, transactions, listeners."""

from __future__ import annotations

import threading
import time

import pytest

from broker_core.client import (
    AcknowledgeMode,
    Connection,
    DeliveryMode,
    IllegalStateException,
    JMSException,
    MapMessage,
    Message,
    Queue,
    ResourceAllocationException,
    TextMessage,
)
from tests.acceptance.python_client import AUTO, CLIENT, DUPS_OK, INDIVIDUAL, NO_ACKNOWLEDGE, QUIET, SOON, crash, factory, fill, is_empty, left, texts
from tests.support.clients import Connection as StompConnection
from tests.support.service import Service, await_true


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
    assert is_empty(service, orders)


def test_recover_brings_back_what_was_received_marked_so_and_counted(connection: Connection, orders: Queue) -> None:
    fill(connection, orders, "one", "two")
    session = connection.create_session(CLIENT)
    consumer = session.create_consumer(orders)
    assert texts(consumer, 2) == ["one", "two"]
    for count in (2, 3):
        session.recover()
        again = [consumer.receive(SOON) for _ in range(2)]
        assert [(message.body, message.jms_redelivered, message.properties["JMSXDeliveryCount"]) for message in again if message] == [
            ("one", True, count), ("two", True, count),
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
    assert is_empty(service, done)
    session.commit()
    session.close()
    assert left(service, done) == ["done"]
    assert is_empty(service, orders)


def test_a_transaction_may_be_larger_than_the_prefetch(service: Service, orders: Queue) -> None:
    with factory(service, consumer_flow_limit=10).create_connection() as connection:
        fill(connection, orders, *map(str, range(35)))
        session = connection.create_session(transacted=True)
        assert texts(session.create_consumer(orders), 35) == [str(number) for number in range(35)]
        session.commit()
    assert is_empty(service, orders)


def test_who_waits_for_more_octets_than_may_be_outstanding_is_told_to_acknowledge_and_then_goes_on(connection: Connection, orders: Queue) -> None:
    fill(connection, orders, *["x" * 1_000_000] * 20)  # SURETY_LINK_OUTSTANDING_OCTETS_MAX is 16 MiB
    consumer = connection.create_session(CLIENT).create_consumer(orders)
    received: list[Message] = []
    with pytest.raises(ResourceAllocationException, match="beyond 16777216: acknowledge some"):
        received.extend(iter(consumer.receive, None))
    assert 16 <= len(received) <= 17
    received[-1].acknowledge()
    assert len(texts(consumer, 20 - len(received))) == 20 - len(received)


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
