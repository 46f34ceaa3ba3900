"""What one does on pages again and again, and what the service says of it afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page

from tests.support.browser import Browser
from tests.support.service import Service, await_true

SOON_SECONDS = 15


def agree(page: Page, **fields: str) -> None:
    """In the dialog that is open: type what must be typed, fill in the fields, click its button, which must not have waited for less."""
    page.wait_for_selector("#dialog[open] form")
    button = page.locator("#dialog form button:not([type=button])").first
    typed = page.locator("#dialog [data-typed]")
    if typed.count():
        assert button.is_disabled(), "before it is typed"
        typed.fill(typed.get_attribute("data-typed") or "")
    for name, value in fields.items():
        field = page.locator(f"#dialog [name={name}]")
        if field.evaluate("field => field.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)
    button.click()


def told(page: Page, words: str) -> None:
    """The next page says so in a toast."""
    page.wait_for_selector(f".toast:has-text({words!r})")


def comes(page: Page, condition: Callable[[], Any], sentence: str) -> None:
    """While the page goes on; its policy forbids what wait_for_function would do there."""
    await_true(lambda: page.wait_for_timeout(100) or condition(), SOON_SECONDS, sentence)


def ended(page: Page) -> None:
    """The page of an operation says that it is done."""
    page.wait_for_url("**/operations/*")
    page.wait_for_selector("main .badge:text-is('done')")


def row(page: Page, text: str) -> Any:
    return page.locator("tbody tr", has_text=text)


def destination(api: Browser, address: str) -> dict[str, Any]:
    """As the API has it; empty: there is none."""
    found = api.does("GET", f"destinations?address={address}")["items"]
    return found[0] if found else {}


def settled(api: Browser, address: str, **wanted: Any) -> dict[str, Any]:
    """The same once it is so; the node tells its counters every second."""
    await_true(lambda: wanted.items() <= destination(api, address).items(), SOON_SECONDS, f"{address} is {destination(api, address)} and not {wanted}", 0.2)
    return destination(api, address)


def everything(api: Browser, path: str) -> list[dict[str, Any]]:
    """The first page of a list."""
    found = api.does("GET", path)
    return found["items"] if isinstance(found, dict) else found


def ask_for_replay(service: Service, source: str, into: str) -> int:
    """Its number. Nobody does it: that would be Spark."""
    asked = """INSERT INTO surety.pipeline_replay (shard, requested_by, address, "into", rate) VALUES (0, 'operator', %s, %s, 5) RETURNING replay"""
    with service.database() as connection:
        [number] = connection.execute(asked, [source, into]).fetchone()
    return number
