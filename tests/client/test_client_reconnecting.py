"""What the client does when its connection is lost, over real sockets and threads: what is lost comes back, or says that it does not."""

from __future__ import annotations

import time

import pytest

from broker_core.client import IllegalStateException, JMSException, JMSSecurityException, Message
from tests.client.driving import AGAIN, QUIET, A, Doing, connect
from tests.client.listening import SECONDS, ListeningBroker
from tests.support.service import await_true


# -- losing the connection ------------------------------------------------------------------------------------------------------------
def test_what_waits_while_the_connection_is_lost_goes_on_when_it_is_back(broker: ListeningBroker) -> None:
    with connect(broker, **AGAIN) as connection:
        session, receiving_session = connection.create_session(), connection.create_session()
        producer, consumer = session.create_producer(A), receiving_session.create_consumer(A)
        receiving = Doing(consumer.receive)
        time.sleep(QUIET)
        broker.hears("SUBSCRIBE")
        broker.drops()
        assert broker.hears("SUBSCRIBE").headers["id"] == "3"
        producer.send("x")
        broker.delivers("3", b"y")
        message = receiving.ends()
        assert isinstance(message, Message) and message.body == "y"
    assert broker.connects.qsize() == 2


def test_a_send_whose_answer_was_lost_says_so_and_the_next_is_sent(broker: ListeningBroker) -> None:
    broker.confirming = False
    with connect(broker, **AGAIN) as connection, connection.create_session() as session:
        producer = session.create_producer(A)
        sending = Doing(lambda: producer.send("x"))
        broker.hears("SEND")
        broker.drops()
        with pytest.raises(JMSException, match="may or may not have been stored"):
            sending.ends()
        broker.confirming = True
        producer.send("y")


def test_the_next_address_takes_over(broker: ListeningBroker) -> None:
    with ListeningBroker() as other, connect(broker, address_list=f"{broker.address},{other.address}", **AGAIN) as connection:
        broker.stops_listening()
        broker.drops()
        assert other.connects.get(timeout=SECONDS)
        connection.create_session().create_producer(A).send("x")
        assert other.hears("SEND")


def test_when_no_broker_comes_back_the_connection_has_failed(broker: ListeningBroker) -> None:
    told: list[JMSException] = []
    connection = connect(broker, reconnect_enabled=True, reconnect_attempts=2, reconnect_interval=0.01)
    connection.exception_listener = told.append
    connection.start()
    receiving = Doing(connection.create_session().create_consumer(A).receive)
    broker.stops_listening()
    broker.drops()
    with pytest.raises(JMSException, match="no broker can be reached"):
        receiving.ends()
    await_true(lambda: len(told) == 1, SECONDS, "the exception listener is not told")
    assert told[0].error_code == "NO_BROKER"
    with pytest.raises(JMSException, match="no broker can be reached"):
        connection.create_session()
    connection.close()


def test_closing_while_it_connects_again_does_not_wait_for_that(broker: ListeningBroker) -> None:
    connection = connect(broker, reconnect_enabled=True, reconnect_attempts=-1, reconnect_interval=60)
    broker.stops_listening()
    broker.drops()
    await_true(connection._machine.awaits_socket, SECONDS, "it does not notice")
    sending = Doing(connection.create_session)
    began = time.monotonic()
    connection.close()
    assert time.monotonic() - began < 2
    with pytest.raises(IllegalStateException, match="the connection is closed"):
        sending.ends()


def test_a_password_that_is_not_accepted_any_more_ends_the_attempts(broker: ListeningBroker) -> None:
    told: list[JMSException] = []
    with connect(broker, reconnect_enabled=True, reconnect_attempts=-1, reconnect_interval=0.01) as connection:
        connection.exception_listener = told.append
        broker.refusal = "login or passcode is wrong, or the account may not connect from here"
        broker.drops()
        await_true(lambda: len(told) == 1, SECONDS, "it tries for ever")
        assert isinstance(told[0], JMSSecurityException)


def test_one_that_is_lost_as_soon_as_it_is_there_is_not_made_as_fast_as_can_be(broker: ListeningBroker) -> None:
    with connect(broker, reconnect_enabled=True, reconnect_interval=0.2) as connection:
        broker.hanging_up = True
        broker.drops()
        time.sleep(0.7)
        broker.hanging_up = False
        assert 3 <= broker.connects.qsize() <= 5
        connection.create_session().create_producer(A).send("x")


def test_a_listener_goes_on_when_the_connection_is_back(broker: ListeningBroker) -> None:
    seen: list[str] = []
    with connect(broker, **AGAIN) as connection:
        session = connection.create_session()
        session.create_consumer(A).message_listener = lambda message: seen.append(message.body)
        broker.hears("SUBSCRIBE")
        broker.delivers("2", b"one")
        await_true(lambda: seen == ["one"], SECONDS, "it is not called")
        broker.hears("ACK")
        broker.drops()
        broker.hears("SUBSCRIBE")
        broker.delivers("2", b"two")
        await_true(lambda: seen == ["one", "two"], SECONDS, "it is not called again")


def test_a_broker_that_lets_nobody_in_is_not_waited_for(broker: ListeningBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker_core.client.driver.LOGIN_SECONDS", QUIET)
    broker.reading.clear()
    with pytest.raises(JMSException, match=r"has not let us in within 0\.1 s"):
        connect(broker)
