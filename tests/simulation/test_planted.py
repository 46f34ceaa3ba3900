"""The simulator finds what is wrong: each planted bug within a few seeds, by what clients see alone, with the invariants switched off."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulation import planted
from tests.simulation.world import run_seed

SEEDS = 120
FOUND = ("Broken:", "AssertionError:", "SegmentMissing:")
"""A promise that was not kept, or what the store refuses. Anything else may be a bug that does not fit the product any more."""


@pytest.mark.parametrize("bug", planted.BUGS, ids=lambda bug: bug.__name__)
def test_the_planted_bug_is_found(bug: planted.Bug) -> None:
    others: Counter[str] = Counter()
    with planted.planted(bug, blind=True):
        for seed in range(SEEDS):
            problem = run_seed(seed)[0].problem
            assert not problem.startswith(("TypeError", "AttributeError", "NameError")), problem  # it does not fit the product any more
            if problem.startswith(FOUND):
                return
            others[problem.partition(":")[0] or "no problem at all"] += 1
    pytest.fail(f"nothing was found but {dict(others)}")


def test_the_product_is_whole_again_afterwards() -> None:
    for bug in planted.BUGS:
        with planted.planted(bug, blind=True):
            pass
    assert run_seed(0)[0].problem == ""
