"""Delayed messages that an operator cancels, delivers now, or moves to another time: once, whatever is being read meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core.engine.invariants import check
from broker_core.engine.message import Reliability
from tests.engine.rig import ASSURED, BEST_EFFORT, EXPRESS, QUEUE, START, Bench
from tests.engine.test_scheduling import scheduled

FAR = 10_000_000


def ask(bench: Bench, body: str, action: str, due: int, *, number: int = 0, **more: Any) -> int:
    """The request, which may be answered later."""
    rows = {bytes(row.body).decode(): number for number, row in bench.database.tables.scheduled.items()}
    arguments = {"schedule": number or rows[body], "due_at": due, "action": action, **more}
    request = bench.database.request("delayed", QUEUE, arguments)
    from broker_core.engine import commands as c

    bench.apply(c.Control(request, "delayed", QUEUE, arguments))
    return request


def answered(bench: Bench, request: int) -> dict[str, Any] | None:
    answer = bench.database.answer(request)
    return None if answer is None else answer[1]


def waiting(slow: bool = False, *, level: Reliability = ASSURED, delay: int = 5_000, far: bool = False) -> tuple[Bench, int]:
    """Three messages in the schedule; far: only rows know them."""
    bench = Bench(slow=slow, schedule_ahead_ms=1_000 if far else 60_000)
    bench.attach(7, credit=100)
    if far:
        bench.send("near", delay=500, level=level)
    bench.send("a", "b", "c", delay=delay, level=level)
    if far:
        bench.start()
        bench.attach(7, credit=100)
    return bench, START + delay


# -- what is refused ------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("far", [False, True])
def test_what_is_not_there_any_more_is_refused(far: bool) -> None:
    bench, due = waiting(far=far)
    request = ask(bench, "", "cancel", due, number=999)
    bench.flush()
    answer = answered(bench, request)
    assert answer is not None
    assert answer["refusal"] == "NO_SUCH_DELAYED"
    assert bench.destination().scheduled == (4 if far else 3)


def test_a_message_of_another_destination_is_refused() -> None:
    bench, due = waiting()
    (number, *_) = bench.database.tables.scheduled
    bench.send("x", address="queue/other")
    arguments = {"schedule": number, "due_at": due, "action": "cancel"}
    assert bench.control("delayed", "queue/other", **arguments)["refusal"] == "NO_SUCH_DELAYED"


# -- what is done -----------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("level", [ASSURED, EXPRESS])
@pytest.mark.parametrize("far", [False, True])
def test_what_is_cancelled_never_comes(far: bool, level: Reliability) -> None:
    if far and level is EXPRESS:
        return  # it does not outlive the node
    bench, due = waiting(far=far, level=level)
    request = ask(bench, "b", "cancel", due)
    bench.flush()
    assert "cancelled" in (answered(bench, request) or {})
    assert "b" not in scheduled(bench)
    bench.now = due
    assert [body for body in bench.bodies(bench.flush()) if body != "near"] == ["a", "c"]
    check(bench.engine)
    assert bench.destination().scheduled == 0


@pytest.mark.parametrize("far", [False, True])
def test_what_is_delivered_now_comes_now_and_once(far: bool) -> None:
    bench, due = waiting(far=far)
    ask(bench, "b", "deliver", due)
    assert bench.bodies(bench.flush()) == ["b"]
    assert "b" not in scheduled(bench)
    bench.now = due
    assert [body for body in bench.bodies(bench.flush()) if body != "near"] == ["a", "c"]


@pytest.mark.parametrize("far", [False, True])
def test_what_is_moved_comes_when_it_is_due_then(far: bool) -> None:
    bench, due = waiting(far=far)
    ask(bench, "a", "reschedule", due, at=due + 100)
    bench.flush()
    assert "a" in scheduled(bench)
    bench.now = due
    assert [body for body in bench.bodies(bench.flush()) if body != "near"] == ["b", "c"]
    bench.now = due + 99
    assert bench.bodies(bench.flush()) == []
    bench.now = due + 100
    assert bench.bodies(bench.flush()) == ["a"]
    assert scheduled(bench) == []


def test_it_survives_the_node() -> None:
    bench, due = waiting()
    ask(bench, "a", "cancel", due)
    ask(bench, "b", "reschedule", due, at=due + FAR)
    bench.flush()
    bench.start()
    bench.attach(7, credit=100)
    bench.now = due
    assert bench.bodies(bench.flush()) == ["c"]
    bench.now = due + FAR
    assert bench.bodies(bench.flush()) == ["b"]


def test_best_effort_is_found_in_memory() -> None:
    bench = Bench()
    bench.attach(7)
    bench.send("a", delay=100, level=BEST_EFFORT)
    (message,) = bench.engine.shard.schedule.unwritten.messages()
    assert bench.control("delayed", QUEUE, schedule=message.sequence, due_at=START + 100, action="cancel") == {"cancelled": message.sequence}
    assert bench.passes(200) == []


# -- meanwhile --------------------------------------------------------------------------------------------------------------------------
def test_of_two_who_cancel_one_is_told_that_it_is_gone() -> None:
    bench, due = waiting(far=True, slow=True)
    first, second = ask(bench, "b", "cancel", due), ask(bench, "b", "deliver", due)
    bench.flush()
    assert answered(bench, first) is None, "the row is being read"
    bench.read()
    bench.flush()
    assert "cancelled" in (answered(bench, first) or {})
    assert (answered(bench, second) or {}).get("refusal") == "NO_SUCH_DELAYED"
    check(bench.engine)


def test_what_becomes_due_while_its_row_is_read_is_delivered_once() -> None:
    bench, due = waiting(far=True, slow=True)
    request = ask(bench, "b", "deliver", due)
    bench.flush()
    (asked,) = [read for read in bench.reads if read.limit == 1]
    bench.reads.remove(asked)
    bench.now = due
    bodies = []
    for _ in range(5):
        bodies += bench.bodies(bench.flush())
        bench.read()
    bench.reads = [asked]
    bench.read()
    bodies += bench.bodies(bench.flush())
    assert [body for body in bodies if body != "near"] == ["a", "b", "c"]
    assert (answered(bench, request) or {}).get("refusal") == "NO_SUCH_DELAYED"
    assert bench.engine.shard.schedule.gone == {}


def test_a_page_that_was_read_before_does_not_bring_back_what_is_cancelled() -> None:
    bench, due = waiting(far=True, slow=True)
    request = ask(bench, "b", "cancel", due)
    bench.now = due - 900
    bench.flush()  # a page of the schedule is asked for, too
    pages = [read for read in bench.reads if read.limit != 1]
    assert pages
    bench.reads.sort(key=lambda read: read.limit != 1)
    rows = {id(page): bench.store for page in pages}
    assert rows
    loaded = [(read, _rows(bench, read)) for read in bench.reads]
    bench.reads = []
    from broker_core.engine import commands as c

    for read, (messages, complete) in loaded:
        bench.apply(c.PageLoaded(read.read, messages, complete))
        bench.flush()
    assert "cancelled" in (answered(bench, request) or {})
    bench.now = due
    bodies = []
    for _ in range(5):
        bodies += bench.bodies(bench.flush())
        bench.read()
    assert [body for body in bodies if body != "near"] == ["a", "c"]


def _rows(bench: Bench, read: Any) -> Any:
    from tests.engine.rig import now_of

    return now_of(bench.store.read(read))
