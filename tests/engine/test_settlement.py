"""Deliveries end: acknowledged, rejected, released, failed, or returned because their link is gone."""

from __future__ import annotations

import json

import pytest

from broker_core.engine import commands as c
from broker_core.engine.dead import ADDED, EXCEPTION, REPLAYED, SUBSCRIPTION
from broker_core.engine.settings import Settings
from broker_core.engine.outcome import Outcome
from broker_core.engine.message import VOLATILE
from broker_core.engine.refusal import Refusal
from tests.engine.rig import DEAD, EXPRESS, QUEUE, START, Bench


def dead_annotations(bench: Bench, link: int = 9) -> list[dict[str, object]]:
    bench.attach(link, address=DEAD)
    return [json.loads(message.header.annotations) for message in bench.engine.shard.links[link].unsettled.values()]


def test_a_delivery_that_does_not_exist_cannot_be_settled() -> None:
    bench = Bench()
    bench.attach()
    assert bench.refused(bench.settle(1, token="t")) == [Refusal.NO_SUCH_DELIVERY]
    assert bench.refused(bench.settle(link=7, token="t")) == [Refusal.NO_SUCH_LINK]


def test_a_delivery_cannot_be_settled_twice() -> None:
    bench = Bench()
    bench.send("a")
    bench.attach()
    bench.settle(1)
    assert bench.refused(bench.settle(1, token="t")) == [Refusal.NO_SUCH_DELIVERY]
    assert bench.depth() == 0


def test_a_link_cannot_be_settled_by_another_peer() -> None:
    bench = Bench()
    bench.send("a")
    bench.attach()
    bench.apply(c.Open(2, "guest"))
    assert bench.refused(bench.settle(1, peer=2, token="t")) == [Refusal.NO_SUCH_LINK]
    assert bench.depth() == 1


def test_individual_acknowledgement_settles_just_what_it_names() -> None:
    bench = Bench()
    bench.send("a", "b", "c")
    bench.attach()
    assert bench.confirmed(bench.settle(2, token="t")) == ["t"]
    assert list(bench.engine.shard.links[1].unsettled) == [1, 3]
    assert bench.depth() == 2


def test_cumulative_acknowledgement_settles_everything_up_to_it() -> None:
    bench = Bench()
    bench.send("a", "b", "c")
    bench.attach()
    bench.settle(upto=2)
    assert list(bench.engine.shard.links[1].unsettled) == [3]


def test_cumulative_acknowledgement_passes_over_what_is_settled_already() -> None:
    bench = Bench()
    bench.send(*"abcde")
    bench.attach()
    bench.settle(2)
    assert bench.confirmed(bench.settle(upto=4, token="t")) == ["t"]
    assert list(bench.engine.shard.links[1].unsettled) == [5]
    assert bench.refused(bench.settle(upto=4, token="again")) == [Refusal.NO_SUCH_DELIVERY]


def test_settlement_is_in_the_ledger_as_ranges() -> None:
    bench = Bench()
    bench.send(*"abcdef")
    bench.attach()
    bench.settle(6, 1, 2, 4)
    commit = bench.effects[-1].commit
    assert commit is not None
    assert [(first, last) for _, _, first, last, _ in commit.settled] == [(0, 1), (3, 3), (5, 5)]


def test_a_released_message_comes_back_flagged_and_has_not_failed() -> None:
    bench = Bench(settings=Settings(redelivery_max=0))
    bench.send("a", "b")
    bench.attach()
    (back,) = bench.delivered(bench.settle(1, outcome=Outcome.RELEASED))
    assert (back.redelivered, back.failures) == (True, 0)


def test_what_came_back_goes_before_what_never_left() -> None:
    bench = Bench()
    bench.send("a", "b", "c")
    bench.attach(credit=2)
    bench.attach(2, credit=0)
    bench.apply(c.Settle(1, 1, [2, 1], outcome=Outcome.RELEASED))
    assert bench.bodies(bench.flush()) == ["a", "b"]


def test_back_off_doubles_from_failure_to_failure_up_to_its_maximum() -> None:
    bench = Bench(settings=Settings(redelivery_delay_ms=100, redelivery_multiplier=2.0, redelivery_delay_max_ms=300, redelivery_max=9))
    bench.send("a")
    bench.attach()
    for tag, delay in enumerate((100, 200, 300, 300), 1):
        assert bench.bodies(bench.settle(tag, outcome=Outcome.FAILED)) == []
        assert bench.passes(delay - 1) == []
        (back,) = bench.delivered(bench.passes(1))
        assert (back.redelivered, back.failures) == (True, tag)


