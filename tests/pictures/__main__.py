"""Pictures of every page of the console, in both themes and at two widths, on realistic traffic: `make screenshots`.

A dozen of them, which the documents show, are written to docs/pictures; all of them to the folder that is given as an argument, if one is.
"""

from __future__ import annotations

import contextlib
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Page, sync_playwright

from broker_core.client import Connection, Queue, Topic
from tests.acceptance.python_client import factory
from tests.browser.watched import EXECUTABLE, NARROW, THEMES, WIDE, Console
from tests.support.service import REPOSITORY, Service

SHOWN = REPOSITORY / "docs" / "pictures"
DOCUMENTED = (
    "overview-light-1280", "overview-dark-1280", "destinations-light-1280", "destinations-dark-390", "destination-light-1280", "messages-light-1280",
    "dead-light-1280", "transactions-light-1280", "operations-dark-1280", "consumers-light-1280", "overview-light-390", "new-queue-light-1280",
)  # fmt: skip
"""Those of docs/console.md and README.md; one of a page that does not exist is left out."""
TRAFFIC_SECONDS = 180
"""Before the first picture, so that charts have something to show."""
BUSY = ("orders.new", "orders.paid", "orders.shipped", "invoices", "mail.out", "stock.changes")
QUIET = tuple(f"region.{number}.events" for number in range(1, 25))


class Traffic:
    """A shop: busy queues with consumers that keep up, one that does not, one whose messages die, a topic with durable subscriptions."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._stop = threading.Event()
        self._chance = random.Random(7)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            producing = stack.enter_context(self._connected("shop"))
            consuming = stack.enter_context(self._connected("warehouse"))
            failing = stack.enter_context(self._connected("mailer"))
            self._lie_still(producing)
            work = ((self._produce, producing), (self._consume, consuming), (self._fail, failing))
            threads = [threading.Thread(target=done, args=(connection,)) for done, connection in work]
            for thread in threads:
                thread.start()
            try:
                yield
            finally:
                self._stop.set()
                for thread in threads:
                    thread.join()

    def _connected(self, client_id: str) -> Connection:
        return factory(self._service, configured_client_id=client_id).create_connection()

    def _lie_still(self, connection: Connection) -> None:
        with connection.create_session() as session:
            for name in QUIET:
                producer = session.create_producer(Queue(name))
                for number in range(self._chance.randrange(5)):
                    producer.send(f"event {number}")

    def _produce(self, connection: Connection) -> None:
        with connection.create_session() as session:
            producers = {name: session.create_producer(Queue(name)) for name in BUSY}
            prices = session.create_producer(Topic("prices"))
            number = 0
            while not self._stop.is_set():
                wave = 1 + 4 * abs((time.monotonic() % 60) / 30 - 1)
                for name in BUSY:
                    for _ in range(self._chance.randrange(int(2 + wave))):
                        number += 1
                        producers[name].send(f'{{"order": {number}, "customer": "c-{number % 97}", "total": {self._chance.randrange(500)}.00}}')
                prices.send(str(number))
                self._stop.wait(0.1)

    def _consume(self, connection: Connection) -> None:
        with connection.create_session() as session:
            consumers = [session.create_consumer(Queue(name)) for name in BUSY[:4]]
            consumers.append(session.create_durable_consumer(Topic("prices"), "board"))
            while not self._stop.is_set():
                for consumer in consumers:
                    for _ in range(4):
                        consumer.receive(0.005)

    def _fail(self, connection: Connection) -> None:
        """Its transactions are rolled back until their messages are dead."""
        with connection.create_session(transacted=True) as session:
            consumer = session.create_consumer(Queue("mail.out"))
            while not self._stop.is_set():
                if consumer.receive(0.2) is not None:
                    session.rollback()


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
    with Service() as service, Traffic(service).running(), sync_playwright() as playwright:
        time.sleep(TRAFFIC_SECONDS)
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
