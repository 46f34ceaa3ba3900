"""Pictures of every page of the console, in both themes and at two widths, on realistic traffic: `make screenshots`.

A dozen of them, which the documents show, are written to docs/pictures; all of them to the folder that is given as an argument, if one is.
"""

from __future__ import annotations

import contextlib
import re
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright
from playwright.sync_api import TimeoutError as NothingCame

from tests.browser.reached import reached
from tests.browser.watched import ADMINISTRATOR, EXECUTABLE, NARROW, THEMES, WIDE, Console
from tests.pictures.traffic import Traffic
from tests.support.browser import Browser
from tests.support.service import REPOSITORY, Service

SHOWN = REPOSITORY / "docs" / "pictures"
DOCUMENTED = (
    "overview-light-1280", "overview-dark-1280", "destinations-light-1280", "destinations-dark-390", "destination-light-1280", "messages-light-1280",
    "dead-light-1280", "transactions-light-1280", "operations-dark-1280", "reports-light-1280", "overview-light-390", "new-queue-light-1280",
)  # fmt: skip
"""Those of docs/console.md and README.md; one of a page that does not exist is left out."""
NAMES = {"/": "overview", "/destinations/N": "destination", "/destinations/create": "new-queue"}
"""By kind of page; of others by their path."""
TRAFFIC_SECONDS = 180
"""Before the first picture, so that charts have something to show."""


def _settled(page: Page) -> None:
    """Live, or not kept up to date, and nothing on its way."""
    page.wait_for_timeout(1200)
    with contextlib.suppress(NothingCame):  # a page that says something else is fine in a picture
        page.wait_for_selector("#live-state:not(:text-is('connecting'))", timeout=4000)


def _named(service: Service) -> dict[str, str]:
    """What to look at, by the name of the picture: one of each kind of page that links lead to."""
    person = Browser(service.http_port)
    person.log_in(*ADMINISTRATOR)
    [shown] = re.findall(r'<th scope="row"><a href="(/destinations/[0-9]+)"', person.get("/destinations?q=orders.new").text)
    found = reached(lambda address: person.get(address).text, ["/", shown, f"{shown}/messages"])
    return {NAMES.get(kind, kind.strip("/").replace("/", "-")): address for kind, address in found.items()}


def main(everything: Path) -> None:
    everything.mkdir(parents=True, exist_ok=True)
    SHOWN.mkdir(exist_ok=True)
    with Service() as service, sync_playwright() as playwright, (traffic := Traffic(service)).running():
        time.sleep(TRAFFIC_SECONDS)
        traffic.look_after()
        browser = playwright.chromium.launch(executable_path=EXECUTABLE, args=["--no-sandbox"])
        console = Console(browser, service)
        pages = _named(service)
        for theme in THEMES:
            for size in (WIDE, NARROW):
                watched = console.page_as(size=size, color_scheme=theme, reduced_motion="reduce")
                for name, path in pages.items():
                    _settled(watched.open(path))
                    title = f"{name}-{theme}-{size['width']}"
                    place = SHOWN if title in DOCUMENTED else everything
                    watched.page.screenshot(path=place / f"{title}.png")
                print(f"{theme} {size['width']}: {len(pages)} pages", *watched.wrong, sep="\n  ")
                console.close()
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="surety-pictures-")))
