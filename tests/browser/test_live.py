"""What a page does when that which keeps it up to date is cut off: it says so, can be used, and goes on by itself with nothing missing."""

from __future__ import annotations

import json

import pytest

from broker_core.client import Queue
from tests.acceptance.python_client import factory, fill
from tests.browser.doing import comes
from tests.browser.test_every_page import offered

LATER = 1013


class Wire:
    """The WebSockets of a page: what they were told, and they can be cut, and kept from being opened again."""

    def __init__(self, page, *, is_up: bool = True):
        self.is_up, self.told, self._open = is_up, [], []
        page.route_web_socket("**/live", self._opened)

    def cut(self):
        self.is_up = False
        self.told.clear()
        while self._open:
            self._open.pop().close(code=LATER)

    def _opened(self, socket):
        if not self.is_up:
            socket.close(code=LATER)
            return
        server = socket.connect_to_server()
        self._open.append(socket)

        def tell(text):
            self.told.append(json.loads(text))
            socket.send(text)

        server.on_message(tell)


@pytest.fixture
def orders(service):
    """A queue that has messages, and what sends it more."""
    with factory(service).create_connection() as connection:

        def send(name, *texts):
            fill(connection, Queue(name), *texts)
            return '[data-live$="/depth"]:text-is("{}") >> visible=true'

        yield send


def is_live(page):
    page.wait_for_selector("#live-state[data-state=good]")


def test_a_lost_connection_goes_on_from_what_the_page_has_and_misses_nothing(page_as, orders):
    depth = orders("browser.lost", "a")
    watched = page_as()
    wire = Wire(watched.page)
    page = watched.open("/destinations?q=browser.lost")
    page.wait_for_selector(depth.format(1))
    is_live(page)
    assert wire.told[0]["full"], "first a snapshot"
    wire.cut()
    orders("browser.lost", "b", "c")
    wire.is_up = True
    page.wait_for_selector(depth.format(3))
    is_live(page)
    assert not any(each["full"] for each in wire.told), "then what has changed"
    assert "3" in [cell for each in wire.told for cell in each["cells"].values()]


@pytest.mark.slow
def test_a_page_without_it_is_fetched_again_and_says_so_and_is_stale_when_that_fails_too(page_as, orders):
    depth = orders("browser.stale", "a")
    watched = page_as()
    watched.page.clock.install()
    wire = Wire(watched.page, is_up=False)
    page = watched.open("/destinations?q=browser.stale")
    page.wait_for_selector(depth.format(1))
    page.clock.fast_forward(4_000)
    page.wait_for_selector("#live-state[data-state=warn]:text-is('every 5 s')")
    orders("browser.stale", "b", "c")
    page.wait_for_timeout(1_000)
    page.clock.fast_forward(5_000)
    page.wait_for_selector(depth.format(3))
    page.route("**/destinations?q=*", lambda route: route.abort())
    page.clock.fast_forward(5_000)
    page.wait_for_selector("#live-state[data-state=bad]:text-is('stale')")
    page.unroute("**/destinations?q=*")
    wire.is_up = True
    page.clock.fast_forward(10_000)
    is_live(page)
    assert all("console error" in wrong for wrong in watched.wrong), watched.wrong
    watched.wrong.clear()


def test_one_that_is_open_and_silent_is_given_up_for_another(page_as, orders):
    depth = orders("browser.silent", "a")
    watched = page_as()
    watched.page.clock.install()
    silent = []

    def opened(socket):
        if len(silent) < 1:
            silent.append(socket)
        else:
            socket.connect_to_server()

    watched.page.route_web_socket("**/live", opened)
    page = watched.open("/destinations?q=browser.silent")
    page.wait_for_selector(depth.format(1))
    assert page.get_attribute("#live-state", "data-state") != "good"
    page.clock.fast_forward(11_000)
    is_live(page)


@pytest.mark.slow
def test_every_page_can_be_used_without_it(page_as, orders):
    orders("browser.without", "a")
    watched = page_as()
    Wire(watched.page, is_up=False)
    for path in offered(watched.open("/")):
        page = watched.open(path)
        assert page.is_visible("main h1"), path
        assert page.get_attribute("#live-state", "data-state") != "bad", path
    page = watched.open("/destinations?q=browser.without")
    page.click("text=queue/browser.without")
    page.click('.page-head a:text-is("Pause")')
    page.click("dialog[open] button.primary")
    page.wait_for_selector(".toast:has-text('paused')")


def test_a_part_that_cannot_be_fetched_is_stale_whatever_else_is_told(page_as):
    watched = page_as()
    watched.page.clock.install()
    page = watched.open("/consumers")
    is_live(page)
    page.route("**/consumers", lambda route: route.fulfill(status=503, body="no node answers"))
    page.clock.fast_forward(5_000)
    page.wait_for_selector("#live-state[data-state=bad]:text-is('stale')")
    page.wait_for_timeout(1_500)  # in which it is told of the other cells of the page
    assert page.inner_text("#live-state") == "stale"
    page.unroute("**/consumers")
    page.clock.fast_forward(5_000)
    is_live(page)
    assert all("503" in wrong for wrong in watched.wrong), watched.wrong
    watched.wrong.clear()


def test_a_list_that_somebody_uses_stays_as_it_is_and_says_so(page_as, orders):
    orders("browser.used", "a")
    page = page_as().open("/destinations?q=browser.used")
    is_live(page)
    page.focus("tbody th a")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")  # by keys, so that the focus is seen
    orders("browser.used.too", "a")
    page.wait_for_selector("#live-state[data-state=warn]:text-is('on hold')")
    assert not page.is_visible("text=queue/browser.used.too")
    page.evaluate("document.activeElement.blur()")
    page.wait_for_selector("text=queue/browser.used.too")
    is_live(page)


@pytest.mark.slow
def test_what_could_not_be_shown_becomes_the_page_once_it_can(page_as):
    watched = page_as()
    watched.page.clock.install()
    page = watched.open("/consumers/999999")
    assert page.inner_text("h1") == "Not there"
    there = page.request.get(watched.base + "/consumers").text()
    page.route("**/consumers/999999", lambda route: route.fulfill(status=200, content_type="text/html", body=there))
    page.clock.fast_forward(5_000)
    page.wait_for_selector("h1:text-is('Consumers')")
    assert all("console error" in wrong for wrong in watched.wrong), watched.wrong
    watched.wrong.clear()


def test_what_nothing_keeps_up_to_date_does_not_say_that_it_is_live(page_as):
    watched = page_as()
    wire = Wire(watched.page)
    page = watched.open("/accounts")
    comes(page, lambda: wire.told, "it was told nothing")
    page.wait_for_timeout(600)  # in which it says how it is
    assert page.inner_text("#live-state") == "shown once"
