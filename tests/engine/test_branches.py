"""Branches of distributed transactions: every change of state, and every refusal (X/Open XA; checklist items 63 to 66)."""

from __future__ import annotations

import pytest

from broker_core.engine import commands as c
from broker_core.engine.branch import State
from broker_core.engine.commands import Verb
from broker_core.engine.message import Encoding, Header
from broker_core.engine.outputs import Refused
from broker_core.engine.refusal import Refusal
from broker_core.engine.xid import canonical_xid
from tests.engine.branch_rig import OK, OTHER, XID, YID, BranchBench
from tests.engine.rig import ASSURED, EXPRESS, QUEUE

ENDINGS = [Verb.PREPARE, Verb.COMMIT, Verb.COMMIT_ONE, Verb.ROLL_BACK, Verb.FORGET, Verb.END, Verb.SUSPEND, Verb.FAIL]


# -- names --------------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("text", ["0.00.", "2147483647.ff.00", "1." + "ab" * 64 + "." + "cd" * 64])
def test_a_name_within_the_bounds_is_canonical(text: str) -> None:
    assert canonical_xid(text) == text


def test_large_digits_are_written_small() -> None:
    assert canonical_xid("1.AB.CD") == "1.ab.cd"


@pytest.mark.parametrize(
    "text",
    ["", "1", "1.aa", "1..aa", "-1.aa.", "01.aa.", "2147483648.aa.", "1.a.", "1.ag.", "1.aa.b", "1.aa.bb.cc", "x.aa.", "1." + "ab" * 65 + ".",
     "1.aa." + "ab" * 65, " 1.aa.", "1.aa.\n", "\u0661.aa."],
)  # fmt: skip
def test_whatever_else_is_none(text: str) -> None:
    assert canonical_xid(text) == ""


# -- refusals -----------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("verb", ENDINGS)
def test_of_a_branch_that_never_began_nothing_can_be_said(verb: Verb) -> None:
    assert BranchBench().say(verb) is Refusal.XAER_NOTA


@pytest.mark.parametrize("again", [State.ENDED, State.SUSPENDED])
def test_a_branch_that_never_began_is_neither_joined_nor_resumed(again: State) -> None:
    assert BranchBench().begin(again=again) is Refusal.XAER_NOTA


@pytest.mark.parametrize("peer", [1, 2])
def test_one_that_has_begun_does_not_begin_again(peer: int) -> None:
    b = BranchBench()
    b.begin()
    assert b.begin(peer=peer, name="other") is Refusal.XAER_DUPID


def test_one_that_is_prepared_does_not_begin_again_either() -> None:
    b = BranchBench()
    b.prepared("a")
    assert b.begin() is Refusal.XAER_DUPID


def test_the_name_of_its_work_is_free() -> None:
    b = BranchBench()
    b.begin()
    assert b.begin(YID) is Refusal.TRANSACTION_EXISTS


@pytest.mark.parametrize("verb", [Verb.COMMIT, Verb.FORGET])
def test_what_is_not_prepared_is_neither_committed_as_such_nor_forgotten(verb: Verb) -> None:
    b = BranchBench()
    b.begin()
    assert b.say(verb) is Refusal.XAER_PROTO
    assert b.state() is State.ACTIVE


@pytest.mark.parametrize("verb", [verb for verb in ENDINGS if verb is not Verb.ROLL_BACK])
def test_another_connection_has_no_say_in_what_is_not_prepared(verb: Verb) -> None:
    b = BranchBench()
    b.begin()
    b.put("a")
    assert b.say(verb, peer=2) is Refusal.XAER_PROTO
    assert b.say(Verb.COMMIT_ONE) == OK


@pytest.mark.parametrize("before", [(), (Verb.END,), (Verb.SUSPEND,)], ids=["active", "ended", "suspended"])
def test_but_it_may_roll_it_back_for_its_manager_may_know_that_the_first_one_is_lost_before_the_broker_does(before: tuple[Verb, ...]) -> None:
    b = BranchBench()
    b.begin()
    b.put("a")
    for verb in before:
        assert b.say(verb) == OK
    assert b.say(Verb.ROLL_BACK, peer=2) == OK
    assert b.say(Verb.PREPARE) is Refusal.XAER_NOTA, "what the lost one had still said comes too late"
    assert b.begin(peer=2) == OK, "its name is free"
    assert QUEUE not in b.engine.shard.destinations, "nothing was sent"


@pytest.mark.parametrize("verb", ENDINGS)
def test_another_account_knows_nothing_of_it(verb: Verb) -> None:
    b = BranchBench()
    b.prepared("a")
    assert b.say(verb, peer=3) is Refusal.XAER_NOTA
    assert b.begin(peer=3) == OK, "nor does it stand in its way"
    assert b.state() is State.PREPARED


@pytest.mark.parametrize("verb", [Verb.PREPARE, Verb.COMMIT_ONE, Verb.FORGET, Verb.END, Verb.SUSPEND, Verb.FAIL])
def test_what_is_prepared_is_only_committed_or_rolled_back(verb: Verb) -> None:
    b = BranchBench()
    b.prepared("a")
    assert b.say(verb) is Refusal.XAER_PROTO
    assert b.state() is State.PREPARED


