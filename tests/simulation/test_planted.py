"""The simulator finds what is wrong: each planted bug within a few seeds, by what clients see alone, with the invariants switched off."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from tests.simulation import planted
from tests.simulation.searching import BUGS, FIRST, search
from tests.simulation.world import run_seed


EVERY = 6
"""Of the bugs that the first history finds `make test` searches for one in so many, `make verify` for all."""
SOON = [name for name in BUGS if not FIRST.get(name)][::EVERY]


@pytest.fixture(scope="module")
def searches(request: pytest.FixtureRequest) -> Iterator[dict[str, Future[str]]]:
    """Of the bugs whose tests are to be run, on all cores."""
    names = [item.callspec.params["name"] for item in request.session.items if item.path == request.path and hasattr(item, "callspec")]
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        yield {name: pool.submit(search, name) for name in names}
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("name", [name if name in SOON else pytest.param(name, marks=pytest.mark.slow) for name in BUGS])
def test_the_planted_bug_is_found(name: str, searches: dict[str, Future[str]]) -> None:
    assert searches[name].result() == ""


def test_the_product_is_whole_again_afterwards() -> None:
    for bug in planted.BUGS:
        with planted.planted(bug, blind=True):
            pass
    assert run_seed(0)[0].problem == ""
