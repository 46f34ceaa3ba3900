"""Transacted sessions: what leaves when, what a commit waits for, and what becomes of it all when the connection is lost."""

from __future__ import annotations

import pytest

from broker_core.client import AcknowledgeMode, IllegalStateException, JMSException, TextMessage, TransactionRolledBackException
from tests.client.broker import INSTANT, Broker

TRANSACTED = AcknowledgeMode.SESSION_TRANSACTED


def test_a_commit_acknowledges_what_was_consumed_and_waits_for_the_broker() -> None:
    broker = Broker()
    session = broker.session(TRANSACTED)
    broker.consume(broker.consumer(session), 3)
    broker.producer(session).send(TextMessage("x"), INSTANT)
    assert broker.heard() == ["BEGIN 1t1", "SEND /queue/a in 1t1"]
    confirmation = session.commit()
    (ack, commit) = broker.hears()
    assert (ack.headers, commit.command, commit.headers["transaction"]) == ({"id": "2.3", "transaction": "1t1"}, "COMMIT", "1t1")
    assert confirmation is not None and not confirmation.is_settled
    broker.confirms(commit)
    assert confirmation.is_settled and confirmation.error is None


def test_each_transaction_has_a_name_of_its_own_also_among_sessions() -> None:
    broker = Broker()
    one, two = broker.session(TRANSACTED), broker.session(TRANSACTED)
    for session in (one, two, one):
        broker.producer(session).send(TextMessage("x"), INSTANT)
        session.commit()
    names = [frame.headers["transaction"] for frame in broker.hears() if frame.command == "BEGIN"]
    assert names == ["1t1", "2t1", "1t2"]


def test_a_transaction_in_which_nothing_happened_is_not_worth_a_word() -> None:
    broker = Broker()
    session = broker.session(TRANSACTED)
    assert session.commit() is None and session.roll_back() is None
    assert broker.hears() == []


def test_a_transaction_may_consume_more_than_the_prefetch_as_the_broker_is_told_at_the_threshold() -> None:
    broker = Broker(consumer_flow_limit=10)
    session = broker.session(TRANSACTED)
    consumer = broker.consumer(session)
    broker.consume(consumer, 4)
    assert broker.heard() == []
    broker.consume(consumer, 1)
    assert broker.heard() == ["BEGIN 1t1", "ACK 2.5 in 1t1"]
    broker.consume(consumer, 6)
    assert broker.heard() == ["ACK 2.10 in 1t1"]
    session.commit()
    assert broker.heard() == ["ACK 2.11 in 1t1", "COMMIT 1t1?"]


def test_a_rollback_gives_back_what_was_consumed_and_takes_back_what_was_sent() -> None:
    broker = Broker()
    session = broker.session(TRANSACTED)
    broker.consume(broker.consumer(session), 3)
    broker.producer(session).send(TextMessage("x"), INSTANT)
    broker.hears()
    confirmation = session.roll_back()
    assert confirmation is not None
    assert broker.heard() == ["NACK 2.3?", "ABORT 1t1?"]
    session.commit()
    assert broker.heard() == []


def test_a_rollback_without_sends_needs_no_transaction() -> None:
    broker = Broker()
    session = broker.session(TRANSACTED)
    broker.consume(broker.consumer(session), 3)
    assert session.roll_back() is not None
    assert broker.heard() == ["NACK 2.3?"]


def test_a_listener_commits_or_rolls_back_the_message_that_it_has_in_its_hands() -> None:
    broker = Broker()
    session = broker.session(TRANSACTED)
    consumer = broker.consumer(session)
    broker.delivers(consumer, 2)
    assert consumer.next_for_listener(broker.now, INSTANT) is not None
    session.commit()
    session.handled(None, broker.now)
    assert broker.heard() == ["BEGIN 1t1", "ACK 2.1 in 1t1", "COMMIT 1t1?"]
    assert consumer.next_for_listener(broker.now, INSTANT) is not None
    session.roll_back()
    session.handled("LookupError", broker.now)
    session.commit()
    assert broker.heard() == ["NACK 2.2?"]


def test_a_transaction_that_was_lost_with_the_connection_cannot_be_committed() -> None:
    broker = Broker(reconnect_enabled=True)
    session = broker.session(TRANSACTED)
    producer = broker.producer(session)
    producer.send(TextMessage("x"), INSTANT)
    broker.loses_the_connection()
    broker.lets_in()
    producer.send(TextMessage("y"), INSTANT)
    with pytest.raises(TransactionRolledBackException, match="do its work again"):
        session.commit()
    assert broker.heard() == ["BEGIN 1t2", "SEND /queue/a in 1t2", "ABORT 1t2?"]
    producer.send(TextMessage("z"), INSTANT)
    session.commit()
    assert broker.heard() == ["BEGIN 1t3", "SEND /queue/a in 1t3", "COMMIT 1t3?"]


def test_so_it_is_if_it_had_only_consumed() -> None:
    broker = Broker(reconnect_enabled=True)
    session = broker.session(TRANSACTED)
    broker.consume(broker.consumer(session))
    broker.loses_the_connection()
    broker.lets_in()
    with pytest.raises(TransactionRolledBackException):
        session.commit()


def test_a_rollback_after_the_connection_was_lost_begins_anew() -> None:
    broker = Broker(reconnect_enabled=True)
    session = broker.session(TRANSACTED)
    broker.producer(session).send(TextMessage("x"), INSTANT)
    broker.loses_the_connection()
    broker.lets_in()
    assert session.roll_back() is None
    assert session.commit() is None


def test_a_commit_whose_answer_never_comes_is_in_doubt() -> None:
    broker = Broker(reconnect_enabled=True)
    session = broker.session(TRANSACTED)
    broker.producer(session).send(TextMessage("x"), INSTANT)
    confirmation = session.commit()
    broker.loses_the_connection()
    assert confirmation is not None
    with pytest.raises(JMSException, match="may or may not have been committed") as lost:
        confirmation.check()
    assert not isinstance(lost.value, TransactionRolledBackException)
    broker.lets_in()
    assert session.commit() is None  # it is over, one way or the other


@pytest.mark.parametrize("message", ["no such transaction", "transaction timed out", "transaction too large"])
def test_a_commit_that_the_broker_refuses_was_rolled_back(message: str) -> None:
    broker = Broker()
    session = broker.session(TRANSACTED)
    broker.producer(session).send(TextMessage("x"), INSTANT)
    confirmation = session.commit()
    broker.refuses(message, "told at length", broker.hears()[-1].receipt)
    assert confirmation is not None
    with pytest.raises(TransactionRolledBackException, match="told at length"):
        confirmation.check()


def test_closing_a_session_rolls_its_transaction_back() -> None:
    broker = Broker()
    session = broker.session(TRANSACTED)
    broker.consume(broker.consumer(session))
    broker.producer(session).send(TextMessage("x"), INSTANT)
    broker.hears()
    session.close()
    assert broker.heard() == ["ABORT 1t1", "UNSUBSCRIBE 2?"]


def test_only_transacted_sessions_commit() -> None:
    session = Broker().session()
    for ends in (session.commit, session.roll_back):
        with pytest.raises(IllegalStateException, match="transacted=True"):
            ends()