def test_the_frames_of_local_transactions_end_no_branch() -> None:
    b = BranchBench()
    b.begin()
    for commit in (True, False):
        assert b.told(c.End(1, b"tx", commit, OK)) is Refusal.XAER_PROTO
    assert b.say(Verb.ROLL_BACK) == OK


def test_a_connection_has_so_many_at_a_time() -> None:
    b = BranchBench(transactions_max=2)
    assert b.begin(XID, name="a") == OK
    assert b.say(Verb.END, XID) == OK
    assert b.begin(YID, name="b") == OK
    assert b.begin("1.aa.03", name="c") is Refusal.XAER_RMERR


# -- states -------------------------------------------------------------------------------------------------------------------------------
def test_one_that_is_ended_takes_no_more_work_and_one_that_is_joined_does() -> None:
    b = BranchBench()
    b.begin()
    b.put("a")
    assert b.say(Verb.END) == OK
    assert b.state() is State.ENDED
    assert b.refused(b.put("b")) == [Refusal.NO_SUCH_TRANSACTION]
    assert b.begin(again=State.SUSPENDED) is Refusal.XAER_PROTO
    assert b.begin(again=State.ENDED, name="other") == OK
    b.put("c", name="other")
    assert b.say(Verb.COMMIT_ONE) == OK
    assert b.attach() == ["a", "c"]


def test_one_that_is_suspended_is_resumed_or_ended_and_not_prepared() -> None:
    b = BranchBench()
    b.begin()
    assert b.say(Verb.SUSPEND) == OK
    assert b.say(Verb.SUSPEND) is Refusal.XAER_PROTO
    assert b.say(Verb.PREPARE) is Refusal.XAER_PROTO
    assert b.begin(again=State.ENDED) is Refusal.XAER_PROTO
    assert b.begin(again=State.SUSPENDED) == OK
    assert b.say(Verb.SUSPEND) == OK
    assert b.say(Verb.END) == OK
    assert b.say(Verb.PREPARE) == OK


def test_one_that_is_ended_as_failed_can_only_be_rolled_back() -> None:
    b = BranchBench()
    b.begin()
    b.put("a")
    assert b.say(Verb.FAIL) == OK
    assert b.begin(again=State.ENDED) is Refusal.XAER_PROTO
    assert b.say(Verb.PREPARE) is Refusal.XA_RBROLLBACK
    assert b.say(Verb.PREPARE) is Refusal.XAER_NOTA
    assert not b.destination_exists(QUEUE)


def test_a_commit_in_one_phase_needs_no_prepare() -> None:
    b = BranchBench()
    b.begin()
    b.put("a")
    assert b.say(Verb.COMMIT_ONE) == OK
    assert b.rows() == []
    assert b.attach() == ["a"]
    assert b.say(Verb.COMMIT_ONE) is Refusal.XAER_NOTA


def test_the_one_that_is_rolled_back_is_forgotten() -> None:
    b = BranchBench()
    b.begin()
    b.put("a")
    assert b.say(Verb.ROLL_BACK) == OK
    assert b.state() is None
    assert b.begin() == OK


def test_a_part_that_was_refused_rolls_the_whole_back_at_the_prepare() -> None:
    b = BranchBench(auto_create=False)
    b.control("create", QUEUE)
    b.begin()
    b.put("a")
    b.put("b", address=OTHER)
    assert b.say(Verb.PREPARE) is Refusal.XA_RBROLLBACK
    detail = [output.detail for output in b.outputs if isinstance(output, Refused)][-1]
    assert detail.startswith(Refusal.NO_SUCH_DESTINATION.value)
    assert b.state() is None
    assert b.depth() == 0


def test_what_cannot_be_done_now_is_rolled_back_too() -> None:
    b = BranchBench()
    b.send("x")
    b.begin()
    b.put("a")
    b.control("pause", QUEUE, direction="PRODUCERS")
    assert b.say(Verb.COMMIT_ONE) is Refusal.XA_RBROLLBACK


@pytest.mark.parametrize("verb", [Verb.PREPARE, Verb.COMMIT_ONE])
def test_one_that_took_too_long_is_rolled_back(verb: Verb) -> None:
    b = BranchBench(transaction_ms_max=1000)
    b.send("x")
    b.attach()
    b.begin(timeout=100)
    b.put("a", address=OTHER)
    b.take(1)
    b.say(Verb.END)
    b.now += 100
    assert b.bodies(b.flush(report=True)) == ["x"], "what it acknowledged is given back, though nobody asks"
    assert b.say(verb) is Refusal.XA_RBTIMEOUT
    assert b.state() is None


def test_nobody_has_longer_than_a_transaction_may_take() -> None:
    b = BranchBench(transaction_ms_max=1000)
    b.begin(timeout=5000)
    b.now += 1000
    assert b.say(Verb.PREPARE) is Refusal.XA_RBTIMEOUT


