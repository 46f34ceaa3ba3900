"""Prepared branches: what is promised of them whatever happens (R13; checklist items 64 and 66)."""

from __future__ import annotations

import pytest

from broker_core.engine import commands as c
from broker_core.engine.branch import State
from broker_core.engine.commands import Verb
from broker_core.engine.outcome import Outcome
from broker_core.engine.refusal import Refusal
from broker_core.engine.selector import compile_selector
from broker_core.engine.subscription import Filter
from tests.engine.branch_rig import OK, OTHER, RESTARTS, XID, BranchBench, held, prepared
from tests.engine.rig import ASSURED, BEST_EFFORT, DEAD, EXPRESS, QUEUE, RELIABLE

LEVELS = {"queue/express": EXPRESS, "queue/reliable": RELIABLE, "queue/assured": ASSURED}


# -- while it is prepared -----------------------------------------------------------------------------------------------------------------
@RESTARTS
def test_its_sends_are_nowhere_and_what_it_acknowledged_is_given_to_nobody(restarts: int) -> None:
    b = prepared(restarts)
    assert b.state() is State.PREPARED
    assert b.rows() == [(XID, State.PREPARED, 1, 1)]
    b.lose()
    assert b.attach(7, peer=2) == ["r", "s"]
    assert not b.destination_exists(OTHER)
    assert b.depth() == 3


@RESTARTS
def test_its_commit_places_and_settles_all_of_it_in_one_commit(restarts: int) -> None:
    b = prepared(restarts)
    before = len(b.effects)
    assert b.say(Verb.COMMIT, peer=2) == OK
    (commit,) = [effects.commit for effects in b.effects[before:] if effects.commit is not None]
    assert commit.synchronous
    assert [message.body for message in commit.messages] == [b"a"]
    assert [(first, last) for _, _, first, last, _ in commit.settled] == [(1, 1)]
    assert (b.rows(), b.state()) == ([], None)
    assert b.attach(8, peer=2, address=OTHER) == ["a"]
    b.start()
    assert b.attach() == ["r", "s"]
    assert b.say(Verb.COMMIT) is Refusal.XAER_NOTA


@RESTARTS
def test_its_roll_back_forgets_the_sends_and_gives_back_what_it_acknowledged(restarts: int) -> None:
    b = prepared(restarts)
    b.lose()
    b.attach(7, peer=2)
    assert b.say(Verb.ROLL_BACK, peer=2) == OK
    (back,) = [message for message in b.delivered(b.outputs) if message.position == 1][-1:]
    assert (b.body(back), back.redelivered, back.failures) == ("q", True, 1)
    assert (b.rows(), b.state()) == ([], None)
    assert not b.destination_exists(OTHER)
    b.start()
    assert b.attach() == ["q", "r", "s"]


@RESTARTS
def test_its_roll_back_counts_as_a_failure_towards_the_maximum(restarts: int) -> None:
    b = BranchBench()
    b.control("create", QUEUE, redelivery_max=0, redelivery_delay_ms=0)
    b.send("p")
    b.attach()
    b.prepared("a", tags=(1,), address=OTHER)
    for _ in range(restarts):
        b.start()
    b.say(Verb.ROLL_BACK)
    assert (b.depth(), b.depth(DEAD)) == (0, 1)


@RESTARTS
@pytest.mark.parametrize(("outcome", "depths"), [(Outcome.FAILED, (1, 0)), (Outcome.REJECTED, (0, 1))], ids=["failed", "rejected"])
def test_what_was_refused_within_it_fails_at_the_commit(restarts: int, outcome: Outcome, depths: tuple[int, int]) -> None:
    b = BranchBench()
    b.send("p")
    b.attach()
    b.begin()
    b.take(1, outcome=outcome)
    b.say(Verb.PREPARE)
    for _ in range(restarts):
        b.start()
    assert (b.depth(), b.depth(DEAD)) == (1, 0)
    assert b.say(Verb.COMMIT) == OK
    assert (b.depth(), b.depth(DEAD)) == depths


