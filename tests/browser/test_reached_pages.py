"""Every page and every dialog that links lead to, and those that say that something is not to be had: legible in both themes, and as wide as a telephone."""

from __future__ import annotations

import re
from html import unescape

import pytest

from tests.browser.furnished import furnished
from tests.browser.reached import kind_of, reached
from tests.browser.test_every_page import BELOW
from tests.browser.watched import NARROW, THEMES

pytestmark = pytest.mark.slow

MISSING = ("/nothing-is-here", "/destinations/999999", "/connections/999999", "/consumers/999999")
"""Each by another way: no such page, none of the database, none of the node, a sentence of a service."""
KINDS_MIN = 70
CLICK = "link => [...document.querySelectorAll('a[data-dialog]')].find(each => each.getAttribute('href') === link).click()"
_DIALOG = re.compile(r'<a\s(?=[^>]*data-dialog)[^>]*?href="([^"]+)"')


@pytest.fixture(scope="module")
def found(service, api):
    """Addresses of pages by kind, and of each kind of dialog one page that has it, while there is something of everything."""
    told: dict[str, str] = {}

    def get(address):
        told[address] = api.get(address).text
        return told[address]

    with furnished(service, api):
        pages = reached(get, ["/", "/destinations?q=shown.orders", "/messages?q=shown.orders", *BELOW])
        dialogs = {}
        for address in pages.values():
            for link in _DIALOG.findall(told.get(address, "")):
                dialogs.setdefault(kind_of(link), (address, link))
        yield pages, dialogs


def violations(watched):
    return [each for theme in THEMES for each in watched.axe(theme)]


def test_every_page_that_links_lead_to_is_legible_in_both_themes(page_as, found):
    pages, _ = found
    assert len(pages) >= KINDS_MIN, sorted(pages)
    watched, wrong = page_as(), []
    for address in pages.values():
        watched.open(address)
        wrong += violations(watched)
    assert wrong == []


def test_every_page_that_links_lead_to_fits_a_telephone(page_as, found):
    watched, wide = page_as(size=NARROW), {}
    for address in found[0].values():
        watched.open(address)
        if watched.width_beyond() > 0:
            wide[address] = watched.width_beyond()
    assert wide == {}


@pytest.mark.parametrize("size", [None, NARROW], ids=["wide", "narrow"])
def test_every_dialog_is_legible_in_both_themes(size, page_as, found):
    watched, wrong = page_as(size=size) if size else page_as(), []
    assert len(found[1]) >= 15, sorted(found[1])
    for address, link in found[1].values():
        page = watched.open(address)
        page.evaluate(CLICK, unescape(link))
        page.wait_for_selector("#dialog[open]")
        wrong += [f"{link}: {each}" for each in violations(watched)]
        assert watched.width_beyond() <= 0, link
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    page.wait_for_selector("#keys[open]")
    assert [*wrong, *violations(watched)] == []


def test_pages_that_say_that_something_is_not_to_be_had_are_legible_too(page_as):
    watched = page_as()
    wrong = []
    for address in MISSING:
        watched.open(address)
        wrong += violations(watched)
        assert "404" in watched.wrong[0], address
        watched.wrong.clear()  # what the page of the last one asks again, too
    watched.open("/login")
    watched.wrong.clear()
    watched = page_as("viewer")
    watched.open("/operators")
    assert ["403" in each for each in watched.wrong] == [True]
    watched.wrong.clear()
    wrong += violations(watched)
    watched.page.context.clear_cookies()
    watched.open("/login")
    assert [*wrong, *violations(watched)] == []
