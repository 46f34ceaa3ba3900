"""Temporary destinations: whose they are, what becomes of what is sent there, and that nothing of them is left (JMS 6.2.2)."""

from __future__ import annotations

import gc

import pytest

from broker_core.engine import commands as c
from broker_core.engine.destination import Destination
from broker_core.engine.message import VOLATILE, Encoding, Header, Message, StoredBody
from broker_core.engine.outcome import Outcome
from broker_core.engine.outputs import Confirmed
from broker_core.engine.refusal import Refusal
from broker_core.engine.selector import compile_selector
from broker_core.engine.subscription import Filter
from tests.engine.rig import ASSURED, BEST_EFFORT, DEAD, EXPRESS, QUEUE, RELIABLE, START, Bench

REPLIES = "temp-queue/s2.replies"
NEWS = "temp-topic/s2.news"


def bench(**how) -> Bench:
    """Peer 2 asks in session `s2`, peer 3 answers in session `s3`."""
    made = Bench(**how)
    open_peers(made)
    return made


def open_peers(made: Bench) -> None:
    made.apply(c.Open(2, "guest", "", "s2"), c.Open(3, "guest", "", "s3"))


def asks(b: Bench, address: str = REPLIES, **how) -> list[str]:
    return b.attach(peer=2, address=address, **how)


def answers(b: Bench, *bodies: str, address: str = REPLIES, peer: int = 3, token: object = "receipt", **header) -> list:
    for body in bodies:
        b.apply(c.Send(peer, token, address, message(body, **header)))
    return b.flush()


def message(body: str | StoredBody, level: int = ASSURED, priority: int = 4, expires: int = 0, size: int = 10, octets: bytes = b"") -> Message:
    return Message(Header(octets, priority, level, expires, Encoding.STOMP), body if isinstance(body, StoredBody) else body.encode(), size)


def made(b: Bench, address: str = REPLIES, peer: int = 2) -> None:
    b.apply(c.CreateTemporary(peer, address))
    b.flush()


# -- making ---------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "use",
    [
        made,
        asks,
        lambda b: answers(b, "to myself", peer=2),
    ],
    ids=["create", "attach", "send"],
)
def test_the_owners_first_use_makes_it(use) -> None:
    b = bench()
    use(b)
    assert b.destination(REPLIES).owner is b.engine.shard.peers[2]


def test_making_it_again_changes_nothing_and_is_confirmed() -> None:
    b = bench()
    asks(b)
    answers(b, "a")
    b.apply(c.CreateTemporary(2, REPLIES, "again"))
    assert b.confirmed(b.flush()) == ["again"]
    assert b.depth(REPLIES) == 1


def test_a_reply_that_comes_before_its_consumer_waits_for_it() -> None:
    b = bench()
    made(b)
    answers(b, "early")
    assert asks(b) == ["early"]


@pytest.mark.parametrize("address", ["temp-queue/s3.x", "temp-queue/s22.x", "temp-queue/s2", "temp-queue/x"])
def test_nobody_makes_one_in_the_name_of_another(address) -> None:
    b = bench()
    b.apply(c.CreateTemporary(2, address, "t"))
    assert b.refused(b.flush()) == [Refusal.TEMPORARY_DESTINATION_GONE]
    b.apply(c.Attach(2, 1, address, "t", credit=1))
    assert b.refused(b.flush()) == [Refusal.NOT_THE_OWNER]
    assert address not in b.engine.shard.destinations


def test_a_peer_without_a_session_makes_none() -> None:
    b = bench()
    b.apply(c.CreateTemporary(1, "temp-queue/.x", "t"))
    assert b.refused(b.flush()) == [Refusal.TEMPORARY_DESTINATION_GONE]


def test_where_clients_create_no_destinations_they_make_temporary_ones_all_the_same() -> None:
    b = bench(auto_create=False)
    asks(b)
    assert b.bodies(answers(b, "m")) == ["m"]


# -- using ----------------------------------------------------------------------------------------------------------------------------
def test_anybody_sends_and_only_the_owner_consumes() -> None:
    b = bench()
    asks(b)
    assert b.bodies(answers(b, "from 3")) == ["from 3"]
    assert b.bodies(answers(b, "from 2", peer=2)) == ["from 2"]
    b.apply(c.Attach(3, 9, REPLIES, "t", credit=1))
    assert b.refused(b.flush()) == [Refusal.NOT_THE_OWNER]


