"""Listeners: when their messages are acknowledged, and what becomes of those that they fail with (checklist items 128, 134)."""

from __future__ import annotations

import pytest

from broker_core.client import AcknowledgeMode
from broker_core.client.failures import in_words
from tests.client.broker import INSTANT, Broker

AUTO, CLIENT, DUPS_OK, INDIVIDUAL, NO_ACKNOWLEDGE, TRANSACTED = (
    AcknowledgeMode.AUTO, AcknowledgeMode.CLIENT, AcknowledgeMode.DUPS_OK, AcknowledgeMode.INDIVIDUAL, AcknowledgeMode.NO_ACKNOWLEDGE,
    AcknowledgeMode.SESSION_TRANSACTED,
)  # fmt: skip


def test_a_message_is_acknowledged_when_its_listener_has_returned() -> None:
    broker = Broker()
    session = broker.session(AUTO)
    consumer = broker.consumer(session)
    broker.delivers(consumer)
    assert consumer.next_for_listener(broker.now, INSTANT) is not None
    assert broker.heard() == []
    confirmation = session.handled(None, broker.now)
    assert confirmation is not None and not confirmation.is_settled
    assert broker.heard() == ["ACK 2.1?"]


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        (AUTO, ["ACK 2.1?", "ACK 2.2?", "NACK 2.3"]),
        (DUPS_OK, ["ACK 2.2", "NACK 2.3"]),
        (CLIENT, []),
        (INDIVIDUAL, []),
        (NO_ACKNOWLEDGE, []),
        (TRANSACTED, []),
    ],
)
def test_what_a_listener_failed_with_goes_back_to_the_broker_where_the_session_acknowledges_by_itself(mode: AcknowledgeMode, said: list[str]) -> None:
    broker = Broker()
    session = broker.session(mode)
    consumer = broker.consumer(session)
    broker.delivers(consumer, 3)
    for failure in (None, None, "LookupError"):
        assert consumer.next_for_listener(broker.now, INSTANT) is not None
        session.handled(failure, broker.now)
    assert broker.heard() == said


class Speechless(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("failure", "comment"),
    [
        (ValueError("no such colour: red"), "ValueError: no such colour: red"), (KeyError("red"), "KeyError: 'red'"), (SystemExit(), "SystemExit"),
        (ValueError("a\nb\0c\ud800"), "ValueError: a b?c?"), (ValueError("x" * 1000), "ValueError: " + "x" * 488),
        (Speechless(), "tests.client.test_client_listeners.Speechless: <exception str() failed>"),
    ],
)  # fmt: skip
def test_the_broker_is_told_what_the_listener_failed_with(failure: BaseException, comment: str) -> None:
    broker = Broker()
    session = broker.session(AUTO)
    consumer = broker.consumer(session)
    broker.delivers(consumer)
    consumer.next_for_listener(broker.now, INSTANT)
    session.handled(in_words(failure), broker.now)
    assert [frame.headers for frame in broker.hears()] == [{"id": "2.1", "comment": comment}]


@pytest.mark.parametrize(("mode", "said"), [(AUTO, ["ACK 2.1"]), (TRANSACTED, []), (CLIENT, []), (NO_ACKNOWLEDGE, [])])
@pytest.mark.parametrize("failed", [False, True])
def test_a_best_effort_message_is_over_when_its_listener_begins_and_lost_if_that_fails(mode: AcknowledgeMode, said: list[str], failed: bool) -> None:
    broker = Broker()
    session = broker.session(mode)
    consumer = broker.consumer(session)
    broker.delivers(consumer, lines="reliability:best-effort\nreliability:assured\n")
    assert consumer.next_for_listener(broker.now, INSTANT) is not None
    assert broker.heard() == said
    assert session.handled("LookupError" if failed else None, broker.now) is None
    assert broker.heard() == []
    broker.delivers(consumer, lines="reliability:express\n")
    assert consumer.next_for_listener(broker.now, INSTANT) is not None
    session.handled(None, broker.now)
    assert broker.heard() == (["ACK 2.2?"] if mode is AUTO else [])


def test_a_listener_that_recovers_gets_the_message_again() -> None:
    broker = Broker()
    session = broker.session(AUTO)
    consumer = broker.consumer(session)
    broker.delivers(consumer)
    consumer.next_for_listener(broker.now, INSTANT)
    session.recover()
    assert session.handled(None, broker.now) is None
    assert broker.heard() == ["NACK 2.1"]


def test_a_listener_acknowledges_the_message_that_it_has_in_its_hands() -> None:
    broker = Broker()
    session = broker.session(CLIENT)
    consumer = broker.consumer(session)
    broker.delivers(consumer)
    message = consumer.next_for_listener(broker.now, INSTANT)
    assert message is not None
    session.acknowledge(message.delivery)
    assert broker.heard() == ["ACK 2.1?"]
    assert session.handled(None, broker.now) is None
    assert session.acknowledge(message.delivery) is None


@pytest.mark.parametrize(("mode", "said"), [(AUTO, ["ACK 2.1?", "UNSUBSCRIBE 2"]), (DUPS_OK, ["ACK 2.1", "UNSUBSCRIBE 2"])])
def test_a_listener_that_closes_its_consumer_has_its_message_acknowledged_first(mode: AcknowledgeMode, said: list[str]) -> None:
    broker = Broker()
    session = broker.session(mode)
    consumer = broker.consumer(session)
    broker.delivers(consumer)
    consumer.next_for_listener(broker.now, INSTANT)
    assert session.close_consumer(consumer) is None
    assert broker.heard() == []
    session.handled(None, broker.now)
    assert broker.heard() == said
