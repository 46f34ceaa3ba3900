"""Message groups (JMSXGroupID): one consumer each, as long as it is open; others wait for nobody."""

from __future__ import annotations

import pytest

from broker_core.engine import commands as c
from broker_core.engine.settings import Settings
from broker_core.engine.outcome import Outcome
from broker_core.engine.outputs import Delivered, Output
from broker_core.engine.owners import BUCKETS, Owners, bucket_of
from broker_core.engine.selector import compile_selector
from broker_core.engine.subscription import Filter
from tests.engine.rig import EXPRESS, QUEUE, RELIABLE, Bench
from tests.engine.topic_rig import TOPIC

RED = Filter(compile_selector("colour = 'red'"))


def send(b: Bench, *bodies: str, **how) -> dict[int, list[str]]:
    """Their first letter is their group, but for x: a1 is of group a. Who got what."""
    got: dict[int, list[str]] = {}
    for body in bodies:
        hear(b, got, b.send(body, group=body[0] if body[0] != "x" else "", **how))
    return got


def hear(b: Bench, got: dict[int, list[str]], outputs: list[Output]) -> dict[int, list[str]]:
    for output in outputs:
        if isinstance(output, Delivered):
            got.setdefault(output.link, []).extend(b.bodies([output]))
    return got


def two(b: Bench | None = None, *, credit: int = 1000, **how) -> Bench:
    """Consumers, each on a connection of its own."""
    b = b or Bench()
    b.apply(c.Open(2, "guest"))
    b.attach(1, credit=credit, **how)
    b.attach(2, peer=2, credit=credit, **how)
    return b


# -- one consumer each ------------------------------------------------------------------------------------------------------------------
def test_all_messages_of_a_group_go_to_one_consumer_and_groups_are_shared_out() -> None:
    b = two()
    assert send(b, "a1", "b1", "a2", "a3", "b2", "a4") == {1: ["a1", "a2", "a3", "a4"], 2: ["b1", "b2"]}


def test_of_a_backlog_each_consumer_becomes_the_owner_of_as_many_groups() -> None:
    b = Bench()
    b.control("create", QUEUE)
    b.control("pause", QUEUE, direction="CONSUMERS")
    two(b)
    send(b, *[f"{group}{number}" for number in range(5) for group in "abcd"])
    b.control("resume", QUEUE, direction="CONSUMERS")
    got = hear(b, {}, b.outputs)
    assert {body[0] for body in got[1]} | {body[0] for body in got[2]} == set("abcd")
    assert len({body[0] for body in got[1]}) == len({body[0] for body in got[2]}) == 2


def test_messages_without_a_group_go_to_whose_turn_it_is() -> None:
    b = two()
    assert send(b, "a1", "x1", "x2", "a2", "x3", "x4") == {1: ["a1", "x2", "a2", "x3"], 2: ["x1", "x4"]}


def test_an_owner_without_room_holds_up_nobody_and_gets_its_messages_in_order() -> None:
    b = two(credit=2)
    assert send(b, "a1", "a2", "a3", "a4", "b1", "a5", "x1") == {1: ["a1", "a2"], 2: ["b1", "x1"]}
    assert hear(b, {}, b.settle(1, 2)) == {1: ["a3", "a4"]}
    assert hear(b, {}, b.settle(3, 4)) == {1: ["a5"]}


def test_a_lane_waits_when_as_much_is_set_aside_as_its_window_holds() -> None:
    b = two(Bench(window_rows=2, page_rows=2), credit=1)
    assert send(b, "a1", "a2", "a3", "a4", "a5", "b1") == {1: ["a1"]}
    assert len(b.cursor().aside) == 2
    assert hear(b, {}, b.settle(1)) == {1: ["a2"]}
    assert hear(b, {}, b.settle(2)) == {1: ["a3"], 2: ["b1"]}


