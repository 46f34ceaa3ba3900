"""The Python client runtime against a really running node: topics, temporary destinations, browsers, times, selectors, and who may connect."""

from __future__ import annotations

import threading
import time

import pytest

from broker_core.client import (
    Connection,
    ConnectionFactory,
    IllegalStateException,
    InvalidClientIDException,
    InvalidDestinationException,
    JMSException,
    JMSSecurityException,
    Message,
    Queue,
    TemporaryQueue,
    TextMessage,
    Topic,
)
from tests.acceptance.python_client import DUPS_OK, QUIET, SOON, crash, factory, fill, texts
from tests.support.service import Service, await_true


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
    received = [message.body for consumer in consumers for message in iter(lambda each=consumer: each.receive(QUIET), None)]
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


def test_more_temporary_queues_than_may_be_at_a_time_are_had_one_after_the_other_though_each_got_a_late_reply(
    service: Service, connection: Connection
) -> None:
    session = connection.create_session()
    with factory(service).create_connection() as server:
        answers = server.create_session().create_producer()
        for number in range(1_100):  # SURETY_CONNECTION_TEMPORARIES_MAX is 1,000
            replies = session.create_temporary_queue()
            session.create_consumer(replies).close()
            answers.send(f"late {number}", TemporaryQueue(replies.name))
            replies.delete()
        kept = session.create_temporary_queue()
        consumer = session.create_consumer(kept)
        answers.send("in time", TemporaryQueue(kept.name))
        answers.send("too late", TemporaryQueue(replies.name))  # dropped, and confirmed
    assert texts(consumer, 1) == ["in time"]


def test_a_browser_shows_what_a_queue_holds_and_leaves_it_there(service: Service, connection: Connection, orders: Queue) -> None:
    fill(connection, orders, *map(str, range(2500)))
    session = connection.create_session()
    browser = session.create_browser(orders)
    assert [message.body for message in browser] == [str(number) for number in range(2500)]
    for message in browser:  # a look may be broken off
        assert message.body == "0"
        break
    assert [message.body for message in session.create_browser(Queue(f"{orders.name}.nothing"))] == []
    assert texts(connection.create_session(DUPS_OK).create_consumer(orders), 2500) == [str(number) for number in range(2500)]


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
