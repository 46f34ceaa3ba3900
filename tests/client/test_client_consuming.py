"""Consumers: what they ask for, hand over and give back; closing (checklist items 74, 85, 92 to 97)."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core.client import (
    AcknowledgeMode,
    IllegalStateException,
    InvalidSelectorException,
    JMSException,
    PrefetchPolicy,
    Queue,
    Topic,
)
from broker_core.client.machine import Subscription
from broker_core.client.settings import PROFILES, Profile
from tests.client.broker import INSTANT, Broker

AUTO, CLIENT, DUPS_OK, INDIVIDUAL, NO_ACKNOWLEDGE, TRANSACTED = (
    AcknowledgeMode.AUTO, AcknowledgeMode.CLIENT, AcknowledgeMode.DUPS_OK, AcknowledgeMode.INDIVIDUAL, AcknowledgeMode.NO_ACKNOWLEDGE,
    AcknowledgeMode.SESSION_TRANSACTED,
)  # fmt: skip


# -- SUBSCRIBE ------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("what", "says"),
    [
        ({"destination": Queue("a")}, {"destination": "/queue/a"}),
        ({"destination": Queue("a"), "selector": "x = 'a:b'"}, {"destination": "/queue/a", "selector": "x = 'a:b'"}),
        ({"destination": Topic("t"), "no_local": True}, {"destination": "/topic/t", "no-local": "true"}),
        ({"destination": Topic("t.*.>")}, {"destination": "/topic/t.*.>"}),
        ({"destination": Topic("t"), "name": "d", "durable": True}, {"destination": "/topic/t", "durable-subscription-name": "d"}),
        (
            {"destination": Topic("t"), "name": "d", "durable": True, "shared": True},
            {"destination": "/topic/t", "durable-subscription-name": "d", "shared": "true"},
        ),
        ({"destination": Topic("t"), "name": "s", "shared": True}, {"destination": "/topic/t", "subscription-name": "s", "shared": "true"}),
        ({"destination": Queue("a"), "exclusive": True, "priority": -7}, {"destination": "/queue/a", "exclusive": "true", "consumer-priority": "-7"}),
    ],
)
def test_what_is_consumed_is_said_in_the_headers_of_the_contract(what: dict[str, Any], says: dict[str, str]) -> None:
    broker = Broker(client_id="c")
    broker.consumer(broker.session(), **what)
    headers = broker.subscribed.headers
    assert {name: headers[name] for name in headers if name not in ("id", "ack", "prefetch-count", "consumer-flow-threshold", "receipt")} == says


@pytest.mark.parametrize(
    ("profile", "settings", "queue", "topic", "durable"),
    [
        (Profile.SUN, {}, 1000, 1000, 1000),
        (Profile.ACTIVEMQ, {}, 1000, 32767, 100),
        (Profile.ACTIVEMQ, {"optimize_acknowledge": True}, 1000, 32767, 1000),
        (Profile.WEBSPHERE, {}, 1000, 1000, 1000),
        (Profile.ACTIVEMQ, {"consumer_flow_limit": 7}, 7, 7, 7),
        (Profile.SUN, {"consumer_flow_limit": 0}, 65535, 65535, 65535),
        (Profile.SUN, {"prefetch_policy": PrefetchPolicy(queue=1, topic=2, durable_topic=3)}, 1, 2, 3),
    ],
)
def test_how_much_the_broker_may_send_ahead_is_the_profiles(profile: Profile, settings: dict[str, Any], queue: int, topic: int, durable: int) -> None:
    broker = Broker(client_id="c", **(PROFILES[profile] | settings))
    session = broker.session()
    said = []
    for what in ({"destination": Queue("a")}, {"destination": Topic("t")}, {"destination": Topic("t"), "name": "d", "durable": True}):
        broker.consumer(session, **what)
        said.append(int(broker.subscribed.headers["prefetch-count"]))
    assert said == [queue, topic, durable]


def test_a_consumer_is_there_when_the_broker_says_so() -> None:
    broker = Broker()
    consumer, confirmation = broker.session().create_consumer(Subscription(destination=Queue("a")))
    assert not confirmation.is_settled
    broker.confirms()
    assert confirmation.is_settled and consumer.is_confirmed


# -- mistakes -------------------------------------------------------------------------------------------------------------------------
def test_a_selector_that_is_wrong_is_refused_here_and_not_by_the_broker_which_would_end_the_connection() -> None:
    broker = Broker()
    with pytest.raises(InvalidSelectorException, match="price >"):
        broker.session().create_consumer(Subscription(destination=Queue("a"), selector="price > "))
    assert broker.hears() == []


def test_a_durable_subscription_belongs_to_a_client_identifier() -> None:
    broker = Broker()
    durable = Subscription(destination=Topic("t"), name="d", durable=True)
    with pytest.raises(IllegalStateException, match=r"connection\.client_id"):
        broker.session().create_consumer(durable)
    with pytest.raises(IllegalStateException, match=r"connection\.client_id"):
        broker.session().create_consumer(Subscription(destination=Topic("t"), no_local=True))
    broker.session().create_consumer(Subscription(destination=Topic("t"), name="d", durable=True, shared=True))  # needs none
    assert broker.heard() == ["SUBSCRIBE /topic/t?"]


def test_a_durable_subscription_has_one_consumer_and_is_not_ended_under_it() -> None:
    broker = Broker(client_id="c")
    session = broker.session(CLIENT)
    consumer = broker.consumer(session, Topic("t"), name="d", durable=True)
    with pytest.raises(IllegalStateException, match="close that one first"):
        broker.session().create_consumer(Subscription(destination=Topic("t"), name="d", durable=True))
    with pytest.raises(IllegalStateException, match="close it before unsubscribing"):
        session.unsubscribe("d")
    message = broker.consume(consumer)[0]
    session.close_consumer(consumer)
    with pytest.raises(IllegalStateException, match="close it and acknowledge what it has received"):
        session.unsubscribe("d")
    session.acknowledge(message.delivery)
    broker.hears()
    assert not session.unsubscribe("d").is_settled
    (frame,) = broker.hears()
    assert (frame.command, frame.headers["durable-subscription-name"]) == ("UNSUBSCRIBE", "d") and "id" not in frame.headers


@pytest.mark.parametrize("priority", [1001, -1001, 0.5, "1"])
def test_a_consumers_priority_has_bounds(priority: Any) -> None:
    with pytest.raises(JMSException, match="-1000 to 1000"):
        Broker().session().create_consumer(Subscription(destination=Queue("a"), priority=priority))


@pytest.mark.parametrize("name", ["", "x" * 256])
def test_a_subscription_needs_a_name(name: str) -> None:
    session = Broker(client_id="c").session()
    for what in ({"durable": True}, {"shared": True}, {"durable": True, "shared": True}):
        with pytest.raises(IllegalStateException, match="1 to 255 characters"):
            session.create_consumer(Subscription(destination=Topic("t"), name=name, **what))
    with pytest.raises(IllegalStateException, match="1 to 255 characters"):
        session.unsubscribe(name)


def test_a_closed_session_does_nothing() -> None:
    broker = Broker()
    session = broker.session()
    producer, consumer = broker.producer(session), broker.consumer(session)
    session.close()
    for use in (
        lambda: session.create_consumer(Subscription(destination=Queue("a"))), producer.check, consumer.check_open, session.recover,
        lambda: broker.producer(session), lambda: session.unsubscribe("d"), session.commit,
    ):  # fmt: skip
        with pytest.raises(IllegalStateException, match=r"create another one with connection\.create_session"):
            use()
    producer.is_closed = True
    with pytest.raises(IllegalStateException, match="the producer is closed"):
        producer.check()


# -- recovering -----------------------------------------------------------------------------------------------------------------------
def test_recover_has_the_broker_deliver_again_what_was_not_acknowledged() -> None:
    broker = Broker()
    session = broker.session(CLIENT)
    first, second = broker.consumer(session, "a"), broker.consumer(session, "b")
    acknowledged = broker.consume(first, 2)[1]
    session.acknowledge(acknowledged.delivery)
    broker.hears()
    broker.consume(first, 2)
    broker.consume(second, 1)
    confirmation = session.recover()
    assert confirmation is not None and not confirmation.is_settled
    assert broker.heard() == ["NACK 2.4", "NACK 3.1?"]
    assert session.acknowledge(acknowledged.delivery) is None
    assert session.recover() is None


def test_recover_of_an_individual_session_names_each_message() -> None:
    broker = Broker()
    session = broker.session(INDIVIDUAL)
    messages = broker.consume(broker.consumer(session), 3)
    session.acknowledge(messages[1].delivery)
    broker.hears()
    session.recover()
    assert broker.heard() == ["NACK 2.1", "NACK 2.3?"]


def test_recover_of_dups_ok_gives_back_what_waits_to_be_acknowledged() -> None:
    broker = Broker()
    session = broker.session(DUPS_OK)
    broker.consume(broker.consumer(session), 3)
    session.recover()
    assert broker.heard() == ["NACK 2.3?"]
    broker.passes(60_000)
    assert broker.heard() == []


def test_recover_where_there_is_nothing_to_recover() -> None:
    broker = Broker()
    session = broker.session(AUTO)
    broker.consume(broker.consumer(session))
    broker.hears()
    assert session.recover() is None
    with pytest.raises(IllegalStateException, match="roll back instead"):
        broker.session(TRANSACTED).recover()
    with pytest.raises(IllegalStateException, match="the broker has acknowledged what it sent"):
        broker.session(NO_ACKNOWLEDGE).recover()


# -- closing --------------------------------------------------------------------------------------------------------------------------
def test_closing_a_consumer_waits_until_the_broker_has_back_what_was_not_received() -> None:
    broker = Broker()
    session = broker.session(AUTO)
    consumer = broker.consumer(session)
    broker.delivers(consumer, 3)
    confirmation = session.close_consumer(consumer)
    assert confirmation is not None
    assert broker.heard() == ["UNSUBSCRIBE 2?"]
    broker.delivers(consumer)  # it was on its way
    assert consumer.receive(broker.now, INSTANT) is None
    assert consumer.is_over and broker.client.held == 0
    assert session.close_consumer(consumer) is None


def test_what_a_closed_consumer_handed_over_can_be_acknowledged_as_long_as_it_is_not() -> None:
    broker = Broker()
    session = broker.session(CLIENT)
    consumer = broker.consumer(session)
    message = broker.consume(consumer, 2)[0]
    broker.delivers(consumer, 3)
    assert session.close_consumer(consumer) is None
    assert broker.heard() == []
    session.acknowledge(message.delivery)
    assert broker.heard() == ["ACK 2.2?", "UNSUBSCRIBE 2"]


def test_what_comes_for_a_closed_consumer_meanwhile_is_not_held() -> None:
    broker = Broker()
    session = broker.session(CLIENT)
    consumer = broker.consumer(session)
    broker.consume(consumer)
    session.close_consumer(consumer)
    broker.delivers(consumer, 3)
    assert broker.client.held == 0 and not consumer.buffer


@pytest.mark.parametrize("ends", ["recover", "close"])
def test_or_until_it_is_given_back(ends: str) -> None:
    broker = Broker()
    session = broker.session(CLIENT)
    consumer = broker.consumer(session)
    broker.consume(consumer, 2)
    session.close_consumer(consumer)
    getattr(session, ends)()
    assert broker.heard() == (["NACK 2.2?", "UNSUBSCRIBE 2"] if ends == "recover" else ["UNSUBSCRIBE 2?"])


def test_a_consumer_that_acknowledges_lazily_does_so_before_it_is_closed() -> None:
    broker = Broker()
    session = broker.session(DUPS_OK)
    consumer = broker.consumer(session)
    broker.consume(consumer, 3)
    session.close_consumer(consumer)
    assert broker.heard() == ["ACK 2.3", "UNSUBSCRIBE 2?"]
    broker.passes(60_000)
    assert broker.heard() == []


def test_closing_a_session_closes_its_consumers_and_waits_once() -> None:
    broker = Broker()
    session = broker.session(DUPS_OK)
    broker.consume(broker.consumer(session, "a"), 2)
    broker.consumer(session, "b")
    confirmation = session.close()
    assert confirmation is not None
    assert broker.heard() == ["ACK 2.2", "UNSUBSCRIBE 2", "UNSUBSCRIBE 3?"]
    assert broker.client.sessions == {}


# -- what is told of a message --------------------------------------------------------------------------------------------------------
def test_the_factory_can_have_the_runtime_say_when_a_message_was_received_and_in_which_transaction() -> None:
    broker = Broker(set_jmsx_rcv_timestamp=True, set_jmsx_consumer_txid=True)
    properties = broker.consume(broker.consumer(broker.session(TRANSACTED)))[0].properties
    assert (properties["JMSXRcvTimestamp"], properties["JMSXConsumerTXID"]) == (INSTANT, "1t1")
    properties = broker.consume(broker.consumer(broker.session(AUTO)))[0].properties
    assert "JMSXConsumerTXID" not in properties
