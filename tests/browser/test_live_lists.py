"""Every list and every page that is kept up to date shows by itself, to somebody who touches nothing, what becomes of what it shows."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import pytest

from broker_core.client import Queue
from tests.acceptance.python_client import factory, fail, fill, leave_in_doubt
from tests.browser.doing import ask_for_replay, comes, destination, settled
from tests.support.browser import Browser
from tests.support.service import Service

SHOWN_MS_MAX = 15_000
"""Generous where the machine is busy, and less than the 30 s after which a part is fetched anew even if nothing has said that it is another."""
OPERATION = 900_000_001
RUNNING = """INSERT INTO surety.operation VALUES (0, %s, 'delete', 'queue/live.progress', '{}', 'operator', 'running', 10, 10, 0, 0, 100, '{}', 1000, NULL, '')
             ON CONFLICT (shard, operation) DO UPDATE SET looked_at = 10, done = 10, state = 'running', ended_at = NULL"""
STANDBY = """INSERT INTO surety.node_status (shard, node, epoch, role, started_at, listeners, metrics)
             VALUES (0, 'live-standby', 0, 'standby', clock_timestamp(), '{}', '{}')"""


@dataclass
class World:
    service: Service
    api: Browser
    stack: contextlib.ExitStack
    """Of what lasts as long as the test."""

    def connect(self, client_id: str | None = None):
        return self.stack.enter_context(factory(self.service, **({"configured_client_id": client_id} if client_id else {})).create_connection())

    def create(self, address: str, **settings) -> int:
        """Its number; it may be there."""
        if not destination(self.api, address):
            self.api.does("POST", "destinations", {"address": address, "settings": settings})
        return settled(self.api, address)["number"]

    def sql(self, statement: str, *parameters) -> None:
        with self.service.database() as connection:
            connection.execute(statement, parameters)


@pytest.fixture
def world(service, api):
    with contextlib.ExitStack() as stack:
        yield World(service, api, stack)


def in_doubt(world):
    leave_in_doubt(world.service, Queue("live.ledger"), "live-lists", "b", "booked")


def alert(world):
    world.api.does("POST", "alerts", {"name": "live-alert", "metric": "depth", "pattern": "queue/live.*", "comparator": ">", "threshold": 1_000_000})


def standby(world):
    world.sql(STANDBY)
    world.stack.callback(world.sql, "DELETE FROM surety.node_status WHERE node = 'live-standby'")


def replay(world):
    ask_for_replay(world.service, "queue/live.kept", "queue/live.again")


def subscription(world):
    world.create("topic/live.prices")
    world.api.does("POST", "subscriptions", {"address": "topic/live.prices", "name": "live-desk", "client_id": "live", "account": "guest"})


def purge(world):
    number = world.create("queue/live.purged")
    fill(world.connect(), Queue("live.purged"), "a")
    settled(world.api, "queue/live.purged", depth=1)
    world.api.does("POST", f"destinations/{number}/purge", {"depth": 1})


def delayed(world):
    with world.connect().create_session() as session:
        producer = session.create_producer(Queue("live.later"))
        producer.delivery_delay = 3600
        producer.send("in an hour")


def consume(world):
    world.stack.enter_context(world.connect("live-client").create_session()).create_consumer(Queue("live.consumed"))


def produce(world):
    fill(world.connect(), Queue("live.produced"), "a")


def count(world):
    number = world.create("queue/live.counted")
    world.api.does("POST", f"destinations/{number}/operations?dry_run=true", {"verb": "delete", "filter": {"text": "nothing says this"}})


def die(world):
    world.create("queue/live.failing", redelivery_max=0)
    fail(world.service, Queue("live.failing"), "a")


SHORT = {
    "alerts": ("/alerts", "tbody th:has-text('live-alert')", alert),
    "audit": ("/audit", "tbody tr:has-text('queue/live.audited')", lambda world: world.create("queue/live.audited")),
}
LONG = {
    "transactions": ("/transactions", "tbody tr:has-text('live-lists')", in_doubt),
    "nodes": ("/nodes", "main >> text=live-standby", standby),
    "tasks": ("/tasks", "tbody tr:has(th:has-text('forget')):has-text('operator')", lambda world: world.api.does("POST", "schedule/forget/run")),
    "replays": ("/reports/replays", "tbody tr:has-text('queue/live.kept')", replay),
    "subscriptions": ("/subscriptions", "tbody tr:has-text('live-desk')", subscription),
    "undo": ("/undo", "tbody tr:has-text('queue/live.purged')", purge),
    "scheduled": ("/scheduled", "tbody tr:has-text('queue/live.later')", delayed),
    "connections": ("/connections", "tbody tr:has-text('live-client')", consume),
    "consumers": ("/consumers", "tbody tr:has-text('queue/live.consumed')", consume),
    "producers": ("/producers", "tbody tr:has-text('queue/live.produced')", produce),
    "operations": ("/operations", "tbody tr:has-text('queue/live.counted')", count),
    "dead": ("/dead", "tbody tr:has-text('queue/live.failing')", die),
    "aliases": ("/aliases", "tbody tr:has-text('queue/live.alias')",
                lambda world: world.api.does("POST", "aliases", {"address": "queue/live.alias", "target": "queue/live.consumed"})),
}  # fmt: skip


def shows(page_as, world, path, selector, change):
    page = page_as().open(path)
    page.wait_for_selector("#live-state[data-state=good]")
    assert page.locator(selector).count() == 0, "not yet"
    change(world)
    page.wait_for_selector(selector, timeout=SHOWN_MS_MAX)


@pytest.mark.parametrize("what", SHORT)
def test_a_change_is_shown_at_once(what, page_as, world):
    shows(page_as, world, *SHORT[what])


@pytest.mark.slow
@pytest.mark.parametrize("what", LONG)
def test_a_change_is_shown(what, page_as, world):
    shows(page_as, world, *LONG[what])


@pytest.mark.slow
def test_the_bar_of_an_operation_moves_and_its_end_is_shown(page_as, world):
    world.sql(RUNNING, OPERATION)
    world.stack.callback(world.sql, "DELETE FROM surety.operation WHERE operation = %s", OPERATION)
    page = page_as().open(f"/operations/{OPERATION}")
    page.wait_for_selector("#live-state[data-state=good]")
    assert page.evaluate("document.querySelector('progress').value") == 10
    world.sql("UPDATE surety.operation SET looked_at = 60, done = 60 WHERE operation = %s", OPERATION)
    comes(page, lambda: page.evaluate("document.querySelector('progress').value") == 60, "the bar does not move")
    assert page.inner_text("[data-live$='/done']") == "60"
    world.sql("UPDATE surety.operation SET state = 'done', ended_at = 2000 WHERE operation = %s", OPERATION)
    page.wait_for_selector(".badge:text-is('done')", timeout=SHOWN_MS_MAX)


@pytest.mark.slow
def test_the_overview_says_what_needs_attention_as_soon_as_it_does_and_no_longer_than_that(page_as, world):
    number = world.create("queue/live.paused")
    page = page_as().open("/")
    page.wait_for_selector("#live-state[data-state=good]")

    def paused():
        return [line for line in page.inner_text("[aria-label='What needs attention']").splitlines() if "paused" in line]

    before = paused()
    world.api.does("POST", f"destinations/{number}/pause", {"direction": "ALL"})
    comes(page, lambda: paused() != before, "nothing is said")
    assert paused()
    world.api.does("POST", f"destinations/{number}/resume", {"direction": "ALL"})
    comes(page, lambda: paused() == before, "it is still said")


@pytest.mark.slow
def test_the_page_of_a_destination_shows_who_comes_to_consume(page_as, world):
    number = world.create("queue/live.visited")
    page = page_as().open(f"/destinations/{number}")
    page.wait_for_selector("text=Nobody consumes here")
    world.stack.enter_context(world.connect("live-visitor").create_session()).create_consumer(Queue("live.visited"))
    page.wait_for_selector("h2:has-text('Consumers') ~ table tbody tr:has-text('queue/live.visited')", timeout=SHOWN_MS_MAX)
