"""How much consumers hold: metering, and the limits of a consumer and of a connection (checklist items 84, 85)."""

from __future__ import annotations

import pytest

from broker_core.client import AcknowledgeMode, ResourceAllocationException, TextMessage
from broker_core.client.machine import Phase
from tests.client.broker import INSTANT, Broker

CLIENT, NO_ACKNOWLEDGE = AcknowledgeMode.CLIENT, AcknowledgeMode.NO_ACKNOWLEDGE


def test_a_receive_that_could_only_wait_for_ever_says_why() -> None:
    broker = Broker(consumer_flow_limit=3)
    session = broker.session(CLIENT)
    consumer = broker.consumer(session)
    message = broker.consume(consumer, 3)[0]
    with pytest.raises(ResourceAllocationException, match="acknowledge some"):
        consumer.receive(broker.now, INSTANT)
    session.acknowledge(message.delivery)
    assert consumer.receive(broker.now, INSTANT) is None


def portions(broker: Broker) -> list[int]:
    """How many of 250 messages that come at once the consumer has whenever control messages have their turn, and at the end."""
    consumer = broker.consumer(broker.session(NO_ACKNOWLEDGE))
    broker.client.receive_data(b"".join([broker.message(consumer) for _ in range(250)]), broker.now)
    taken = [len(consumer.buffer)]
    while broker.client.has_more:
        broker.client.proceed(broker.now)
        taken.append(len(consumer.buffer))
    return taken


def test_control_messages_have_their_turn_after_a_hundred_payload_messages() -> None:
    assert portions(Broker()) == [100, 200, 250]


@pytest.mark.parametrize(("count", "expected"), [(0, [250]), (200, [200, 250])])
def test_the_metered_count_is_the_factorys_and_0_turns_it_off(count: int, expected: list[int]) -> None:
    assert portions(Broker(connection_flow_count=count)) == expected


def test_beyond_the_connections_flow_limit_nothing_is_read_until_half_of_it_is_received() -> None:
    broker = Broker(connection_flow_limit_enabled=True, connection_flow_limit=10)
    session = broker.session(CLIENT)
    first, second = broker.consumer(session, "a"), broker.consumer(session, "b")
    broker.delivers(first, 6)
    broker.delivers(second, 3)
    assert not broker.client.wants_pause
    broker.delivers(second, 1)
    assert broker.client.wants_pause
    for _ in range(4):
        broker.receive(first)
    assert broker.client.wants_pause
    broker.receive(second)
    assert not broker.client.wants_pause


def test_the_limit_of_the_connection_is_a_thousand_messages_if_nothing_else_is_said() -> None:
    broker = Broker(connection_flow_limit_enabled=True)
    consumer = broker.consumer(broker.session(CLIENT))
    broker.delivers(consumer, 999)
    assert not broker.client.wants_pause
    broker.delivers(consumer, 1)
    assert broker.client.wants_pause


def test_the_limit_of_the_connection_holds_only_if_it_is_enabled() -> None:
    broker = Broker(connection_flow_limit=10)
    broker.delivers(broker.consumer(broker.session(CLIENT)), 30)
    assert not broker.client.wants_pause


def test_somebody_who_waits_for_an_answer_is_not_kept_from_it_by_messages_in_front_of_it() -> None:
    broker = Broker(connection_flow_limit_enabled=True, connection_flow_limit=10)
    session = broker.session(CLIENT)
    broker.delivers(broker.consumer(session), 10)
    assert broker.client.wants_pause
    broker.producer(session).send(TextMessage("x"), INSTANT)
    assert not broker.client.wants_pause
    broker.confirms()
    assert broker.client.wants_pause


def test_a_consumer_without_acknowledgements_holds_its_flow_limit_and_no_more_is_read() -> None:
    broker = Broker(consumer_flow_limit=10, consumer_flow_threshold=30)
    session = broker.session(NO_ACKNOWLEDGE)
    consumer = broker.consumer(session)
    broker.delivers(consumer, 12)
    assert broker.client.wants_pause
    for _ in range(8):
        broker.receive(consumer)
    assert broker.client.wants_pause
    broker.receive(consumer)
    assert not broker.client.wants_pause
    broker.delivers(consumer, 10)
    assert broker.client.wants_pause
    session.close_consumer(consumer)
    broker.confirms()
    assert not broker.client.wants_pause


def test_the_silence_of_a_broker_that_is_not_read_is_not_its_fault() -> None:
    broker = Broker(consumer_flow_limit=2, connected=False)
    broker.lets_in("1000,0")
    consumer = broker.consumer(broker.session(NO_ACKNOWLEDGE))
    broker.delivers(consumer, 5)
    broker.passes(600_000)
    assert broker.client.phase is Phase.OPEN
