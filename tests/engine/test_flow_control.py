"""FLOW_CONTROL: sends to a full destination wait, their receipts with them, and come in as consumers take (R20)."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core.engine import commands as c
from broker_core.engine.message import Header, Message, Reliability, StoredBody
from broker_core.engine.outputs import Confirmed
from broker_core.engine.refusal import Refusal
from broker_core.engine.settings import Settings
from tests.engine.rig import ASSURED, BEST_EFFORT, EXPRESS, QUEUE, RELIABLE, Bench

OTHER = "queue/other"


def full(**settings: object) -> Bench:
    bench = Bench()
    bench.control("create", QUEUE, **{"max_messages": 2, **settings})
    bench.send("a", "b")
    return bench


def send(bench: Bench, body: str, *, peer: int = 1, token: object = "asks", address: str = QUEUE, level: int = ASSURED) -> None:
    bench.apply(c.Send(peer, body if token == "asks" else token, address, Message(Header(b"", 4, level), body.encode(), 10)))


def ask(bench: Bench, verb: str, **arguments: object) -> None:
    """An operator, in one flush with what comes next."""
    bench.apply(c.Control(bench.database.request(verb, QUEUE, arguments), verb, QUEUE, arguments))


def test_a_send_waits_without_its_receipt_and_other_destinations_go_on() -> None:
    bench = full()
    send(bench, "c")
    send(bench, "d", address=OTHER)
    assert bench.confirmed(bench.flush()) == ["d"]
    assert (bench.depth(), bench.depth(OTHER)) == (2, 1)


def test_it_comes_in_when_there_is_room_in_the_order_of_sending() -> None:
    bench = full()
    bench.send("c", "d")
    bench.attach(credit=2)
    outputs = bench.settle(1)
    assert (bench.confirmed(outputs), bench.bodies(outputs)) == (["c"], ["c"])
    outputs = bench.settle(2, 3)
    assert (bench.confirmed(outputs), bench.bodies(outputs)) == (["d"], ["d"])


def test_nothing_overtakes_what_waits() -> None:
    bench = full(max_messages=-1, max_octets=25)
    bench.send("large", size=20)
    send(bench, "small")
    bench.attach(credit=1)
    assert bench.confirmed(bench.settle(1)) == []
    assert bench.confirmed(bench.settle(2)) == ["large"]


def test_without_a_receipt_there_is_only_the_limit() -> None:
    bench = full()
    send(bench, "c", token=None)
    assert bench.refused(bench.flush()) == [Refusal.DESTINATION_FULL]
    send(bench, "d", token=None, level=EXPRESS)
    assert bench.flush() == []
    assert bench.depth() == 2


def test_what_waits_is_forgotten_with_its_connection() -> None:
    bench = full()
    bench.apply(c.Open(2, "guest"))
    send(bench, "c", peer=2)
    send(bench, "d")
    bench.apply(c.PeerLost(2))
    bench.flush()
    assert bench.confirmed(bench.control("purge", QUEUE, depth=2) and bench.outputs[-1:]) == ["d"]
    assert bench.attach() == ["d"]


def test_a_farewell_waits_behind_what_waits() -> None:
    bench = full()
    send(bench, "c")
    bench.apply(c.Sync(1, "bye"))
    assert bench.confirmed(bench.flush()) == []
    bench.attach()
    assert bench.confirmed(bench.settle(1)) == ["c", "bye"]


def test_a_purge_an_expiry_and_another_limit_make_room() -> None:
    bench = full()
    bench.send("c", "d", "e")
    bench.outputs.clear()
    bench.control("update", QUEUE, max_messages=3)
    assert bench.confirmed(bench.outputs) == ["c"]
    bench.control("update", QUEUE, max_messages=-1)
    assert bench.confirmed(bench.outputs) == ["c", "d", "e"]
    assert bench.destination().capacity is None


def test_what_waits_for_a_destination_that_is_destroyed_goes_to_the_next_of_its_name() -> None:
    bench = full()
    bench.send("c")
    bench.control("destroy", QUEUE, depth=2)
    bench.flush()
    assert bench.attach() == ["c"]


def test_nothing_that_is_sent_to_the_next_of_its_name_overtakes_what_waits() -> None:
    bench = full()
    for body in ("c", "d", "e"):
        send(bench, body)
    bench.flush()
    ask(bench, "destroy", depth=2)
    send(bench, "f")
    assert bench.confirmed(bench.flush()) == ["c", "d", "e", "f"]
    assert bench.attach(credit=9) == ["c", "d", "e", "f"]


def test_what_the_next_of_its_name_says_counts_for_what_waited() -> None:
    bench = full()
    bench.send("large", size=20)
    bench.send("c", "d")
    ask(bench, "destroy", depth=2)
    ask(bench, "create", max_messages=1, max_message_octets=15)
    outputs = bench.flush()
    assert (bench.refused(outputs), bench.confirmed(outputs)) == ([Refusal.MESSAGE_TOO_LARGE], ["c"])
    assert bench.attach(credit=9) == ["c"]
    assert bench.bodies(bench.settle(1)) == ["d"]


def test_what_waits_stays_where_it_is_while_producers_are_paused() -> None:
    bench = full()
    bench.send("c")
    bench.control("pause", QUEUE, direction="PRODUCERS")
    bench.control("purge", QUEUE, depth=2)
    assert bench.depth() == 0
    bench.control("resume", QUEUE, direction="PRODUCERS")
    assert bench.depth() == 1


def test_while_there_is_no_disk_space_nothing_comes_in() -> None:
    bench = full()
    bench.send("c")
    bench.attach(credit=1)
    bench.apply(c.Settle(1, 1, [1]))
    assert not any(isinstance(output, Confirmed) for output in bench.engine.flush(bench.now, space_low=True).outputs)


def test_more_than_memory_may_hold_is_refused() -> None:
    bench = Bench(waiting_octets=800)
    bench.control("create", QUEUE, max_messages=1)
    bench.send("a", "b")
    assert bench.refused(bench.send("c")) == [Refusal.DESTINATION_FULL]


def test_many_are_let_in_portion_by_portion() -> None:
    bench = Bench(admissions=2, slow=True)
    bench.control("create", QUEUE, max_messages=1)
    bench.send(*"abcdef")
    bench.control("update", QUEUE, max_messages=100)
    counts = [bench.depth()]
    while bench.engine.next_deadline() == bench.now:
        bench.flush()
        counts.append(bench.depth())
    assert counts[-1] == 6 and len(counts) > 2


# -- transactions -----------------------------------------------------------------------------------------------------------------------
def commit(bench: Bench, *bodies: str, settles: tuple[int, ...] = (), token: object = "commit", level: int = ASSURED) -> list:
    bench.apply(c.Begin(1, b"t"))
    for body in bodies:
        bench.apply(c.Transacted(1, b"t", c.Send(1, None, QUEUE, Message(Header(b"", 4, level), body.encode(), 10))))
    if settles:
        bench.apply(c.Transacted(1, b"t", c.Settle(1, 1, list(settles))))
    bench.apply(c.End(1, b"t", True, token))
    return bench.flush()


def test_a_commit_that_does_not_fit_does_nothing() -> None:
    bench = full(limit_behavior="REJECT_NEWEST", max_messages=3)
    send(bench, "elsewhere", address=OTHER)
    bench.attach(credit=1)
    assert bench.refused(commit(bench, "c", "d")) == [Refusal.DESTINATION_FULL]
    assert bench.depth() == 2
    assert bench.confirmed(commit(bench, "c")) == ["commit"]


def test_what_a_commit_takes_away_makes_room_for_what_it_sends() -> None:
    bench = full(limit_behavior="REJECT_NEWEST")
    bench.attach(credit=2)
    assert bench.confirmed(commit(bench, "c", "d", settles=(1, 2))) == ["commit"]
    assert bench.depth() == 2


def test_best_effort_of_a_commit_that_does_not_fit_is_dropped_alone() -> None:
    bench = full(limit_behavior="REJECT_NEWEST", max_messages=3)
    assert bench.confirmed(commit(bench, "c", "d", level=BEST_EFFORT)) == ["commit"]
    assert bench.depth() == 3


@pytest.mark.parametrize("level", [EXPRESS, Reliability.RELIABLE_NONPERSISTENT, RELIABLE, ASSURED], ids=lambda level: level.name)
@pytest.mark.parametrize("there", [True, False], ids=["a destination", "one that it would create"])
def test_of_any_other_level_all_of_a_commit_has_room_or_nothing_of_it_is_done(level: Reliability, there: bool) -> None:
    """Nothing is lost alone (checklist items 114 and 122)."""
    bench = full(limit_behavior="REJECT_NEWEST", max_messages=3)
    if not there:
        bench.control("set_policy", "queue/*", max_messages=1, limit_behavior="REJECT_NEWEST")
    limited = QUEUE if there else "queue/new"
    bench.apply(c.Begin(1, b"t"))
    for address, at in (("queue/other", ASSURED), (limited, level), (limited, level)):
        bench.apply(c.Transacted(1, b"t", c.Send(1, None, address, Message(Header(b"", 4, at), b"x", 10))))
    bench.apply(c.End(1, b"t", True, "commit"))
    assert bench.refused(bench.flush()) == [Refusal.DESTINATION_FULL]
    assert bench.depth() == 2
    assert not {"queue/other", "queue/new"} & bench.engine.shard.destinations.keys()


def test_a_commits_other_messages_have_their_room_before_best_effort() -> None:
    bench = Bench()
    bench.control("create", QUEUE, max_messages=2, limit_behavior="REJECT_NEWEST")
    bench.apply(c.Begin(1, b"t"))
    for body, level in (("dropped", BEST_EFFORT), ("a", ASSURED), ("b", EXPRESS), ("too much", BEST_EFFORT)):
        bench.apply(c.Transacted(1, b"t", c.Send(1, None, QUEUE, Message(Header(b"", 4, level), body.encode(), 10))))
    bench.apply(c.End(1, b"t", True, "commit"))
    assert bench.confirmed(bench.flush()) == ["commit"]
    assert bench.attach() == ["a", "b"]


def test_a_commit_under_flow_control_is_done_and_its_receipt_waits_for_room() -> None:
    bench = full()
    assert bench.confirmed(commit(bench, "c")) == []
    assert bench.depth() == 3
    assert bench.refused(commit(bench, "d")) == [Refusal.DESTINATION_FULL]
    bench.attach(credit=1)
    assert bench.confirmed(bench.settle(1)) == ["commit"]


def test_a_commit_lets_in_what_its_connection_sent_before_and_is_confirmed_when_there_is_room() -> None:
    bench = full()
    bench.apply(c.Open(2, "guest"))
    send(bench, "another's", peer=2)
    send(bench, "c")
    assert bench.confirmed(commit(bench, "d")) == ["c"]
    assert bench.attach(credit=9) == ["a", "b", "c", "d"]
    assert bench.confirmed(bench.settle(1, 2)) == []
    outputs = bench.settle(3)
    assert (bench.confirmed(outputs), bench.bodies(outputs)) == (["another's", "commit"], ["another's"])


def test_nothing_of_a_commit_overtakes_what_waits_though_it_makes_room_itself() -> None:
    bench = full()
    bench.attach(credit=9)
    send(bench, "c")
    assert bench.bodies(commit(bench, "d", settles=(1, 2))) == ["c", "d"]
    send(bench, "e", level=EXPRESS)
    outputs = commit(bench, "f", level=EXPRESS)
    assert (bench.bodies(outputs), bench.confirmed(outputs)) == (["e", "f"], ["e"])


def test_a_commit_that_cannot_wait_for_room_is_refused_while_sends_of_its_connection_wait() -> None:
    bench = full()
    bench.attach(credit=9)
    send(bench, "c", level=EXPRESS)
    assert bench.refused(commit(bench, "d", settles=(1,), token=None)) == [Refusal.DESTINATION_FULL]
    commit(bench, "dropped", level=EXPRESS, token=None)
    assert bench.depth() == 2


def test_a_commit_whose_predecessor_waits_for_room_lets_in_nothing_more() -> None:
    bench = full()
    bench.attach(credit=9)
    bench.flush()
    commit(bench, "c", token="first")
    send(bench, "d")
    assert bench.refused(commit(bench, "e", settles=(1,))) == [Refusal.DESTINATION_FULL]
    assert bench.depth() == 3


def test_a_farewell_behind_a_commit_waits_for_all_of_it() -> None:
    bench = full()
    send(bench, "c")
    commit(bench, "d")
    bench.apply(c.Sync(1, "farewell"))
    assert bench.confirmed(bench.flush()) == []
    bench.attach(credit=9)
    assert bench.confirmed(bench.settle(1, 2)) == ["commit", "farewell"]


def test_what_a_commit_takes_away_makes_room_for_best_effort_last() -> None:
    bench = full(limit_behavior="REJECT_NEWEST")
    bench.attach(credit=9)
    bench.apply(c.Begin(1, b"t"), c.Transacted(1, b"t", c.Settle(1, 1, [1, 2])))
    for body, level in (("dropped", BEST_EFFORT), ("c", ASSURED), ("d", ASSURED)):
        bench.apply(c.Transacted(1, b"t", c.Send(1, None, QUEUE, Message(Header(b"", 4, level), body.encode(), 10))))
    bench.apply(c.End(1, b"t", True, "commit"))
    assert bench.bodies(bench.flush()) == ["c", "d"]


@pytest.mark.parametrize("by_policy", [True, False])
def test_of_a_queue_that_a_commit_creates_best_effort_has_the_room_that_is_left(by_policy: bool) -> None:
    limits: dict[str, Any] = {"max_messages": 2, "limit_behavior": "REJECT_NEWEST"}
    bench = Bench(settings=None if by_policy else Settings(**limits))
    if by_policy:
        bench.control("set_policy", "queue/**", **limits)
    bench.apply(c.Begin(1, b"t"))
    for body, level in (("a", BEST_EFFORT), ("b", EXPRESS), ("c", BEST_EFFORT)):
        bench.apply(c.Transacted(1, b"t", c.Send(1, None, QUEUE, Message(Header(b"", 4, level), body.encode(), 10))))
    bench.apply(c.End(1, b"t", True, "commit"))
    assert bench.confirmed(bench.flush()) == ["commit"]
    assert bench.depth() == 2
    send(bench, "d")
    assert bench.refused(bench.flush()) == [Refusal.DESTINATION_FULL]


def test_a_delay_that_has_passed_before_the_commit_takes_room() -> None:
    bench = full(limit_behavior="REJECT_NEWEST", max_messages=4)
    header = Header(b"", 4, ASSURED, delay=50)
    bench.apply(c.Begin(1, b"t"), c.Transacted(1, b"t", c.Send(1, None, QUEUE, Message(header, b"later", 10))))
    bench.flush()
    bench.passes(100)
    bench.apply(c.End(1, b"t", True, "commit"))
    assert bench.confirmed(bench.flush()) == ["commit"]
    send(bench, "c")
    send(bench, "d")
    assert bench.refused(bench.flush()) == [Refusal.DESTINATION_FULL]
    assert bench.depth() == 4


def test_a_commit_without_a_receipt_is_refused_if_it_does_not_fit() -> None:
    bench = full()
    assert bench.refused(commit(bench, "c", token=None)) == [Refusal.DESTINATION_FULL]
    assert bench.depth() == 2


def test_a_message_of_a_commit_that_is_too_large_has_it_refused() -> None:
    bench = full(max_messages=-1, max_message_octets=5)
    assert bench.refused(commit(bench, "c")) == [Refusal.MESSAGE_TOO_LARGE]


def test_a_large_body_waits_in_the_store_and_takes_no_memory_here() -> None:
    bench = Bench(waiting_octets=800)
    bench.control("create", QUEUE, max_messages=1)
    bench.send("a")
    bench.apply(c.Send(1, "large", QUEUE, Message(Header(b"", 4, ASSURED), StoredBody(7, 1 << 20), 1 << 20)))
    assert bench.refused(bench.flush()) == []
    bench.apply(c.PeerLost(1))
    bench.flush()
    assert bench.effects[-1].discarded == [7] and bench.engine.shard.waiting_octets == 0
