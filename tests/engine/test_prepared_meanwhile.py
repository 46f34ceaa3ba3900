"""Prepared branches, and what has been done meanwhile: to destinations, by limits, by an administrator (R13; checklist items 64 to 66)."""

from __future__ import annotations

import pytest

from broker_core.engine import commands as c
from broker_core.engine.branch import State
from broker_core.engine.commands import Verb
from broker_core.engine.message import Encoding, Header, Message, StoredBody
from broker_core.engine.message_group import GROUP_ID, group_of
from broker_core.engine.outputs import Delivered
from broker_core.engine.refusal import Refusal
from tests.engine.branch_rig import OK, OTHER, RESTARTS, XID, YID, BranchBench, prepared
from tests.engine.rig import ASSURED, BEST_EFFORT, DEAD, EXPRESS, QUEUE, now_of


# -- what has become of things meanwhile --------------------------------------------------------------------------------------------------
@RESTARTS
def test_who_subscribes_before_the_commit_gets_what_it_sends_to_a_topic(restarts: int) -> None:
    b = BranchBench()
    b.prepared("a", address="topic/news")
    for _ in range(restarts):
        b.start()
    b.attach(5, address="topic/news")
    b.say(Verb.COMMIT)
    assert b.bodies(b.outputs) == ["a"]


@RESTARTS
def test_a_destination_that_was_destroyed_is_made_again_whatever_clients_may(restarts: int) -> None:
    b = BranchBench(auto_create=False, destinations_max=3)
    b.control("create", QUEUE)
    b.prepared("a")
    b.control("destroy", QUEUE, depth=0)
    for _ in range(restarts):
        b.start()
    assert b.say(Verb.COMMIT) == OK
    assert b.depth() == 1


def test_an_alias_that_took_the_name_of_a_destroyed_destination_gets_it() -> None:
    b = BranchBench()
    b.prepared("a")
    b.control("create_alias", QUEUE, target=OTHER)
    assert b.say(Verb.COMMIT) == OK
    assert b.attach(address=OTHER) == ["a"]


def test_a_destination_whose_producers_are_paused_takes_what_was_promised() -> None:
    b = BranchBench()
    b.prepared("a")
    b.send("x")
    b.control("pause", QUEUE, direction="PRODUCERS")
    assert b.say(Verb.COMMIT) == OK
    assert b.depth() == 2


@RESTARTS
@pytest.mark.parametrize("verb", [Verb.COMMIT, Verb.ROLL_BACK])
def test_what_it_acknowledged_of_a_destroyed_destination_is_over(restarts: int, verb: Verb) -> None:
    b = prepared()
    b.control("destroy", QUEUE, depth=3)
    for _ in range(restarts):
        b.start()
    assert b.say(verb) == OK
    assert b.rows() == []
    assert not b.destination_exists(QUEUE)


def test_what_it_acknowledged_of_an_ended_subscription_is_over() -> None:
    b = BranchBench()
    b.attach(1, address="topic/news", name="one", durable=True, shared=True)
    b.send("p", address="topic/news")
    b.prepared(tags=(1,))
    b.apply(c.Detach(1, 1), c.Unsubscribe(1, "one"))
    b.flush()
    b.start()
    assert b.say(Verb.ROLL_BACK) == OK


@RESTARTS
def test_a_send_to_a_temporary_destination_that_has_ended_is_dropped(restarts: int) -> None:
    b = BranchBench()
    b.apply(c.Open(5, "guest", "", "s"))
    b.attach(5, peer=5, address="temp-queue/s.replies")
    b.prepared("a", address="temp-queue/s.replies")
    b.lose(5)
    for _ in range(restarts):
        b.start()
    assert b.say(Verb.COMMIT) == OK
    assert b.engine.shard.sends_to_the_gone == 1


def test_one_that_is_still_there_gets_it() -> None:
    b = BranchBench()
    b.apply(c.Open(5, "guest", "", "s"))
    b.attach(5, peer=5, address="temp-queue/s.replies")
    b.prepared("a", address="temp-queue/s.replies")
    b.say(Verb.COMMIT)
    assert b.bodies(b.outputs) == ["a"]


@RESTARTS
def test_a_delay_counts_from_the_send_and_nothing_is_due_before_the_commit(restarts: int) -> None:
    b = BranchBench()
    b.begin()
    b.put("soon", delay=1000)
    b.put("late", delay=5000)
    b.say(Verb.PREPARE)
    for _ in range(restarts):
        b.start()
    b.attach(5)
    assert b.bodies(b.passes(2000)) == []
    b.say(Verb.COMMIT)
    assert b.bodies(b.outputs) == ["soon"]
    assert b.destination().scheduled == 1
    assert b.bodies(b.passes(3000)) == ["late"]


