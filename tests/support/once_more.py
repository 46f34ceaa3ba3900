"""What failed beside others is run once more by itself, and both are told: a machine that was busy elsewhere is no fault of the change.

Only a few may have this excuse, and only in `make test`. What is always wrong fails again: seeds and examples are the same (Hypothesis keeps the one that
failed). What is wrong only sometimes, a race, may pass: who reads of a second look looks into it.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

EXCUSED_MAX = 3
"""Of 11,000 tests. More are a fault, or a machine that should not judge."""
RECORD = "surety/failed"


def begin(config: pytest.Config) -> None:
    """A run that never comes to its end has no excuse, nor one from the run before."""
    _record(config, [])


def remember(config: pytest.Config, failed: Sequence[str]) -> None:
    """Those of this run, by node id; none where it stopped at the first, for nobody knows of the others."""
    _record(config, [] if config.getoption("maxfail") else sorted(set(failed)))


def _record(config: pytest.Config, failed: list[str]) -> None:
    if config.cache is not None and not hasattr(config, "workerinput"):
        config.cache.set(RECORD, failed)


def chosen(config: pytest.Config, items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Those of `items` that failed in the run before. Ends the run if they have no excuse."""
    failed = config.cache.get(RECORD, []) if config.cache is not None else []
    if not 0 < len(failed) <= EXCUSED_MAX:
        pytest.exit(f"{len(failed)} tests failed; what runs once more by itself is 1 to {EXCUSED_MAX}", returncode=1)
    print(f"\nfailed beside others, once more by itself: {', '.join(failed)}")
    again = [item for item in items if item.nodeid in failed]
    if len(again) < len(failed):
        pytest.exit("not everything that failed is found again", returncode=1)
    return again
