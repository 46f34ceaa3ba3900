"""How far ahead a consumer is delivered: the flow threshold (checklist item 34), what the broker says of messages and octets, and that nobody waits for more
with what it must acknowledge first."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core.client import AcknowledgeMode, Queue, ResourceAllocationException, Topic
from broker_core.client.machine import ConsumerMachine, Subscription
from broker_core.client.machine.acknowledging import acknowledging
from broker_core.client.settings import PROFILES, Batch, DupsOkPolicy, Profile, Settings
from tests.client.broker import Broker

AUTO, CLIENT, DUPS_OK, INDIVIDUAL, NO_ACKNOWLEDGE = (
    AcknowledgeMode.AUTO, AcknowledgeMode.CLIENT, AcknowledgeMode.DUPS_OK, AcknowledgeMode.INDIVIDUAL, AcknowledgeMode.NO_ACKNOWLEDGE,
)  # fmt: skip
TRANSACTED = AcknowledgeMode.SESSION_TRANSACTED
OF_ITSELF = (AUTO, DUPS_OK, TRANSACTED)
ACTIVEMQ = PROFILES[Profile.ACTIVEMQ]


def said(mode: AcknowledgeMode, destination: Queue | Topic = Queue("a"), **settings: Any) -> str | None:  # noqa: B008  # a value
    broker = Broker(**settings)
    broker.consumer(broker.session(mode), destination)
    return broker.subscribed.headers.get("consumer-flow-threshold")


@pytest.mark.parametrize("mode", OF_ITSELF)
def test_it_is_half_of_the_limit_unless_the_factory_says_otherwise(mode: AcknowledgeMode) -> None:
    assert said(mode) == "50"
    assert said(mode, consumer_flow_threshold=80) == "80"
    assert said(mode, consumer_flow_threshold=0.5) == "1"
    assert said(mode, consumer_flow_threshold=100) is None


@pytest.mark.parametrize("mode", [CLIENT, INDIVIDUAL, NO_ACKNOWLEDGE])
def test_where_the_application_acknowledges_each_acknowledgement_makes_room_at_once(mode: AcknowledgeMode) -> None:
    assert said(mode) is None


def test_it_is_never_less_than_what_a_batch_may_leave_unacknowledged() -> None:
    assert said(AUTO, consumer_flow_threshold=25, consumer_flow_limit=100, optimize_acknowledge=True) == "64"
    assert said(DUPS_OK, consumer_flow_threshold=25, consumer_flow_limit=20) == "45"
    assert said(DUPS_OK, Topic("t"), **(ACTIVEMQ | {"consumer_flow_threshold": 10, "consumer_flow_limit": 20})) == "45"


@pytest.mark.parametrize("mode", OF_ITSELF)
@pytest.mark.parametrize("on_topic", [False, True])
@pytest.mark.parametrize("optimized", [False, True])
@pytest.mark.parametrize("policy", [DupsOkPolicy(), ACTIVEMQ["dups_ok_policy"], DupsOkPolicy(Batch(messages=3), Batch(percent=90))])
def test_whatever_is_set_what_remains_below_a_batch_is_within_it(
    mode: AcknowledgeMode, on_topic: bool, optimized: bool, policy: DupsOkPolicy
) -> None:
    for threshold in (1, 10, 33.3, 50, 65, 99):
        settings = Settings(consumer_flow_threshold=threshold, optimize_acknowledge=optimized, dups_ok_policy=policy)
        for prefetch in (*range(1, 130), 1000, 32767, 65535):
            plan = acknowledging(mode, on_topic, prefetch, settings)
            assert 1 <= plan.threshold <= 100
            assert max(plan.messages - 1, 0) <= prefetch * plan.threshold // 100 < prefetch or plan.threshold == 100, (threshold, prefetch, plan)


# -- a destination that allows less ---------------------------------------------------------------------------------------------------------
def joins(broker: Broker, mode: AcknowledgeMode, destination: Queue | Topic, allowed: str) -> ConsumerMachine:
    """The broker has the consumer, with less than it asked for."""
    consumer, confirmation = broker.session(mode).create_consumer(Subscription(destination=destination))
    says(broker, allowed)
    assert confirmation.is_settled and confirmation.error is None
    return consumer


def says(broker: Broker, allowed: str) -> None:
    (subscribe,) = broker.hears()
    broker.says(f"RECEIPT\nreceipt-id:{subscribe.receipt}\nprefetch-count:{allowed}\n\n\0".encode())


@pytest.mark.parametrize(
    ("mode", "destination", "settings", "allowed", "batch"),
    [
        (AUTO, Queue("a"), {"optimize_acknowledge": True}, 20, 13), (DUPS_OK, Topic("t"), ACTIVEMQ, 20, 10),
        (DUPS_OK, Queue("a"), {}, 40, 10), (DUPS_OK, Queue("a"), {}, 12, 7), (DUPS_OK, Queue("a"), {}, 1, 1),
    ],
)  # fmt: skip
def test_percentages_are_of_what_the_destination_allows(
    mode: AcknowledgeMode, destination: Queue | Topic, settings: dict[str, Any], allowed: int, batch: int
) -> None:
    broker = Broker(**settings)
    consumer = joins(broker, mode, destination, str(allowed))
    assert consumer.prefetch == allowed
    broker.consume(consumer, batch - 1)
    assert broker.heard() == []
    broker.consume(consumer)
    assert [line.split(".")[1].rstrip("?") for line in broker.heard()] == [str(batch)]


def test_who_holds_as_much_as_the_destination_allows_is_told_so() -> None:
    broker = Broker()
    consumer = joins(broker, CLIENT, Queue("a"), "2")
    broker.consume(consumer, 2)
    with pytest.raises(ResourceAllocationException, match="acknowledge some"):
        consumer.receive(broker.now, 0)


@pytest.mark.parametrize("mode", [CLIENT, INDIVIDUAL])
def test_who_gets_more_than_the_destination_allowed_knows_that_it_allows_more_by_now(mode: AcknowledgeMode) -> None:
    broker = Broker(consumer_flow_limit=5)
    consumer = joins(broker, mode, Queue("a"), "2")
    broker.consume(consumer, 3)
    assert consumer.receive(broker.now, 0) is None
    broker.consume(consumer, 2)
    with pytest.raises(ResourceAllocationException, match="holds 5 messages"):
        consumer.receive(broker.now, 0)


def test_what_waits_for_the_application_counts_among_what_came() -> None:
    broker = Broker(consumer_flow_limit=5)
    consumer = joins(broker, CLIENT, Queue("a"), "2")
    broker.delivers(consumer, 3)
    message, _ = broker.receive(consumer)
    consumer.session.acknowledge(message.delivery)
    for _ in range(2):
        broker.receive(consumer)
    assert consumer.receive(broker.now, 0) is None


def test_who_gets_no_more_than_the_destination_allows_stays_bound_however_often_it_acknowledges() -> None:
    broker = Broker(consumer_flow_limit=5)
    consumer = joins(broker, CLIENT, Queue("a"), "2")
    for _ in range(3):
        message = broker.consume(consumer, 2)[1]
        with pytest.raises(ResourceAllocationException, match="holds 2 messages"):
            consumer.receive(broker.now, 0)
        consumer.session.acknowledge(message.delivery)


# -- and octets ---------------------------------------------------------------------------------------------------------------------------
def bounded(mode: AcknowledgeMode, octets: int, **settings: Any) -> tuple[Broker, ConsumerMachine]:
    """A consumer on a topic to which the broker sends no more while so many octets are not acknowledged."""
    broker = Broker(**(ACTIVEMQ | settings))
    consumer, _ = broker.session(mode).create_consumer(Subscription(destination=Topic("t")))
    (subscribe,) = broker.hears()
    broker.says(f"RECEIPT\nreceipt-id:{subscribe.receipt}\nprefetch-count:32767\nprefetch-octets:{octets}\n\n\0".encode())
    return broker, consumer


@pytest.mark.parametrize("mode", [DUPS_OK, TRANSACTED])
def test_a_batch_is_acknowledged_when_it_has_half_of_the_octets_that_the_broker_says(mode: AcknowledgeMode) -> None:
    broker, consumer = bounded(mode, 65_536)
    for _ in range(3):
        for _ in range(3):
            broker.delivers(consumer, body=b"x" * 10_000)
            broker.receive(consumer)
        assert broker.heard() == []
        broker.delivers(consumer, body=b"x" * 10_000)
        broker.receive(consumer)
        assert broker.heard()[-1].startswith("ACK ")


@pytest.mark.parametrize("mode", [CLIENT, INDIVIDUAL])
def test_who_holds_as_many_octets_as_the_broker_lets_be_outstanding_is_told_so_until_he_acknowledges(mode: AcknowledgeMode) -> None:
    broker, consumer = bounded(mode, 65_536)
    for _ in range(6):
        assert consumer.receive(broker.now, 0) is None  # there is room: more may come
        broker.delivers(consumer, body=b"x" * 10_240)
        message, _ = broker.receive(consumer)
    with pytest.raises(ResourceAllocationException, match="beyond 65536: acknowledge some"):
        consumer.receive(broker.now, 0)
    consumer.session.acknowledge(message.delivery)
    assert consumer.octets == (0 if mode is CLIENT else 5 * (10_240 + len("destination:/topic/t")))
    assert consumer.receive(broker.now, 0) is None


def test_what_the_broker_writes_around_a_message_does_not_count() -> None:
    broker, consumer = bounded(CLIENT, 65_536)
    broker.delivers(consumer, 1_000, body=b"x" * 41)
    for _ in range(1_000):
        broker.receive(consumer)
    assert consumer.octets == 1_000 * len("destination:/topic/t" + "x" * 41)  # nearly 200,000 came
    assert consumer.receive(broker.now, 0) is None


def test_a_broker_that_does_not_say_it_is_taken_for_one_with_sixteen_mebibytes() -> None:
    broker = Broker()
    consumer = broker.consumer(broker.session(CLIENT))
    for _ in range(15):
        broker.delivers(consumer, body=b"x" * (1 << 20))
        broker.receive(consumer)
    with pytest.raises(ResourceAllocationException, match="beyond 16777216"):
        consumer.receive(broker.now, 0)


def test_on_a_new_connection_the_factorys_limit_is_asked_for_again() -> None:
    broker = Broker(reconnect_enabled=True)
    consumer = joins(broker, CLIENT, Queue("a"), "2")
    broker.loses_the_connection()
    broker.client.data_to_send()
    broker.lets_in()
    says(broker, "9")
    assert consumer.prefetch == 9


def test_and_its_octets_are_those_that_the_new_broker_says() -> None:
    broker, consumer = bounded(CLIENT, 65_536, reconnect_enabled=True)
    broker.consume(consumer)
    broker.loses_the_connection()
    broker.lets_in()
    broker.confirms()  # as one that says nothing
    assert (consumer.octets, consumer.octets_max) == (0, 16 << 20)


@pytest.mark.parametrize("nonsense", ["", "-3", "many", "\u0663"])
def test_what_makes_no_sense_changes_nothing(nonsense: str) -> None:
    assert joins(Broker(), AUTO, Queue("a"), nonsense).prefetch == 1000