@RESTARTS
def test_names_of_duplicates_are_looked_at_by_the_commit(restarts: int) -> None:
    b = BranchBench()
    b.control("create", QUEUE, duplicate_window_ms=60_000)
    b.prepared("a", duplicate_id="one")
    b.prepared("b", duplicate_id="two", xid=YID)
    b.send("c", duplicate_id="one")
    for _ in range(restarts):
        b.start()
    b.say(Verb.COMMIT)
    b.say(Verb.COMMIT, YID)
    b.send("d", duplicate_id="two")
    assert b.attach() == ["c", "b"]


@RESTARTS
def test_its_messages_still_belong_to_their_groups(restarts: int) -> None:
    b = BranchBench()
    b.begin()
    for body in ("a", "b"):
        header = Header(f"{GROUP_ID}:g".encode(), 4, ASSURED, 0, Encoding.STOMP, group=group_of({GROUP_ID: "g"}))
        b.apply(c.Transacted(1, b"tx", c.Send(1, None, QUEUE, Message(header, body.encode(), 10))))
    b.say(Verb.PREPARE)
    for _ in range(restarts):
        b.start()
    b.attach(5)
    b.attach(6)
    b.say(Verb.COMMIT)
    assert [output.link for output in b.outputs if isinstance(output, Delivered)] == [5, 5]


def test_what_lies_in_a_volatile_lane_is_reserved_while_the_node_lives() -> None:
    b = BranchBench()
    b.send("p", "q", level=EXPRESS)
    b.attach(credit=1)
    b.prepared(tags=(1,))
    assert b.rows() == [(XID, State.PREPARED, 0, 0)]
    b.lose()
    assert b.attach(7, peer=2) == ["q"]
    b.say(Verb.ROLL_BACK, peer=2)
    assert b.bodies(b.outputs)[-1] == "p"


# -- large bodies -------------------------------------------------------------------------------------------------------------------------
def bodies(b: BranchBench) -> list[int]:
    return list(b.database.tables.bodies)


async def large() -> object:
    yield b"large"


@pytest.mark.parametrize("level", [EXPRESS, ASSURED])
def test_a_large_body_is_kept_until_its_branch_is_rolled_back(level: int) -> None:
    b = BranchBench()
    body = now_of(b.store.write_body(large()))
    b.prepared("a", large=body, level=level)
    b.start()
    b.start()
    assert bodies(b) == [body]
    b.say(Verb.ROLL_BACK)
    assert [body for effects in b.effects for body in effects.discarded] == [body]


@pytest.mark.parametrize("level", [EXPRESS, ASSURED])
def test_a_large_body_is_its_messages_from_the_commit_on(level: int) -> None:
    b = BranchBench()
    body = now_of(b.store.write_body(large()))
    b.prepared("a", large=body, level=level)
    b.start()
    b.say(Verb.COMMIT)
    b.attach()
    (message,) = b.delivered(b.outputs)
    assert isinstance(message.body, StoredBody)
    assert message.body.body == body
    b.settle(1)
    assert [body for effects in b.effects for body in effects.discarded] == ([body] if level is EXPRESS else []), "else it goes with its segment"


# -- by hand ------------------------------------------------------------------------------------------------------------------------------
@RESTARTS
@pytest.mark.parametrize(
    ("verb", "state", "refusal"),
    [("commit", State.HEURISTICALLY_COMMITTED, Refusal.XA_HEURCOM), ("rollback", State.HEURISTICALLY_ROLLED_BACK, Refusal.XA_HEURRB)],
)
def test_an_administrator_ends_it_and_that_is_remembered_until_it_is_forgotten(restarts: int, verb: str, state: State, refusal: Refusal) -> None:
    b = prepared(restarts)
    answer = b.control(verb, branch=b.number())
    assert answer == {"branch": b.number(), "xid": XID, "account": "guest", "state": state.name}
    assert b.rows() == [(XID, state, 0, 0)]
    b.start()
    assert b.say(Verb.COMMIT) is refusal
    assert b.say(Verb.ROLL_BACK) is refusal
    assert b.say(Verb.PREPARE) is Refusal.XAER_PROTO
    assert b.begin() is Refusal.XAER_DUPID
    assert b.attach() == (["r", "s"] if verb == "commit" else ["q", "r", "s"])
    assert b.destination_exists(OTHER) == (verb == "commit")
    assert b.say(Verb.FORGET) == OK
    assert b.rows() == []
    b.start()
    assert b.say(Verb.FORGET) is Refusal.XAER_NOTA


