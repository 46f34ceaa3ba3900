"""The machine over real sockets and threads: who waits is woken, who must not wait is not let, nothing is left at the end."""

from __future__ import annotations

import gc
import threading
import time
from pathlib import Path

import pytest

from broker_core.client import AcknowledgeMode, JMSException, Message
from broker_core.client.channel import UNSENT_OCTETS_MAX
from broker_core.client.machine.window import MESSAGES_MAX
from tests.client.driving import NON_PERSISTENT, QUIET, A, Doing, connect
from tests.client.listening import SECONDS, ListeningBroker
from tests.support.service import await_true


# -- waiting --------------------------------------------------------------------------------------------------------------------------
def test_a_send_returns_when_the_broker_has_answered_and_not_before(broker: ListeningBroker) -> None:
    broker.confirming = False
    with connect(broker) as connection, connection.create_session() as session:
        sending = Doing(lambda: session.create_producer(A).send("x"))
        broker.hears("SEND")
        time.sleep(QUIET)
        assert not sending.is_over
        broker.confirms()
        sending.ends()


def test_threads_that_wait_at_the_same_time_each_get_their_own_answer(broker: ListeningBroker) -> None:
    """One of them reads the socket for all, and which one changes all the time."""
    with connect(broker) as connection:

        def send_many() -> None:
            with connection.create_session() as session:
                producer = session.create_producer(A)
                for number in range(300):
                    producer.send(str(number))

        for doing in [Doing(send_many) for _ in range(5)]:
            doing.ends()


def test_one_that_waits_for_messages_reads_the_answers_of_others(broker: ListeningBroker) -> None:
    with connect(broker) as connection:
        consumer = connection.create_session().create_consumer(A)
        receiving = Doing(consumer.receive)
        time.sleep(QUIET)
        with connection.create_session() as session:
            for _ in range(50):
                session.create_producer(A).send("x")
        broker.delivers("2", b"at last")
        message = receiving.ends()
        assert isinstance(message, Message) and message.body == "at last"


def test_one_that_waits_is_woken_by_what_other_threads_do(broker: ListeningBroker) -> None:
    connection = connect(broker)
    consumer = connection.create_session().create_consumer(A)
    waiting = Doing(consumer.receive)
    broker.delivers("2", b"before the start")
    time.sleep(QUIET)
    assert not waiting.is_over
    connection.start()
    assert waiting.ends() is not None
    connection.close()


@pytest.mark.parametrize("closed", ["consumer", "session", "connection"])
def test_a_receive_ends_when_what_it_belongs_to_is_closed(broker: ListeningBroker, closed: str) -> None:
    with connect(broker) as connection:
        session = connection.create_session()
        consumer = session.create_consumer(A)
        receiving = Doing(consumer.receive)
        time.sleep(QUIET)
        {"consumer": consumer, "session": session, "connection": connection}[closed].close()
        assert receiving.ends() is None


def test_a_broker_that_does_not_answer_in_time_is_not_waited_for(broker: ListeningBroker) -> None:
    broker.confirming = False
    with connect(broker, ack_timeout=QUIET) as connection, connection.create_session() as session:
        with pytest.raises(JMSException, match=r"not answered within 0\.1 s; the message may or may not have been stored") as late:
            session.create_producer(A).send("x")
        assert late.value.error_code == "ACK_TIMEOUT"


def test_closing_waits_for_the_answers_to_asynchronous_sends(broker: ListeningBroker) -> None:
    broker.confirming = False
    told: list[JMSException | None] = []
    with connect(broker) as connection:
        session = connection.create_session()
        session.create_producer(A).send("x", completion_listener=lambda _, error: told.append(error))
        closing = Doing(session.close)
        broker.hears("SEND")
        time.sleep(QUIET)
        assert not closing.is_over and not told
        broker.confirms()
        closing.ends()
        assert told == [None]


def test_but_not_for_ever(broker: ListeningBroker, caplog: pytest.LogCaptureFixture) -> None:
    broker.confirming = False
    told: list[str] = []
    with connect(broker, async_send_completion_wait_timeout=QUIET) as connection:
        producer = connection.create_session().create_producer(A)
        producer.send("x", completion_listener=lambda _, error: told.append(error.error_code if error else ""))
        with pytest.raises(JMSException, match=r"1 messages were not confirmed within 0\.05 s"):
            producer.flush(0.05)
    assert "Closing without them" in caplog.text
    await_true(lambda: told == ["CONNECTION_LOST"], SECONDS, "the listener is not told")


def test_a_completion_listener_that_fails_is_logged_and_the_next_is_told(broker: ListeningBroker, caplog: pytest.LogCaptureFixture) -> None:
    told: list[object] = []
    with connect(broker) as connection, connection.create_session() as session:
        producer = session.create_producer(A)
        producer.send("x", completion_listener=lambda *_: 1 / 0)
        producer.send("y", completion_listener=lambda message, _: told.append(message.body))
        producer.flush(SECONDS)
    assert told == ["y"]
    assert "A completion listener failed" in caplog.text


