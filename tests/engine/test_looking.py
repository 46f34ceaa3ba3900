"""What operators see of a queue: which positions, in which state, and what is in memory only."""

from __future__ import annotations

import random
from base64 import b64decode
from typing import Any

import pytest

from broker_core.engine import commands as c
from broker_core.engine import looking
from broker_core.engine.message import Reliability
from broker_core.engine.outcome import Outcome
from broker_core.engine.progress import BLOCK, Progress
from broker_core.engine.settings import Settings
from tests.engine.rig import ASSURED, EXPRESS, QUEUE, START, Bench

TOPIC = "topic/prices"


def look(bench: Bench, address: str = QUEUE, **arguments: Any) -> dict[str, Any]:
    return bench.control("browse", address, bodies=True, **arguments)


def positions(answer: dict[str, Any]) -> list[tuple[int, int]]:
    """(lane, position) of all that is shown, in the order of looking."""
    found = []
    for piece in answer["pieces"]:
        runs = [list(range(low, high + 1)) for low, high in piece["ranges"]]
        found += [(piece["lane"], position) for run in runs for position in (reversed(run) if _descends(piece["ranges"]) else run)]
    return found


def _descends(ranges: list[tuple[int, int]]) -> bool:
    return len(ranges) > 1 and ranges[0] > ranges[1]


def states(answer: dict[str, Any]) -> dict[int, list[Any]]:
    return {state[0]: state[1:] for piece in answer["pieces"] for state in piece["states"]}


def in_memory(answer: dict[str, Any]) -> list[str]:
    return [b64decode(message["body"]).decode() for piece in answer["pieces"] for message in piece["messages"]]


# -- what is refused ------------------------------------------------------------------------------------------------------------------
def test_what_does_not_exist_is_not_looked_at() -> None:
    bench = Bench()
    assert look(bench)["refusal"] == "NO_SUCH_DESTINATION"
    bench.send("a", address=TOPIC)
    answer = look(bench, TOPIC)
    assert answer["refusal"] == "NO_SUCH_SUBSCRIPTION"
    assert "name one of its subscriptions" in answer["detail"]
    assert look(bench, TOPIC, subscription=77)["refusal"] == "NO_SUCH_SUBSCRIPTION"


# -- where --------------------------------------------------------------------------------------------------------------------------------
def test_an_empty_queue_shows_nothing() -> None:
    bench = Bench()
    bench.attach()
    answer = look(bench)
    assert (answer["pieces"], answer["next"], answer["depth"]) == ([], None, 0)


def test_the_highest_priority_comes_first_and_what_is_stored_before_what_is_not() -> None:
    bench = Bench()
    for body, priority, level in (("low", 1, ASSURED), ("a", 4, EXPRESS), ("high", 9, ASSURED), ("b", 4, ASSURED)):
        bench.send(body, priority=priority, level=level)
    assert positions(look(bench)) == [(9, 0), (4, 0), (14, 0), (1, 0)]
    assert positions(look(bench, newest_first=True)) == [(1, 0), (14, 0), (4, 0), (9, 0)]
    assert in_memory(look(bench)) == ["a"]


def test_settled_messages_are_left_out_from_either_end() -> None:
    bench = Bench()
    bench.attach()
    bench.send(*"abcdef")
    bench.settle(1, 2, 4)
    assert look(bench)["pieces"][0]["ranges"] == [(2, 2), (4, 5)]
    assert look(bench, newest_first=True)["pieces"][0]["ranges"] == [(4, 5), (2, 2)]


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("level", [ASSURED, EXPRESS])
def test_pages_follow_each_other_without_a_gap(level: Reliability, newest_first: bool) -> None:
    bench = Bench()
    bench.attach()
    bench.send(*[str(number) for number in range(30)], level=level)
    bench.send(*[str(number) for number in range(5)], level=level, priority=7)
    bench.settle(3, 4, 9, 20)
    whole = positions(look(bench, newest_first=newest_first))
    found, at = [], None
    for _ in range(40):
        answer = look(bench, positions=4, newest_first=newest_first, **({"from": at} if at else {}))
        page = [(piece["lane"], p) for piece in answer["pieces"] for low, high in piece["ranges"] for p in range(low, high + 1)]
        assert len(page) <= 4
        found += page
        at = answer["next"]
        if at is None:
            break
    assert sorted(found) == sorted(whole)
    assert len(found) == len(set(found)) == 31