def test_an_administrator_may_forget_it_too() -> None:
    b = prepared()
    assert b.control("forget", branch=b.number())["refusal"] == "XAER_PROTO"
    b.control("commit", branch=b.number())
    b.control("forget", branch=b.number())
    assert (b.rows(), b.state()) == ([], None)


@pytest.mark.parametrize("verb", ["commit", "rollback"])
def test_what_an_administrator_ended_he_does_not_end_again(verb: str) -> None:
    b = prepared()
    b.control("commit", branch=b.number())
    assert b.control(verb, branch=b.number())["refusal"] == "XAER_PROTO"


@pytest.mark.parametrize("branch", [0, 999, "x", None, [1]])
def test_a_branch_that_is_not_prepared_is_none_for_an_administrator(branch: object) -> None:
    b = BranchBench()
    b.begin()
    assert b.control("commit", branch=branch)["refusal"] == "XAER_NOTA"
    assert b.control("rollback")["refusal"] == "XAER_NOTA"


# -- limits -------------------------------------------------------------------------------------------------------------------------------
def test_limits_count_at_the_prepare_and_never_at_the_commit() -> None:
    b = BranchBench()
    b.control("create", QUEUE, max_messages=2, limit_behavior="REJECT_NEWEST")
    assert b.prepared("a", "b", "c") is Refusal.XA_RBROLLBACK
    assert b.prepared("a", "b") == OK
    b.send("x", "y")
    b.start()
    assert b.say(Verb.COMMIT) == OK
    assert b.attach() == ["x", "y", "a", "b"]


def test_what_it_acknowledged_makes_room_at_the_commit_and_not_before() -> None:
    b = BranchBench()
    b.control("create", QUEUE, max_messages=2, limit_behavior="REJECT_NEWEST")
    b.send("x", "y")
    b.attach(credit=2)
    assert b.prepared("a", tags=(1, 2)) == OK
    assert b.refused(b.send("z")) == [Refusal.DESTINATION_FULL]
    assert b.say(Verb.COMMIT) == OK
    b.send("z")
    assert b.depth() == 2


def test_best_effort_that_finds_no_room_at_the_prepare_is_dropped() -> None:
    b = BranchBench()
    b.control("create", QUEUE, max_messages=1, limit_behavior="REJECT_NEWEST")
    b.send("x")
    assert b.prepared("a", level=BEST_EFFORT) == OK
    b.say(Verb.COMMIT)
    assert b.depth() == 1
    assert b.engine.shard.turned_away == 1


def test_where_producers_wait_the_answer_to_the_prepare_waits_until_there_is_room() -> None:
    b = BranchBench()
    b.control("create", QUEUE, max_messages=1, limit_behavior="FLOW_CONTROL")
    for body, xid in (("a", XID), ("b", YID)):
        assert b.prepared(body, xid=xid) == OK, "there is no more than there may be"
    for xid in (XID, YID):
        assert b.say(Verb.COMMIT, xid) == OK
    b.begin()
    b.put("c")
    b.apply(c.EndBranch(1, XID, Verb.PREPARE, OK))
    assert b.confirmed(b.flush()) == []
    assert b.state() is State.PREPARED
    assert b.attach(7, peer=2) == ["a", "b"]
    assert b.confirmed(b.settle(1, link=7, peer=2)) == [OK]
    assert b.say(Verb.COMMIT) == OK


def test_a_destination_that_removes_the_oldest_does_so_at_the_commit() -> None:
    b = BranchBench()
    b.control("create", QUEUE, max_messages=1, limit_behavior="REMOVE_OLDEST")
    b.send("x")
    assert b.prepared("a") == OK
    b.flush()
    assert b.depth() == 1
    assert b.say(Verb.COMMIT) == OK
    b.flush()
    assert b.attach() == ["a"]


def test_a_time_to_live_that_the_destination_gives_counts_from_the_send() -> None:
    b = BranchBench()
    b.control("create", QUEUE, time_to_live_ms=1000)
    b.prepared("a")
    b.now += 1500
    b.say(Verb.COMMIT)
    b.passes(1)
    assert (b.depth(), b.depth(DEAD)) == (0, 1)