def test_what_is_set_aside_for_a_consumer_who_is_gone_goes_to_another_in_order() -> None:
    b = two(credit=2)
    send(b, "a1", "a2", "a3", "a4")
    b.apply(c.Detach(1, 1))
    outputs = b.flush()
    assert b.bodies(outputs) == ["a1", "a2"]
    assert [message.redelivered for message in b.delivered(outputs)] == [True, True]
    outputs = b.settle(1, 2, link=2, peer=2)
    assert b.bodies(outputs) == ["a3", "a4"]
    assert [message.redelivered for message in b.delivered(outputs)] == [False, False]


@pytest.mark.parametrize("outcome", [Outcome.RELEASED, Outcome.FAILED])
def test_what_an_owner_gives_back_comes_to_it_again(outcome: Outcome) -> None:
    b = two()
    send(b, "a1", "a2")
    outputs = b.settle(1, outcome=outcome)
    assert hear(b, {}, outputs) == {1: ["a1"]}
    assert b.delivered(outputs)[0].redelivered


def test_a_redelivery_delay_holds_up_no_other_message_of_the_group() -> None:
    b = two(Bench(settings=Settings(redelivery_delay_ms=100)))
    send(b, "a1")
    assert b.bodies(b.settle(1, outcome=Outcome.FAILED)) == []
    assert send(b, "a2") == {1: ["a2"]}
    assert hear(b, {}, b.passes(100)) == {1: ["a1"]}


def test_a_rolled_back_acknowledgement_comes_to_the_owner_again() -> None:
    b = two()
    send(b, "a1")
    b.apply(c.Begin(1, b"t"), c.Transacted(1, b"t", c.Settle(1, 1, [1], 0, Outcome.ACCEPTED)))
    b.flush()
    b.apply(c.End(1, b"t", commit=False))
    assert hear(b, {}, b.flush()) == {1: ["a1"]}


# -- closing ----------------------------------------------------------------------------------------------------------------------------
def test_after_its_last_message_a_group_chooses_anew() -> None:
    b = two()
    assert send(b, "a1", "b1", "a2") == {1: ["a1", "a2"], 2: ["b1"]}
    assert send(b, "a3", closes=True) == {1: ["a3"]}
    assert send(b, "x1", "a4", "a5") == {1: ["x1"], 2: ["a4", "a5"]}
    assert send(b, "a6", closes=True) == {2: ["a6"]}
    assert send(b, "x2", "x3", "a7", "a8") == {1: ["x2", "a7", "a8"], 2: ["x3"]}


def test_a_group_is_closed_when_its_last_message_has_an_owner_even_one_without_room() -> None:
    b = two(credit=1)
    send(b, "a1")
    send(b, "a2", closes=True)
    assert send(b, "a3") == {2: ["a3"]}
    assert hear(b, {}, b.settle(1)) == {1: ["a2"]}


@pytest.mark.parametrize("outcome", [Outcome.RELEASED, Outcome.FAILED])
def test_the_last_message_of_a_group_that_comes_back_leaves_the_group_that_came_after_with_its_owner(outcome: Outcome) -> None:
    b = two()
    assert send(b, "a1", closes=True) == {1: ["a1"]}
    assert send(b, "a2", "x1") == {2: ["a2"], 1: ["x1"]}
    assert hear(b, {}, b.settle(1, outcome=outcome)) == {2: ["a1"]}
    assert send(b, "a3", "a4") == {2: ["a3", "a4"]}


def test_the_last_message_of_a_group_that_comes_back_and_finds_no_owner_closes_it_again() -> None:
    b = two()
    assert send(b, "a1", closes=True) == {1: ["a1"]}
    assert hear(b, {}, b.settle(1, outcome=Outcome.RELEASED)) == {2: ["a1"]}
    assert send(b, "a2", "a3") == {1: ["a2", "a3"]}