def test_a_temporary_topic_is_for_all_subscriptions_of_its_owner_and_none_is_durable() -> None:
    b = bench()
    asks(b, NEWS, link=1)
    asks(b, NEWS, link=2)
    assert b.bodies(answers(b, "m", address=NEWS)) == ["m", "m"]
    b.apply(c.Attach(2, 3, NEWS, "t", credit=1, name="d", durable=True))
    assert b.refused(b.flush()) == [Refusal.NOT_DURABLE]


def test_selectors_and_priorities_are_as_elsewhere() -> None:
    b = bench()
    asks(b, NEWS, wanted=Filter(compile_selector("JMSPriority > 4")))
    assert b.bodies(answers(b, "low", address=NEWS, priority=1)) == []
    assert b.bodies(answers(b, "high", address=NEWS, priority=9)) == ["high"]
    made(b)
    for name, priority in (("a", 1), ("b", 4), ("c", 9)):
        answers(b, name, priority=priority)
    assert asks(b, link=2) == ["c", "b", "a"]


def test_an_acknowledgement_ends_a_reply_and_a_failure_brings_it_back() -> None:
    b = bench()
    asks(b)
    answers(b, "a", "b")
    b.settle(1, link=1, peer=2)
    assert [m.redelivered for m in b.delivered(b.settle(2, link=1, peer=2, outcome=Outcome.FAILED))] == [True]
    b.settle(3, link=1, peer=2)
    assert (b.depth(REPLIES), b.destination(REPLIES).octets) == (0, 0)


@pytest.mark.parametrize("level", [BEST_EFFORT, EXPRESS, RELIABLE, ASSURED])
def test_nothing_of_it_is_ever_written(level) -> None:
    b = bench()
    asks(b)
    answers(b, "a", "b", level=level)
    b.settle(1, link=1, peer=2)
    b.settle(2, link=1, peer=2, outcome=Outcome.FAILED)
    b.control("pause", REPLIES)
    b.flush(report=True)
    b.apply(c.PeerLost(2))
    b.flush(report=True)
    commits = [effects.commit for effects in b.effects if effects.commit is not None]
    assert not [c for c in commits if c.messages or c.accepted or c.offered or c.settled or c.failures or c.octets]
    assert not [d for c in commits for d in c.definitions if getattr(d, "address", DEAD) != DEAD]
    assert not [row for effects in b.effects if effects.checkpoint for row in effects.checkpoint.counters if row[0] < 0]


def test_making_using_and_ending_one_asks_nothing_of_the_database() -> None:
    b = bench()
    b.flush()
    before = len(b.effects)
    asks(b)
    answers(b, "a")
    b.settle(1, link=1, peer=2)
    b.apply(c.PeerLost(2))
    b.flush()
    assert all(effects.commit is None for effects in b.effects[before:])


def test_what_memory_does_not_hold_spills_and_comes_back() -> None:
    b = bench(memory_octets=400, page_rows=2)
    made(b)
    answers(b, *[f"m{n}" for n in range(12)], size=50)
    assert any(effects.commit and effects.commit.spilled for effects in b.effects)
    assert asks(b) == [f"m{n}" for n in range(12)]


def test_what_expires_or_fails_too_often_is_discarded_and_counted() -> None:
    """As ActiveMQ does with what is not persistent: among the dead it would hide what an operator must see."""
    b = bench()
    asks(b, credit=1)
    answers(b, "a", "b", expires=START + 50)
    b.passes(100)
    b.settle(1, link=1, peer=2, outcome=Outcome.REJECTED)
    assert (b.depth(DEAD), b.depth(REPLIES)) == (0, 0)
    assert (b.destination(REPLIES).dead, b.destination(REPLIES).expired) == (2, 1)


# -- ending ---------------------------------------------------------------------------------------------------------------------------
def test_it_ends_with_its_connection_and_with_it_what_it_holds() -> None:
    b = bench()
    asks(b, credit=1)
    asks(b, NEWS, link=2, credit=1)
    answers(b, "a", "b")
    answers(b, "a", "b", address=NEWS)
    b.apply(c.PeerLost(2))
    b.flush()
    assert set(b.engine.shard.destinations) == {DEAD}
    assert b.engine.shard.memory == 0
    assert b.depth(DEAD) == 0


def test_large_bodies_that_it_held_are_discarded() -> None:
    b = bench(memory_octets=400)
    asks(b, credit=1)
    for body in range(1, 5):  # one delivered, some waiting, one spilled
        b.apply(c.Send(3, None, REPLIES, message(StoredBody(body, 100), EXPRESS, size=110)))
        b.flush()
    b.apply(c.PeerLost(2))
    b.flush()
    assert sorted(body for effects in b.effects for body in effects.discarded) == [1, 2, 3, 4]


