"""Tests from outside run against really running processes. Those that harm nothing share one service; the others start their own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.support.service import Service


@pytest.fixture(scope="session")
def service() -> Iterator[Service]:
    """A service that tests share: no test may kill, stop or fill it."""
    with Service() as running:
        yield running


@pytest.fixture(scope="session")
def _numbers() -> Iterator[int]:
    return itertools.count()


@pytest.fixture
def queue(_numbers: Iterator[int]) -> str:
    """A queue that nobody else uses."""
    return f"/queue/acceptance.{next(_numbers)}"


@pytest.fixture
def topic(_numbers: Iterator[int]) -> str:
    """A topic that nobody else uses."""
    return f"/topic/acceptance.{next(_numbers)}"