def test_a_look_begins_where_it_is_told() -> None:
    bench = Bench()
    bench.send(*"abcdef")
    bench.send("x", priority=2)
    assert positions(look(bench, **{"from": [4, 3]})) == [(4, 3), (4, 4), (4, 5), (2, 0)]
    assert look(bench, newest_first=True, **{"from": [4, 1]})["pieces"][0]["ranges"] == [(0, 1)]
    assert positions(look(bench, positions=1, **{"from": [4, 3]})) == [(4, 3)]


def test_a_million_settled_ones_are_passed_in_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "SPAN", 8)
    bench = Bench()
    bench.attach()
    bench.send(*[str(number) for number in range(60)])
    bench.settle(*range(2, 60))
    assert look(bench)["pieces"][0]["ranges"] == [(0, 0), (59, 59)]
    monkeypatch.setattr(looking, "SPANS_MAX", 2)
    answer = look(bench)
    assert answer["pieces"][0]["ranges"] == [(0, 0)]
    assert answer["next"] == [4, 16]


# -- in which state -------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("level", [ASSURED, EXPRESS])
def test_who_has_a_message_and_since_when(level: Reliability) -> None:
    bench = Bench()
    bench.attach(7, credit=2)
    bench.send(*"abc", level=level)
    bench.now += 5000
    bench.flush(report=True)
    bench.now += 5000
    answer = look(bench)
    assert states(answer) == {0: ["delivered", 7, START + 5000], 1: ["delivered", 7, START + 5000]}
    assert answer["links"] == {"7": {"peer": 1, "account": "guest", "client_id": ""}}


def test_instants_of_delivery_are_known_as_long_as_something_is_outstanding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "MARKS_MAX", 4)
    bench = Bench()
    bench.attach(7, credit=1000)
    for number in range(12):
        bench.send(str(number))
        bench.now += 1000
        bench.flush(report=True)
        if number % 4:
            bench.settle(number + 1, link=7)
    assert {position: state[2] - START for position, state in states(look(bench)).items()} == {0: 1000, 4: 5000, 8: 9000}
    assert len(bench.engine.shard.links[7].marks) <= 5
    bench.settle(link=7, upto=12)
    bench.flush(report=True)
    assert bench.engine.shard.links[7].marks == []


def test_what_failed_waits_for_its_back_off() -> None:
    bench = Bench(settings=Settings(redelivery_delay_ms=1000))
    bench.attach(credit=1)
    bench.send("a")
    bench.settle(1, outcome=Outcome.FAILED)
    answer = look(bench)
    assert states(answer) == {0: ["delayed", START + 1000]}
    assert answer["pieces"][0]["failures"] == {"0": 1}
    assert answer["pieces"][0]["flagged"] == [0]


def test_what_came_back_waits_and_is_flagged() -> None:
    bench = Bench()
    bench.attach(credit=1)
    bench.send("a", "b")
    bench.apply(c.Detach(1, 1))
    bench.flush()
    answer = look(bench)
    assert states(answer) == {0: ["available"]}
    assert answer["pieces"][0]["flagged"] == [0]


def test_what_may_have_left_before_a_crash_is_flagged() -> None:
    bench = Bench()
    bench.attach(credit=2)
    bench.send(*"abc")
    bench.start()
    assert look(bench)["pieces"][0]["flagged_upto"] == 1


def test_a_transaction_has_what_it_acknowledged() -> None:
    bench = Bench()
    bench.send("a", "b", level=EXPRESS)
    bench.attach(credit=10)
    bench.apply(c.Begin(1, b"t"), c.Transacted(1, b"t", c.Settle(1, 1, [1])))
    bench.flush()
    assert states(look(bench))[0] == ["reserved", "transaction", 1, ""]


