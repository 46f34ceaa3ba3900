"""What is of threads only: who reads for whom, what callers leave to the I/O thread, what is left of it (the rest: test_client_faces*.py)."""

from __future__ import annotations

import gc
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from broker_core.client import ConnectionFactory, JMSException, Message, ResourceAllocationException, sockets
from broker_core.client.channel import UNSENT_OCTETS_MAX
from tests.client.driving import NON_PERSISTENT, QUIET, A, Doing, connect
from tests.client.listening import SECONDS, ListeningBroker
from tests.support.service import await_true


class Interrupted(Exception):
    pass


@contextmanager
def interrupted() -> Iterator[None]:
    """By a signal whose handler raises, soon."""

    def interrupt(*_: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 2 * QUIET)
    try:
        with pytest.raises(Interrupted):
            yield
    finally:
        signal.signal(signal.SIGALRM, before)


# -- reading --------------------------------------------------------------------------------------------------------------------------
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


@pytest.mark.parametrize("seconds", [float("inf"), 1e15])
def test_one_may_wait_longer_than_the_operating_system_can(broker: ListeningBroker, seconds: float) -> None:
    with connect(broker) as connection:
        consumers = [connection.create_session().create_consumer(A) for _ in range(2)]
        receiving = [Doing(lambda consumer=consumer: consumer.receive(seconds)) for consumer in consumers]  # one reads, the other is woken
        time.sleep(QUIET)
        broker.delivers("2", b"x")
        broker.delivers("4", b"x")
        assert all(isinstance(doing.ends(), Message) for doing in receiving)


def test_a_message_whose_receive_was_interrupted_by_a_signal_is_for_the_next(broker: ListeningBroker) -> None:
    broker.silent_about = ("ACK",)
    with connect(broker) as connection:
        consumer = connection.create_session().create_consumer(A)
        broker.delivers("2", b"x")
        with interrupted():
            consumer.receive(SECONDS)
        broker.hears("ACK")
        broker.confirms()
        assert consumer.receive(SECONDS).body == "x"


def test_a_look_that_the_garbage_collector_ends_within_another_call_ends_later(broker: ListeningBroker) -> None:
    with connect(broker) as connection:
        session = connection.create_session()
        look = iter(session.create_browser(A))
        showing = Doing(lambda: broker.hears("SUBSCRIBE") and broker.delivers("2", b"x"))
        next(look)
        showing.ends()
        circle = [look]
        circle.append(circle)  # type: ignore[arg-type]
        del look, circle

        def collect() -> None:
            with connection._driver.lock:
                gc.collect()

        Doing(collect).ends()
        session.create_producer(A).send("x")
        assert broker.hears("UNSUBSCRIBE").headers["id"] == "2"


# -- listeners ------------------------------------------------------------------------------------------------------------------------
def test_a_listener_that_would_end_the_process_has_failed_and_nobody_waits_for_it(broker: ListeningBroker, caplog: pytest.LogCaptureFixture) -> None:
    def listener(message: Message) -> None:
        if message.body == "bad":
            sys.exit(1)

    with connect(broker) as connection:
        connection.create_session().create_consumer(A).message_listener = listener
        broker.delivers("2", b"bad", b"good")
        assert broker.hears("NACK").headers["id"] == "2.1"
        assert broker.hears("ACK").headers["id"] == "2.2"
        Doing(connection.close).ends()
    assert "A message listener failed" in caplog.text


def test_so_has_a_completion_listener_and_the_connection_goes_on(broker: ListeningBroker, caplog: pytest.LogCaptureFixture) -> None:
    def completed(*_: Any) -> None:
        sys.exit(1)

    with connect(broker) as connection:
        producer = connection.create_session().create_producer(A)
        producer.send("x", completion_listener=completed)
        producer.flush(SECONDS)
        producer.send("y")
    assert "A completion listener failed" in caplog.text


# -- losing ---------------------------------------------------------------------------------------------------------------------------
def test_one_that_reads_when_the_broker_has_fallen_silent_is_told_so_however_late_it_wakes(broker: ListeningBroker) -> None:
    broker.beats = "50,50"
    for _ in range(3):  # who comes first is chance
        with pytest.raises(JMSException, match=r"said nothing for 0\.1 s"), connect(broker, ping_interval=0.05) as connection:
            connection.create_session().create_consumer(A).receive(SECONDS)


def test_what_a_broker_refused_is_told_although_writing_to_it_fails_first(broker: ListeningBroker) -> None:
    with connect(broker) as connection:
        producer = connection.create_session().create_producer(A)
        driver = connection._driver
        with driver.lock:  # nobody reads what it says before it is gone
            broker.says(b"ERROR\nmessage:message too large\n\n\0")
            broker.drops()
            for _ in range(2):  # what is written first is answered by a reset
                time.sleep(QUIET)
                driver.machine.write(b"\n")
                driver.flush()
        with pytest.raises(ResourceAllocationException, match="message too large"):
            producer.send("x")


# -- connecting -----------------------------------------------------------------------------------------------------------------------
def test_one_who_does_not_speak_tls_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "HANDSHAKE_SECONDS", QUIET)
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(JMSException, match="handshake operation timed out"):
        ConnectionFactory(address_list=f"stomp+tls://127.0.0.1:{silent.getsockname()[1]}").create_connection()


def test_nobody_goes_on_connecting_for_one_who_was_interrupted() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address, before = f"stomp://127.0.0.1:{silent.getsockname()[1]}", threading.active_count()
        with interrupted():
            ConnectionFactory(address_list=address, reconnect_enabled=True, reconnect_attempts=-1).create_connection()
        await_true(lambda: threading.active_count() <= before, SECONDS, "its thread is still there")


# -- writing --------------------------------------------------------------------------------------------------------------------------
def test_what_a_broker_does_not_read_is_bounded(broker: ListeningBroker) -> None:
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


def test_what_a_caller_leaves_to_the_io_thread_without_a_pause_arrives_complete_and_in_order(broker: ListeningBroker) -> None:
    with connect(broker) as connection, connection.create_session() as session:
        producer = session.create_producer(A)
        for number in range(5000):
            producer.send(str(number), delivery_mode=NON_PERSISTENT)
    assert [int(frame.body) for frame in list(broker.frames.queue) if frame.command == "SEND"] == list(range(5000))


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
