"""What operators ask, in order with traffic, and what the broker refuses."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from broker_core.engine import commands as c
from broker_core.engine.address import is_valid
from broker_core.engine.discarding import PURGE_UNSEEN
from broker_core.engine.outcome import Outcome
from broker_core.engine.outputs import Detached
from broker_core.engine.refusal import Refusal
from tests.engine.rig import DEAD, EXPRESS, QUEUE, Bench


@pytest.mark.parametrize(
    ("verb", "address", "arguments", "refusal"),
    [
        ("create", "queue/a*", {}, "INVALID_DESTINATION"),
        ("create", "queue/mq.mine", {}, "INVALID_DESTINATION"),
        ("create", "temp-queue/a", {}, "NOT_SUPPORTED"),
        ("create", DEAD, {}, "INVALID_DESTINATION"),
        ("create", QUEUE, {"redelivery_max": "many"}, "INVALID_SETTING"),
        ("create", QUEUE, {"redelivery_max": -2}, "INVALID_SETTING"),
        ("create", QUEUE, {"colour": 1}, "INVALID_SETTING"),
        ("update", "queue/none", {}, "NO_SUCH_DESTINATION"),
        ("purge", "queue/none", {}, "NO_SUCH_DESTINATION"),
        ("pause", "queue/none", {}, "NO_SUCH_DESTINATION"),
        ("destroy", "queue/none", {}, "NO_SUCH_DESTINATION"),
        ("pause", DEAD, {}, "DESTINATION_RESERVED"),
        ("destroy", DEAD, {}, "DESTINATION_RESERVED"),
        ("dance", "", {}, "NOT_SUPPORTED"),
    ],
)
def test_a_request_that_cannot_be_done_is_refused(verb: str, address: str, arguments: dict[str, object], refusal: str) -> None:
    bench = Bench()
    assert bench.control(verb, address, **arguments)["refusal"] == refusal


def test_a_destination_is_created_once() -> None:
    bench = Bench()
    assert "destination" in bench.control("create", QUEUE, redelivery_max=3)
    assert bench.control("create", QUEUE)["refusal"] == "DESTINATION_EXISTS"
    assert bench.destination().settings.redelivery_max == 3


def test_a_request_past_its_deadline_is_refused() -> None:
    bench = Bench()
    number = bench.database.request("create", QUEUE)
    bench.apply(c.Control(number, "create", QUEUE, deadline=bench.now - 1))
    bench.flush()
    answer = bench.database.answer(number)
    assert answer is not None and answer[0] is False and answer[1]["refusal"] == "REQUEST_EXPIRED"


def test_a_direction_that_does_not_exist_is_refused() -> None:
    bench = Bench()
    bench.send("a")
    assert bench.control("pause", QUEUE, direction="SIDEWAYS")["refusal"] == "INVALID_SETTING"


def test_paused_producers_are_refused_and_consumers_go_on() -> None:
    bench = Bench()
    bench.send("a")
    bench.control("pause", QUEUE, direction="PRODUCERS")
    assert bench.refused(bench.send("b")) == [Refusal.DESTINATION_PAUSED]
    assert bench.attach() == ["a"]
    bench.control("resume", QUEUE)
    assert bench.bodies(bench.send("b")) == ["b"]


def test_paused_consumers_wait_and_producers_go_on() -> None:
    bench = Bench()
    bench.control("create", QUEUE)
    bench.control("pause", QUEUE, direction="CONSUMERS")
    assert bench.attach() == []
    assert bench.confirmed(bench.send("a")) == ["a"]
    bench.control("resume", QUEUE, direction="CONSUMERS")
    assert len(bench.engine.shard.links[1].unsettled) == 1


def test_a_pause_survives_a_crash() -> None:
    bench = Bench()
    bench.send("a")
    bench.control("pause", QUEUE, direction="CONSUMERS")
    bench.start()
    assert bench.attach() == []


def test_a_purge_discards_what_waits_and_leaves_what_is_delivered() -> None:
    bench = Bench(window_rows=3)
    bench.send("a", "b")
    bench.attach(credit=2)
    bench.send(*"cdefgh")
    bench.send("v", level=EXPRESS)
    assert bench.control("purge", QUEUE) == {"purged": 7, "outstanding": 2}
    assert (bench.depth(), bench.depth(DEAD), bench.destination().octets) == (2, 0, 20)
    bench.settle(1, 2)
    assert (bench.depth(), bench.destination().octets) == (0, 0)


def test_a_purge_in_one_batch_with_acknowledgements_keeps_both_apart() -> None:
    bench = Bench()
    bench.send(*"abcdef")
    bench.attach(credit=3)
    number = bench.database.request("purge", QUEUE)
    bench.apply(c.Settle(1, 1, [2]), c.Control(number, "purge", QUEUE))
    bench.flush()
    commit = bench.effects[-1].commit
    assert commit is not None
    outcomes = {first: outcome for _, _, first, _, outcome in commit.settled}
    assert outcomes == {3: Outcome.PURGED, 1: Outcome.ACCEPTED}
    assert bench.depth() == 2


def test_a_purge_takes_what_waits_for_its_back_off_or_for_its_body() -> None:
    bench = Bench(slow=True)
    bench.send("a", "b")
    bench.attach(credit=2)
    bench.control("update", QUEUE, redelivery_delay_ms=1000)
    bench.apply(c.Stop(1))
    bench.settle(1, outcome=Outcome.FAILED)
    bench.settle(2, outcome=Outcome.RELEASED)
    bench.control("purge", QUEUE)
    assert bench.depth() == 0
    bench.read()
    bench.passes(2000)
    assert bench.depth() == 0 and bench.engine.shard.memory == 0


def test_a_purge_holds_after_a_crash() -> None:
    bench = Bench()
    bench.send(*"abc")
    bench.control("purge", QUEUE)
    bench.start()
    assert bench.attach() == []


def test_destroying_a_destination_detaches_its_links_and_discards_its_messages() -> None:
    bench = Bench()
    bench.send("a", "b")
    bench.attach(credit=1)
    number = bench.database.request("destroy", QUEUE)
    bench.apply(c.Control(number, "destroy", QUEUE))
    outputs = bench.flush()
    assert [(output.peer, output.link, output.refusal) for output in outputs if isinstance(output, Detached)] == [(1, 1, Refusal.NO_SUCH_DESTINATION)]
    assert QUEUE not in bench.engine.shard.destinations and not bench.engine.shard.links
    assert bench.depth(DEAD) == 0 and bench.engine.shard.memory == 0


@pytest.mark.parametrize("verb", ["purge", "destroy"])
def test_more_is_not_discarded_than_the_operator_agreed_to(verb: str) -> None:
    bench = Bench()
    bench.send(*map(str, range(PURGE_UNSEEN + 1)))
    refused = bench.control(verb, QUEUE, depth=0)
    assert refused["refusal"] == "DESTINATION_IN_USE"
    assert "when you looked" in refused["detail"]
    assert bench.depth() == PURGE_UNSEEN + 1
    assert "refusal" not in bench.control(verb, QUEUE, depth=1)


def test_a_destination_in_use_is_not_destroyed_where_that_was_asked() -> None:
    bench = Bench()
    bench.send("a")
    assert bench.control("destroy", QUEUE, if_unused=True)["refusal"] == "DESTINATION_IN_USE"


def test_a_destroyed_name_begins_anew() -> None:
    bench = Bench()
    bench.send("old")
    number = bench.destination().number
    bench.control("destroy", QUEUE)
    bench.send("new")
    assert bench.destination().number > number
    assert bench.attach() == ["new"]
    bench.start()
    assert bench.attach() == ["new"]


def test_automatic_destinations_are_reaped_when_idle_and_empty_for_long() -> None:
    bench = Bench(reap_ms=1000)
    bench.send("a", address="queue/full")
    bench.send("a", address="queue/empty")
    bench.attach(address="queue/empty")
    bench.settle(1)
    bench.control("create", "queue/made")
    bench.now += 5000
    assert bench.control("reap") == {"reaped": 0, "subscriptions": 0}
    bench.apply(c.Detach(1, 1))
    bench.flush()
    assert bench.control("reap") == {"reaped": 0, "subscriptions": 0}
    bench.now += 1000
    assert bench.control("reap") == {"reaped": 1, "subscriptions": 0}
    assert set(bench.engine.shard.destinations) == {DEAD, "queue/full", "queue/made"}


# -- what clients are refused ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("address", "refusal"),
    [
        ("queue/", Refusal.INVALID_DESTINATION),
        ("a", Refusal.INVALID_DESTINATION),
        ("queue/mq.x", Refusal.NO_SUCH_DESTINATION),
    ],
)
def test_what_cannot_be_created_is_refused_to_senders_and_subscribers_alike(address: str, refusal: Refusal) -> None:
    bench = Bench()
    assert bench.refused(bench.send("a", address=address)) == [refusal]
    bench.apply(c.Attach(1, 5, address, token="t"))
    assert bench.refused(bench.flush()) == [refusal]


def test_where_destinations_are_not_created_automatically_a_missing_one_is_refused() -> None:
    bench = Bench(auto_create=False)
    assert bench.refused(bench.send("a")) == [Refusal.NO_SUCH_DESTINATION]
    assert bench.refused(bench.send("a", address="topic/prices")) == [Refusal.NO_SUCH_DESTINATION]


def test_clients_create_no_more_destinations_than_there_may_be_and_use_those_that_exist() -> None:
    bench = Bench(destinations_max=3)
    bench.send("a", address="queue/1")
    bench.attach(address="queue/2")
    assert bench.refused(bench.send("a", address="queue/3")) == [Refusal.TOO_MANY_DESTINATIONS]
    bench.apply(c.Attach(1, 5, "queue/3", token="t"))
    assert bench.refused(bench.flush()) == [Refusal.TOO_MANY_DESTINATIONS]
    assert set(bench.engine.shard.destinations) == {DEAD, "queue/1", "queue/2"}
    assert bench.refused(bench.send("a", address="queue/2")) == []
    bench.control("destroy", "queue/1")
    assert bench.confirmed(bench.send("a", address="queue/3")) == ["a"]


def test_an_operator_is_told_how_to_make_room_for_one_more_destination() -> None:
    bench = Bench(destinations_max=2)
    bench.control("create", "queue/1")
    answer = bench.control("create", "queue/2")
    assert answer["refusal"] == "TOO_MANY_DESTINATIONS"
    assert answer["detail"] == "there are 2; destroy some that nobody uses, or restart the nodes with a larger SURETY_DESTINATIONS_MAX"
    bench.control("destroy", "queue/1")
    assert "destination" in bench.control("create", "queue/2")


def test_more_destinations_than_there_may_be_survive_a_restart_and_none_is_added() -> None:
    bench = Bench()
    for number in range(4):
        bench.send("a", address=f"queue/{number}")
    bench.limits = dataclasses.replace(bench.limits, destinations_max=2)
    bench.start()
    assert bench.attach(address="queue/3") == ["a"]
    assert bench.refused(bench.send("a", address="queue/4")) == [Refusal.TOO_MANY_DESTINATIONS]


def test_a_link_number_is_used_once_at_a_time() -> None:
    bench = Bench()
    bench.attach(1)
    bench.apply(c.Attach(1, 1, QUEUE, token="t"))
    assert bench.refused(bench.flush()) == [Refusal.LINK_IN_USE]


def test_a_link_is_closed_by_its_own_peer_only() -> None:
    bench = Bench()
    bench.attach(1)
    bench.apply(c.Open(2, "guest"), c.Detach(2, 1, token="t"))
    assert bench.refused(bench.flush()) == [Refusal.NO_SUCH_LINK]
    bench.apply(c.Detach(1, 1, token="t"))
    assert bench.confirmed(bench.flush()) == ["t"]


def test_everything_asked_before_a_sync_is_done_when_it_is_confirmed() -> None:
    bench = Bench()
    bench.apply(c.Sync(1, "bye"))
    assert bench.confirmed(bench.flush()) == ["bye"]


@pytest.mark.parametrize("address", ["queue/a", "queue/ä.b-c$1_/x", "topic/" + "n" * 255])
def test_names_that_are_valid(address: str) -> None:
    assert is_valid(address)


@pytest.mark.parametrize("address", ["queue/", "queue", "queue/a*", "queue/a>", "queue/\n", "queue//a", "pond/a", "queue/" + "n" * 256, "queue/a\x7f"])
def test_names_that_are_not(address: str) -> None:
    assert not is_valid(address)


def test_a_request_whose_arguments_are_no_object_is_refused_like_any_other() -> None:
    """The table takes any JSON; a request that broke the node would wait for the next one, and break that as well."""
    bench = Bench()
    bench.send("a")
    number = bench.database.request("purge", QUEUE)
    arguments: Any = [1]
    bench.apply(c.Control(number, "purge", QUEUE, arguments))
    bench.flush()
    answer = bench.database.answer(number)
    assert answer is not None
    done, result = answer
    assert not done and result["refusal"] == "INVALID_SETTING"
    assert bench.depth() == 1
