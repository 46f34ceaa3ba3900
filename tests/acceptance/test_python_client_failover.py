"""The Python client while its node is killed and comes back: what was confirmed is there, what was in doubt is said to be, and work goes on."""

from __future__ import annotations

import threading
import time

from broker_core.client import AcknowledgeMode, ConnectionFactory, JMSException, Message, Queue, Topic
from tests.support.service import Service, await_true

LONG = 60.0
"""Seconds within which a killed node is there again, and everything delivered."""


class Sender:
    """Sends numbers one after the other, and keeps what became of each."""

    def __init__(self, factory: ConnectionFactory, queue: Queue) -> None:
        self.confirmed: list[str] = []
        self.in_doubt: list[str] = []
        self.stopping = threading.Event()
        self._factory = factory
        self._queue = queue
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with self._factory.create_connection() as connection, connection.create_session() as session:
            producer = session.create_producer(self._queue)
            number = 0
            while not self.stopping.is_set():
                number += 1
                try:
                    producer.send(str(number))
                    self.confirmed.append(str(number))
                except JMSException as error:
                    self.in_doubt.append(f"{number} {error.error_code}")

    def stop(self) -> None:
        self.stopping.set()
        self._thread.join(LONG)
        assert not self._thread.is_alive()


def test_a_node_that_is_killed_takes_nothing_along_and_clients_go_on(mortal: Service) -> None:
    service = mortal
    factory = ConnectionFactory(
        address_list=f"127.0.0.1:{service.stomp_port}", reconnect_enabled=True, reconnect_attempts=-1, reconnect_interval=0.1,
        ping_interval=2,
    )  # fmt: skip
    jobs, news = Queue("jobs"), Topic("news")
    received: list[str] = []
    heard: list[str] = []

    def work(message: Message) -> None:
        received.append(message.body)

    with factory.create_connection() as connection:
        session = connection.create_session(AcknowledgeMode.AUTO)
        session.create_consumer(jobs).message_listener = work
        listening = connection.create_session(AcknowledgeMode.DUPS_OK)
        listening.create_shared_durable_consumer(news, "archive").message_listener = lambda message: heard.append(message.body)
        sender = Sender(factory, jobs)
        for number in range(2):
            sent = len(sender.confirmed)
            await_true(lambda sent=sent: len(sender.confirmed) > sent + 200, LONG, "nothing is sent")
            service.kill("node")
            with factory.create_connection() as other, other.create_session() as publishing:
                publishing.create_producer(news).send(str(number))
            service.await_ready()
        time.sleep(0.5)
        sender.stop()
        await_true(lambda: set(sender.confirmed) <= set(received), LONG, "something confirmed was lost")
        await_true(lambda: set(heard) == {"0", "1"}, LONG, "the durable subscription missed something")
    in_doubt = [each.removesuffix(" CONNECTION_LOST") for each in sender.in_doubt]
    assert len(in_doubt) <= 2, "one a kill"
    assert set(received) <= set(sender.confirmed) | set(in_doubt)
    first = list(dict.fromkeys(received))
    assert first == sorted(first, key=int), "the order was lost"
