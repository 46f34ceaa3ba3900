"""Misuse, one table for both faces: each mistake raises the exception that JMS names for it, says what to do, and is told to nobody else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from broker_core.client import (
    AcknowledgeMode,
    DeliveryMode,
    IllegalStateException,
    InvalidClientIDException,
    InvalidDestinationException,
    InvalidSelectorException,
    JMSException,
    Message,
    MessageFormatException,
    MessageNotWriteableException,
    Profile,
    Queue,
    TemporaryQueue,
    TemporaryTopic,
    Topic,
)
from broker_core.client.settings import Batch, DupsOkPolicy
from tests.client.faces import Face
from tests.client.listening import SECONDS, ListeningBroker

A, B, T = Queue("a"), Queue("b"), Topic("t")
AUTO, CLIENT, DUPS_OK, INDIVIDUAL, NO_ACKNOWLEDGE, TRANSACTED = (
    AcknowledgeMode.AUTO, AcknowledgeMode.CLIENT, AcknowledgeMode.DUPS_OK, AcknowledgeMode.INDIVIDUAL, AcknowledgeMode.NO_ACKNOWLEDGE,
    AcknowledgeMode.SESSION_TRANSACTED,
)  # fmt: skip
STATE, DESTINATION, SELECTOR = IllegalStateException, InvalidDestinationException, InvalidSelectorException


@dataclass
class Scene:
    """What an application has open. Of what is `closed` everything in it was closed with it."""

    face: Face
    broker: ListeningBroker
    connection: Any
    session: Any
    consumer: Any
    producer: Any
    browser: Any
    temporary: Any

    async def close(self, closed: str) -> None:
        if closed:
            await getattr(self, closed).close()

    def set(self, what: str, name: str, value: Any) -> None:
        setattr(getattr(self, what).it, name, value)

    async def received(self, mode: AcknowledgeMode) -> tuple[Any, Message]:
        """A session of the mode, and a message that one of its consumers has received."""
        session = await self.connection.create_session(AUTO if mode is TRANSACTED else mode, transacted=mode is TRANSACTED)
        consumer = await session.create_consumer(B)
        self.broker.delivers(consumer.it._machine.subscription.decode(), b"x")
        message = await consumer.receive(SECONDS)
        assert isinstance(message, Message)
        return session, message


async def scene_of(face: Face, broker: ListeningBroker, connection: Any) -> Scene:
    session = await connection.create_session()
    consumer, producer, browser = await session.create_consumer(A), await session.create_producer(A), await session.create_browser(A)
    return Scene(face, broker, connection, session, consumer, producer, browser, await session.create_temporary_queue())


Mistake = Callable[[Scene], Awaitable[Any]]


async def now(what: Callable[[], Any]) -> Any:
    return what()


async def iterated(it: Any) -> Any:
    return [message async for message in it]


# -- used after it was closed ------------------------------------------------------------------------------------------------------------------
OF_SESSION: dict[str, Mistake] = {
    "create_consumer": lambda s: s.session.create_consumer(A),
    "create_durable_consumer": lambda s: s.session.create_durable_consumer(T, "d"),
    "create_shared_consumer": lambda s: s.session.create_shared_consumer(T, "d"),
    "create_producer": lambda s: s.session.create_producer(A),
    "create_browser": lambda s: s.session.create_browser(A),
    "create_temporary_queue": lambda s: s.session.create_temporary_queue(),
    "create_temporary_topic": lambda s: s.session.create_temporary_topic(),
    "unsubscribe": lambda s: s.session.unsubscribe("d"),
    "commit": lambda s: s.session.commit(),
    "rollback": lambda s: s.session.rollback(),
    "recover": lambda s: s.session.recover(),
    "acknowledge": lambda s: s.session.acknowledge(Message()),
    "delete of a temporary queue": lambda s: s.face.call(s.temporary.delete),
    "iterating over its browser": lambda s: iterated(s.browser),
}
OF_CONSUMER: dict[str, Mistake] = {
    "receive": lambda s: s.consumer.receive(0),
    "receive_no_wait": lambda s: s.consumer.receive_no_wait(),
    "message_listener": lambda s: now(lambda: s.set("consumer", "message_listener", print)),
}
OF_PRODUCER: dict[str, Mistake] = {
    "send": lambda s: s.producer.send("x"),
    "flush": lambda s: s.producer.flush(),
    "delivery_mode": lambda s: now(lambda: s.set("producer", "delivery_mode", DeliveryMode.PERSISTENT)),
    "priority": lambda s: now(lambda: s.set("producer", "priority", 4)),
    "time_to_live": lambda s: now(lambda: s.set("producer", "time_to_live", 0)),
    "delivery_delay": lambda s: now(lambda: s.set("producer", "delivery_delay", 0)),
}
OF_CONNECTION: dict[str, Mistake] = {
    "create_session": lambda s: s.connection.create_session(),
    "start": lambda s: s.connection.start(),
    "stop": lambda s: s.connection.stop(),
    "client_id": lambda s: s.face.set_client_id(s.connection, "late"),
}
CLOSED = [
    *(("connection", "the connection is closed: make another one", name, do) for name, do in (OF_CONNECTION | OF_SESSION | OF_CONSUMER | OF_PRODUCER).items()),
    *(("session", r"the session is closed: create another one with connection.create_session", name, do)
      for name, do in (OF_SESSION | OF_CONSUMER | OF_PRODUCER).items()),
    *(("consumer", "the consumer is closed: create another one", name, do) for name, do in OF_CONSUMER.items()),
    *(("producer", "the producer is closed: create another one", name, do) for name, do in OF_PRODUCER.items()),
    ("browser", "the browser is closed: create another one", "iterating", OF_SESSION["iterating over its browser"]),
]  # fmt: skip


@pytest.mark.parametrize(("closed", "sentence", "do"), [pytest.param(*row[:2], row[3], id=f"{row[0]}: {row[2]}") for row in CLOSED])
async def test_what_is_closed_can_do_nothing(
    face: Face, broker: ListeningBroker, connection: Any, closed: str, sentence: str, do: Mistake
) -> None:
    scene = await scene_of(face, broker, connection)
    await scene.close(closed)
    with pytest.raises(STATE, match=f"the (connection|session|{closed}) is closed") as told:
        await do(scene)
    assert str(told.value).partition(":")[2].strip(), "it does not say what to do"
    assert closed == "connection" or sentence.partition(":")[0] in str(told.value)


@pytest.mark.parametrize("closed", ["connection", "session", "consumer", "producer", "browser"])
async def test_it_may_be_closed_again(face: Face, broker: ListeningBroker, connection: Any, closed: str) -> None:
    scene = await scene_of(face, broker, connection)
    await scene.close(closed)
    await scene.close(closed)


async def test_a_closed_connection_is_not_made_again_by_giving_it_a_client_identifier(face: Face, broker: ListeningBroker) -> None:
    connection = await face.opened(broker)
    await connection.close()
    with pytest.raises(STATE, match="make another one"):
        await face.set_client_id(connection, "c")
    assert connection.is_closed and broker.connects.qsize() == 1


# -- in the wrong mode ---------------------------------------------------------------------------------------------------------------------------
ALL = (AUTO, CLIENT, DUPS_OK, INDIVIDUAL, NO_ACKNOWLEDGE, TRANSACTED)
WRONG_MODE: list[tuple[str, tuple[AcknowledgeMode, ...], Callable[[Any, Message], Awaitable[Any]], str]] = [
    ("commit", ALL[:5], lambda session, _: session.commit(), "has no transactions: create a transacted session"),
    ("rollback", ALL[:5], lambda session, _: session.rollback(), "has no transactions: create a transacted session"),
    ("recover", (TRANSACTED,), lambda session, _: session.recover(), "roll back instead"),
    ("recover", (NO_ACKNOWLEDGE,), lambda session, _: session.recover(), "leaves nothing to recover"),
    ("acknowledge_this", (AUTO, DUPS_OK, NO_ACKNOWLEDGE, TRANSACTED), lambda session, message: session.acknowledge_this_message(message),
     "sessions with AcknowledgeMode.CLIENT or INDIVIDUAL"),
    ("acknowledge_up_through", (AUTO, DUPS_OK, INDIVIDUAL, NO_ACKNOWLEDGE, TRANSACTED),
     lambda session, message: session.acknowledge_up_through_this_message(message), "for sessions with AcknowledgeMode.CLIENT"),
]  # fmt: skip


@pytest.mark.parametrize(("mode", "do", "sentence"), [
    pytest.param(mode, do, sentence, id=f"{name} of {mode.name}") for name, modes, do, sentence in WRONG_MODE for mode in modes
])  # fmt: skip
async def test_what_a_mode_does_not_have_is_refused(
    face: Face, broker: ListeningBroker, connection: Any, mode: AcknowledgeMode, do: Callable[[Any, Message], Awaitable[Any]], sentence: str
) -> None:
    session, message = await (await scene_of(face, broker, connection)).received(mode)
    with pytest.raises(STATE, match=sentence):
        await do(session, message)


@pytest.mark.parametrize("mode", [AUTO, DUPS_OK, NO_ACKNOWLEDGE, TRANSACTED])
async def test_acknowledge_is_ignored_where_the_session_does_it(face: Face, broker: ListeningBroker, connection: Any, mode: AcknowledgeMode) -> None:
    session, message = await (await scene_of(face, broker, connection)).received(mode)
    await session.acknowledge(message)


@pytest.mark.parametrize("mode", [CLIENT, INDIVIDUAL])
async def test_a_message_is_acknowledged_in_the_session_that_received_it(
    face: Face, broker: ListeningBroker, connection: Any, mode: AcknowledgeMode
) -> None:
    scene = await scene_of(face, broker, connection)
    _, message = await scene.received(mode)
    other = await connection.create_session(mode)
    for wrong in (message, Message()):
        for acknowledging in (other.acknowledge, other.acknowledge_this_message):
            with pytest.raises(STATE, match="in the session that received it"):
                await acknowledging(wrong)


@pytest.mark.parametrize("mode", [17, "AUTO", None, True, TRANSACTED])
async def test_a_session_needs_a_mode_that_there_is(connection: Any, mode: Any) -> None:
    with pytest.raises(JMSException, match="transacted=True"):
        await connection.create_session(mode)


# -- what is asked for cannot be -----------------------------------------------------------------------------------------------------------------
async def durable_of_a_temporary_topic(scene: Scene) -> None:
    topic = await scene.session.create_temporary_topic()
    await scene.session.create_shared_durable_consumer(topic, "d")


async def sent(scene: Scene, destination: Queue | None) -> None:
    await (await scene.session.create_producer()).send("x", destination)


async def to_a_deleted_one(scene: Scene) -> None:
    producer = await scene.session.create_producer(scene.temporary)
    await scene.face.call(scene.temporary.delete)
    await producer.send("x")


async def deleted_under_a_consumer(scene: Scene) -> None:
    await scene.session.create_consumer(scene.temporary)
    await scene.face.call(scene.temporary.delete)


async def receiving_beside_a_listener(scene: Scene) -> None:
    async def listener(_: Message) -> None:
        pass

    scene.consumer.message_listener = listener
    await scene.consumer.receive(0)


async def written(scene: Scene, *, body: bool) -> None:
    _, message = await scene.received(CLIENT)
    if body:
        message.text = "other"  # type: ignore[attr-defined]
    else:
        message.properties["colour"] = "red"


ASKED: list[tuple[type[JMSException], str, str, Mistake]] = [
    (SELECTOR, "is not valid", "consumer", lambda s: s.session.create_consumer(A, "colour =")),
    (SELECTOR, "is not valid", "durable", lambda s: s.session.create_shared_durable_consumer(T, "d", "colour = 'red")),
    (SELECTOR, "is not valid", "browser", lambda s: s.session.create_browser(A, "1 +")),
    (SELECTOR, "must be a str", "selector", lambda s: s.session.create_consumer(A, 5)),
    (DESTINATION, "use Queue", "consumer of a str", lambda s: s.session.create_consumer("a")),
    (DESTINATION, "use Queue", "producer to a str", lambda s: s.session.create_producer("a")),
    (DESTINATION, "use Queue", "browser of a str", lambda s: s.session.create_browser("a")),
    (DESTINATION, "topics keep no messages", "browser of a topic", lambda s: s.session.create_browser(T)),
    (DESTINATION, "use create_browser", "durable browser of a queue", lambda s: s.session.create_durable_browser(A, "d")),
    (DESTINATION, "send to one topic", "producer to a pattern", lambda s: s.session.create_producer(Topic("a.*"))),
    (DESTINATION, "use create_consumer", "durable of a queue", lambda s: s.session.create_durable_consumer(A, "d")),
    (DESTINATION, "use create_consumer", "shared of a queue", lambda s: s.session.create_shared_consumer(A, "d")),
    (DESTINATION, "needs a topic that stays", "durable of a temporary topic", durable_of_a_temporary_topic),
    (DESTINATION, "belongs to another connection", "another's temporary queue", lambda s: s.session.create_consumer(TemporaryQueue("n-1-9.1"))),
    (DESTINATION, "belongs to another connection", "another's temporary topic", lambda s: s.session.create_consumer(TemporaryTopic("n-1-9.1"))),
    (DESTINATION, "belongs to another connection", "another's, browsed", lambda s: s.session.create_browser(TemporaryQueue("n-1-9.1"))),
    (DESTINATION, "name one in send", "no destination", lambda s: sent(s, None)),
    (DESTINATION, "is the broker's own", "the broker's own", lambda s: sent(s, Queue("mq.sys.dmq"))),
    (DESTINATION, "was deleted: create another one", "a deleted one", to_a_deleted_one),
    (InvalidClientIDException, "holds a NUL character", "browser of a client with NUL",
     lambda s: s.session.create_durable_browser(T, "d", client_id="a\0b")),
    (InvalidClientIDException, "must be a str", "browser of a client that is none", lambda s: s.session.create_durable_browser(T, "d", client_id=5)),
    (STATE, "create one without a destination", "another destination", lambda s: s.producer.send("x", B)),
    (STATE, "close it before deleting", "deleted under a consumer", deleted_under_a_consumer),
    (STATE, "1 to 255 characters", "unsubscribe of no name", lambda s: s.session.unsubscribe("")),
    (STATE, "belongs to a client identifier", "durable without a client", lambda s: s.session.create_durable_consumer(T, "d")),
    (STATE, "needs a client identifier", "no_local without a client", lambda s: s.session.create_consumer(T, no_local=True)),
    (STATE, "receive in another session", "receive beside a listener", receiving_beside_a_listener),
    (JMSException, "0 to wait for nothing", "negative timeout", lambda s: s.consumer.receive(-1)),
    (JMSException, "0 to wait for nothing", "timeout that is no number", lambda s: s.consumer.receive("5")),
    (JMSException, "0 to wait for nothing", "timeout nan", lambda s: s.consumer.receive(float("nan"))),
    (JMSException, "0 to wait for nothing", "negative timeout of flush", lambda s: s.producer.flush(-0.1)),
    (JMSException, "from 0 to 9", "priority", lambda s: s.producer.send("x", priority=10)),
    (JMSException, "from 0 to 9", "priority of the producer", lambda s: now(lambda: s.set("producer", "priority", -1))),
    (JMSException, "DeliveryMode.PERSISTENT or NON_PERSISTENT", "delivery mode", lambda s: s.producer.send("x", delivery_mode=7)),
    (JMSException, "DeliveryMode.PERSISTENT or NON_PERSISTENT", "delivery mode of the producer",
     lambda s: now(lambda: s.set("producer", "delivery_mode", 0))),
    (JMSException, "0 for none", "negative time to live", lambda s: s.producer.send("x", time_to_live=-1)),
    (JMSException, "0 for none", "negative time to live of the producer", lambda s: now(lambda: s.set("producer", "time_to_live", -1))),
    (JMSException, "0 for none", "negative delay", lambda s: now(lambda: s.set("producer", "delivery_delay", -5))),
    (JMSException, "from -1000 to 1000", "consumer priority", lambda s: s.session.create_consumer(A, priority=1001)),
    (MessageFormatException, "TextMessage", "a body of no kind", lambda s: s.producer.send(5)),
    (MessageNotWriteableException, "clear_body", "a received body", lambda s: written(s, body=True)),
    (MessageNotWriteableException, "clear_properties", "received properties", lambda s: written(s, body=False)),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "sentence", "do"), [pytest.param(row[0], row[1], row[3], id=row[2]) for row in ASKED])
async def test_what_cannot_be_is_refused_and_the_connection_goes_on(
    face: Face, broker: ListeningBroker, connection: Any, kind: type[JMSException], sentence: str, do: Mistake
) -> None:
    scene = await scene_of(face, broker, connection)
    with pytest.raises(JMSException, match=sentence) as told:
        await do(scene)
    assert type(told.value) is kind
    await (await (await connection.create_session()).create_producer(B)).send("still here")
    assert not connection.is_closed


# -- client identifiers and subscriptions ------------------------------------------------------------------------------------------------------
async def test_a_client_identifier_is_set_once_first_and_not_where_the_factory_has_one(face: Face, broker: ListeningBroker) -> None:
    used = await face.opened(broker)
    await used.create_session()
    twice = await face.opened(broker)
    await face.set_client_id(twice, "c")
    configured, disabled = await face.opened(broker, configured_client_id="its"), await face.opened(broker, disable_set_client_id=True)
    for connection, sentence in (
        (used, "before the connection is used, and once"), (twice, "before the connection is used, and once"),
        (configured, "the connection factory has configured"), (disabled, "the connection factory has configured"),
    ):  # fmt: skip
        with pytest.raises(STATE, match=sentence):
            await face.set_client_id(connection, "other")
        await connection.close()
    empty = await face.opened(broker)
    with pytest.raises(InvalidClientIDException, match="cannot be empty"):
        await face.set_client_id(empty, "")
    await empty.close()


@pytest.mark.parametrize("how", ["in use by another connection", "in use by another account"])
async def test_the_second_holder_of_a_client_identifier_is_told_so(face: Face, broker: ListeningBroker, how: str) -> None:
    connection = await face.opened(broker)
    broker.refusal = f"client identifier 'c' is {how}"
    with pytest.raises(InvalidClientIDException, match=how):
        await face.opened(broker, configured_client_id="c")
    with pytest.raises(InvalidClientIDException, match=how):
        await face.set_client_id(connection, "c")


async def test_a_subscription_that_is_consumed_from_is_not_ended_and_has_one_consumer(face: Face, broker: ListeningBroker) -> None:
    async with face.connection(broker, configured_client_id="c") as connection:
        session = await connection.create_session()
        consumer = await session.create_durable_consumer(T, "d")
        with pytest.raises(STATE, match="close it before unsubscribing"):
            await session.unsubscribe("d")
        with pytest.raises(STATE, match="close that one first"):
            await session.create_durable_consumer(T, "d")
        await consumer.close()
        await session.unsubscribe("d")


# -- factories -----------------------------------------------------------------------------------------------------------------------------------
NEGATIVE = (
    "reconnect_interval", "socket_connect_timeout", "ping_interval", "ack_timeout", "async_send_completion_wait_timeout", "connection_flow_count",
    "connection_flow_limit", "optimize_acknowledge_timeout", "override_expiration", "queue_browser_retrieve_timeout",
)  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        *(({name: wrong}, f"{name} is .*must not be negative") for name in NEGATIVE for wrong in (-1, "5", True, float("nan"))),
        *(({name: 1e12}, f"{name} is .*at most 999999 seconds") for name in ("reconnect_interval", "socket_connect_timeout", "ping_interval")),
        ({"dups_ok_policy": DupsOkPolicy(on_topics=Batch(messages=1, timeout=float("inf")))}, "at most 999999 seconds"),
        ({"address_list_iterations": -2}, "but for -1, for ever"), ({"reconnect_attempts": -2}, "but for -1, for ever"),
        ({"address_list_behavior": "SOMEHOW"}, "PRIORITY, RANDOM"), ({"persistent_reliability": "safe"}, "best-effort, express"),
        ({"nonpersistent_reliability": "fast"}, "best-effort, express"), ({"override_delivery_mode": 3}, "NON_PERSISTENT, PERSISTENT"),
        ({"override_priority": "5"}, "from 0 to 9"), ({"override_priority": True}, "from 0 to 9"), ({"consumer_flow_threshold": "50"}, "100 percent"),
        ({"consumer_flow_limit": "5"}, "whole number"),
        ({"dups_ok_policy": DupsOkPolicy(on_queues=Batch())}, "on_queues is .* it needs messages"),
        ({"dups_ok_policy": DupsOkPolicy(on_topics=Batch(percent=101))}, "on_topics is .* at most 100 percent"),
        ({"dups_ok_policy": DupsOkPolicy(on_topics=Batch(messages=-1))}, "must not be negative"),
        ({"dups_ok_policy": DupsOkPolicy(on_topics=Batch(messages=1, timeout=-1))}, "must not be negative"),
        ({"address_list": ""}, "no address"), ({"address_list": []}, "is empty"), ({"address_list": "http://a:1"}, "write stomp://HOST:PORT"),
    ],
)  # fmt: skip
async def test_a_factory_that_cannot_be_is_refused_before_anybody_is_connected_to(
    face: Face, broker: ListeningBroker, settings: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(JMSException, match=sentence):
        await face.opened(broker, **settings)
    assert broker.connects.empty()


async def test_there_are_three_profiles(face: Face) -> None:
    with pytest.raises(JMSException, match="sun, activemq, websphere"):
        face.module.ConnectionFactory.of_profile("oracle")
    assert [face.module.ConnectionFactory.of_profile(each).consumer_flow_threshold for each in Profile] == [50.0] * 3
