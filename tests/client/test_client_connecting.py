"""CONNECT, heart-beats, ERROR, the loss of the connection and what comes back after it."""

from __future__ import annotations

import pytest

from broker_core.client import (
    AcknowledgeMode,
    IllegalStateException,
    InvalidClientIDException,
    InvalidDestinationException,
    JMSException,
    JMSSecurityException,
    Queue,
    ResourceAllocationException,
    TextMessage,
    Topic,
    TransactionRolledBackException,
)
from broker_core.client.machine import NEVER, Phase, Subscription
from broker_core.client.machine.reader import Frame
from broker_core.client.machine.refused import EXCEPTIONS, refused
from broker_core.engine.refusal import Refusal
from broker_core.stomp.refusals import REFUSALS
from tests.client.broker import INSTANT, Broker, Cut

AUTO, CLIENT, NO_ACKNOWLEDGE = AcknowledgeMode.AUTO, AcknowledgeMode.CLIENT, AcknowledgeMode.NO_ACKNOWLEDGE


# -- CONNECT --------------------------------------------------------------------------------------------------------------------------
def test_connect_says_who_this_is_and_how_often_it_will_be_heard() -> None:
    connect = Broker(client_id="shop:1", ping_interval=12.5, connected=False).lets_in()
    assert connect.command == "CONNECT"
    assert connect.headers == {
        "accept-version": "1.2", "host": "broker", "login": "guest", "passcode": "secret", "heart-beat": "12500,12500", "client-id": "shop:1",
    }  # fmt: skip


@pytest.mark.parametrize(("client_id", "shared", "says"), [("till", True, "true"), ("till", False, None), ("", True, None)])
def test_connect_says_that_others_may_have_its_client_identifier_if_the_factory_allows_it(client_id: str, shared: bool, says: str | None) -> None:
    connect = Broker(client_id=client_id, enable_shared_client_id=shared, connected=False).lets_in()
    assert connect.headers.get("client-id-shared") == says


def test_it_is_open_when_the_broker_says_so(cut: Cut) -> None:
    broker = Broker(cut=cut, connected=False)
    assert broker.client.phase is Phase.WAITING
    broker.lets_in()
    assert broker.client.phase is Phase.OPEN
    assert broker.client.opened.is_settled and broker.client.opened.error is None


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("login or passcode is wrong, or the account may not connect from here", JMSSecurityException),
        ("too many logins have failed; try again in 3 s", JMSSecurityException),
        ("client identifier 'shop' is in use by another connection", InvalidClientIDException),
        ("the broker has 5 connections and takes no more", ResourceAllocationException),
        ("the broker is shutting down", JMSException),
    ],
)
def test_who_is_not_let_in_learns_why(message: str, kind: type[JMSException]) -> None:
    broker = Broker(connected=False)
    broker.client.connect("broker", broker.now)
    broker.refuses(message, message)
    assert broker.client.phase is Phase.WAITING  # another address may be better
    trouble = broker.client.trouble
    assert type(trouble) is kind and message in str(trouble)
    broker.client.give_up(trouble)
    with pytest.raises(kind):
        broker.client.opened.check()


# -- heart-beats ----------------------------------------------------------------------------------------------------------------------
def test_a_silent_client_says_that_it_is_alive_and_one_that_writes_need_not() -> None:
    broker = Broker(connected=False)
    broker.lets_in("1000,20000")  # it wants to hear us every 20 s: with ours of 30 s that is every 30
    broker.passes(22_499)
    assert broker.client.data_to_send() == b""
    broker.passes(1)
    assert broker.client.data_to_send() == b"\n"
    broker.client.wrote(broker.now)
    broker.passes(20_000)
    assert broker.client.data_to_send() == b""


def test_a_broker_that_is_silent_for_two_intervals_is_lost() -> None:
    broker = Broker(connected=False)
    broker.lets_in("1000,0")
    broker.passes(59_999)
    assert broker.client.phase is Phase.OPEN
    broker.says(b"\n")
    broker.passes(59_999)
    assert broker.client.phase is Phase.OPEN
    broker.passes(1)
    assert broker.client.phase is Phase.CLOSED
    assert "said nothing for 60 s" in str(broker.client.failure)


def test_it_is_not_waited_for_when_one_leaves() -> None:
    broker = Broker(connected=False)
    broker.lets_in("1000,20000")
    leaving = broker.client.close()
    assert leaving is not None and b"DISCONNECT" in broker.client.data_to_send()
    broker.passes(22_500)
    assert broker.client.data_to_send() == b"\n", "nor is the broker to believe that nobody is there"
    assert broker.client.next_deadline() > broker.now, "and nobody looks all the time"
    broker.passes(37_500)
    assert broker.client.phase is Phase.CLOSED
    with pytest.raises(JMSException, match="said nothing for 60 s"):
        leaving.check()


