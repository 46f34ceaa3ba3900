"""What consumers say that have more words than STOMP's: credit in terms of what they have counted, deliveries that nobody looked at, browsers with
credit, subscriptions that are taken over, looked for, or nobody's in particular."""

from __future__ import annotations

import pytest

from broker_core.engine import commands as c
from broker_core.engine.message import Reliability
from broker_core.engine.outcome import Outcome
from broker_core.engine.outputs import Browsed, Detached, Drained, Found
from broker_core.engine.refusal import Refusal
from broker_core.engine.selector import compile_selector
from broker_core.engine.subscription import Filter
from tests.engine.rig import ASSURED, EXPRESS, QUEUE, Bench
from tests.engine.topic_rig import TOPIC, bench, durable, plain, publish, restart

LEVELS = [ASSURED, EXPRESS]


# -- credit -----------------------------------------------------------------------------------------------------------------------------
def test_what_is_on_its_way_already_comes_out_of_the_credit_that_a_consumer_grants() -> None:
    b = Bench()
    b.send("a", "b", "c", "d")
    assert b.attach(credit=2, replenish=False) == ["a", "b"]
    b.apply(c.Grant(1, 3, counted=1))
    assert b.bodies(b.flush()) == ["c", "d"], "it had counted a, so that b was one of its three"


def test_credit_that_is_less_than_what_is_on_its_way_is_none() -> None:
    b = Bench()
    b.send("a", "b", "c", "d")
    b.attach(credit=3, replenish=False)
    b.apply(c.Grant(1, 1, counted=0))
    assert b.bodies(b.flush()) == []
    b.apply(c.Grant(1, 1))
    assert b.bodies(b.flush()) == ["d"]


@pytest.mark.parametrize("bound", [{"link_octets": 10}, {"link_unsettled": 1}], ids=["octets", "deliveries"])
@pytest.mark.parametrize("address", [QUEUE, "topic/p.*"])
def test_a_consumer_that_holds_all_it_may_is_drained(bound: dict[str, int], address: str) -> None:
    b = Bench(**bound)
    b.attach(address=address, credit=0, replenish=False)
    b.send("a", "b", address=QUEUE if address == QUEUE else "topic/p.a")
    b.apply(c.Grant(1, 5))
    assert b.bodies(b.flush()) == ["a"]
    b.apply(c.Grant(1, 4, drain=True))
    assert b.flush() == [Drained(1, 1)], "nothing comes before it settles something"
    b.apply(c.Grant(1, 1))
    assert b.bodies(b.settle(1)) == ["b"]


def test_a_consumer_of_a_queue_that_is_paused_is_drained() -> None:
    b = Bench()
    b.send("a")
    b.control("pause", QUEUE, direction="CONSUMERS")
    b.attach(credit=0, replenish=False)
    b.apply(c.Grant(1, 5, drain=True))
    assert b.flush() == [Drained(1, 1)]
    b.control("resume", QUEUE)
    b.apply(c.Grant(1, 1))
    assert b.bodies(b.flush()) == ["a"]


@pytest.mark.parametrize("level", LEVELS)
def test_a_browser_is_shown_as_much_as_it_has_credit_for(level: Reliability) -> None:
    b = Bench(page_rows=4, window_rows=4)
    b.send(*"abcdefgh", level=level)
    assert b.browse(9, credit=0) == []
    b.apply(c.Grant(9, 3))
    assert b.bodies(b.flush()) == ["a", "b", "c"]
    b.apply(c.Grant(9, 1))
    assert b.bodies(b.flush()) == ["d"]
    b.apply(c.Grant(9, 100))
    outputs = b.flush()
    assert b.bodies(outputs) == ["e", "f", "g", "h"]
    assert outputs[-1] == Browsed(1, 9)


def test_what_was_consumed_while_a_browser_had_no_credit_is_not_shown() -> None:
    b = Bench()
    b.send(*"abcd")
    b.browse(9, credit=1)
    b.attach(1, credit=3)
    b.settle(1, 2, 3)
    b.apply(c.Grant(9, 5))
    assert b.bodies(b.flush()) == ["d"]


def test_a_browser_with_a_filter_is_shown_what_it_wants_up_to_its_credit() -> None:
    b = Bench(page_rows=2, window_rows=2)
    for number in range(9):
        b.send(f"m{number}", properties={"n": str(number % 3)})
    wanted = Filter(compile_selector("n = '2'"))
    assert b.browse(9, credit=2, wanted=wanted) == ["m2", "m5"]
    b.apply(c.Grant(9, 2, drain=True))
    outputs = b.flush()
    assert b.bodies(outputs) == ["m8"]
    assert outputs[-2:] == [Browsed(1, 9), Drained(1, 9)]


