"""The machine over real sockets and threads: who waits is woken, who must not wait is not let, what is lost comes back."""

from __future__ import annotations

import gc
import ssl
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from broker_core.client import (
    AcknowledgeMode,
    Connection,
    ConnectionFactory,
    DeliveryMode,
    IllegalStateException,
    JMSException,
    JMSSecurityException,
    Message,
    Profile,
    Queue,
    Reliability,
)
from broker_core.client.channel import UNSENT_OCTETS_MAX
from broker_core.client.machine.window import MESSAGES_MAX
from tests.client.listening import SECONDS, ListeningBroker, messages
from tests.support.certificates import certificate
from tests.support.service import await_true, free_ports

A = Queue("a")
NON_PERSISTENT = DeliveryMode.NON_PERSISTENT
QUIET = 0.1
AGAIN = {"reconnect_enabled": True, "reconnect_interval": 0.05}


@pytest.fixture
def broker() -> Iterator[ListeningBroker]:
    with ListeningBroker() as listening:
        yield listening


def connect(broker: ListeningBroker, **settings: Any) -> Connection:
    return ConnectionFactory(**({"address_list": broker.address} | settings)).create_connection()


class Doing:
    """Something done by another thread: whether it is through, and what came of it."""

    def __init__(self, what: Callable[[], object]) -> None:
        self.result: object = None
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(what,), daemon=True)
        self._thread.start()

    def _run(self, what: Callable[[], object]) -> None:
        try:
            self.result = what()
        except JMSException as error:
            self.error = error

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def ends(self) -> object:
        self._thread.join(SECONDS)
        assert self.is_over, "it still waits"
        if self.error is not None:
            raise self.error
        return self.result


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


# -- TLS ------------------------------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def encrypted(pair: tuple[Path, Path]) -> Iterator[ListeningBroker]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pair)
    with ListeningBroker(context) as listening:
        yield listening


def test_everything_works_over_tls(encrypted: ListeningBroker, pair: tuple[Path, Path]) -> None:
    context = ssl.create_default_context(cafile=str(pair[0]))
    with connect(encrypted, ssl_context=context) as connection:
        session = connection.create_session()
        consumer = session.create_consumer(A)
        for size in (0, 10, 3_000_000):
            session.create_producer(A).send(b"x" * size)
            assert len(encrypted.hears("SEND").body) == size
        bodies = [b"a", b"b" * 3_000_000, b"c" * 20_000]
        encrypted.answer = b"".join(messages("2", *bodies))
        session.create_producer(A).send("now")
        received = [consumer.receive(SECONDS) for _ in bodies]
        assert [message.octets() for message in received if message] == bodies


def test_a_broker_whose_certificate_is_not_trusted_is_not_spoken_to_unless_told(encrypted: ListeningBroker) -> None:
    with pytest.raises(JMSException, match="CERTIFICATE_VERIFY_FAILED"):
        connect(encrypted)
    with connect(encrypted, ssl_is_host_trusted=True) as connection:
        connection.create_session().create_producer(A).send("x")


# -- factories ------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"override_priority": 10}, "from 0 to 9"), ({"consumer_flow_threshold": 0}, "at most 100 percent"),
        ({"address_list_iterations": 0}, "-1 for ever"), ({"ping_interval": -1}, "must not be negative"),
        ({"nonpersistent_reliability": Reliability.ASSURED}, "a level of persistent messages"),
    ],
)  # fmt: skip
def test_a_factory_that_is_not_usable_says_why(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(JMSException, match=sentence):
        ConnectionFactory(**settings).create_connection()


def test_a_level_that_loses_persistent_messages_is_allowed_and_warned_of(broker: ListeningBroker) -> None:
    with pytest.warns(UserWarning, match="they are lost when the broker stops"):
        connect(broker, persistent_reliability=Reliability.EXPRESS).close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        connect(broker, persistent_reliability=Reliability.RELIABLE).close()


def test_a_profile_is_a_factory_with_other_defaults(broker: ListeningBroker) -> None:
    factory = ConnectionFactory.of_profile("activemq", address_list=broker.address, consumer_flow_limit=5)
    assert (factory.prefetch_policy.topic, factory.dups_ok_policy.on_queues) == (32767, None)
    assert ConnectionFactory.of_profile(Profile.SUN) == ConnectionFactory()
    with factory.create_connection() as connection:
        connection.create_session().create_consumer(A)
        assert broker.hears("SUBSCRIBE").headers["prefetch-count"] == "5"


def test_a_password_is_not_shown() -> None:
    assert "secret" not in repr(ConnectionFactory(password="secret"))


def test_a_factory_that_is_changed_later_does_not_change_its_connections(broker: ListeningBroker) -> None:
    factory = ConnectionFactory(address_list=broker.address)
    with factory.create_connection() as connection:
        factory.ack_on_produce = False
        connection.create_session().create_producer(A).send("x")
        assert broker.hears("SEND").receipt is not None


def test_the_client_identifier_is_the_factorys_or_the_applications(broker: ListeningBroker) -> None:
    connection = connect(broker)
    connection.client_id = "mine"
    with pytest.raises(IllegalStateException, match="and once"):
        connection.client_id = "other"
    connection.close()
    assert ["client-id" in broker.connects.get(timeout=SECONDS).headers for _ in range(2)] == [False, True]
    for settings in ({"configured_client_id": "its"}, {"disable_set_client_id": True}):
        with connect(broker, **settings) as connection, pytest.raises(IllegalStateException, match="the connection factory"):
            connection.client_id = "mine"


def test_nobody_there_is_said_at_once() -> None:
    (port,) = free_ports(1)
    with pytest.raises(JMSException, match=f"127.0.0.1:{port}: .*refused"):
        ConnectionFactory(address_list=f"127.0.0.1:{port}").create_connection()


def test_a_session_with_a_mode_that_cannot_be_asked_for(broker: ListeningBroker) -> None:
    with connect(broker) as connection, pytest.raises(JMSException, match="transacted=True"):
        connection.create_session(AcknowledgeMode.SESSION_TRANSACTED)