@pytest.mark.parametrize(("ping", "broker_says"), [(0, "1000,1000"), (30, "0,0")])
def test_who_wants_no_heart_beats_gets_none(ping: float, broker_says: str) -> None:
    broker = Broker(ping_interval=ping, connected=False)
    broker.lets_in(broker_says)
    assert broker.client.next_deadline() == NEVER


# -- ERROR ----------------------------------------------------------------------------------------------------------------------------
def test_every_refusal_of_the_broker_has_its_exception() -> None:
    assert set(EXCEPTIONS) == set(Refusal) == set(REFUSALS)
    for refusal, message in REFUSALS.items():
        assert type(refused(Frame("ERROR", {"message": message}, b"why"))) is EXCEPTIONS[refusal]


def test_the_operation_that_is_refused_learns_why_and_the_others_that_it_is_over(cut: Cut) -> None:
    broker = Broker(cut=cut)
    session = broker.session()
    first = broker.producer(session).send(TextMessage("x"), INSTANT)
    second = broker.producer(session).send(TextMessage("y"), INSTANT)
    assert first is not None and second is not None
    broker.refuses("no such destination", "told at length", broker.hears()[0].receipt)
    with pytest.raises(InvalidDestinationException, match="no such destination: told at length") as why:
        first.check()
    assert why.value.error_code == "no such destination"
    with pytest.raises(JMSException, match="may or may not have been stored"):
        second.check()
    assert broker.client.phase is Phase.CLOSED
    with pytest.raises(InvalidDestinationException):
        session.check()


def test_an_exception_raised_twice_is_two_exceptions() -> None:
    broker = Broker()
    broker.loses_the_connection()
    raised = []
    for _ in range(2):
        with pytest.raises(JMSException) as why:
            broker.client.check()
        raised.append(why.value)
    assert raised[0] is not raised[1] and str(raised[0]) == str(raised[1])


@pytest.mark.parametrize("nonsense", [b"HELLO\n\n\0", b"MESSAGE\nsubscription:1\ncontent-length:1\n\nxy\0", b"\0", b"RECEIPT\nreceipt-id\n\n\0"])
def test_a_broker_that_cannot_be_understood_is_left(nonsense: bytes, cut: Cut) -> None:
    broker = Broker(cut=cut)
    broker.says(nonsense)
    assert broker.client.phase is Phase.CLOSED
    assert "cannot be understood" in str(broker.client.failure)


# -- losing the connection ------------------------------------------------------------------------------------------------------------
def test_without_reconnecting_a_lost_connection_has_failed() -> None:
    broker = Broker()
    session = broker.session()
    broker.loses_the_connection()
    assert broker.client.phase is Phase.CLOSED
    assert set(broker.client.take_woken()) >= {broker.client, session}
    with pytest.raises(JMSException, match="the cable is cut"):
        session.check()


def test_with_reconnecting_its_consumers_are_there_again_as_they_were() -> None:
    broker = Broker(reconnect_enabled=True, client_id="c")
    session = broker.session(CLIENT)
    broker.consumer(session, "a", selector="x = 1")
    broker.consumer(session, Topic("t"), name="durable", durable=True)
    closed = broker.consumer(session, "b")
    session.close_consumer(closed)
    broker.hears()
    broker.loses_the_connection()
    assert broker.client.phase is Phase.WAITING
    broker.lets_in()
    queue, topic = broker.hears()
    assert (queue.headers["destination"], queue.headers["selector"], queue.headers["id"], queue.headers["ack"]) == ("/queue/a", "x = 1", "2", "client")
    assert (topic.headers["durable-subscription-name"], topic.headers["id"]) == ("durable", "3")


def test_a_consumer_that_the_broker_refuses_to_open_again_fails_alone() -> None:
    broker = Broker(reconnect_enabled=True, client_id="c")
    session = broker.session(CLIENT)
    refused = broker.consumer(session, Topic("t"), name="durable", durable=True)
    other = broker.consumer(session, "a")
    broker.loses_the_connection()
    broker.lets_in()
    broker.refuses("subscription in use", "somebody else has it", broker.hears()[0].receipt)
    assert broker.client.phase is Phase.WAITING
    broker.lets_in()
    assert broker.heard() == ["SUBSCRIBE /queue/a?"]
    with pytest.raises(IllegalStateException, match="somebody else has it"):
        refused.check_open()
    other.check_open()
    assert session.close_consumer(refused) is None


