"""Temporary destinations and browsers (JMS 6.2.2, 4.4.10)."""

from __future__ import annotations

import pytest

from broker_core.client import (
    AcknowledgeMode,
    IllegalStateException,
    InvalidDestinationException,
    InvalidSelectorException,
    JMSException,
    Queue,
    TemporaryQueue,
    TemporaryTopic,
    TextMessage,
    Topic,
)
from broker_core.client.faces.session import browsed
from broker_core.client.machine import BrowserMachine, ProducerMachine, SessionMachine, Subscription
from broker_core.client.settings import PROFILES, Profile
from tests.client.broker import INSTANT, Broker


def temporary(session: SessionMachine, kind: type[TemporaryQueue] = TemporaryQueue) -> TemporaryQueue:
    return session.connection.temporaries.create(kind, session.delete_temporary)


# -- temporary destinations -----------------------------------------------------------------------------------------------------------
def test_its_owner_says_the_short_name_and_is_called_by_the_full_one() -> None:
    broker = Broker()
    session = broker.session()
    queue, other = temporary(session), temporary(session)
    assert (queue.address, other.address) == ("/temp-queue/n-1-7.1", "/temp-queue/n-1-7.2")
    consumer = broker.consumer(session, queue)
    assert broker.subscribed.headers["destination"] == "/temp-queue/1"
    message = TextMessage("question")
    message.jms_reply_to = queue
    broker.producer(session).send(message, INSTANT)
    ProducerMachine(session, queue).send(TextMessage("to itself"), INSTANT)
    asked, self_sent = broker.hears()
    assert (asked.headers["reply-to"], self_sent.headers["destination"]) == ("/temp-queue/1", "/temp-queue/1")
    broker.delivers(consumer)  # with the destination as others write it
    assert broker.receive(consumer)[0].jms_destination == queue


def test_others_answer_to_the_full_name() -> None:
    broker = Broker()
    session = broker.session()
    broker.delivers(broker.consumer(session), lines="reply-to:/temp-queue/n-1-3.1\n")
    asked, _ = broker.receive(session.consumers[0])
    broker.hears()
    assert asked.jms_reply_to == TemporaryQueue("n-1-3.1")
    ProducerMachine(session, None).send(TextMessage("answer"), INSTANT, asked.jms_reply_to)
    assert broker.heard() == ["SEND /temp-queue/n-1-3.1?"]


def test_only_its_own_connection_consumes_from_it() -> None:
    session = Broker().session()
    with pytest.raises(InvalidDestinationException, match="belongs to another connection"):
        session.create_consumer(Subscription(destination=TemporaryQueue("n-1-3.1")))
    with pytest.raises(IllegalStateException, match="only that one can delete it"):
        TemporaryQueue("n-1-3.1").delete()


def test_a_deleted_one_is_of_no_use_and_one_in_use_is_not_deleted() -> None:
    broker = Broker()
    session = broker.session()
    queue = temporary(session)
    consumer = broker.consumer(session, queue)
    with pytest.raises(IllegalStateException, match="close it before deleting"):
        queue.delete()
    session.close_consumer(consumer)
    broker.hears()
    queue.delete()
    queue.delete()
    assert [frame.headers for frame in broker.hears()] == [{"temporary-destination": "/temp-queue/1"}]  # once, and no receipt is waited for
    for use in (
        lambda: session.create_consumer(Subscription(destination=queue)), lambda: ProducerMachine(session, queue).send(TextMessage("x"), INSTANT)
    ):  # fmt: skip
        with pytest.raises(InvalidDestinationException, match="was deleted"):
            use()


def test_it_lives_on_when_the_connection_comes_back_as_another_session() -> None:
    broker = Broker(reconnect_enabled=True)
    session = broker.session()
    queue = temporary(session)
    broker.consumer(session, queue)
    broker.loses_the_connection()
    broker.lets_in(session="n-2-9")
    assert broker.heard() == ["SUBSCRIBE /temp-queue/1?"]
    message = TextMessage("question")
    message.jms_reply_to = queue
    broker.producer(session).send(message, INSTANT)
    assert broker.hears()[0].headers["reply-to"] == "/temp-queue/1"
    assert temporary(session).name == "n-2-9.2"


def test_one_that_is_deleted_while_there_is_no_connection_is_not_made_again() -> None:
    broker = Broker(reconnect_enabled=True)
    queue = temporary(broker.session())
    broker.loses_the_connection()
    queue.delete()
    broker.lets_in(session="n-2-9")
    assert broker.heard() == []