# -- with other features ----------------------------------------------------------------------------------------------------------------
def test_an_exclusive_consumer_takes_over_all_groups_and_what_was_set_aside() -> None:
    b = two(credit=1)
    send(b, "a1", "a2", "b1")
    b.apply(c.Open(3, "guest"))
    assert b.attach(3, peer=3, exclusive=True) == ["a2"]
    assert send(b, "b2", "a3") == {3: ["b2", "a3"]}
    b.apply(c.Detach(3, 3))
    b.flush()
    assert hear(b, {}, b.settle(1)) == {1: ["a2"]}


def test_the_first_of_a_group_chooses_a_consumer_of_the_highest_priority_and_stays_with_it() -> None:
    b = Bench()
    b.attach(1, priority=5, credit=1)
    b.apply(c.Open(2, "guest"))
    b.attach(2, peer=2)
    assert send(b, "a1", "a2", "b1") == {1: ["a1"], 2: ["b1"]}
    assert hear(b, {}, b.settle(1)) == {1: ["a2"]}
    assert hear(b, {}, b.settle(2)) == {}
    assert send(b, "b2") == {2: ["b2"]}


def test_higher_message_priorities_come_first_within_a_group() -> None:
    b = two(credit=1)
    send(b, "a1", "a2")
    send(b, "a3", priority=9)
    assert hear(b, {}, b.settle(1)) == {1: ["a3"]}
    assert hear(b, {}, b.settle(2)) == {1: ["a2"]}


def test_groups_are_known_from_rows_too_and_choose_anew_after_a_crash() -> None:
    b = two(credit=1)
    send(b, "a1", "a2", "b1", "a3")
    b.start()
    b.apply(c.Open(2, "guest"))
    b.attach(2, peer=2, credit=1)
    b.attach(1, credit=5)
    assert hear(b, {}, b.outputs) == {2: ["a1"], 1: ["b1"]}
    outputs = b.settle(1, link=2, peer=2)
    assert hear(b, {}, outputs) == {2: ["a2"]}
    assert [message.redelivered for message in b.delivered(outputs)] == [False]


def test_only_what_left_is_flagged_after_a_crash_not_what_was_set_aside_before_it() -> None:
    b = two(credit=2)
    send(b, "a1", "a2", "a3", "b1", level=RELIABLE)
    b.start()
    b.attach()
    assert [(b.body(m), m.redelivered) for m in b.delivered(b.outputs)] == [("a1", True), ("a2", True), ("a3", False), ("b1", True)]


def test_what_is_set_aside_expires_is_purged_and_is_seen_by_browsers() -> None:
    b = two(credit=1)
    send(b, "a1", "a2", level=EXPRESS)
    send(b, "a3", level=EXPRESS, expires=b.now + 10)
    assert b.browse(9) == ["a1", "a2", "a3"]
    b.passes(10)
    assert b.depth() == 2
    assert b.control("purge", QUEUE)["purged"] == 1
    assert hear(b, {}, b.settle(1)) == {}
    assert send(b, "a4") == {1: ["a4"]}


def test_an_owner_with_a_selector_shares_its_group_with_one_who_takes_what_it_does_not() -> None:
    b = Bench()
    b.attach(1, wanted=RED)
    b.apply(c.Open(2, "guest"))
    red, blue = {"colour": "red"}, {"colour": "blue"}
    assert send(b, "a1", properties=red) == {1: ["a1"]}
    b.attach(2, peer=2)
    assert send(b, "a2", properties=red) == {1: ["a2"]}
    assert send(b, "a3", properties=blue) == {2: ["a3"]}
    assert send(b, "a4", properties=red) == {1: ["a4"]}
    b.apply(c.Detach(1, 1))
    b.settle(1, link=2, peer=2)
    b.flush()
    assert send(b, "a5", properties=red) == {2: ["a5"]}


