"""What may have left is told of before it leaves, by its position and nothing else (R9): also where what came back leaves before what stands below it."""

from __future__ import annotations

import pytest

from broker_core.engine import commands as c
from broker_core.engine.outcome import Outcome
from broker_core.engine.selector import compile_selector
from broker_core.engine.subscription import Filter
from tests.engine.rig import QUEUE, Bench

RED = Filter(compile_selector("colour = 'red'"))
REPORTED = pytest.mark.parametrize("reported", [False, True], ids=["from the ledger", "from a checkpoint"])
GROUPED = pytest.mark.parametrize("group", ["", "a"], ids=["no groups", "groups"])


def out_of_order(*bodies: str, group: str = "") -> Bench:
    """Of these, whose first letter is their colour, a selective consumer took the red ones out of the middle and gave the first of them back. The last one
    belongs to the group. Some of a lower priority wait, too: so a consumer's share where there are groups is more than what came back."""
    b = Bench()
    b.send("l0", "l1", "l2", priority=1)
    for body in bodies:
        b.send(body, properties={"colour": "red" if body[0] == "r" else "grey"}, group=group if body == bodies[-1] else "")
    taken = b.attach(1, wanted=RED, credit=len([body for body in bodies if body[0] == "r"]), replenish=False)
    assert taken == [body for body in bodies if body[0] == "r"]
    assert b.settle(1, outcome=Outcome.RELEASED) == []
    return b


def offered(b: Bench) -> list[tuple[int, int]]:
    """What the last commit that told of any told of, in order."""
    commits = [effects.commit for effects in b.effects if effects.commit is not None and effects.commit.offered]
    return sorted((first, last) for _, _, first, last, _ in commits[-1].offered)


def flags(b: Bench, *, reported: bool) -> dict[str, bool]:
    """What is flagged after a crash."""
    b.flush(report=reported)
    b.start()
    b.apply(c.Attach(1, 1, QUEUE, credit=100))
    return {b.body(message): message.redelivered for message in b.delivered(b.flush()) if message.header.priority == 4}


@GROUPED
@REPORTED
def test_ranges_name_what_left_also_where_the_first_and_the_last_are_as_far_apart_as_there_are_messages(reported: bool, group: str) -> None:
    b = out_of_order("g0", "r1", "r2", "g3", group=group)
    assert b.attach(2, credit=3) == ["r1", "g0", "g3"]
    assert offered(b) == [(0, 1), (3, 3)]
    assert flags(b, reported=reported) == {"g0": True, "r1": True, "r2": True, "g3": True}


@GROUPED
@REPORTED
def test_what_came_back_from_the_middle_says_nothing_of_what_stands_before_it(reported: bool, group: str) -> None:
    b = out_of_order("g0", "g1", "r2", "g3", group=group)
    assert b.attach(2, credit=1) == ["r2"]
    assert offered(b) == [(2, 2)]
    assert flags(b, reported=reported) == {"g0": False, "g1": False, "r2": True, "g3": False}


@GROUPED
@REPORTED
def test_what_follows_it_is_told_of_as_far_as_it_left(reported: bool, group: str) -> None:
    b = out_of_order("g0", "g1", "r2", "g3", "g4", group=group)
    assert b.attach(2, credit=4) == ["r2", "g0", "g1", "g3"]
    assert offered(b) == [(0, 3)]
    assert flags(b, reported=reported) == {"g0": True, "g1": True, "r2": True, "g3": True, "g4": False}