def test_what_is_acknowledged_in_the_open_batch_is_gone() -> None:
    bench = Bench()
    bench.attach(credit=10)
    bench.send("a", "b")
    bench.apply(c.Settle(1, 1, [1]))
    assert look(bench)["pieces"][0]["gone"] == [0]


def test_many_states_end_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "STATES_MAX", 3)
    bench = Bench()
    bench.attach(credit=10)
    bench.send(*"abcdef")
    answer = look(bench)
    assert answer["pieces"][0]["ranges"] == [(0, 2)]
    assert answer["next"] == [4, 3]
    assert look(bench, newest_first=True)["next"] == [4, 2]


# -- what is in memory only -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("newest_first", [False, True])
def test_volatile_messages_come_with_their_content_wherever_they_are(newest_first: bool) -> None:
    bench = Bench(settings=Settings(redelivery_delay_ms=1000))
    bench.attach(credit=3)
    bench.send(*"abcdef", level=EXPRESS, properties={"colour": "red"})
    bench.settle(1, outcome=Outcome.FAILED)
    bench.settle(2)
    answer = look(bench, newest_first=newest_first)
    shown = [*"acdef"]
    assert in_memory(answer) == (shown[::-1] if newest_first else shown)
    (message, *_) = sorted(answer["pieces"][0]["messages"], key=lambda each: each["position"])
    assert b64decode(message["headers"]) == b"colour:red"
    assert (message["failures"], message["redelivered"], message["priority"]) == (1, True, 4)


def test_memory_is_shown_a_page_at_a_time() -> None:
    bench = Bench()
    bench.send(*[str(number) for number in range(10)], level=EXPRESS)
    answer = look(bench, messages=4)
    assert in_memory(answer) == ["0", "1", "2", "3"]
    assert answer["next"] == [14, 4]
    assert in_memory(look(bench, messages=4, newest_first=True, **{"from": [14, 4]})) == ["4", "3", "2", "1"]


def test_what_was_spilled_is_a_row() -> None:
    bench = Bench(memory_octets=300, window_rows=4, page_rows=3, page_octets=64, segment_rows=5)
    bench.send(*[str(number) for number in range(20)], level=EXPRESS, size=50)
    answer = look(bench)
    assert len(positions(answer)) == 20
    assert 0 < len(in_memory(answer)) < 20
    assert answer["pieces"][0]["segments"]


def test_a_subscription_of_a_topic_has_its_own_view() -> None:
    bench = Bench()
    bench.apply(c.Open(2, "guest", "client"))
    for link, name in ((1, "a"), (2, "b")):
        bench.attach(link, peer=2, address=TOPIC, name=name, durable=True, credit=1)
    bench.apply(c.Detach(2, 2))
    bench.send("x", "y", address=TOPIC)
    first, second = (s.number for s in bench.destination(TOPIC).subscriptions)
    assert states(look(bench, TOPIC, subscription=first)) == {0: ["delivered", 1, START]}
    assert states(look(bench, TOPIC, subscription=second)) == {}
    assert positions(look(bench, TOPIC, subscription=second)) == [(4, 0), (4, 1)]


def test_what_a_topic_keeps_in_memory_is_shown() -> None:
    bench = Bench()
    bench.attach(1, address=TOPIC, credit=1)
    bench.send(*"xyz", address=TOPIC, level=EXPRESS)
    (subscription,) = bench.destination(TOPIC).subscriptions
    assert in_memory(look(bench, TOPIC, subscription=subscription.number)) == ["x", "y", "z"]


# -- the highest first ----------------------------------------------------------------------------------------------------------------
def test_unsettled_ranges_are_the_same_from_above() -> None:
    chance = random.Random(4)
    for _ in range(200):
        progress, last = Progress(chance.randrange(50)), chance.randrange(3 * BLOCK)
        for _ in range(chance.randrange(6)):
            first = chance.randrange(last + 1)
            progress.settle(first, min(first + chance.randrange(BLOCK), last))
        first = chance.randrange(last + 1)
        assert list(progress.unsettled_down(first, last)) == list(progress.unsettled(first, last))[::-1]