@pytest.mark.parametrize("closed", ["consumer", "session", "connection"])
def test_closing_waits_for_the_listener_that_runs_and_none_is_called_after_it(broker: ListeningBroker, closed: str) -> None:
    entered, going, called = threading.Event(), threading.Event(), []

    def listener(message: Message) -> None:
        called.append(message.body)
        entered.set()
        going.wait(SECONDS)

    connection = connect(broker)
    connection.start()
    session = connection.create_session()
    consumer = session.create_consumer(A)
    consumer.message_listener = listener
    broker.delivers("2", b"one", b"two")
    assert entered.wait(SECONDS)
    closing = Doing({"consumer": consumer, "session": session, "connection": connection}[closed].close)
    time.sleep(QUIET)
    assert not closing.is_over
    going.set()
    closing.ends()
    assert called == ["one"]
    assert broker.hears("ACK").headers["id"] == "2.1"
    connection.close()


def test_stopping_waits_for_the_listener_that_runs(broker: ListeningBroker) -> None:
    entered, going, called = threading.Event(), threading.Event(), []

    def listener(message: Message) -> None:
        called.append(message.body)
        entered.set()
        going.wait(SECONDS)

    with connect(broker) as connection:
        connection.create_session().create_consumer(A).message_listener = listener
        broker.delivers("2", b"one", b"two")
        assert entered.wait(SECONDS)
        stopping = Doing(connection.stop)
        time.sleep(QUIET)
        assert not stopping.is_over
        going.set()
        stopping.ends()
        time.sleep(QUIET)
        assert called == ["one"]
        connection.start()
        await_true(lambda: called == ["one", "two"], SECONDS, "it does not go on")


# -- how much is under way ------------------------------------------------------------------------------------------------------------
def test_asynchronous_sends_wait_when_as_many_are_unconfirmed_as_may_be(broker: ListeningBroker) -> None:
    broker.confirming = False
    with connect(broker) as connection, connection.create_session() as session:
        producer = session.create_producer(A)
        told: list[object] = []

        def send_many() -> None:
            for _ in range(MESSAGES_MAX + 10):
                producer.send("x", completion_listener=lambda message, _: told.append(message))

        sending = Doing(send_many)
        await_true(lambda: broker.frames.qsize() == MESSAGES_MAX, SECONDS, "they are not sent")
        time.sleep(QUIET)
        assert not sending.is_over and broker.frames.qsize() == MESSAGES_MAX
        broker.confirming = True
        broker.confirms()
        sending.ends()
        producer.flush(SECONDS)
        assert len(told) == MESSAGES_MAX + 10


def test_sends_that_nobody_confirms_wait_when_the_broker_does_not_read(broker: ListeningBroker) -> None:
    with connect(broker) as connection, connection.create_session() as session:
        producer = session.create_producer(A)
        producer.delivery_mode = NON_PERSISTENT
        broker.reading.clear()
        producer.send("the last one that is read")
        sending = Doing(lambda: [producer.send(b"x" * 100_000) for _ in range(300)])
        time.sleep(5 * QUIET)
        assert not sending.is_over
        channel = connection._driver._channel
        assert len(channel._unsent) + connection._machine.out_octets < UNSENT_OCTETS_MAX + 200_000
        broker.reading.set()
        sending.ends()
    assert sum(frame.command == "SEND" for frame in list(broker.frames.queue)) == 301


def test_what_is_sent_in_a_burst_arrives_complete_and_in_order(broker: ListeningBroker) -> None:
    with connect(broker) as connection, connection.create_session() as session:
        producer = session.create_producer(A)
        for number in range(5000):
            producer.send(str(number), delivery_mode=NON_PERSISTENT)
    assert [int(frame.body) for frame in list(broker.frames.queue) if frame.command == "SEND"] == list(range(5000))


def test_a_consumer_without_acknowledgements_that_is_behind_stops_the_reading_and_goes_on(broker: ListeningBroker) -> None:
    with connect(broker, consumer_flow_limit=100) as connection:
        session = connection.create_session(AcknowledgeMode.NO_ACKNOWLEDGE)
        consumer = session.create_consumer(A)
        sending = Doing(lambda: broker.delivers("2", *[b"x" * 100_000] * 400))
        time.sleep(5 * QUIET)
        assert not sending.is_over
        assert connection._machine.held < 120
        assert [consumer.receive(SECONDS) is not None for _ in range(400)] == [True] * 400
        sending.ends()


def test_acknowledgements_that_wait_leave_in_time_although_nobody_does_anything(broker: ListeningBroker) -> None:
    with connect(broker, optimize_acknowledge=True) as connection:
        consumer = connection.create_session().create_consumer(A)
        broker.delivers("2", b"x")
        assert consumer.receive(SECONDS) is not None
        began = time.monotonic()
        assert broker.hears("ACK").headers["id"] == "2.1"
        assert 0.2 < time.monotonic() - began < 2


# -- the end --------------------------------------------------------------------------------------------------------------------------
def test_nothing_is_left_of_a_connection_that_was_closed(broker: ListeningBroker) -> None:
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    with connect(broker) as connection:
        connection.create_session().create_consumer(A).message_listener = print
    before, threads = descriptors(), threading.active_count()
    for _ in range(5):
        with connect(broker) as connection:
            session = connection.create_session()
            session.create_consumer(A).message_listener = print
            session.create_producer(A).send("x")
    gc.collect()
    # On the other side each connection had a thread and a socket, which may take a moment to go.
    await_true(lambda: descriptors() <= before and threading.active_count() <= threads, SECONDS, f"{descriptors()} descriptors, were {before}")
