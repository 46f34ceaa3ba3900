"""Prepared branches: what is promised of them whatever happens (R13; checklist items 64 and 66)."""

from __future__ import annotations

import pytest

from broker_core.engine import commands as c
from broker_core.engine.branch import State
from broker_core.engine.commands import Verb
from broker_core.engine.effects import Delivered, Outcome
from broker_core.engine.message import Encoding, Header, Message, StoredBody
from broker_core.engine.message_group import GROUP_ID, group_of
from broker_core.engine.refusal import Refusal
from broker_core.engine.selector import compile_selector
from broker_core.engine.subscription import Filter
from tests.engine.branch_rig import OK, OTHER, XID, YID, BranchBench
from tests.engine.rig import ASSURED, BEST_EFFORT, DEAD, EXPRESS, QUEUE, RELIABLE, now_of

LEVELS = {"queue/express": EXPRESS, "queue/reliable": RELIABLE, "queue/assured": ASSURED}
RESTARTS = pytest.mark.parametrize("restarts", [0, 1, 2], ids=["at once", "after a restart", "after two"])


def prepared(restarts: int = 0, **limits: object) -> BranchBench:
    """Of four messages the second is acknowledged in a branch that sends one elsewhere; the first is acknowledged besides, the others are there."""
    b = BranchBench(**limits)
    b.send("p", "q", "r", "s")
    b.attach(credit=3)
    assert b.prepared("a", tags=(2,), address=OTHER) == OK
    b.settle(1)
    for _ in range(restarts):
        b.flush(report=True)
        b.start()
    return b


def held(b: BranchBench, address: str = QUEUE) -> list[int]:
    return list(b.cursor(address=address).reserved)


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
    assert b.attach(9, peer=2, wanted=Filter(compile_selector("colour = 'red'", coerce=True))) == ["p", "r"]
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


def test_what_is_not_persistent_and_finds_no_room_at_the_prepare_is_dropped() -> None:
    b = BranchBench()
    b.control("create", QUEUE, max_messages=1, limit_behavior="REJECT_NEWEST")
    b.send("x")
    assert b.prepared("a", level=EXPRESS) == OK
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
