"""For all rooms: a machine that must run everything says so, and what it lacks is then a failure."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from xdist.remote import Producer

from tests.support import once_more, order
from tests.support.oidc import CLIENT_ID, CLIENT_SECRET, Provider
from tests.support.service import Service


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--nothing-skipped", action="store_true", help="a test that would be skipped fails")
    parser.addoption("--once-more", action="store_true", help="the few tests that failed in the run before, and no others")


def pytest_configure() -> None:
    """As at a terminal: what a shell runs in the background is born with Ctrl-C ignored, and so would be every service that is started here."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> order.ByRooms | None:
    return order.scheduled(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items[:] = once_more.chosen(config, items) if config.getoption("once_more") else order.by_length(items)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return order.is_in_vain(collection_path, config) or None


def pytest_collection_finish() -> None:
    """What thousands of tests have made by now stays to the end. Who collects garbage, as each test of tests/server does, need not look at it again, which
    would take 0.3 s each time."""
    gc.collect()
    gc.freeze()


def pytest_sessionstart(session: pytest.Session) -> None:
    if not session.config.getoption("once_more"):
        once_more.begin(session.config)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    once_more.remember(config, [report.nodeid for kind in ("failed", "error") for report in terminalreporter.stats.get(kind, [])])


@pytest.fixture(scope="session")
def provider() -> Iterator[Provider]:
    """Who says who operators of the shared service are, beside the service itself."""
    running = Provider()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def service(provider: Provider) -> Iterator[Service]:
    """A whole service that tests share: no test may kill, stop or fill it."""
    groups = {"ADMINISTRATORS": "chiefs", "OPERATORS": "ops", "VIEWERS": "staff"}
    sign_on = {"ISSUER": provider.issuer, "CLIENT_ID": CLIENT_ID, "CLIENT_SECRET": CLIENT_SECRET, **groups}
    with Service(environment={f"SURETY_OIDC_{name}": value for name, value in sign_on.items()}) as running:
        yield running


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> object:
    report = yield
    if report.skipped and item.config.getoption("nothing_skipped"):
        report.outcome = "failed"
        report.longrepr = f"skipped, and nothing may be: {report.longrepr}"
    return report
