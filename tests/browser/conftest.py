"""The console in a browser, against a really running service that tests share: no test may kill, stop or fill it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.watched import EXECUTABLE, Console, Watched, missing
from tests.support.service import Service



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


@pytest.fixture
def page_as(consoles: Console) -> Iterator[Callable[..., Watched]]:
    """`page_as("viewer")`: a page of somebody with that role, logged in; `size=NARROW`. Fails if it complained, or asked anything of another origin."""
    pages: list[Watched] = []

    def made(*arguments, **settings) -> Watched:
        pages.append(consoles.page_as(*arguments, **settings))
        return pages[-1]

    yield made
    consoles.close()
    assert [wrong for page in pages for wrong in page.wrong] == []
