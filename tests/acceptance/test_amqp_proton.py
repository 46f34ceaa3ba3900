"""python-qpid-proton, an AMQP client that nobody here wrote."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from broker_core.client import Connection as StompConnection
from broker_core.client import Queue, TextMessage, Topic
from tests.acceptance.python_client import factory
from tests.support.service import Service

# isort: split
from tests.acceptance.proton_client import PATIENCE, await_true, connect, connected, gets_nothing, proton, receive

# isort: split
from proton import ConnectionException, Message
from proton.reactor import AtMostOnce, Copy, DurableSubscription, Selector
from proton.utils import BlockingConnection, LinkDetached, SendException


@pytest.fixture
def connection(service: Service) -> Iterator[BlockingConnection]:
    with connected(service) as made:
        yield made


# -- queues -----------------------------------------------------------------------------------------------------------------------------
def test_messages_go_through_a_queue_and_come_as_they_were(connection: BlockingConnection, queue: str) -> None:
    sent = Message(
        id="id-1", subject="kind", body={"a": [1, 2.5, "x", None]}, properties={"n": 5, "s": "t"}, durable=True, priority=7, ttl=60,
        correlation_id=proton.ulong(9), reply_to="queue://replies", content_type="odd/one", annotations={proton.symbol("x-mine"): 3},
    )  # fmt: skip
    connection.create_sender(queue).send(sent)
    got = receive(connection.create_receiver(f"queue://{queue}", credit=1))
    for name in ("id", "subject", "body", "properties", "durable", "priority", "correlation_id", "reply_to", "content_type", "annotations"):
        assert getattr(got, name) == getattr(sent, name), name
    assert 0 < got.ttl <= 60
    assert got.delivery_count == 0
    assert got.first_acquirer


def test_the_anonymous_relay_sends_wherever_a_message_says(connection: BlockingConnection, queue: str) -> None:
    sender = connection.create_sender(None)
    for number in range(3):
        sender.send(Message(address=f"queue://{queue}.{number}", body=number))
    for number in range(3):
        assert receive(connection.create_receiver(f"{queue}.{number}", credit=1)).body == number
    with pytest.raises(SendException):
        sender.send(Message(body="nowhere"))
    with pytest.raises(SendException):
        sender.send(Message(address="queue://mq.sys.dmq", body="not there"))


def test_what_is_not_accepted_comes_again_or_is_dead(connection: BlockingConnection, queue: str) -> None:
    connection.create_sender(queue).send(Message(body="a", durable=True))
    receiver = connection.create_receiver(queue, credit=10)
    receive(receiver, accept=False)
    receiver.release(delivered=False)
    assert receive(receiver, accept=False).delivery_count == 0
    receiver.release(delivered=True)  # modified, but not failed
    assert receive(receiver, accept=False).delivery_count == 0
    receiver.reject()
    dead = connection.create_receiver("mq.sys.dmq", credit=1, options=[Selector(f"original_destination = 'queue/{queue}'")])
    got = receive(dead)
    assert got.body == "a"
    assert got.annotations["x-opt-JMS_SUN_DMQ_UNDELIVERED_REASON"] == "UNDELIVERABLE"


def test_a_message_that_could_not_be_used_comes_again_with_a_count(connection: BlockingConnection, queue: str) -> None:
    connection.create_sender(queue).send(Message(body="a", durable=True))
    receiver = connection.create_receiver(queue, credit=10)
    receiver.receive(timeout=PATIENCE)
    delivery = receiver.fetcher.unsettled.popleft()
    delivery.local.failed = True
    delivery.update(proton.Delivery.MODIFIED)
    delivery.settle()
    again = receive(receiver)
    assert (again.delivery_count, again.first_acquirer) == (1, False)


def test_the_highest_priority_comes_first(connection: BlockingConnection, queue: str) -> None:
    sender = connection.create_sender(queue)
    for priority in range(10):
        sender.send(Message(body=priority, priority=priority))
    receiver = connection.create_receiver(queue, credit=10)
    assert [receive(receiver).body for _ in range(10)] == [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]


def test_what_has_expired_is_among_the_dead(connection: BlockingConnection, queue: str) -> None:
    connection.create_sender(queue).send(Message(body="late", ttl=0.1, durable=True))
    time.sleep(0.3)
    gets_nothing(connection.create_receiver(queue, credit=1, name="too late"))
    chosen = Selector(f"JMS_SUN_DMQ_UNDELIVERED_REASON = 'EXPIRED' AND original_destination = 'queue/{queue}'")
    assert receive(connection.create_receiver("mq.sys.dmq", credit=1, options=[chosen])).body == "late"


def test_what_is_delayed_comes_later(connection: BlockingConnection, queue: str) -> None:
    receiver = connection.create_receiver(queue, credit=1)
    began = time.monotonic()
    connection.create_sender(queue).send(Message(body="later", annotations={proton.symbol("x-opt-delivery-delay"): 700}))
    assert receive(receiver).body == "later"
    assert time.monotonic() - began >= 0.69


def test_settled_messages_need_no_outcome_either_way(connection: BlockingConnection, queue: str) -> None:
    sender = connection.create_sender(queue, options=[AtMostOnce()])
    for number in range(5):
        sender.send(Message(body=number))
    receiver = connection.create_receiver(queue, credit=5, options=[AtMostOnce()])
    assert [receiver.receive(timeout=PATIENCE).body for _ in range(5)] == [0, 1, 2, 3, 4]


def test_a_drain_is_answered_at_once(connection: BlockingConnection, queue: str) -> None:
    sender = connection.create_sender(queue)
    sender.send(Message(body="only"))
    receiver = connection.create_receiver(queue, credit=0)
    receiver.link.drain(10)
    await_true(connection, lambda: receiver.link.credit == 0 and not receiver.link.draining())
    assert receiver.fetcher.has_message


def test_a_browser_takes_nothing(connection: BlockingConnection, queue: str) -> None:
    sender = connection.create_sender(queue)
    for number in range(5):
        sender.send(Message(body=number, durable=number % 2 == 0))
    browser = connection.create_receiver(queue, credit=2, name="browser", options=[Copy()])
    assert sorted(browser.receive(timeout=PATIENCE).body for _ in range(5)) == [0, 1, 2, 3, 4]
    consumer = connection.create_receiver(queue, credit=5)
    assert sorted(receive(consumer).body for _ in range(5)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("octets", [300_000, 5_000_000, 100 * 1024 * 1024])
def test_a_large_message_comes_octet_by_octet(connection: BlockingConnection, queue: str, octets: int) -> None:
    body = bytes(range(251)) * (octets // 251)
    connection.create_sender(queue).send(Message(body=body, durable=True, inferred=True), timeout=120)
    consumer = connection.create_receiver(queue, credit=1)
    assert bytes(consumer.receive(timeout=120).body) == body
    consumer.accept()


def test_a_message_that_is_too_large_is_refused(connection: BlockingConnection, queue: str) -> None:
    with pytest.raises((SendException, LinkDetached)):
        connection.create_sender(queue).send(Message(body=bytes(101 * 1024 * 1024), inferred=True), timeout=120)


# -- topics -----------------------------------------------------------------------------------------------------------------------------
def test_a_topic_is_for_all_who_want_it(connection: BlockingConnection, queue: str) -> None:
    everything = connection.create_receiver(f"topic://{queue}", credit=5, name="everything")
    chosen = connection.create_receiver(f"topic://{queue}", credit=5, name="chosen", options=[Selector("colour = 'green'")])
    sender = connection.create_sender(f"topic://{queue}")
    for colour in ("red", "green"):
        sender.send(Message(body=colour, properties={"colour": colour}))
    assert [receive(everything).body, receive(everything).body] == ["red", "green"]
    assert receive(chosen).body == "green"
    gets_nothing(chosen)
    with pytest.raises(LinkDetached, match="selector"):
        connection.create_receiver(f"topic://{queue}", name="wrong", options=[Selector("colour = = 3")])



def test_a_durable_subscription_is_kept_until_its_link_is_closed(service: Service, connection: BlockingConnection, queue: str) -> None:
    sender = connection.create_sender(f"topic://{queue}")
    receiver = connection.create_receiver(f"topic://{queue}", credit=5, name="sub", options=[DurableSubscription()])
    sender.send(Message(body="a", durable=True))
    assert receive(receiver).body == "a"
    receiver.link.detach()
    connection.container.do_work(0.3)
    sender.send(Message(body="kept", durable=True))
    receiver = connection.create_receiver(f"topic://{queue}", credit=5, name="sub", options=[DurableSubscription()])
    assert receive(receiver).body == "kept"
    receiver.close()
    sender.send(Message(body="lost", durable=True))
    gets_nothing(connection.create_receiver(f"topic://{queue}", credit=5, name="sub", options=[DurableSubscription()]))


# -- temporary destinations -------------------------------------------------------------------------------------------------------------
def test_a_request_is_answered_to_a_dynamic_queue(service: Service, connection: BlockingConnection, queue: str) -> None:
    replies = connection.create_receiver(None, credit=1, dynamic=True)
    other = connect(service)
    requests = other.create_receiver(queue, credit=1)
    connection.create_sender(queue).send(Message(body="ask", reply_to=replies.link.remote_source.address))
    asked = receive(requests)
    answering = other.create_sender(None)
    answering.send(Message(address=asked.reply_to, body="answer"))
    assert receive(replies).body == "answer"
    with pytest.raises(LinkDetached):
        other.create_receiver(asked.reply_to)
    replies.close()
    with pytest.raises(SendException):
        answering.send(Message(address=asked.reply_to, body="too late"))
    other.close()


# -- with STOMP -------------------------------------------------------------------------------------------------------------------------
def test_clients_of_both_protocols_exchange_messages(service: Service, connection: BlockingConnection, queue: str) -> None:
    with factory(service).create_connection() as other:
        assert isinstance(other, StompConnection)
        session = other.create_session()
        other.start()
        consumer = session.create_consumer(Queue(queue))
        connection.create_sender(queue).send(Message(body="from AMQP", properties={"n": 5}, subject="kind", durable=True))
        got = consumer.receive(PATIENCE)
        assert isinstance(got, TextMessage)
        assert got.text == "from AMQP"
        consumer.close()
        session.create_producer(Queue(queue)).send(session.create_text_message("from STOMP"))
        answer = receive(connection.create_receiver(queue, credit=1))
        assert answer.body == "from STOMP"


def test_a_selector_reads_the_numbers_of_stomp_and_a_pattern_tells_the_topic_of_amqp(service: Service, connection: BlockingConnection, queue: str) -> None:
    with factory(service).create_connection() as other:
        session = other.create_session()
        other.start()
        producer = session.create_producer(Queue(queue))
        for number in (3, 7):
            message = session.create_text_message(f"n is {number}")
            message.properties["n"] = number
            producer.send(message)
        assert receive(connection.create_receiver(queue, credit=5, options=[Selector("n > 5")])).body == "n is 7"
        consumer = session.create_consumer(Topic(f"{queue}.*"))
        connection.create_sender(f"topic://{queue}.tin").send(Message(body="up"))
        got = consumer.receive(PATIENCE)
        assert got is not None and got.jms_destination == Topic(f"{queue}.tin")


# -- connections ------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mechanism", ["PLAIN", "ANONYMOUS"])
def test_who_may_not_come_in_is_refused(service: Service, mechanism: str) -> None:
    with pytest.raises(ConnectionException, match=r"unauthorized|[Aa]uthentication"):
        connect(service, "guest:wrong", mechanism)


def test_a_container_that_is_connected_is_refused(service: Service) -> None:
    sole = {"container": "proton alone", "desired_capabilities": proton.symbol("sole-connection-for-container")}
    with connected(service, **sole), pytest.raises(ConnectionException, match="invalid-field"):
        connect(service, **sole)
    connect(service, **sole).close()


def test_a_connection_that_says_nothing_is_kept_by_its_idle_time_out(service: Service, queue: str) -> None:
    made = connect(service, heartbeat=2)
    receiver = made.create_receiver(queue, credit=1)
    ends = time.monotonic() + 5
    while time.monotonic() < ends:
        made.container.do_work(0.1)
    made.create_sender(queue).send(Message(body="still there"))
    assert receive(receiver).body == "still there"
    made.close()
