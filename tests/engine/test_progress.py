"""Floors and bitmaps against a plain set of settled positions."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from broker_core.engine.progress import BLOCK, Progress, ranges

END = 3 * BLOCK
POSITIONS = st.one_of(st.integers(0, 40), st.integers(BLOCK - 5, BLOCK + 5), st.integers(0, END - 1))
RANGES = st.lists(st.tuples(POSITIONS, st.integers(0, 60)).map(lambda r: (r[0], min(r[0] + r[1], END - 1))), max_size=30)


def settled(marks: list[tuple[int, int]]) -> tuple[Progress, set[int]]:
    progress, plain = Progress(), set[int]()
    for first, last in marks:
        progress.settle(first, last)
        plain.update(range(first, last + 1))
    return progress, plain


@given(RANGES)
def test_whatever_is_settled_in_whatever_order_is_settled_and_nothing_else(marks: list[tuple[int, int]]) -> None:
    progress, plain = settled(marks)
    floor = next(position for position in range(END + 1) if position not in plain)
    assert progress.floor == floor
    assert progress.ahead == len([position for position in plain if position > floor])
    found = {position for low, high in progress.unsettled(0, END - 1) for position in range(low, high + 1)}
    assert found == set(range(END)) - plain
    assert progress.count_unsettled(floor, END - 1) == END - len(plain)
    edges = [position for first, last in marks for position in (first - 1, first, last, last + 1) if position >= 0]
    assert all(progress.is_settled(position) == (position in plain) for position in edges)


@given(RANGES, POSITIONS, POSITIONS)
def test_very_many_unsettled_ranges_are_those_that_are_found_one_by_one(marks: list[tuple[int, int]], first: int, last: int) -> None:
    progress, _ = settled(marks)
    assert list(progress.scattered(first, last)) == list(progress.unsettled(first, last))
    assert list(progress.scattered(0, END + BLOCK)) == list(progress.unsettled(0, END + BLOCK))


@given(RANGES, RANGES)
def test_a_checkpoint_and_the_blocks_changed_after_it_amount_to_the_same(before: list[tuple[int, int]], after: list[tuple[int, int]]) -> None:
    progress, plain = settled(before)
    blocks = dict(progress.changed_blocks())
    for first, last in after:
        progress.settle(first, last)
        plain.update(range(first, last + 1))
    blocks |= dict(progress.changed_blocks())
    again = Progress(progress.floor)
    for number, bits in blocks.items():
        again.load(number, bits)
    assert (again.floor, again.blocks, again.ahead) == (progress.floor, progress.blocks, progress.ahead)


@given(st.sets(st.integers(0, 200), min_size=1))
def test_ranges_are_the_maximal_runs(positions: set[int]) -> None:
    runs = ranges(list(positions))
    assert [position for first, last in runs for position in range(first, last + 1)] == sorted(positions)
    assert all(later[0] > earlier[1] + 1 for earlier, later in pairwise(runs))
