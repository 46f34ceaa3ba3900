"""Pages around messages by a person at a browser: search while typing, ticking, deleting, undoing."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from broker_core.client import Queue
from tests.acceptance.python_client import factory, fill
from tests.browser.watched import NARROW, THEMES


def _to_messages(page, name: str) -> None:
    page.fill("main [name=q]", name)
    page.press("main [name=q]", "Enter")
    page.click(f"main th >> text=queue/{name}")
    page.wait_for_selector("main h1")


@pytest.mark.slow
def test_messages_are_searched_ticked_deleted_and_brought_back(page_as, service):
    with factory(service).create_connection() as connection:
        fill(connection, Queue("browser.many"), *[f"text {number}" for number in range(60)])
    watched = page_as()
    page = watched.open("/messages")
    _to_messages(page, "browser.many")
    page.click(".builder > summary")
    page.locator("#selector").press_sequentially("colour =")
    page.wait_for_selector("#selector-told .wrong")
    page.locator("#selector").press_sequentially(" 'red'")
    page.wait_for_selector("#selector-told .fine")
    assert [each for theme in THEMES for each in watched.axe(theme)] == []
    page.fill("#selector", "")
    page.fill("#text", "text 5")
    page.click(".conditions button.primary")
    page.wait_for_selector("text=11 found")
    page.check("[data-pick-all]")
    page.click(".picking >> text=Delete")
    page.wait_for_selector("text=Delete 11 messages")
    assert page.locator("button.danger").is_disabled()
    page.fill("#typed", "queue/browser.many")
    page.click("button.danger")
    page.wait_for_selector(".badge:text-is('done')")
    assert page.locator(".badge:text-is('deleted')").count() == 11
    page.click(".crumbs a")
    page.wait_for_selector("text=of 49 messages")
    page.click(".notice >> text=Undo")
    page.click("#dialog >> text=Bring them back")
    page.wait_for_selector("text=undone")
    page = watched.open("/messages")
    _to_messages(page, "browser.many")
    page.wait_for_selector("text=of 60 messages")
    narrow = page_as(size=NARROW)
    narrow.open(urlsplit(page.url).path)
    assert narrow.width_beyond() == 0
    narrow.page.click(".list.messages tbody th a")
    narrow.page.wait_for_selector("text=Its life")
    assert narrow.width_beyond() == 0
    assert [each for theme in THEMES for each in narrow.axe(theme)] == []