def test_while_one_message_waits_for_its_back_off_the_others_go_on() -> None:
    bench = Bench(settings=Settings(redelivery_delay_ms=100))
    bench.send("a", "b")
    bench.attach(credit=1)
    assert bench.bodies(bench.settle(1, outcome=Outcome.FAILED)) == ["b"]


def test_beyond_the_maximum_a_message_dies_with_its_reason_and_origin() -> None:
    bench = Bench(settings=Settings(redelivery_max=2, redelivery_delay_ms=0))
    bench.send("a")
    bench.attach()
    for tag in (1, 2, 3):
        bench.settle(tag, outcome=Outcome.FAILED)
    assert bench.depth() == 0
    (told,) = dead_annotations(bench)
    assert told["JMS_SUN_DMQ_UNDELIVERED_REASON"] == "UNDELIVERABLE"
    assert told["JMS_SUN_DMQ_DELIVERY_COUNT"] == 3
    assert told["JMS_SUN_DMQ_UNDELIVERED_TIMESTAMP"] == START
    assert (told["original-destination"], told["original-timestamp"]) == (QUEUE, START)
    (message,) = bench.engine.shard.links[9].unsettled.values()
    assert message.header.message_id == f"ID:test-{message.sequence - 1}"
    assert bench.body(message) == "a"


def test_what_is_added_to_a_dead_message_is_what_no_sender_may_say() -> None:
    bench = Bench(settings=Settings(redelivery_max=0))
    bench.send("a", expires=START + 1000)
    bench.attach()
    bench.settle(1, outcome=Outcome.FAILED)
    (told,) = dead_annotations(bench)
    assert told.keys() == ADDED - {EXCEPTION, REPLAYED, SUBSCRIPTION}


def test_nothing_is_sent_to_the_dead_message_queue_and_everybody_may_consume_it() -> None:
    bench = Bench()
    assert bench.refused(bench.send("forged", address=DEAD)) == [Refusal.DESTINATION_RESERVED]
    assert bench.refused(bench.send("later", address=DEAD, delay=1000)) == [Refusal.DESTINATION_RESERVED]
    assert bench.depth(DEAD) == 0
    bench.send("a")
    bench.attach()
    bench.settle(1, outcome=Outcome.REJECTED)
    assert bench.attach(2, address=DEAD) == ["a"]


def test_the_copy_and_the_settlement_of_a_dead_message_are_one_commit() -> None:
    bench = Bench(settings=Settings(redelivery_max=0))
    bench.send("a")
    bench.attach()
    bench.settle(1, outcome=Outcome.FAILED)
    commit = bench.effects[-1].commit
    assert commit is not None and commit.synchronous
    assert [settled[4] for settled in commit.settled] == [Outcome.UNDELIVERABLE]
    assert [copy.source for copy in commit.copies] == [(bench.destination().number, 4, 0)]


def test_the_ledger_says_of_what_died_that_nothing_is_kept_of_it() -> None:
    bench = Bench(settings=Settings(redelivery_max=0, use_dead=False))
    bench.send("a", expires=START + 1000)
    bench.attach()
    bench.settle(1, outcome=Outcome.FAILED)
    commit = bench.effects[-1].commit
    assert commit is not None and not commit.copies
    assert commit.traces == [(bench.destination().number, 4, 0, 0, 0, 0, 0)]


def test_the_ledger_says_where_a_stored_copy_of_a_volatile_message_came_from() -> None:
    bench = Bench()
    bench.attach(address="topic/t", credit=0)
    bench.send("a", address="topic/t", expires=START + 1000)
    bench.now += 2000
    bench.flush()
    traces = [trace for effects in bench.effects if effects.commit is not None for trace in effects.commit.traces]
    assert traces == [(bench.destination("topic/t").number, VOLATILE + 4, 0, 0, bench.destination(DEAD).number, 4, 0)]