def test_a_selective_consumer_leaves_alone_what_another_owns() -> None:
    b = Bench()
    b.attach(1, credit=1)
    send(b, "a1", properties={"colour": "red"})
    b.apply(c.Open(2, "guest"))
    b.attach(2, peer=2, wanted=RED)
    assert send(b, "a2", "b1", properties={"colour": "red"}) == {2: ["b1"]}
    assert hear(b, {}, b.settle(1)) == {1: ["a2"]}


def test_a_selective_consumer_waits_for_an_owner_who_waits_for_a_read() -> None:
    """The owner has room again, but not for what is set aside for it: what it gave back comes first."""
    b = two(Bench(slow=True, window_rows=2, page_rows=2), credit=2)
    b.attach(3, peer=2, wanted=RED)
    assert send(b, "a1", "a2", "a3", "a4") == {1: ["a1", "a2"]}
    assert send(b, "a5", properties={"colour": "red"}) == {}
    assert hear(b, {}, b.settle(1, outcome=Outcome.RELEASED)) == {}
    b.read()
    assert hear(b, {}, b.flush()) == {1: ["a1"]}
    assert hear(b, {}, b.settle(2, 3)) == {1: ["a3", "a4"]}
    assert hear(b, {}, b.settle(4, 5)) == {1: ["a5"]}


def test_a_shared_subscription_of_a_topic_knows_groups_each_for_itself() -> None:
    b = Bench()
    for link in (1, 2, 3):
        b.apply(c.Open(10 + link, "guest"))
        b.attach(link, peer=10 + link, address=TOPIC, name="s" if link < 3 else "other", shared=True)
    got: dict[int, list[str]] = {}
    for body in ("a1", "b1", "a2", "b2"):
        hear(b, got, b.send(body, address=TOPIC, group=body[0]))
    assert got == {1: ["a1", "a2"], 2: ["b1", "b2"], 3: ["a1", "b1", "a2", "b2"]}


def test_what_a_volatile_subscription_gets_from_two_lanes_waits_while_the_older_is_being_read() -> None:
    """A producer's persistent messages may lie in either of them."""
    b = Bench(slow=True, memory_octets=400, page_octets=8)
    b.attach(9, address=TOPIC, name="durable", durable=True, shared=True, of_any_client=True, credit=0)
    b.attach(1, address=TOPIC, name="v", shared=True, credit=1)
    assert send(b, "a1", address=TOPIC, level=EXPRESS) == {1: ["a1"]}
    b.send("fills the memory", level=EXPRESS, size=280)
    send(b, "a2", address=TOPIC, level=EXPRESS, size=20)
    send(b, "a3", address=TOPIC, level=RELIABLE)
    assert b.bodies(b.settle(1)) == []
    b.read()
    assert b.bodies(b.flush()) == ["a2"]
    assert b.bodies(b.settle(2)) == ["a3"]


# -- owners -----------------------------------------------------------------------------------------------------------------------------
def test_groups_beyond_the_table_share_an_owner_by_bucket_and_stick_all_the_same() -> None:
    b = two(Bench(subscription_groups_max=1))
    assert send(b, "a1", "b1", "c1", "b2", "c2", "a2") == {1: ["a1", "c1", "c2", "a2"], 2: ["b1", "b2"]}
    owners = b.destination().subscriptions[0].owners
    assert owners is not None
    assert {key: [link.number for link in links] for key, links in owners.owned().items()} == {"a": [1], bucket_of("b"): [2], bucket_of("c"): [1]}


def test_names_are_bounded_in_all_subscriptions_together_and_make_room_when_their_owners_go() -> None:
    b = two(Bench(groups_max=2))
    send(b, "a1", "b1", "c1")
    assert b.engine.shard.owned == 2
    b.apply(c.Detach(1, 1), c.Detach(2, 2))
    b.flush()
    assert b.engine.shard.owned == 0


def test_buckets_are_the_same_at_every_start() -> None:
    assert (bucket_of("orders"), BUCKETS) == (494, 1024)
    assert Owners().of("orders") == ()
