"""The console in a browser, against a really running service that tests share: no test may kill, stop or fill it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser import posts
from tests.browser.watched import ADMINISTRATOR, EXECUTABLE, Console, Watched, missing
from tests.support.browser import Browser as Person
from tests.support.service import Service


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "clicks(*names): does these things on pages (tests/browser/posts.py has the names), and fails if it did not")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Not for the whole session: while it is there it has an event loop running, beside which no other test may have one."""
    if problem := missing():
        pytest.skip(problem)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=EXECUTABLE, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def consoles(browser: Browser, service: Service) -> Console:
    return Console(browser, service)


@pytest.fixture(scope="session")
def routes() -> dict[str, str]:
    """All that can be done on pages."""
    return posts.named()


@pytest.fixture(scope="session")
def api(service: Service) -> Person:
    """The REST API, asked by the administrator."""
    person = Person(service.http_port)
    person.log_in(*ADMINISTRATOR)
    return person


@pytest.fixture
def page_as(consoles: Console, request: pytest.FixtureRequest) -> Iterator[Callable[..., Watched]]:
    """`page_as("viewer")`: a page of somebody with that role, logged in; `size=NARROW`. Fails if it complained, or asked anything of another origin, or if
    something was not done that the test says it does."""
    pages: list[Watched] = []
    said = {name for mark in request.node.iter_markers("clicks") for name in mark.args}
    routes = request.getfixturevalue("routes") if said else {}

    def made(*arguments, **settings) -> Watched:
        pages.append(consoles.page_as(*arguments, **settings))
        return pages[-1]

    yield made
    consoles.close()
    assert [wrong for page in pages for wrong in page.wrong] == []
    assert said - {posts.name_of(routes, path, form) for page in pages for path, form in page.posted} == set()