def test_what_waited_to_be_received_comes_again_and_is_forgotten_here() -> None:
    broker = Broker(reconnect_enabled=True)
    consumer = broker.consumer(broker.session())
    broker.delivers(consumer, 3)
    broker.loses_the_connection()
    broker.lets_in()
    assert consumer.receive(broker.now, INSTANT) is None
    broker.delivers(consumer, redelivered=True)
    message, _ = broker.receive(consumer)
    assert message.jms_redelivered and message.properties["JMSXDeliveryCount"] == 2


def test_what_the_broker_has_acknowledged_itself_is_kept_as_it_does_not_come_again() -> None:
    broker = Broker(reconnect_enabled=True)
    consumer = broker.consumer(broker.session(NO_ACKNOWLEDGE))
    broker.delivers(consumer, 3)
    broker.loses_the_connection()
    broker.lets_in()
    assert [broker.receive(consumer)[0].body for _ in range(3)] == ["hello"] * 3


def test_what_was_received_before_is_not_acknowledged_on_the_new_connection() -> None:
    broker = Broker(reconnect_enabled=True)
    session = broker.session(CLIENT)
    consumer = broker.consumer(session)
    old = broker.consume(consumer, 2)[1]
    broker.loses_the_connection()
    broker.lets_in()
    new = broker.consume(consumer)[0]
    broker.hears()
    with pytest.raises(JMSException, match="were not acknowledged and will be delivered again"):
        session.acknowledge(old.delivery)
    assert broker.heard() == ["ACK 2.1?"]  # the new one; of the old ones only once it is told that they were lost
    assert session.acknowledge(new.delivery) is None


@pytest.mark.parametrize("failed", [False, True])
@pytest.mark.parametrize("mode", [AUTO, AcknowledgeMode.DUPS_OK])
def test_what_a_listener_has_in_its_hands_is_not_acknowledged_on_the_new_connection(mode: AcknowledgeMode, failed: bool) -> None:
    broker = Broker(reconnect_enabled=True, consumer_flow_limit=1)
    session = broker.session(mode)
    consumer = broker.consumer(session)
    broker.delivers(consumer)
    assert consumer.next_for_listener(broker.now, INSTANT) is not None
    broker.loses_the_connection()
    broker.lets_in()
    broker.delivers(consumer)  # with the same id: numbers begin anew
    assert session.handled("LookupError" if failed else None, broker.now) is None
    assert broker.heard() == ["SUBSCRIBE /queue/a?"]


def test_a_consumer_that_was_never_confirmed_does_not_come_back() -> None:
    broker = Broker(reconnect_enabled=True)
    _, confirmation = broker.session().create_consumer(Subscription(destination=Queue("a")))
    broker.loses_the_connection()
    broker.lets_in()
    assert broker.hears() == []
    with pytest.raises(JMSException, match="may or may not have been made"):
        confirmation.check()


def test_what_is_asked_while_there_is_no_connection_fails_and_is_not_said_later() -> None:
    broker = Broker(reconnect_enabled=True)
    session = broker.session()
    broker.loses_the_connection()
    confirmation = broker.producer(session).send(TextMessage("x"), INSTANT)
    assert confirmation is not None and confirmation.is_settled
    with pytest.raises(JMSException, match="no connection"):
        confirmation.check()
    assert broker.client.window.messages == 0
    broker.lets_in()
    assert broker.hears() == []


# -- closing --------------------------------------------------------------------------------------------------------------------------
def test_closing_acknowledges_what_is_acknowledged_lazily_and_leaves() -> None:
    broker = Broker()
    session = broker.session(AcknowledgeMode.DUPS_OK)
    broker.consume(broker.consumer(session), 3)
    confirmation = broker.client.close()
    frames = broker.hears()
    assert [frame.command for frame in frames] == ["ACK", "DISCONNECT"]
    assert confirmation is not None and broker.client.phase is Phase.LEAVING
    broker.confirms(frames[1])
    assert broker.client.phase is Phase.CLOSED and broker.client.failure is None
    with pytest.raises(IllegalStateException, match="the session is closed"):
        session.check()
    with pytest.raises(IllegalStateException, match="make another one"):
        broker.client.check()
    assert broker.client.close() is None


def test_closing_while_there_is_no_connection_waits_for_nothing() -> None:
    broker = Broker(reconnect_enabled=True)
    broker.loses_the_connection()
    assert broker.client.close() is None
    assert broker.client.phase is Phase.CLOSED


def test_a_transaction_that_the_broker_ended_ends_the_connection_with_its_reason() -> None:
    broker = Broker()
    broker.refuses("transaction timed out", "too long")
    with pytest.raises(TransactionRolledBackException, match="too long"):
        broker.client.check()
