"""XA sessions whose connection is lost between two phases, and how the broker is asked what has become of their branches."""

from __future__ import annotations

import pytest

from broker_core.client import BranchState, IllegalStateException, TextMessage, TransactionRolledBackException
from broker_core.client.machine import Recovered
from tests.client.broker import INSTANT
from tests.client.xa_broker import OTHER, TEXT, XID, XABroker, error_of, headers_of, is_done


# -- the connection is lost ---------------------------------------------------------------------------------------------------------------
def test_a_branch_that_is_worked_on_is_lost_with_its_connection() -> None:
    broker = XABroker()
    broker.sent()
    broker.loses_the_connection()
    broker.lets_in()
    with pytest.raises(TransactionRolledBackException, match="the cable is cut"):
        broker.producer(broker.xa).send(TextMessage("y"), INSTANT)
    with pytest.raises(TransactionRolledBackException, match="do its work again"):
        broker.xa.tpc_prepare()
    assert broker.xa.branch is None and broker.hears() == []


def test_and_its_rollback_has_nothing_to_say() -> None:
    broker = XABroker()
    broker.sent()
    broker.loses_the_connection()
    broker.lets_in()
    assert broker.xa.tpc_rollback() is None
    assert broker.xa.branch is None and broker.hears() == []


def test_a_begin_without_an_answer_has_begun_nothing() -> None:
    broker = XABroker()
    begun = broker.xa.tpc_begin(XID)
    broker.loses_the_connection()
    assert "is rolled back" in error_of(begun).reason and broker.xa.branch is None


def test_what_is_prepared_outlives_its_connection() -> None:
    broker = XABroker()
    broker.prepared()
    broker.loses_the_connection()
    broker.lets_in()
    committed = broker.xa.tpc_commit()
    assert [headers_of(*broker.hears())] == [[{"xid": TEXT, "phase": "two"}]]
    assert not is_done(committed)


def test_a_commit_in_one_phase_without_an_answer_is_never_told() -> None:
    broker = XABroker()
    committed = broker.sent().tpc_commit()
    broker.loses_the_connection()
    assert "nobody can tell" in error_of(committed).reason and broker.xa.branch is None


def test_a_prepare_in_doubt_is_rolled_back_if_the_broker_has_it() -> None:
    broker = XABroker()
    broker.sent()
    rolled_back = broker.in_doubt("tpc_prepare").tpc_rollback()
    assert [frame.command for frame in broker.lists(f"{OTHER} prepared", f"{TEXT} prepared")] == ["SUBSCRIBE", "SEND"]
    (abort,) = broker.hears()
    assert (abort.command, headers_of(abort)) == ("ABORT", [{"xid": TEXT}])
    assert not is_done(rolled_back)
    broker.confirms(abort)
    assert is_done(rolled_back) and broker.xa.branch is None


def test_and_is_rolled_back_already_if_it_has_not() -> None:
    broker = XABroker()
    broker.sent()
    rolled_back = broker.in_doubt("tpc_prepare").tpc_rollback()
    broker.lists(f"{OTHER} prepared")
    assert is_done(rolled_back) and broker.xa.branch is None and broker.hears() == []


def test_a_prepare_in_doubt_cannot_be_committed() -> None:
    broker = XABroker()
    broker.sent()
    with pytest.raises(IllegalStateException, match="in doubt"):
        broker.in_doubt("tpc_prepare").tpc_commit()


def test_a_commit_in_doubt_is_said_again_if_the_broker_still_has_the_branch() -> None:
    broker = XABroker()
    broker.prepared()
    committed = broker.in_doubt("tpc_commit").tpc_commit()
    broker.lists(f"{TEXT} prepared")
    frames = broker.hears()
    assert headers_of(*frames) == [{"xid": TEXT, "phase": "two"}]
    broker.confirms(*frames)
    assert is_done(committed) and broker.xa.branch is None


def test_and_is_done_if_it_has_not() -> None:
    broker = XABroker()
    broker.prepared()
    committed = broker.in_doubt("tpc_commit").tpc_commit()
    broker.lists()
    assert is_done(committed) and broker.xa.branch is None and broker.hears() == []


def test_a_commit_that_is_done_between_question_and_answer_is_done() -> None:
    broker = XABroker()
    broker.prepared()
    committed = broker.in_doubt("tpc_commit").tpc_commit()
    broker.lists(f"{TEXT} prepared")
    broker.refuses("XAER_NOTA", "not known", broker.hears()[-1].receipt)
    assert is_done(committed) and broker.xa.branch is None