def test_a_browser_that_has_seen_everything_is_drained_at_once() -> None:
    b = Bench()
    b.send("a")
    b.browse(9, credit=5)
    b.apply(c.Grant(9, 5, drain=True))
    assert b.flush() == [Drained(1, 9)]


def test_a_browser_that_has_used_up_its_credit_is_drained() -> None:
    b = Bench()
    b.send("a", "b")
    b.browse(9, credit=0)
    b.apply(c.Grant(9, 1, drain=True))
    outputs = b.flush()
    assert b.bodies(outputs) == ["a"]
    assert Drained(1, 9) in outputs
    b.apply(c.Grant(9, 0, drain=True))
    assert b.flush() == [Drained(1, 9)], "without credit nothing can come"


# -- what nobody looked at ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("level", LEVELS)
def test_what_nobody_has_looked_at_comes_back_as_if_it_had_never_left(level: Reliability) -> None:
    b = Bench()
    b.attach(credit=2)
    b.send("a", "b", level=level)
    first, second = b.delivered(b.settle(1, 2, outcome=Outcome.UNUSED))
    assert [b.body(first), b.body(second)] == ["a", "b"]
    assert not first.redelivered and not second.redelivered
    assert first.failures == 0
    assert b.destination().redelivered == 0


def test_what_was_flagged_before_stays_so_when_nobody_looks_at_it() -> None:
    b = Bench()
    b.attach(credit=1)
    b.send("a")
    b.settle(1, outcome=Outcome.FAILED)
    (again,) = b.delivered(b.settle(2, outcome=Outcome.UNUSED))
    assert again.redelivered
    assert again.failures == 1


@pytest.mark.parametrize("outcome", [Outcome.RELEASED, Outcome.UNUSED])
@pytest.mark.parametrize("returns", [1, 100])
def test_a_consumer_that_closes_says_whether_what_it_holds_was_looked_at(outcome: Outcome, returns: int) -> None:
    b = Bench(returns=returns)
    b.attach(credit=3)
    b.send("a", "b", "c")
    b.apply(c.Detach(1, 1, outcome=outcome))
    b.flush()
    b.apply(c.Attach(1, 2, QUEUE, credit=3))
    back = b.delivered(b.flush())
    assert [message.redelivered for message in back] == [outcome is Outcome.RELEASED] * 3


def test_after_a_crash_what_may_have_left_is_flagged_whatever_was_said_of_it() -> None:
    b = Bench()
    b.attach(credit=1)
    b.send("a")
    b.apply(c.Detach(1, 1, outcome=Outcome.UNUSED))
    b.flush()
    b.start()
    b.apply(c.Attach(1, 1, QUEUE, credit=1))
    (message,) = b.delivered(b.flush())
    assert message.redelivered


# -- subscriptions ----------------------------------------------------------------------------------------------------------------------
def reconnected() -> Bench:
    """Peer 4 is another connection of client two."""
    b = bench()
    b.apply(c.Open(4, "guest", "two"))
    return b


def test_another_connection_of_the_client_takes_its_durable_subscription_over() -> None:
    b = reconnected()
    durable(b, 1)
    publish(b, "a")
    b.apply(c.Attach(4, 2, TOPIC, "t", credit=5, name="s", durable=True, steals=True))
    outputs = b.flush()
    assert Detached(2, 1, Refusal.LINK_STOLEN, "s") in outputs
    assert b.confirmed(outputs) == ["t"]
    (message,) = b.delivered(outputs)
    assert message.redelivered, "who knows what the first one did with it"


def test_the_same_connection_does_not_take_it_from_itself() -> None:
    b = reconnected()
    durable(b, 1)
    b.apply(c.Attach(2, 2, TOPIC, "t", name="s", durable=True, steals=True))
    assert b.refused(b.flush()) == [Refusal.SUBSCRIPTION_IN_USE]


def test_nobody_takes_over_what_another_account_consumes_or_what_is_shared() -> None:
    b = reconnected()
    durable(b, 1)
    b.apply(c.Open(5, "other", "two"), c.Attach(5, 2, TOPIC, "t", name="s", durable=True, steals=True))
    assert b.refused(b.flush()) == [Refusal.SUBSCRIPTION_OF_ANOTHER]
    durable(b, 3, name="shared", shared=True)
    b.apply(c.Attach(4, 4, TOPIC, "t", name="shared", durable=True, steals=True))
    assert b.refused(b.flush()) == [Refusal.SUBSCRIPTION_IN_USE]


