"""For all rooms: a machine that must run everything says so, and what it lacks is then a failure."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.service import Service


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--nothing-skipped", action="store_true", help="a test that would be skipped fails")


@pytest.fixture(scope="session")
def service() -> Iterator[Service]:
    """A whole service that tests share: no test may kill, stop or fill it."""
    with Service() as running:
        yield running


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> object:
    report = yield
    if report.skipped and item.config.getoption("nothing_skipped"):
        report.outcome = "failed"
        report.longrepr = f"skipped, and nothing may be: {report.longrepr}"
    return report
