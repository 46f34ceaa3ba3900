"""The simulator finds what is wrong: each planted bug within a few seeds, by what clients see alone, with the invariants switched off."""

from __future__ import annotations

import pytest

from tests.simulation import planted
from tests.simulation.world import run_seed

SEEDS = 120
FOUND = ("Broken:", "AssertionError:", "SegmentMissing:")
"""A promise that was not kept, or what the store refuses. Anything else may be a bug that does not fit the product any more."""


@pytest.mark.parametrize("bug", planted.BUGS, ids=lambda bug: bug.__name__)
def test_the_planted_bug_is_found(bug: planted.Bug) -> None:
    with planted.planted(bug, blind=True):
        problems = (run_seed(seed)[0].problem for seed in range(SEEDS))
        assert any(problem.startswith(FOUND) for problem in problems if not _does_not_fit(problem))


def _does_not_fit(problem: str) -> bool:
    assert not problem.startswith(("TypeError", "AttributeError", "NameError")), problem
    return False


def test_the_product_is_whole_again_afterwards() -> None:
    for bug in planted.BUGS:
        with planted.planted(bug, blind=True):
            pass
    assert run_seed(0)[0].problem == ""