def test_topics_are_the_same_and_never_durable() -> None:
    broker = Broker(client_id="c")
    session = broker.session()
    topic = session.connection.temporaries.create(TemporaryTopic, session.delete_temporary)
    broker.consumer(session, topic)
    assert broker.subscribed.headers["destination"] == "/temp-topic/1"
    with pytest.raises(InvalidDestinationException, match="a topic that stays"):
        session.create_consumer(Subscription(destination=topic, name="d", durable=True))


# -- browsers -------------------------------------------------------------------------------------------------------------------------
def browser(broker: Broker, session: SessionMachine | None = None, selector: str = "") -> BrowserMachine:
    made = BrowserMachine(session or broker.session(), browsed(Queue("a"), selector))
    (broker.subscribed,) = broker.hears()
    broker.confirms(broker.subscribed)
    return made


def show(broker: Broker, looking: BrowserMachine, *bodies: bytes, end: bool = True) -> None:
    for body in bodies:
        broker.delivers(looking._consumer, body=body)
    if end:
        number = looking._consumer.subscription
        broker.says(b"MESSAGE\nsubscription:%b\nmessage-id:0\nbrowser:end\ndestination:/queue/a\ncontent-length:0\n\n\0" % number)


def test_a_browser_shows_what_there_is_up_to_the_mark_at_the_end() -> None:
    broker = Broker()
    looking = browser(broker, selector="x = 1")
    assert {name: broker.subscribed.headers[name] for name in ("destination", "browser", "ack", "selector")} == {
        "destination": "/queue/a", "browser": "true", "ack": "auto", "selector": "x = 1",
    }  # fmt: skip
    assert looking.next(INSTANT) is None and not looking.is_through
    show(broker, looking, b"one", b"two")
    shown = [looking.next(INSTANT) for _ in range(2)]
    assert [message.body for message in shown if message] == ["one", "two"]
    assert looking.next(INSTANT) is None and looking.is_through
    looking.close()
    assert broker.heard() == ["UNSUBSCRIBE 2?"]


def test_what_is_shown_cannot_be_acknowledged_and_acknowledges_nothing_else() -> None:
    broker = Broker()
    session = broker.session(AcknowledgeMode.CLIENT)
    consumer = broker.consumer(session)
    broker.consume(consumer)
    looking = browser(broker, session)
    show(broker, looking, b"one")
    message = looking.next(INSTANT)
    assert message is not None
    message.acknowledge()
    assert broker.heard() == []


def test_a_look_that_the_connection_was_lost_under_is_over() -> None:
    broker = Broker(reconnect_enabled=True)
    looking = browser(broker)
    show(broker, looking, b"one", end=False)
    broker.loses_the_connection()
    broker.lets_in()
    assert broker.hears() == []
    shown = looking.next(INSTANT)
    assert shown is not None and shown.body == "one"
    with pytest.raises(JMSException, match="browse it again"):
        looking.next(INSTANT)
    assert looking.close() is None


def test_a_look_that_is_not_taken_further_stops_the_reading_at_its_prefetch() -> None:
    broker = Broker(**(PROFILES[Profile.ACTIVEMQ]))
    looking = browser(broker)
    show(broker, looking, *[b"x"] * 499, end=False)
    assert not broker.client.wants_pause
    show(broker, looking, b"x", end=False)
    assert broker.client.wants_pause
    looking.close()
    broker.confirms()
    assert not broker.client.wants_pause


def test_only_queues_are_browsed_and_selectors_are_checked() -> None:
    session = Broker().session()
    with pytest.raises(InvalidDestinationException, match="topics keep no messages"):
        BrowserMachine(session, browsed(Topic("a"), ""))
    with pytest.raises(InvalidSelectorException):
        BrowserMachine(session, browsed(Queue("a"), "x ="))


def test_a_durable_subscription_is_browsed_though_it_has_a_consumer_and_is_still_to_be_ended() -> None:
    broker = Broker(client_id="one")
    session = broker.session()
    consumer = broker.consumer(session, Topic("t"), name="d", durable=True)
    looking = BrowserMachine(session, browsed(Topic("t"), "", "d"))
    (asked,) = broker.hears()
    broker.confirms(asked)
    assert {name: asked.headers[name] for name in ("destination", "browser", "durable-subscription-name")} == {
        "destination": "/topic/t", "browser": "true", "durable-subscription-name": "d",
    }  # fmt: skip
    assert "client-id" not in asked.headers
    with pytest.raises(IllegalStateException, match="has a consumer"):
        session.unsubscribe("d")
    session.close_consumer(consumer)
    broker.confirms()
    session.unsubscribe("d")
    looking.close()


def test_the_subscription_of_another_client_is_named_with_that_client() -> None:
    broker = Broker()
    BrowserMachine(broker.session(), browsed(Topic("t"), "", "d", "two"))
    (asked,) = broker.hears()
    assert asked.headers["client-id"] == "two"
