"""Every page that the navigation offers: whole, silent, legible in both themes, no wider than a telephone, and of nobody else's making."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from broker_core.client import Queue
from tests.acceptance.python_client import factory, fill
from tests.browser.watched import NARROW, THEMES

BELOW = ("/destinations/create", "/reports/replays", "/reports/replays/new", "/password")
"""Pages that the navigation does not offer, and that have something of their own."""


@pytest.fixture(scope="module", autouse=True)
def traffic(service):
    """Something of everything that pages show."""
    with factory(service).create_connection() as connection:
        fill(connection, Queue("browser.orders"), "a", "b", "c")
        with connection.create_session() as session:
            session.create_consumer(Queue("browser.orders"))
            yield


def offered(page):
    """Addresses in the navigation."""
    return [urlsplit(link).path for link in page.eval_on_selector_all("#nav a[data-key]", "links => links.map(link => link.href)")]


def test_every_page_is_legible_in_one_theme_or_the_other_and_says_nothing_wrong(page_as):
    """In both: test_reached_pages.py, in `make verify`."""
    watched = page_as()
    paths = offered(watched.open("/"))
    assert len(paths) >= 6
    found = []
    one = watched.open("/destinations?q=browser.orders").get_attribute("tbody th a", "href")  # of others one may go meanwhile
    for place, path in enumerate([*paths, one, *BELOW]):
        page = watched.open(path)
        assert page.title().endswith("Surety"), path
        found += watched.axe(THEMES[place % len(THEMES)])
    assert found == []
    page.evaluate("document.querySelector('main').append(document.createElement('img'))")
    assert "image-alt" in watched.axe("light")[0], "what is wrong is found"


def test_every_page_fits_a_telephone_and_is_reached_from_its_menu(page_as):
    watched = page_as(size=NARROW)
    page = watched.open("/")
    assert not page.is_visible("#nav")
    wide = {}
    for path in [*offered(page), *BELOW]:
        watched.open(path)
        if watched.width_beyond() > 0:
            wide[path] = watched.width_beyond()
    page.click(".menu")
    page.click('#nav a[data-key="d"]')
    page.wait_for_url("**/destinations")
    assert wide == {}


def test_a_viewer_is_offered_what_he_may(page_as):
    watched = page_as("viewer")
    paths = offered(watched.open("/destinations"))
    assert "/operators" not in paths
    assert not watched.page.is_visible("text=New queue")
    for path in paths:
        assert watched.page.request.get(watched.base + path).status == 200, path


def test_keys_lead_to_pages_to_the_search_and_to_their_help(page_as):
    page = page_as().open("/")
    page.wait_for_selector("#live-state[data-state=good]")
    page.keyboard.press("?")
    assert page.is_visible("#keys >> text=Destinations")
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("d")
    page.wait_for_url("**/destinations")
    page.keyboard.press("/")
    page.keyboard.type("browser.ord")
    page.keyboard.press("Enter")
    page.wait_for_url("**/destinations?q=browser.ord")
    assert page.is_visible("text=queue/browser.orders")
    under = page.evaluate("document.querySelector('.top').offsetHeight + document.querySelector('thead').offsetHeight")
    padding = page.evaluate("parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop)")
    assert padding >= under, "a row with the focus is not under the head of its list"


def test_keys_can_be_turned_off(page_as):
    page = page_as().open("/password")
    page.click(".drop summary")
    page.click("button[data-choose-keys=off]")
    page.reload()
    page.keyboard.press("?")
    assert not page.is_visible("#keys")
    page.click(".drop summary")
    page.click("button[data-choose-keys=on]")
    page.keyboard.press("?")
    assert page.is_visible("#keys")


def test_a_theme_is_kept(page_as):
    page = page_as().open("/")
    page.click(".drop summary")
    page.click("button[data-choose-theme=dark]")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.reload()
    assert page.get_attribute("html", "data-theme") == "dark"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark


def test_what_arrives_is_shown_within_seconds_without_being_asked_for(page_as, service):
    page = page_as().open("/destinations?q=browser.live")
    assert page.is_visible("text=No destination")
    page.wait_for_selector("#live-state[data-state=good]")
    with factory(service).create_connection() as connection:
        fill(connection, Queue("browser.live"), "a")
        page.wait_for_selector("text=queue/browser.live")
        fill(connection, Queue("browser.live"), "b", "c")
    page.wait_for_selector('[data-live$="/depth"]:text-is("3")')


def test_a_field_says_what_is_wrong_while_it_is_typed(page_as):
    page = page_as().open("/destinations/create")
    page.fill("#id_max_messages", "-7")
    page.wait_for_selector("#wrong-max_messages:has-text('greater than or equal to')")
    page.fill("#id_max_messages", "7")
    page.wait_for_selector("#wrong-max_messages", state="hidden")


def test_what_is_picked_is_purged_once_its_count_was_seen_and_a_word_was_typed(page_as, service):
    with factory(service).create_connection() as connection:
        for name in ("browser.bulk.1", "browser.bulk.2"):
            fill(connection, Queue(name), "a", "b")
    page = page_as().open("/destinations?q=browser.bulk")
    page.wait_for_selector("tbody tr >> nth=1")
    assert page.is_disabled("[data-picked] button >> nth=0")
    page.check("[data-pick-all]")
    assert page.is_visible("text=2 picked")
    page.click("[data-picked] >> text=Purge")
    page.wait_for_selector("text=Purge 4 messages")
    assert page.is_disabled("button.danger")
    page.fill("#typed", "purge")
    page.click("button.danger")
    page.wait_for_selector("text=what became of it")
    assert page.locator(".badge.good >> text=done").count() == 2


def test_a_destination_is_paused_in_a_dialog_and_its_state_follows(page_as, service):
    with factory(service).create_connection() as connection:
        fill(connection, Queue("browser.paused"), "a")
    page = page_as().open("/destinations?q=browser.paused")
    page.click("text=queue/browser.paused")
    page.click('.page-head a:text-is("Pause")')
    page.wait_for_selector("dialog[open] >> text=Clients stay connected")
    page.evaluate("document.querySelector('.page-head a[data-dialog]').replaceWith(document.querySelector('.page-head a[data-dialog]').cloneNode(true))")
    page.keyboard.press("Escape")
    assert not page.is_visible("dialog[open]")
    page.wait_for_function("document.activeElement.textContent === 'Pause'")  # though it was fetched anew meanwhile
    page.click('.page-head a:text-is("Pause")')
    page.click("dialog[open] button.primary")
    page.wait_for_selector(".toast:has-text('paused')")
    page.wait_for_selector('.page-head .badge:text-is("paused")')
