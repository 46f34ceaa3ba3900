"""Operations take their steps while the database works on the commit before."""

from __future__ import annotations

import pytest

from broker_core.engine import commands as c
from broker_core.engine.writes import OperationRow
from tests.engine.rig import QUEUE, Bench

OTHER = "queue/other"


@pytest.fixture
def bench() -> Bench:
    bench = Bench(operation_rows=10, operation_effort=100, operation_effort_beside=41, slow=True)
    bench.control("create", OTHER)
    bench.send(*"abcdefghij")
    return bench


def move(bench: Bench) -> OperationRow:
    """An operation that has read its first page."""
    number = bench.control("operate", QUEUE, verb="move", destination=OTHER)["operation"]
    bench.read()
    return bench.database.tables.operations[number]


def done(bench: Bench, operation: OperationRow) -> int:
    return bench.database.tables.operations[operation.operation].done


def end(bench: Bench) -> None:
    """All that is left to do."""
    bench.slow = False
    bench.flush()


def ahead(bench: Bench, **how: bool) -> bool:
    return bench.engine.work_ahead(bench.now, **how)


def test_what_was_done_ahead_is_in_the_next_commit_which_does_no_more(bench: Bench) -> None:
    operation = move(bench)
    assert ahead(bench)
    assert done(bench, operation) == 0, "nothing is durable yet"
    bench.flush()
    assert done(bench, operation) == 5
    bench.flush()
    assert done(bench, operation) == 10
    end(bench)
    assert bench.attach(address=OTHER) == list("abcdefghij")


def test_a_batch_has_one_step(bench: Bench) -> None:
    operation = move(bench)
    assert ahead(bench)
    assert not ahead(bench)
    bench.flush()
    assert done(bench, operation) == 5


def test_nobody_works_ahead_without_an_operation_a_page_or_disk_space(bench: Bench) -> None:
    assert not ahead(bench)
    bench.apply(c.Control(bench.database.request("operate"), "operate", QUEUE, {"verb": "move", "destination": OTHER}))
    assert not ahead(bench), "its page is not there"
    bench.flush()
    bench.read()
    assert not ahead(bench, space_low=True)
    assert ahead(bench)


def test_after_a_flush_that_told_peers_something_steps_are_short(bench: Bench) -> None:
    operation = move(bench)
    bench.send("x", address="queue/busy")
    assert done(bench, operation) == 3
    assert ahead(bench)
    bench.flush()
    assert done(bench, operation) == 6
    assert ahead(bench)
    bench.flush()
    assert done(bench, operation) == 10, "nobody else was there"


def test_what_is_acknowledged_meanwhile_is_left_alone(bench: Bench) -> None:
    bench.attach(credit=2, replenish=False)
    operation = move(bench)
    bench.apply(c.Settle(1, 1, (1, 2)))
    assert ahead(bench)
    end(bench)
    assert done(bench, operation) == 8
    assert bench.attach(2, address=OTHER) == list("cdefghij")
    assert bench.depth() == 0


def test_a_consumer_and_a_purge_of_the_same_batch_find_what_is_left(bench: Bench) -> None:
    move(bench)
    assert ahead(bench)
    bench.apply(c.Attach(1, 1, QUEUE, credit=2))
    bench.apply(c.Control(bench.database.request("purge"), "purge", QUEUE, {}))
    end(bench)
    assert bench.depth() == 0
    assert bench.attach(2, address=OTHER) == list("abcde")


def test_a_destination_that_goes_in_the_same_batch_takes_what_was_moved_with_it(bench: Bench) -> None:
    operation = move(bench)
    assert ahead(bench)
    bench.apply(c.Control(bench.database.request("destroy"), "destroy", OTHER, {}))
    end(bench)
    ended = bench.database.tables.operations[operation.operation]
    assert (ended.done, ended.failed, ended.error) == (5, 5, f"{OTHER} does not exist")
    assert bench.attach() == list("fghij")