def test_sends_above_best_effort_outlive_the_node_whatever_their_level() -> None:
    b = BranchBench()
    b.begin()
    b.put("m", address="queue/best-effort", level=BEST_EFFORT)
    for address, level in LEVELS.items():
        b.put("m", address=address, level=level)
    b.say(Verb.PREPARE)
    b.start()
    assert b.say(Verb.COMMIT) == OK
    assert [b.depth(address) for address in LEVELS] == [1, 1, 1]
    assert not b.destination_exists("queue/best-effort")


def test_best_effort_is_sent_while_the_node_lives() -> None:
    b = BranchBench()
    b.prepared("m", level=BEST_EFFORT)
    b.say(Verb.COMMIT)
    assert b.depth() == 1


@RESTARTS
def test_a_send_has_the_level_that_its_destination_gave_it_at_the_prepare(restarts: int) -> None:
    b = BranchBench()
    b.control("create", QUEUE, default_reliability="assured", reliability_override=False)
    b.prepared("a", level=EXPRESS)
    b.control("update", QUEUE, default_reliability="express", maximum_reliability="express")
    for _ in range(restarts):
        b.start()
    assert b.say(Verb.COMMIT) == OK
    b.start()
    assert b.attach() == ["a"], "it is stored"


def test_a_prepare_is_one_synchronous_commit_of_all_it_hardens() -> None:
    b = BranchBench()
    b.send("p")
    b.attach()
    b.begin()
    b.put("a", "b", level=EXPRESS)
    b.take(1)
    before = len(b.effects)
    b.say(Verb.PREPARE)
    (commit,) = [effects.commit for effects in b.effects[before:] if effects.commit is not None]
    (branch,) = commit.prepared
    assert commit.synchronous
    assert [message.body for _, message in branch.sends] == [b"a", b"b"]
    assert [(subscription, message.position) for subscription, _, message in branch.settled] == [(b.cursor().subscription.number, 0)]


def test_a_branch_that_did_nothing_is_prepared_as_any_other() -> None:
    b = BranchBench()
    assert b.prepared() == OK
    b.start()
    assert b.rows() == [(XID, State.PREPARED, 0, 0)]
    assert b.say(Verb.COMMIT) == OK
    assert b.rows() == []


def test_prepare_and_outcome_may_be_said_in_one_breath() -> None:
    b = BranchBench()
    b.begin()
    b.put("a")
    b.apply(c.EndBranch(1, XID, Verb.PREPARE, "p"), c.EndBranch(1, XID, Verb.COMMIT, "c"), c.BeginBranch(1, b"again", XID, None, 0, "b"))
    assert b.confirmed(b.flush()) == ["p", "c", "b"]
    b.start()
    assert (b.rows(), b.attach()) == ([], ["a"])


def test_it_is_kept_however_long_it_takes() -> None:
    b = prepared(transaction_ms_max=1000)
    b.now += 10_000_000
    b.flush(report=True)
    assert b.say(Verb.COMMIT) == OK


# -- what must leave its messages alone ---------------------------------------------------------------------------------------------------
@RESTARTS
def test_a_purge_leaves_what_it_acknowledged(restarts: int) -> None:
    b = prepared(restarts)
    b.lose()
    b.control("purge", QUEUE, depth=3)
    assert b.depth() == 1
    b.start()
    assert b.say(Verb.ROLL_BACK) == OK
    assert b.attach() == ["q"]


@RESTARTS
@pytest.mark.parametrize("commit", [True, False])
def test_what_it_acknowledged_does_not_expire_before_its_outcome(restarts: int, commit: bool) -> None:
    b = BranchBench()
    b.send("p", "q", "r", expires=b.now + 1000)
    b.attach(credit=2)
    b.prepared("a", tags=(2,), address=OTHER)
    for _ in range(restarts):
        b.start()
    b.lose()
    b.now += 2000
    b.control("expire")
    b.flush(report=True)
    assert (b.depth(), b.depth(DEAD)) == (1, 2)
    assert b.say(Verb.COMMIT if commit else Verb.ROLL_BACK, peer=2) == OK
    assert (b.depth(), b.depth(DEAD)) == ((0, 2) if commit else (0, 3))


