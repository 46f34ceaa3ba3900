"""The simulator finds what is wrong: each planted bug within a few seeds, by what clients see alone, with the invariants switched off."""

from __future__ import annotations

import pytest

from tests.simulation import planted
from tests.simulation.world import run_seed

SEEDS = 60


@pytest.mark.parametrize("bug", planted.BUGS, ids=lambda bug: bug.__name__)
def test_the_planted_bug_is_found(bug: planted.Bug) -> None:
    with planted.planted(bug, blind=True):
        assert any(run_seed(seed)[0].problem for seed in range(SEEDS))


def test_the_product_is_whole_again_afterwards() -> None:
    for bug in planted.BUGS:
        with planted.planted(bug, blind=True):
            pass
    assert run_seed(0)[0].problem == ""