def test_a_subscription_that_is_taken_over_with_another_selector_is_another_one() -> None:
    b = reconnected()
    durable(b, 1)
    publish(b, "a")
    b.apply(c.Attach(4, 2, TOPIC, credit=5, name="s", durable=True, steals=True, wanted=Filter(compile_selector("n = '1'"))))
    assert b.bodies(b.flush()) == []


def test_a_durable_subscription_is_found_by_its_name() -> None:
    b = bench()
    wanted = Filter(compile_selector("n = '1'"))
    durable(b, 1, wanted=wanted)
    b.apply(c.Lookup(2, "s", "t"))
    assert b.flush() == [Found(2, "t", TOPIC, wanted, shared=False, durable=True)]
    b.apply(c.Lookup(2, "none", "t"), c.Lookup(3, "s", "t"))
    assert b.refused(b.flush()) == [Refusal.NO_SUCH_SUBSCRIPTION] * 2
    b.apply(c.Open(5, "other", "two"), c.Lookup(5, "s", "t"))
    assert b.refused(b.flush()) == [Refusal.SUBSCRIPTION_OF_ANOTHER]


def test_a_subscription_of_any_client_is_shared_by_connections_of_different_ones() -> None:
    b = bench()
    for peer, link in ((2, 1), (3, 2)):
        b.apply(c.Attach(peer, link, TOPIC, credit=1, name="s", durable=True, shared=True, of_any_client=True))
    b.flush()
    assert publish(b, "a", "b") == ["a", "b"]
    b.apply(c.Detach(2, 1), c.Detach(3, 2))
    b.flush()
    restart(b)
    b.apply(c.Lookup(3, "s", "t"))
    assert b.refused(b.flush()) == [Refusal.NO_SUCH_SUBSCRIPTION], "client three has none of this name"
    b.apply(c.Lookup(3, "s", "t", of_any_client=True), c.Unsubscribe(3, "s", "u", of_any_client=True))
    outputs = b.flush()
    assert outputs[0] == Found(3, "t", TOPIC, Filter(), shared=True, durable=True)
    assert b.confirmed(outputs) == ["u"]


# -- temporary destinations -----------------------------------------------------------------------------------------------------------
def test_a_temporary_destination_ends_when_its_maker_says_so() -> None:
    b = Bench()
    b.apply(c.Open(2, "guest", session="s2"), c.CreateTemporary(2, "temp-queue/s2.1", "made"), c.EndTemporary(2, "temp-queue/s2.1", "ended"))
    assert b.confirmed(b.flush()) == ["made", "ended"]
    assert b.refused(b.send("a", address="temp-queue/s2.1")) == [Refusal.TEMPORARY_DESTINATION_GONE]
    b.apply(c.EndTemporary(2, "temp-queue/s2.1", "again"))
    assert b.confirmed(b.flush()) == ["again"]


def test_a_temporary_destination_that_is_consumed_or_another_ones_is_not_ended() -> None:
    b = Bench()
    b.apply(c.Open(2, "guest", session="s2"), c.CreateTemporary(2, "temp-queue/s2.1"))
    b.attach(1, peer=2, address="temp-queue/s2.1")
    b.apply(c.EndTemporary(2, "temp-queue/s2.1", "t"), c.EndTemporary(1, "temp-queue/s2.1", "u"))
    assert b.refused(b.flush()) == [Refusal.DESTINATION_IN_USE, Refusal.NOT_THE_OWNER]
    b.send(QUEUE)
    assert b.refused(b.flush()) == []


def test_one_that_is_looked_at_and_whose_replies_are_coming_back_is_ended_all_the_same() -> None:
    b = Bench()
    b.apply(c.Open(2, "guest", session="s2"), c.CreateTemporary(2, "temp-queue/s2.1"))
    b.attach(1, peer=2, address="temp-queue/s2.1", credit=2_000)
    b.send(*["a"] * 5_000, address="temp-queue/s2.1")
    b.apply(c.Browse(2, 9, "temp-queue/s2.1"), c.Detach(2, 1, "left"), c.EndTemporary(2, "temp-queue/s2.1", "ended"))
    outputs = [output for _ in range(20) for output in b.flush()]
    assert sorted(b.confirmed(outputs)) == ["ended", "left"]
    assert b.engine.shard.memory == 0 and "temp-queue/s2.1" not in b.engine.shard.destinations


def test_what_peers_that_are_gone_say_concerns_nobody() -> None:
    b = bench()
    plain(b)
    b.apply(c.Lookup(77, "s", "t"), c.EndTemporary(77, "temp-queue/s.1", "t"), c.Grant(77, 5, counted=3))
    assert b.flush() == []
