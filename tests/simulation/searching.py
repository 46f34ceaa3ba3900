"""Looking for a planted bug, in a process of its own: a search takes seconds, and there are many bugs."""

from __future__ import annotations

from collections import Counter

from tests.simulation import planted
from tests.simulation.world import run_seed

SEEDS = 120
FOUND = ("Broken:", "AssertionError:", "SegmentMissing:")
"""A promise that was not kept, or what the store refuses. Anything else may be a bug that does not fit the product any more."""


BUGS = {bug.__name__: bug for bug in planted.BUGS}


def search(name: str) -> str:
    """Nothing if the bug is found, else a sentence."""
    others: Counter[str] = Counter()
    with planted.planted(BUGS[name], blind=True):
        for seed in range(SEEDS):
            problem = run_seed(seed)[0].problem
            if problem.startswith(FOUND):
                return ""
            if problem.startswith(("TypeError", "AttributeError", "NameError")):
                return f"it does not fit the product any more: {problem}"
            others[problem.partition(":")[0] or "no problem at all"] += 1
    return f"nothing was found but {dict(others)}"