def test_the_memory_of_those_that_ended_is_free() -> None:
    b = bench()
    asks(b)
    answers(b, "a", expires=START + 10_000_000)
    b.apply(c.PeerLost(2))
    b.flush(report=True)
    b.flush(report=True)
    b.effects.clear()
    b.outputs.clear()
    b.engine.shard.timers._sweep()
    gc.collect()
    assert not [thing for thing in gc.get_objects() if type(thing) is Destination and thing.address == REPLIES]


def test_after_a_restart_nothing_of_it_is_there() -> None:
    b = bench()
    asks(b)
    answers(b, "a")
    b.send("m")
    b.flush(report=True)
    b.start()
    open_peers(b)
    assert set(b.engine.shard.destinations) == {DEAD, QUEUE}
    assert asks(b) == []


def test_a_number_that_is_in_use_is_not_given_again() -> None:
    b = bench()
    made(b)
    first = b.destination(REPLIES).number
    b.engine.shard.last_temporary = (1 << 31) - 1
    made(b, NEWS)
    assert (first, b.destination(NEWS).number) == (-1, -2)


# -- sending to what is gone ------------------------------------------------------------------------------------------------------------
def test_a_send_to_one_that_has_ended_is_refused_and_counted() -> None:
    b = bench()
    asks(b)
    b.apply(c.PeerLost(2))
    assert b.refused(answers(b, "late")) == [Refusal.TEMPORARY_DESTINATION_GONE]
    assert b.engine.shard.sends_to_the_gone == 1
    b.apply(c.Send(3, None, REPLIES, message(StoredBody(7, 100))))
    b.flush()
    assert [body for effects in b.effects for body in effects.discarded] == [7]


def test_within_a_transaction_such_a_send_is_dropped_and_the_rest_is_done() -> None:
    b = bench()
    b.apply(c.Begin(3, b"t"))
    for address in (REPLIES, QUEUE):
        b.apply(c.Transacted(3, b"t", c.Send(3, None, address, message("m")), "taken"))
    b.apply(c.End(3, b"t", True, "done"))
    assert b.confirmed(b.flush()) == ["taken", "taken", "done"]
    assert b.depth() == 1
    assert b.engine.shard.sends_to_the_gone == 1


def test_one_that_ends_while_a_transaction_is_open_does_not_fail_its_commit() -> None:
    b = bench()
    asks(b)
    b.apply(c.Begin(3, b"t"))
    for address in (REPLIES, QUEUE):
        b.apply(c.Transacted(3, b"t", c.Send(3, None, address, message("m"))))
    b.apply(c.PeerLost(2), c.End(3, b"t", True, "done"))
    assert [type(output) for output in b.flush()] == [Confirmed]
    assert b.depth() == 1
    assert b.engine.shard.sends_to_the_gone == 1


def test_replies_of_a_transaction_come_with_its_commit_and_acknowledgements_within_one_hold() -> None:
    b = bench()
    asks(b)
    b.apply(c.Begin(3, b"t"), c.Transacted(3, b"t", c.Send(3, None, REPLIES, message("m"))))
    assert b.bodies(b.flush()) == []
    b.apply(c.End(3, b"t", True))
    assert b.bodies(b.flush()) == ["m"]
    b.apply(c.Begin(2, b"u"), c.Transacted(2, b"u", c.Settle(2, 1, [1])))
    b.flush()
    b.apply(c.PeerLost(2))
    b.flush()
    assert b.engine.shard.memory == 0


# -- bounds and operators -----------------------------------------------------------------------------------------------------------------
def test_a_connection_has_so_many_and_no_more() -> None:
    b = bench(temporaries_max=2)
    for number in range(2):
        made(b, f"temp-queue/s2.{number}")
    b.apply(c.CreateTemporary(2, "temp-queue/s2.more", "t"))
    assert b.refused(b.flush()) == [Refusal.TOO_MANY_TEMPORARIES]
    made(b, "temp-queue/s3.other", peer=3)


WORK = "queue/work"


def request(reply_to: str, token: str | None = "t") -> c.Request:
    return c.Request(2, token, WORK, message("request"), reply_to)


def test_a_request_makes_the_destination_of_its_replies_first() -> None:
    b = bench()
    b.apply(request(REPLIES))
    assert b.confirmed(b.flush()) == ["t"]
    assert b.destination(REPLIES).owner is b.engine.shard.peers[2]
    assert b.depth(WORK) == 1