def test_a_maximum_of_minus_one_never_kills() -> None:
    bench = Bench(settings=Settings(redelivery_max=-1, redelivery_delay_ms=0))
    bench.send("a")
    bench.attach()
    for tag in range(1, 30):
        bench.settle(tag, outcome=Outcome.FAILED)
    assert bench.depth() == 1 and bench.depth(DEAD) == 0


def test_a_rejected_message_is_dead_at_once() -> None:
    bench = Bench()
    bench.send("a")
    bench.attach()
    bench.settle(1, outcome=Outcome.REJECTED)
    (told,) = dead_annotations(bench)
    assert told["JMS_SUN_DMQ_UNDELIVERED_COMMENT"] == "the consumer rejected the message"


def test_a_volatile_message_that_dies_keeps_its_body() -> None:
    bench = Bench()
    bench.send("a", level=EXPRESS)
    bench.attach()
    bench.settle(1, outcome=Outcome.REJECTED)
    bench.attach(2, address=DEAD)
    (message,) = bench.engine.shard.links[2].unsettled.values()
    assert message.body == b"a"


def test_where_the_dead_message_queue_is_not_used_the_dead_are_discarded() -> None:
    bench = Bench(settings=Settings(use_dead=False))
    bench.send("a")
    bench.attach()
    bench.settle(1, outcome=Outcome.REJECTED)
    assert (bench.depth(), bench.depth(DEAD), bench.destination().dead) == (0, 0, 1)


def test_what_dies_in_the_dead_message_queue_is_gone() -> None:
    bench = Bench()
    bench.send("a")
    bench.attach()
    bench.settle(1, outcome=Outcome.REJECTED)
    bench.attach(2, address=DEAD)
    bench.settle(1, link=2, outcome=Outcome.REJECTED)
    assert bench.depth(DEAD) == 0


@pytest.mark.parametrize("level", [EXPRESS, 4])
def test_what_a_lost_peer_held_comes_back_flagged_and_has_not_failed(level: int) -> None:
    bench = Bench(settings=Settings(redelivery_max=0))
    bench.send("a", "b", level=level)  # type: ignore[arg-type]
    bench.attach()
    bench.apply(c.PeerLost(1), c.Open(2, "guest"))
    bench.flush()
    assert bench.attach(2, peer=2) == ["a", "b"]
    assert [(m.redelivered, m.failures) for m in bench.engine.shard.links[2].unsettled.values()] == [(True, 0), (True, 0)]


def test_what_was_on_its_way_to_a_lost_peer_is_another_object_when_it_comes_back() -> None:
    bench = Bench()
    bench.send("a")
    bench.apply(c.Attach(1, 1, QUEUE, credit=9))
    effects = bench.engine.flush(bench.now)
    (leaving,) = bench.delivered(effects.outputs)
    bench.apply(c.PeerLost(1))
    bench._commit(effects)
    bench.release(effects)
    bench.apply(c.Open(2, "guest"))
    bench.flush()
    bench.attach(2, peer=2)
    (back,) = bench.engine.shard.links[2].unsettled.values()
    assert back is not leaving
    assert (leaving.redelivered, back.redelivered) == (False, True)
    assert leaving.body is None


# -- presettled links -----------------------------------------------------------------------------------------------------------------
def test_a_presettled_delivery_is_settled_once_it_has_left() -> None:
    bench = Bench()
    bench.send("a")
    assert bench.attach(presettled=True) == ["a"]
    assert bench.depth() == 1
    assert bench.engine.next_deadline() == START + 50
    bench.passes(50)
    assert bench.depth() == 0 and bench.engine.next_deadline() is None


def test_a_presettled_delivery_that_has_not_left_comes_back() -> None:
    bench = Bench()
    bench.send("a")
    bench.apply(c.Attach(1, 1, QUEUE, credit=9, presettled=True))
    effects = bench.engine.flush(bench.now)
    bench.apply(c.PeerLost(1), c.Open(2, "guest"))
    bench._commit(effects)
    bench.release(effects)
    bench.passes(50)
    assert bench.depth() == 1
    assert bench.attach(2, peer=2) == ["a"]


def test_a_presettled_link_gets_on_and_on() -> None:
    bench = Bench(link_octets=100)
    bench.attach(presettled=True, credit=2)
    got = [bench.bodies(bench.send(f"m{number}", size=40)) for number in range(6)]
    assert got == [[f"m{number}"] for number in range(6)]