def test_a_commit_in_doubt_that_was_overruled_by_hand_is_told() -> None:
    broker = XABroker()
    broker.prepared()
    committed = broker.in_doubt("tpc_commit").tpc_commit()
    broker.lists(f"{TEXT} heuristically-rolled-back")
    assert error_of(committed).error_code == "XA_HEURRB" and broker.xa.branch is None


def test_a_commit_in_doubt_cannot_be_rolled_back() -> None:
    broker = XABroker()
    broker.prepared()
    with pytest.raises(IllegalStateException, match="in doubt"):
        broker.in_doubt("tpc_commit").tpc_rollback()


def test_doubts_may_be_lost_with_the_connection_again_and_again() -> None:
    broker = XABroker()
    broker.prepared()
    broker.in_doubt("tpc_commit")
    broker.in_doubt("tpc_commit")
    committed = broker.xa.tpc_commit()
    broker.lists(f"{TEXT} prepared")
    broker.loses_the_connection()
    assert "say tpc_commit() again" in error_of(committed).reason
    broker.lets_in()
    committed = broker.xa.tpc_commit()
    broker.lists()
    assert is_done(committed)


def test_what_is_in_doubt_may_be_ended_by_its_name_as_well() -> None:
    broker = XABroker()
    broker.prepared()
    committed = broker.in_doubt("tpc_commit").tpc_commit(XID)
    broker.confirms()
    assert is_done(committed) and broker.xa.branch is None


@pytest.mark.parametrize("operation", ["tpc_prepare", "tpc_commit"])
def test_an_answer_that_took_too_long_may_be_waited_for_again(operation: str) -> None:
    broker = XABroker()
    session = broker.sent()
    first = getattr(session, operation)()
    assert getattr(session, operation)() is first
    assert [frame.command for frame in broker.hears()] == ["SEND", "COMMIT"]
    first.waiter = lambda: None
    with pytest.raises(IllegalStateException, match="another task"):
        getattr(session, operation)()


# -- recover ------------------------------------------------------------------------------------------------------------------------------
def test_recover_tells_all_pages_and_states() -> None:
    broker = XABroker()
    recovered = broker.xa.tpc_recover()
    subscribe, asked = broker.hears()
    assert (subscribe.headers["destination"], subscribe.headers["ack"]) == ("/temp-queue/xa", "auto")
    assert (asked.headers["destination"], asked.headers["reply-to"]) == ("/queue/mq.sys.xa", "/temp-queue/xa")
    broker.answers(asked, f"{OTHER} heuristically-committed")
    (asked,) = broker.hears()
    assert asked.headers["after"] == str(OTHER) and not is_done(recovered.confirmation)
    broker.answers(asked, f"{TEXT} prepared")
    broker.lists()
    assert is_done(recovered.confirmation)
    assert [(xid, xid.state) for xid in recovered.xids] == [(OTHER, BranchState.HEURISTICALLY_COMMITTED), (XID, BranchState.PREPARED)]


def test_two_who_ask_at_the_same_time_have_their_own_answers() -> None:
    broker = XABroker()
    one, two = broker.xa.tpc_recover(), broker.client.open_xa_session().tpc_recover()
    _, first, second = broker.hears()
    broker.answers(second)
    assert (one.confirmation.is_settled, is_done(two.confirmation)) == (False, True)
    broker.answers(first)
    assert is_done(one.confirmation)


def test_who_asks_while_the_application_is_behind_is_heard() -> None:
    broker = XABroker(connection_flow_limit_enabled=True, connection_flow_limit=1)
    broker.delivers(broker.consumer(broker.xa))
    assert broker.client.wants_pause
    recovered = broker.xa.tpc_recover()
    assert not broker.client.wants_pause
    broker.lists()
    assert is_done(recovered.confirmation) and broker.client.wants_pause


def test_a_question_without_an_answer_is_asked_again_on_the_next_connection() -> None:
    broker = XABroker()
    lost = broker.xa.tpc_recover()
    broker.loses_the_connection()
    assert "ask again" in error_of(lost.confirmation).reason
    broker.lets_in()
    recovered: Recovered = broker.xa.tpc_recover()
    assert [frame.command for frame in broker.lists()] == ["SUBSCRIBE", "SEND"]
    assert recovered.xids == [] and is_done(recovered.confirmation)


@pytest.mark.parametrize("line", ["7.01.01", "7.01.01 asleep", "seven prepared"])
def test_an_answer_that_cannot_be_understood_ends_the_connection(line: str) -> None:
    broker = XABroker()
    recovered = broker.xa.tpc_recover()
    broker.answers(broker.hears()[-1], line)
    assert "no xid with its state" in error_of(recovered.confirmation).reason
