"""What is of threads only: who reads for whom, what callers leave to the I/O thread, what is left of it (the rest: test_client_faces*.py)."""

from __future__ import annotations

import gc
import threading
import time
from pathlib import Path

from broker_core.client import Message
from broker_core.client.channel import UNSENT_OCTETS_MAX
from tests.client.driving import NON_PERSISTENT, QUIET, A, Doing, connect
from tests.client.listening import SECONDS, ListeningBroker
from tests.support.service import await_true


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
