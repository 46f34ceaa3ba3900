"""How long an open page does not show what has changed."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable

from playwright.sync_api import Page

from broker_core import control
from tests.support.clients import Connection
from tests.support.service import Service, await_true

CHANGES = 10
SHOWN_SECONDS_MAX = 15
LOOK_SECONDS = 0.01
ENDED_SECONDS_MAX = 60
# What the element shows, each time that it is something else, with the browser's clock, which is the machine's.
NOTE = """([selector]) => {
    window.noted = [];
    const look = () => {
        const found = document.querySelector(selector);
        const text = found === null ? null : found.textContent;
        if (noted.length === 0 || noted.at(-1)[1] !== text) noted.push([Date.now(), text]);
    };
    new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
    look();
}"""


def accepted(page: Page, service: Service, address: str, number: int) -> list[float]:
    """From a message's receipt to the depth that counts it, in the list; ms of each."""
    _open(page, service, f"/destinations?q={address.partition('/')[2]}", f'[data-live="destinations/{number}/depth"]')
    with Connection(service.stomp_port) as connection:

        def send(count: int) -> str:
            connection.confirmed("SEND", {"destination": f"/{address}", "persistent": "true"}, b"x")
            return str(count + 1)

        return _took(page, send)


def paused(page: Page, service: Service, address: str, number: int) -> list[float]:
    """From when a pause or its end is asked for, to the list; ms of each."""
    _open(page, service, f"/destinations?q={address.partition('/')[2]}", f'[data-live="destinations/{number}/state"]')
    states = ("paused", "running")
    with service.database() as connection:

        def ask(count: int) -> str:
            verb, arguments = (("pause", {"direction": "ALL"}), ("resume", {"direction": "ALL"}))[count % 2]
            with connection.cursor() as cursor:
                control.request(cursor, verb, address, arguments, requested_by="bench")
            return states[count % 2]

        return _took(page, ask)


def progress(page: Page, service: Service, address: str) -> list[float]:
    """An operation that counts the messages of a deep queue: from each commit that says how far it is to the page that says so or more; ms of each."""
    with service.database() as connection, connection.cursor() as cursor:
        wanted = {"verb": "delete", "dry_run": True, "filter": {"text": "nothing says this"}}
        number = control.request(cursor, "operate", address, wanted, requested_by="bench")
        while cursor.execute("SELECT 1 FROM surety.operation WHERE operation = %s", [number]).fetchone() is None:
            time.sleep(LOOK_SECONDS)
    said: list[tuple[float, int]] = []
    ended = threading.Event()
    following = threading.Thread(target=_follow, args=(service, number, said, ended))
    following.start()
    try:
        _open(page, service, f"/operations/{number}", '[data-live$="/looked_at"]')
        began = time.time()
        while not ended.is_set() and time.time() - began < ENDED_SECONDS_MAX:
            page.wait_for_timeout(100)
        page.wait_for_timeout(2000)
    finally:
        ended.set()
        following.join()
        _cancel(service, address, number)
    noted = [(at / 1000, int(text.replace(",", ""))) for at, text in page.evaluate("noted") if text and text.replace(",", "").isdigit()]
    took = []
    for at, looked in said:
        if at > began:
            shown = next((when for when, number in noted if number >= looked), None)
            took.append((shown - at) * 1000 if shown is not None else SHOWN_SECONDS_MAX * 1000.0)
    if not took:
        raise RuntimeError("the operation was over before anybody could look")
    return took


def _cancel(service: Service, address: str, number: int) -> None:
    """If it goes on; what is measured next is not to be beside it."""
    with service.database() as connection, connection.cursor() as cursor:
        control.request(cursor, "cancel", address, {"operation": number}, requested_by="bench")

        def is_over() -> bool:
            return cursor.execute("SELECT 1 FROM surety.operation WHERE operation = %s AND ended_at IS NULL", [number]).fetchone() is None

        await_true(is_over, ENDED_SECONDS_MAX, "the operation goes on", pause=0.1)


def _follow(service: Service, number: int, said: list[tuple[float, int]], ended: threading.Event) -> None:
    with service.database() as connection:
        while not ended.is_set():
            row = connection.execute("SELECT looked_at, ended_at FROM surety.operation WHERE operation = %s", [number]).fetchone()
            if row is not None and (not said or said[-1][1] != row[0]):
                said.append((time.time(), row[0]))
            if row is not None and row[1] is not None:
                ended.set()
            time.sleep(LOOK_SECONDS)


def _open(page: Page, service: Service, path: str, selector: str) -> None:
    page.goto(f"http://127.0.0.1:{service.http_port}{path}")
    page.wait_for_selector(selector, state="attached")
    page.wait_for_selector("#live-state[data-state=good]")
    page.evaluate(NOTE, [selector])


def _took(page: Page, change: Callable[[int], str]) -> list[float]:
    """`change`: makes the change of this number, and says what the page must show then."""
    chance = random.Random(1)
    took = []
    for count in range(CHANGES):
        page.wait_for_timeout(int(1500 + 1000 * chance.random()))
        before = time.time()
        wanted = change(count)
        at = time.time() if wanted.isdigit() else before
        shown = None
        while shown is None and time.time() - at < SHOWN_SECONDS_MAX:
            page.wait_for_timeout(20)
            with contextlib.suppress(StopIteration):
                shown = next(when for when, text in page.evaluate("noted") if when / 1000 >= before and text is not None and text.strip() == wanted)
        took.append((shown / 1000 - at) * 1000 if shown is not None else SHOWN_SECONDS_MAX * 1000.0)
    return took
