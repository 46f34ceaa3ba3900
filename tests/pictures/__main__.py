"""Pictures of every page of the console, in both themes and at two widths, on realistic traffic: `make screenshots`.

A dozen of them, which the documents show, are written to docs/pictures; all of them to the folder that is given as an argument, if one is.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Page, sync_playwright

from tests.browser.watched import EXECUTABLE, NARROW, THEMES, WIDE, Console
from tests.pictures.traffic import Traffic
from tests.support.service import REPOSITORY, Service

SHOWN = REPOSITORY / "docs" / "pictures"
DOCUMENTED = (
    "overview-light-1280", "overview-dark-1280", "destinations-light-1280", "destinations-dark-390", "destination-light-1280", "messages-light-1280",
    "dead-light-1280", "transactions-light-1280", "operations-dark-1280", "reports-light-1280", "overview-light-390", "new-queue-light-1280",
)  # fmt: skip
"""Those of docs/console.md and README.md; one of a page that does not exist is left out."""
TRAFFIC_SECONDS = 180
"""Before the first picture, so that charts have something to show."""


def _settled(page: Page) -> None:
    """Live, and nothing on its way."""
    with contextlib.suppress(Exception):  # a page without anything live says so, which is fine in a picture
        page.wait_for_selector("#live-state[data-state=good]", timeout=4000)
    page.wait_for_timeout(1200)


def _named(page: Page) -> dict[str, str]:
    """What to look at, by the name of the picture."""
    links = page.eval_on_selector_all("#nav a[data-key]", "links => links.map(link => link.href)")
    found = {urlsplit(link).path.strip("/").replace("/", "-") or "overview": urlsplit(link).path for link in links}
    page.goto(page.url + "destinations?q=orders.new")
    return {**found, "destination": page.get_attribute("tbody th a", "href") or "/", "new-queue": "/destinations/create"}


def main(everything: Path) -> None:
    everything.mkdir(parents=True, exist_ok=True)
    SHOWN.mkdir(exist_ok=True)
    with Service() as service, sync_playwright() as playwright, (traffic := Traffic(service)).running():
        time.sleep(TRAFFIC_SECONDS)
        traffic.look_after()
        browser = playwright.chromium.launch(executable_path=EXECUTABLE, args=["--no-sandbox"])
        console = Console(browser, service)
        pages = _named(console.page_as().open("/"))
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
