"""The course of an operation: step by step, cancelled, after a crash, in turn with others; and what it tells of each message."""

from __future__ import annotations

import pytest

from broker_core.engine import commands as c
from broker_core.engine.settings import REJECT_NEWEST
from broker_core.engine.writes import OperationState
from tests.engine.operation_rig import OTHER, counts, crashes_after, operate, ready, row, steps
from tests.engine.rig import QUEUE, Bench


@pytest.fixture
def bench() -> Bench:
    return ready(operation_rows=3, operation_effort=61)


# -- step by step ---------------------------------------------------------------------------------------------------------------------
def test_what_came_after_the_beginning_is_not_moved() -> None:
    bench = ready(operation_rows=2, operation_effort=31, slow=True)
    bench.send(*"abcd")
    bench.apply(c.Control(bench.database.request("operate"), "operate", QUEUE, {"verb": "move", "destination": OTHER}))
    bench.send("e")
    steps(bench, 20)
    assert (bench.depth(), bench.depth(OTHER)) == (1, 4)


@pytest.mark.parametrize(("condition", "moved"), [({"age_min_ms": 2_000}, 2), ({"age_max_ms": 1_500}, 2)])
def test_ages_count_from_the_beginning_however_long_it_takes(condition: dict[str, int], moved: int) -> None:
    bench = ready(operation_rows=1, operation_effort=31, slow=True)
    bench.send("a", "b")
    bench.passes(1_000)
    bench.send("c", "d")
    bench.passes(1_000)
    number = bench.control("operate", QUEUE, verb="move", destination=OTHER, filter=condition)["operation"]
    for _ in range(20):
        bench.passes(1_000)
        steps(bench, 1)
    assert counts(row(bench, number)) == ("done", 4, moved, 0, 0)


def test_it_fails_with_a_sentence_when_its_queue_is_destroyed() -> None:
    bench = ready(operation_rows=2, operation_effort=31, slow=True)
    bench.send(*"abcd")
    number = bench.control("operate", QUEUE, verb="move", destination=OTHER)["operation"]
    bench.control("destroy", QUEUE, depth=4)
    steps(bench, 5)
    assert row(bench, number).state is OperationState.FAILED and QUEUE in row(bench, number).error


def test_beside_other_traffic_its_steps_are_short() -> None:
    bench = ready(operation_rows=10, operation_effort=300, operation_effort_beside=41, slow=True)
    bench.send(*"abcdefghij")
    number = bench.control("operate", QUEUE, verb="move", destination=OTHER)["operation"]
    bench.read()
    bench.send("x", address="queue/busy")
    assert row(bench, number).done == 3
    bench.flush()
    assert row(bench, number).done == 10


def test_operations_take_turns_and_few_run_at_a_time() -> None:
    bench = Bench(operation_rows=1, operation_effort=1, slow=True)
    bench.send(*"abcdefgh")
    refused = [bench.control("operate", QUEUE, verb="copy", destination=OTHER, limit=2) for _ in range(2)]
    assert OTHER in str(refused)
    bench.control("create", OTHER)
    numbers = [bench.control("operate", QUEUE, verb="copy", destination=OTHER, limit=2)["operation"] for _ in range(6)]
    states = [row(bench, number).state for number in numbers]
    assert states.count(OperationState.RUNNING) == 4 and states.count(OperationState.WAITING) == 2
    steps(bench, 40)
    assert {row(bench, number).state for number in numbers} == {OperationState.DONE}
    assert bench.depth(OTHER) == 12


def test_without_disk_space_operations_wait(bench: Bench) -> None:
    bench.send(*"abc")
    bench.apply(c.Control(bench.database.request("operate"), "operate", QUEUE, {"verb": "move", "destination": OTHER}))
    for _ in range(3):
        effects = bench.engine.flush(bench.now, space_low=True)
        bench._commit(effects)
        bench.release(effects)
        assert bench.depth(OTHER) == 0
        assert bench.engine.next_deadline() != bench.now
    bench.flush()
    assert bench.depth(OTHER) == 3


