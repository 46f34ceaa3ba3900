"""Tests from outside run against really running processes. Those that harm nothing share one service; the others start their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.service import Service


@pytest.fixture(scope="session")
def service() -> Iterator[Service]:
    """A service that tests share: no test may kill, stop or fill it."""
    with Service() as running:
        yield running
