"""docs/tour.md, step by step, as one walks it. With SURETY_TOUR_PICTURES=docs/tour its pictures are taken anew."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from broker_core.client import Queue
from tests.acceptance.python_client import fail, factory, leave_in_doubt, texts

ORDERS = Queue("tour.orders")


@pytest.fixture
def picture():
    folder = os.environ.get("SURETY_TOUR_PICTURES", "")

    def taken(page, name: str) -> None:
        if folder:
            page.wait_for_timeout(400)
            page.screenshot(path=Path(folder) / f"{name}.png")

    return taken


def test_the_tour(page_as, service, picture):
    watched = page_as()

    # 1. A queue whose messages die at their first failure.
    page = watched.open("/destinations")
    page.click("text=New queue")
    page.fill("#name", "tour.orders")
    page.fill("[name=redelivery_max]", "0")
    page.click("main button.primary")
    page.wait_for_selector("text=queue/tour.orders created")

    # 2. A consumer that fails.
    fail(service, ORDERS, *(json.dumps({"amount": amount}) for amount in (10, "twelve", 30)))

    # 3. Why did they die?
    page = watched.open("/dead")
    group = page.locator("tr", has_text="queue/tour.orders")
    assert "undeliverable" in group.inner_text()
    picture(page, "dead")
    group.locator("text=Show").click()
    page.wait_for_selector("text=3 found")
    picture(page, "found")
    page.click(".builder > summary")
    page.fill("#text", "twelve")
    page.click(".conditions button.primary")
    page.wait_for_selector("text=1 found")
    page.click(".list.messages tbody th a")
    page.wait_for_selector("text=Died in queue/tour.orders")
    assert '"amount": "twelve"' in page.inner_text(".code")
    picture(page, "message")

    # 4. Put one right.
    page.click("text=Edit and send again")
    page.fill("#body", json.dumps({"amount": 12}))
    page.check("[name=remove]")
    picture(page, "edit")
    page.click("form.send button.primary")
    page.wait_for_selector(".badge:text-is('done')")
    page.wait_for_selector(".badge:text-is('deleted')")

    # 5. Retry the others, counted first.
    page = watched.open("/dead")
    page.locator("tr", has_text="queue/tour.orders").locator("text=Retry").click()
    page.click("#dialog >> text=Count them first")
    page.wait_for_selector("text=2 messages, of")
    picture(page, "count")
    page.click("text=Retry 2 messages")
    page.wait_for_selector(".badge:text-is('done')")
    picture(page, "operation")
    with factory(service).create_connection() as connection, connection.create_session() as session:
        assert sorted(json.loads(text)["amount"] for text in texts(session.create_consumer(ORDERS), 3)) == [10, 12, 30]

    # 6. A transaction in doubt.
    leave_in_doubt(service, Queue("tour.ledger"), "order-42", "payments", "booked")
    page = watched.open("/transactions")
    page.locator("tr", has_text="order-42").locator("a").click()
    page.wait_for_selector("text=queue/tour.ledger")
    number = page.url.rpartition("/")[2]
    picture(page, "transaction")
    page.click("text=Commit")
    button = page.locator("#dialog button.danger")
    assert button.is_disabled(), "before the end of the XID is typed"
    page.fill("#dialog #typed", page.get_attribute("#dialog #typed", "data-typed"))
    picture(page, "commit")
    button.click()
    page.wait_for_selector("text=committed")
    with factory(service).create_connection() as connection, connection.create_session() as session:
        assert texts(session.create_consumer(Queue("tour.ledger")), 1) == ["booked"]
    page = watched.open("/transactions/history")
    assert "commit" in page.locator("tbody tr", has=page.locator(f"[data-label=Branch]:text-is('{number}')")).inner_text()