@RESTARTS
def test_compaction_keeps_what_it_acknowledged(restarts: int) -> None:
    b = BranchBench(segment_rows=10, compact_below=0.2)
    b.send(*[f"m{number}" for number in range(10)])
    b.attach()
    b.prepared(tags=(5,))
    b.settle(1, 2, 3, 4, 6, 7, 8, 9, 10)
    for _ in range(restarts):
        b.start()
    for number in range(4):
        b.send(*["x"] * 10, address=f"queue/{number}")
        b.flush(report=True)
    assert b.database.tables.retained, "its segment was compacted"
    b.start()
    assert b.say(Verb.ROLL_BACK) == OK
    assert b.attach() == ["m4"]


@RESTARTS
def test_pages_bring_none_of_it(restarts: int) -> None:
    b = BranchBench(page_rows=3, window_rows=3, memory_octets=200)
    b.send(*[f"m{number}" for number in range(20)])
    b.attach(credit=20)
    b.prepared(tags=(2, 3, 9))
    for _ in range(restarts):
        b.start()
    b.lose()
    left = [f"m{number}" for number in range(20) if number not in (1, 2, 8)]
    assert b.attach(9, peer=2, credit=20) == left
    assert held(b) == [1, 2, 8]
    assert b.say(Verb.COMMIT, peer=2) == OK
    b.settle(*range(1, 18), link=9, peer=2)
    assert b.depth() == 0


@RESTARTS
def test_a_selective_consumer_finds_none_of_it(restarts: int) -> None:
    b = BranchBench()
    b.send("p", "q", "r", properties={"colour": "red"})
    b.attach()
    b.prepared(tags=(2,))
    for _ in range(restarts):
        b.start()
    b.lose()
    assert b.attach(9, peer=2, wanted=Filter(compile_selector("colour = 'red'"))) == ["p", "r"]
    b.say(Verb.ROLL_BACK, peer=2)
    assert b.bodies(b.outputs)[-1] == "q"


@RESTARTS
def test_what_was_acknowledged_on_a_topic_is_its_subscriptions_alone(restarts: int) -> None:
    b = BranchBench()
    topic = "topic/news"
    for name, link in (("one", 1), ("two", 2)):
        b.attach(link, address=topic, name=name, durable=True, shared=True)
    b.send("p", "q", address=topic)
    b.prepared(tags=(1,))
    b.settle(1, 2, link=2)
    for _ in range(restarts):
        b.start()
    b.lose()
    assert b.attach(9, peer=2, address=topic, name="one", durable=True, shared=True) == ["q"]
    b.say(Verb.ROLL_BACK, peer=2)
    assert b.bodies(b.outputs)[-1] == "p"


@RESTARTS
@pytest.mark.parametrize("verb", [Verb.COMMIT, Verb.ROLL_BACK])
def test_what_a_pattern_brought_goes_back_to_the_pattern(restarts: int, verb: Verb) -> None:
    b = BranchBench()
    b.attach(address="topic/news.*", name="all", durable=True, shared=True)
    b.send("p", "q", address="topic/news.a")
    b.send("r", address="topic/news.b")
    b.prepared(tags=(1, 3))
    for _ in range(restarts):
        b.start()
    b.lose()
    assert b.attach(9, peer=2, address="topic/news.*", name="all", durable=True, shared=True) == ["q"]
    b.outputs = []
    assert b.say(verb, peer=2) == OK
    assert sorted(b.bodies(b.outputs)) == (["p", "r"] if verb is Verb.ROLL_BACK else [])
