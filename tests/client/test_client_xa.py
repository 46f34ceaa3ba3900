"""XA sessions: what leaves in which phase, what is waited for, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core.client import (
    BranchState,
    IllegalStateException,
    JMSException,
    TextMessage,
    TransactionInProgressException,
    TransactionRolledBackException,
    Xid,
)
from broker_core.client.machine import ConsumerMachine
from tests.client.broker import INSTANT
from tests.client.xa_broker import OTHER, TEXT, XID, XABroker, error_of, headers_of, is_done


# -- the phases ---------------------------------------------------------------------------------------------------------------------------
def test_a_branch_begins_with_its_xid_and_is_waited_for() -> None:
    broker = XABroker()
    confirmation = broker.xa.tpc_begin(XID)
    (begin,) = broker.hears()
    assert (begin.command, headers_of(begin)) == ("BEGIN", [{"xid": TEXT, "transaction": broker.xa.transaction.decode()}])
    assert not confirmation.is_settled
    broker.confirms(begin)
    assert is_done(confirmation) and broker.xa.branch == XID


def test_its_work_is_named_by_its_transaction_and_acknowledged_by_its_prepare() -> None:
    broker = XABroker()
    consumer = broker.consumer(broker.xa)
    broker.begun()
    broker.consume(consumer, 2)
    broker.producer(broker.xa).send(TextMessage("x"), INSTANT)
    prepared = broker.xa.tpc_prepare()
    name = broker.xa.transaction.decode()
    send, ack, prepare = broker.hears()
    assert (send.headers["transaction"], ack.headers["transaction"], ack.headers["id"]) == (name, name, f"{consumer.subscription.decode()}.2")
    assert (prepare.command, headers_of(prepare)) == ("COMMIT", [{"xid": TEXT, "phase": "prepare"}])
    assert not prepared.is_settled
    broker.confirms(prepare)
    assert is_done(prepared)
    committed = broker.xa.tpc_commit()
    (commit,) = broker.hears()
    assert (commit.command, headers_of(commit)) == ("COMMIT", [{"xid": TEXT, "phase": "two"}])
    broker.confirms(commit)
    assert is_done(committed) and broker.xa.branch is None


def test_without_a_prepare_both_phases_are_one() -> None:
    broker = XABroker()
    committed = broker.sent().tpc_commit()
    commit = broker.hears()[-1]
    assert (commit.command, headers_of(commit)) == ("COMMIT", [{"xid": TEXT, "phase": "one"}])
    broker.confirms(commit)
    assert is_done(committed) and broker.xa.branch is None


def test_a_rollback_gives_back_what_was_received_and_takes_back_what_was_sent() -> None:
    broker = XABroker()
    consumer = broker.consumer(broker.xa)
    broker.begun()
    broker.consume(consumer, 2)
    broker.producer(broker.xa).send(TextMessage("x"), INSTANT)
    rolled_back = broker.xa.tpc_rollback()
    frames = broker.hears()
    assert [frame.command for frame in frames] == ["SEND", "NACK", "ABORT"]
    assert (frames[1].headers["id"], frames[2].headers["xid"]) == (f"{consumer.subscription.decode()}.2", TEXT)
    broker.confirms(*frames)
    assert is_done(rolled_back) and broker.xa.branch is None


def test_what_is_prepared_may_be_rolled_back() -> None:
    broker = XABroker()
    rolled_back = broker.prepared().tpc_rollback()
    (abort,) = broker.hears()
    assert abort.command == "ABORT"
    broker.confirms(abort)
    assert is_done(rolled_back) and broker.xa.branch is None


def test_one_branch_comes_after_the_other_and_each_has_a_name_of_its_own() -> None:
    broker = XABroker()
    names = []
    for xid in (XID, OTHER):
        broker.xa.tpc_begin(xid)
        (begin,) = broker.hears()
        names.append(begin.headers["transaction"])
        broker.confirms(begin)
        broker.xa.tpc_commit()
        broker.confirms()
    assert names[0] != names[1]


def test_a_timeout_is_told_in_milliseconds_from_the_next_branch_on() -> None:
    broker = XABroker()
    broker.xa.set_timeout(2.5)
    broker.xa.tpc_begin(XID)
    assert broker.hears()[0].headers["timeout"] == "2500"


@pytest.mark.parametrize("seconds", [-1, 86_401, "5", True, float("nan")])
def test_a_timeout_that_the_broker_would_not_take_is_refused(seconds: Any) -> None:
    with pytest.raises(JMSException, match="the timeout is"):
        XABroker().xa.set_timeout(seconds)


# -- not now ------------------------------------------------------------------------------------------------------------------------------
def test_work_outside_of_a_branch_is_refused() -> None:
    broker = XABroker()
    consumer = broker.consumer(broker.xa)
    broker.delivers(consumer)
    for works in (lambda: broker.producer(broker.xa).send(TextMessage("x"), INSTANT), lambda: consumer.receive(broker.now, INSTANT)):
        with pytest.raises(IllegalStateException, match=r"tpc_begin\(xid\)"):
            works()
    assert broker.hears() == []
    broker.begun()
    assert consumer.receive(broker.now, INSTANT) is not None, "what came before the branch is received in it"


def test_work_on_what_is_prepared_is_refused() -> None:
    broker = XABroker()
    consumer = broker.consumer(broker.xa)
    broker.prepared()
    broker.delivers(consumer)
    for works in (lambda: broker.producer(broker.xa).send(TextMessage("x"), INSTANT), lambda: consumer.receive(broker.now, INSTANT)):
        with pytest.raises(IllegalStateException, match=f"{TEXT} is prepared: end it before"):
            works()


@pytest.mark.parametrize("operation", ["tpc_prepare", "tpc_commit", "tpc_rollback"])
def test_outside_of_a_branch_there_is_nothing_to_be_ended(operation: str) -> None:
    with pytest.raises(IllegalStateException, match="the session is in no branch"):
        getattr(XABroker().xa, operation)()


def test_it_is_prepared_once() -> None:
    with pytest.raises(IllegalStateException, match=f"{TEXT} is prepared"):
        XABroker().prepared().tpc_prepare()


@pytest.mark.parametrize("stage", ["begun", "prepared"])
def test_another_branch_waits_for_the_end_of_this_one(stage: str) -> None:
    broker = XABroker()
    session = getattr(broker, stage)()
    for other in (lambda: session.tpc_begin(OTHER), lambda: session.tpc_commit(OTHER), lambda: session.tpc_rollback(OTHER)):
        with pytest.raises(TransactionInProgressException, match=TEXT):
            other()


def test_an_xa_session_does_not_commit_by_itself() -> None:
    session = XABroker().begun()
    for ends, instead in ((session.commit, "tpc_commit"), (session.roll_back, "tpc_rollback")):
        with pytest.raises(TransactionInProgressException, match=instead):
            ends()


def test_it_has_no_listeners() -> None:
    with pytest.raises(IllegalStateException, match="receive them in a branch"):
        XABroker().xa.check_listening()


@pytest.mark.parametrize("xid", ["7.01.01", None, (7, b"a", b"b")])
def test_what_is_no_xid_is_refused(xid: Any) -> None:
    with pytest.raises(JMSException, match=r"make one with session\.xid"):
        XABroker().xa.tpc_begin(xid)


# -- what the broker refuses --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("message", "kind", "advice"),
    [
        ("XA_RBROLLBACK", TransactionRolledBackException, "do its work again"),
        ("XA_RBTIMEOUT", TransactionRolledBackException, "transaction_timeout"),
        ("XA_RBOTHER", TransactionRolledBackException, "do its work again"),
    ],
)
def test_a_prepare_that_cannot_be_done_leaves_nothing(message: str, kind: type[JMSException], advice: str) -> None:
    broker = XABroker()
    prepared = broker.sent().tpc_prepare()
    broker.refuses(message, "told at length", broker.hears()[-1].receipt)
    error = error_of(prepared)
    assert isinstance(error, kind) and error.error_code == message and "told at length" in error.reason and advice in error.reason
    assert broker.xa.branch is None
    broker.lets_in()
    broker.begun()


def test_an_xid_that_is_there_already_begins_nothing() -> None:
    broker = XABroker()
    begun = broker.xa.tpc_begin(XID)
    broker.refuses("XAER_DUPID", "it is prepared", broker.hears()[-1].receipt)
    assert error_of(begun).error_code == "XAER_DUPID" and broker.xa.branch is None


@pytest.mark.parametrize("message", ["XA_HEURCOM", "XA_HEURRB"])
def test_what_an_administrator_has_ended_by_hand_is_told_and_to_be_forgotten(message: str) -> None:
    broker = XABroker()
    committed = broker.prepared().tpc_commit()
    broker.refuses(message, "by hand", broker.hears()[-1].receipt)
    error = error_of(committed)
    assert error.error_code == message and "tpc_forget(xid)" in error.reason and broker.xa.branch is None
    broker.lets_in()
    forgotten = broker.xa.tpc_forget(XID)
    (forget,) = broker.hears()
    assert headers_of(forget) == [{"destination": "/queue/mq.sys.xa", "operation": "forget", "xid": TEXT}]
    broker.confirms(forget)
    assert is_done(forgotten)


def test_an_xid_that_nobody_knows_is_told_where_to_be_looked_for() -> None:
    broker = XABroker()
    committed = broker.xa.tpc_commit(OTHER)
    broker.refuses("XAER_NOTA", "not known", broker.hears()[-1].receipt)
    error = error_of(committed)
    assert error.error_code == "XAER_NOTA" and "tpc_recover()" in error.reason


# -- the end ------------------------------------------------------------------------------------------------------------------------------
def test_closing_a_session_rolls_back_what_is_worked_on() -> None:
    broker = XABroker()
    broker.sent()
    broker.hears()
    broker.xa.close()
    (abort,) = broker.hears()
    assert (abort.command, headers_of(abort)) == ("ABORT", [{"xid": TEXT}])


def test_and_leaves_what_is_prepared() -> None:
    broker = XABroker()
    broker.prepared().close()
    assert broker.hears() == []


# -- joining ------------------------------------------------------------------------------------------------------------------------------
def _sends(broker: XABroker, _: ConsumerMachine) -> None:
    broker.producer(broker.xa).send(TextMessage("x"), INSTANT)


def _receives(broker: XABroker, consumer: ConsumerMachine) -> None:
    broker.receive(consumer)


@pytest.mark.parametrize("work", [_sends, _receives])
def test_who_joins_a_session_is_asked_for_a_branch_when_work_begins_and_once(work: Any) -> None:
    broker = XABroker()
    asked: list[Xid] = []

    def join() -> Xid:
        asked.append(XID)
        return XID

    broker.xa.joining = join
    consumer = broker.consumer(broker.xa)
    assert consumer.receive(broker.now, INSTANT) is None and asked == [], "nothing was received"
    broker.delivers(consumer, 2)
    for _ in range(2):
        work(broker, consumer)
    assert asked == [XID] and broker.xa.branch == XID
    assert broker.hears()[0].headers["xid"] == TEXT


# -- names --------------------------------------------------------------------------------------------------------------------------------
def test_an_xid_is_a_sequence_and_equal_by_its_parts() -> None:
    assert (list(XID), len(XID), XID[1]) == ([7, b"order 1", b"\x01"], 3, b"order 1")
    assert Xid.parse(TEXT.upper(), BranchState.PREPARED) == XID and str(XID) == TEXT


@pytest.mark.parametrize(
    "parts", [(-1, "a"), (1 << 31, "a"), (True, "a"), (1, ""), (1, "a" * 65), (1, "a", "b" * 65), (1, 7), (1, "\ud800")]
)
def test_an_xid_that_is_none_is_refused(parts: Any) -> None:
    with pytest.raises(JMSException, match=r"of the xid|the xid's"):
        Xid.of(*parts)