@pytest.mark.parametrize("verb", [None, Verb.END, Verb.SUSPEND, Verb.FAIL])
def test_what_is_not_prepared_ends_with_its_connection_and_counts_no_failure(verb: Verb | None) -> None:
    b = BranchBench()
    b.send("x")
    b.attach()
    b.begin()
    b.put("a", address=OTHER)
    b.take(1)
    if verb is not None:
        b.say(verb)
    b.lose()
    assert b.state() is None
    b.attach(2, peer=2)
    (back,) = b.delivered(b.outputs)[-1:]
    assert (back.redelivered, back.failures) == (True, 0)
    assert b.say(Verb.COMMIT, peer=2) is Refusal.XAER_NOTA


def test_what_is_not_prepared_is_gone_after_a_restart() -> None:
    b = BranchBench()
    b.send("x")
    b.attach()
    b.begin()
    b.put("a", address=OTHER)
    b.take(1)
    b.start()
    assert b.say(Verb.PREPARE) is Refusal.XAER_NOTA
    assert b.attach() == ["x"]


# -- recover ------------------------------------------------------------------------------------------------------------------------------
def recovered(b: BranchBench, peer: int = 1, after: str = "") -> list[str]:
    address = f"queue/answers-{peer}"
    if address not in b.engine.shard.destinations:
        b.attach(100 + peer, peer=peer, address=address, presettled=True)
    before = len(b.outputs)
    assert b.told(c.ListBranches(peer, address, Header(b"", 4, EXPRESS, 0, Encoding.STOMP), after, OK)) == OK
    (answer,) = b.bodies(b.outputs[before:])
    return answer.splitlines()


def test_recover_lists_what_is_prepared_of_the_account_and_of_nobody_else() -> None:
    b = BranchBench()
    b.prepared("a", xid=YID)
    b.prepared("b", xid=XID)
    b.begin("1.aa.03")
    assert recovered(b, 2) == [f"{XID} prepared", f"{YID} prepared"]
    assert recovered(b, 2, XID) == [f"{YID} prepared"]
    assert recovered(b, 3) == []
    b.control("commit", branch=b.number(XID))
    b.control("rollback", branch=b.number(YID))
    assert recovered(b) == [f"{XID} heuristically-committed", f"{YID} heuristically-rolled-back"]


def test_one_answer_has_so_many_and_the_next_goes_on_behind_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker_core.engine.branches.LISTED_MAX", 2)
    b = BranchBench()
    for number in (1, 2, 3):
        b.prepared("a", xid=f"1.aa.0{number}")
    assert recovered(b) == ["1.aa.01 prepared", "1.aa.02 prepared"]
    assert recovered(b, after="1.aa.02") == ["1.aa.03 prepared"]


def test_an_answer_that_cannot_be_sent_is_refused() -> None:
    b = BranchBench(auto_create=False)
    assert b.told(c.ListBranches(1, QUEUE, Header(b"", 4, EXPRESS, 0, Encoding.STOMP), "", OK)) is Refusal.NO_SUCH_DESTINATION


def test_what_its_connection_sent_before_and_waits_for_room_comes_in_with_the_prepare() -> None:
    b = BranchBench()
    b.control("create", QUEUE, max_messages=1)
    b.send("a", "b")
    b.begin()
    b.put("c")
    b.apply(c.EndBranch(1, XID, Verb.PREPARE, OK))
    assert b.confirmed(b.flush()) == ["b"]
    b.apply(c.EndBranch(2, XID, Verb.COMMIT, "by another"))
    assert b.attach(credit=9) == ["a", "b", "c"]
    assert b.confirmed(b.settle(1, 2, 3)) == [OK]


# -- bounds -------------------------------------------------------------------------------------------------------------------------------
def test_there_are_so_many_prepared_ones() -> None:
    b = BranchBench(prepared_max=1)
    assert b.prepared("a") == OK
    assert b.prepared("b", xid=YID) is Refusal.XA_RBOTHER
    assert b.state(YID) is None
    b.say(Verb.COMMIT)
    assert b.prepared("b", xid=YID) == OK


def test_an_account_has_its_share_of_them_and_those_ended_by_hand_count() -> None:
    b = BranchBench(account_prepared_max=1)
    b.prepared("a")
    b.control("commit", branch=b.number())
    assert b.prepared("b", xid=YID) is Refusal.XA_RBOTHER
    assert b.begin(peer=3) == OK
    assert b.say(Verb.PREPARE, peer=3) == OK
    b.say(Verb.FORGET)
    assert b.prepared("b", xid=YID) == OK


def test_what_they_hold_is_bounded_for_all_and_for_one_account() -> None:
    b = BranchBench(prepared_octets_max=2 * 522)
    assert b.prepared("a", "b") is Refusal.XA_RBOTHER
    assert b.prepared("a") == OK
    assert b.prepared("b", xid=YID) is Refusal.XA_RBOTHER
    assert b.engine.shard.branches.octets == 522
    b.start()
    assert b.engine.shard.branches.octets == 522, "as before"


@pytest.mark.parametrize("level", [ASSURED, EXPRESS])
def test_what_is_prepared_does_not_count_as_an_open_transaction(level: int) -> None:
    b = BranchBench()
    b.prepared("a", level=level)
    assert b.engine.shard.transacted == 0
