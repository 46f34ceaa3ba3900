"""Seeds of histories: some for `make test`, all for `make verify`."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from _pytest.mark import ParameterSet


def soon(seeds: Iterable[int], count: int) -> list[int | ParameterSet]:
    """The first so many in `make test`; the others in `make verify`, too."""
    return [seed if number < count else pytest.param(seed, marks=pytest.mark.slow) for number, seed in enumerate(seeds)]