# -- what is told of each message -----------------------------------------------------------------------------------------------------
def test_of_named_messages_each_is_told_with_the_reason(bench: Bench) -> None:
    bench.control("update", OTHER, max_messages=1, limit_behavior=REJECT_NEWEST)
    bench.send(*"abcd")
    bench.attach(credit=1)
    ended = operate(bench, "move", destination=OTHER, messages=[[4, 0], [4, 1], [4, 3]])
    assert sorted(ended.results) == [
        ["done", "", [[4, 1]]], ["failed", ended.error, [[4, 3]]], ["skipped", "a consumer has it, or a transaction", [[4, 0]]],
    ]  # fmt: skip


def test_of_a_filter_the_first_that_failed_are_told(bench: Bench, monkeypatch) -> None:
    monkeypatch.setattr("broker_core.engine.operation.FAILED_MAX", 3)
    bench.control("update", OTHER, max_messages=2, limit_behavior=REJECT_NEWEST)
    bench.send(*"abcdefgh")
    ended = operate(bench, "move", destination=OTHER)
    assert counts(ended) == ("done", 8, 2, 0, 6)
    assert ended.results == [["failed", ended.error, [[4, 2], [4, 3], [4, 4]]]]
    assert operate(bench, "move", destination=OTHER, dry_run=True).results == []


@pytest.mark.parametrize("flushes", [1, 2, 3, 4])
def test_after_a_crash_each_is_told_all_the_same(flushes: int) -> None:
    bench = Bench(operation_rows=2, operation_effort=31, slow=True)
    bench.send(*"abcdefgh")
    places = [[4, number] for number in range(8)]
    number = bench.control("operate", QUEUE, verb="reprioritize", priority=9, messages=places)["operation"]
    crashes_after(bench, flushes)
    assert row(bench, number).results == [["done", "", places]]


# -- dry runs, cancelling, crashes ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("verb", ["delete", "expire", "retry"])
def test_a_dry_run_counts_and_changes_nothing(bench: Bench, verb: str) -> None:
    for number in range(8):
        bench.send(str(number), properties={"colour": "red" if number % 3 == 0 else "blue"})
    bench.attach(credit=1)
    ended = operate(bench, verb, filter={"selector": "colour = 'red'"}, dry_run=True)
    assert counts(ended) == ("done", 8, 2, 1, 0)
    assert bench.depth() == 8


def test_what_is_cancelled_stops_and_keeps_what_it_did() -> None:
    bench = ready(operation_rows=2, operation_effort=31, slow=True)
    bench.send(*"abcdefgh")
    number = bench.control("operate", QUEUE, verb="move", destination=OTHER)["operation"]
    steps(bench, 1)
    done = row(bench, number).done
    assert 0 < done < 8
    assert bench.control("cancel", operation=number)["operation"] == number
    steps(bench, 1)
    assert counts(row(bench, number))[0::2] == ("cancelled", done, 0)
    assert bench.depth(OTHER) == done
    assert "no operation" in bench.control("cancel", operation=number)["detail"]


@pytest.mark.parametrize("verb", ["move", "copy", "delete", "reprioritize"])
@pytest.mark.parametrize("flushes", [1, 2, 3, 4, 5, 6])
def test_after_a_crash_it_goes_on_where_it_was(verb: str, flushes: int) -> None:
    bench = ready(operation_rows=2, operation_effort=31, slow=True)
    bench.send(*"abcdefgh")
    arguments = {"move": {"destination": OTHER}, "copy": {"destination": OTHER}, "reprioritize": {"priority": 9}}.get(verb, {})
    number = bench.control("operate", QUEUE, verb=verb, **arguments)["operation"]
    crashes_after(bench, flushes)
    assert counts(row(bench, number)) == ("done", 8, 8, 0, 0)
    if verb in ("move", "copy"):
        assert bench.attach(address=OTHER) == list("abcdefgh")
    assert bench.depth() == (8 if verb in ("copy", "reprioritize") else 0)