def test_a_request_whose_replies_have_nowhere_to_go_is_not_sent() -> None:
    b = bench(temporaries_max=1)
    made(b)
    b.apply(request("temp-queue/s2.more"))
    assert b.refused(b.flush()) == [Refusal.TOO_MANY_TEMPORARIES]
    assert WORK not in b.engine.shard.destinations


def test_nor_is_anything_of_its_transaction() -> None:
    b = bench(temporaries_max=1)
    b.apply(c.Begin(2, b"t"), c.Transacted(2, b"t", request(REPLIES, None)))
    b.flush()
    assert b.destination(REPLIES), "made at once: others may be told of it"
    b.apply(c.Transacted(2, b"t", request("temp-queue/s2.more", None)), c.End(2, b"t", commit=True))
    assert b.refused(b.flush()) == [Refusal.TOO_MANY_TEMPORARIES, Refusal.TOO_MANY_TEMPORARIES]
    assert WORK not in b.engine.shard.destinations


def test_they_count_among_all_destinations() -> None:
    b = bench(destinations_max=2)
    made(b)
    b.apply(c.CreateTemporary(2, NEWS, "t"))
    assert b.refused(b.flush()) == [Refusal.TOO_MANY_DESTINATIONS]


def test_one_queue_a_request_does_not_fill_the_broker() -> None:
    b = bench(temporaries_max=3)
    for number in range(50):
        address = f"temp-queue/s2.{number}"
        asks(b, address)
        assert b.bodies(answers(b, "m", address=address)) == ["m"]
        b.settle(1, link=1, peer=2)
        b.apply(c.Detach(2, 1))
        b.flush()
    assert len(b.engine.shard.destinations) == 1 + 3


def test_one_that_still_holds_a_reply_does_not_make_room_for_another() -> None:
    b = bench(temporaries_max=1)
    asks(b)
    b.apply(c.Detach(2, 1))
    answers(b, "kept")
    b.apply(c.CreateTemporary(2, NEWS, "t"))
    assert b.refused(b.flush()) == [Refusal.TOO_MANY_TEMPORARIES]
    assert asks(b) == ["kept"]


def test_only_one_that_its_consumers_have_left_is_reaped() -> None:
    b = bench()
    made(b, "temp-queue/s2.never")
    asks(b, "temp-queue/s2.left", link=1)
    asks(b, "temp-queue/s2.used", link=2)
    b.apply(c.Detach(2, 1))
    b.passes(121_000)
    assert b.control("reap")["reaped"] == 1
    assert set(b.engine.shard.destinations) == {DEAD, "temp-queue/s2.never", "temp-queue/s2.used"}


def test_operators_see_it_and_are_told_when_it_has_gone() -> None:
    b = bench()
    asks(b)
    b.flush(report=True)
    (row,) = [row for effects in b.effects for row in effects.statistics if row.address == REPLIES]
    assert (row.destination, row.consumers) == (-1, 1)
    b.apply(c.PeerLost(2))
    b.flush(report=True)
    b.flush(report=True)
    assert [number for effects in b.effects for number in effects.unlisted] == [-1]


def test_one_that_came_and_went_unseen_is_not_spoken_of() -> None:
    b = bench()
    asks(b)
    b.apply(c.PeerLost(2))
    b.flush(report=True)
    assert not [number for effects in b.effects for number in effects.unlisted]


def test_an_operator_can_purge_and_destroy_it() -> None:
    b = bench()
    asks(b, credit=1)
    answers(b, "a", "b", "c")
    assert b.control("purge", REPLIES) == {"purged": 2, "outstanding": 1}
    assert b.control("destroy", REPLIES) == {"discarded": 1, "scheduled": 0}
    assert set(b.engine.shard.destinations) == {DEAD}
    assert not b.engine.shard.peers[2].temporaries


def test_what_is_sent_while_an_operator_has_paused_it_is_refused_and_after_that_delivered() -> None:
    b = bench()
    asks(b)
    b.control("pause", REPLIES, direction="PRODUCERS")
    assert b.refused(answers(b, "a")) == [Refusal.DESTINATION_PAUSED]
    b.control("resume", REPLIES)
    assert b.bodies(answers(b, "b")) == ["b"]


def test_lanes_of_a_temporary_destination_are_volatile_whatever_was_asked_for() -> None:
    b = bench()
    asks(b)
    (reply,) = b.delivered(answers(b, "a", level=ASSURED))
    assert reply.header.lane == VOLATILE + 4
    assert reply.header.reliability == ASSURED
