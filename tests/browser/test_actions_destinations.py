"""What is done with destinations on their pages, clicked and then looked for in the broker."""

from __future__ import annotations

import pytest

from broker_core.client import Queue
from tests.acceptance.python_client import factory, fill, texts
from tests.browser.doing import agree, destination, settled, told

pytestmark = pytest.mark.slow


def filled(service, name: str, count: int = 3) -> str:
    with factory(service).create_connection() as connection:
        fill(connection, Queue(name), *[f"text {number}" for number in range(count)])
    return f"queue/{name}"


def received(service, name: str, count: int) -> list[str]:
    with factory(service).create_connection() as connection, connection.create_session() as session:
        return texts(session.create_consumer(Queue(name)), count)


@pytest.mark.clicks("create", "destination_check", "update", "operate destroy")
def test_a_queue_is_made_changed_and_destroyed(page_as, api):
    page = page_as().open("/destinations/create")
    with page.expect_response("**/destinations/check"):
        page.fill("#name", "act.made")
    page.fill("[name=redelivery_max]", "3")
    page.click("main button.primary")
    told(page, "queue/act.made created")
    it = destination(api, "queue/act.made")
    assert it["settings"]["redelivery_max"] == 3
    page.goto(page.url.partition("/destinations")[0] + f"/destinations/{it['number']}")
    page.click('.page-head a:text-is("Settings")')
    page.fill("[name=redelivery_max]", "7")
    page.click("main button.primary")
    told(page, "queue/act.made changed")
    assert destination(api, "queue/act.made")["settings"]["redelivery_max"] == 7
    page.click('.page-head a:text-is("Destroy")')
    agree(page)
    told(page, "queue/act.made destroyed")
    assert destination(api, "queue/act.made") == {}


@pytest.mark.clicks("operate pause", "operate resume")
def test_what_is_paused_gives_nothing_until_it_is_resumed(page_as, service, api):
    address = filled(service, "act.paused", 1)
    number = settled(api, address, depth=1)["number"]
    page = page_as().open(f"/destinations/{number}")
    page.click('.page-head a:text-is("Pause")')
    page.wait_for_selector("#dialog[open]")
    page.check("#dialog [value=CONSUMERS]")
    agree(page)
    told(page, "paused")
    assert destination(api, address)["state"] == "CONSUMERS_PAUSED"
    with factory(service).create_connection() as connection, connection.create_session() as session:
        consumer = session.create_consumer(Queue("act.paused"))
        assert consumer.receive(0.5) is None
        page.click('.page-head a:text-is("Resume")')
        agree(page)
        told(page, "resumed")
        assert texts(consumer, 1) == ["text 0"]
    assert destination(api, address)["state"] == "RUNNING"


@pytest.mark.clicks("operate purge", "undo_change back", "undo_change give-up")
def test_a_purge_is_undone_and_another_is_given_up(page_as, service, api):
    address = filled(service, "act.purged")
    number = settled(api, address, depth=3)["number"]
    page = page_as().open(f"/destinations/{number}")
    for undone in (True, False):
        page.click('.page-head a:text-is("Purge")')
        page.wait_for_selector("#dialog >> text=Purge 3 messages")
        agree(page)
        told(page, "purged")
        settled(api, address, depth=0)
        if undone:
            page.click(".toast >> text=Undo")
        else:
            page.goto(page.url.partition("/destinations")[0] + "/undo")
            page.locator("tbody tr", has_text=address).locator("text=Give up").click()
        agree(page)
        told(page, "undone" if undone else "given up")
        settled(api, address, depth=3 if undone else 0)
        page.goto(page.url.partition("/undo")[0] + f"/destinations/{number}")
    assert [each for each in api.does("GET", "undo")["items"] if each["address"] == address and not each.get("ended_at")] == []


@pytest.mark.clicks("totals_reset", "totals_reset_all")
def test_totals_are_shown_since_they_were_reset(page_as, service, api):
    address = filled(service, "act.reset", 2)
    number = settled(api, address, accepted_total=2)["number"]
    page = page_as().open(f"/destinations/{number}")
    page.click('[aria-labelledby=totals] a:text-is("Reset")')
    agree(page)
    told(page, "are reset")
    filled(service, "act.reset", 1)
    settled(api, address, accepted_total=3)
    page.reload()
    assert page.locator("[aria-labelledby=totals] tbody tr >> nth=0").inner_text().split() == ["Accepted", "3", "1"]
    page.goto(page.url.partition("/destinations")[0] + "/")
    page.click('[aria-labelledby=totals] a:text-is("Reset")')
    agree(page)
    told(page, "are reset")
    assert api.does("GET", f"destinations/{number}")["since"]["accepted_total"] == 0
    assert api.does("GET", "totals")["since"]["accepted_total"] == 0


@pytest.mark.clicks("bulk pause", "bulk resume", "bulk purge")
def test_several_are_paused_resumed_and_purged_at_once(page_as, service, api):
    addresses = [filled(service, f"act.bulk.{number}", 2) for number in (1, 2)]
    for address in addresses:
        settled(api, address, depth=2)
    page = page_as().open("/destinations?q=act.bulk")
    for words, wanted in (("Pause", {"state": "PAUSED"}), ("Resume", {"state": "RUNNING"}), ("Purge", {"depth": 0})):
        page.wait_for_selector("tbody tr >> nth=1")
        page.check("[data-pick-all]")
        page.click(f'[data-picked] >> text="{words}"')
        page.wait_for_selector(f"main h1:has-text('{words} 2')")
        if words == "Purge":
            page.fill("#typed", "purge")
        page.click("main form button.primary, main form button.danger")
        page.wait_for_selector("text=what became of it")
        assert page.locator(".badge.good >> text=done").count() == 2
        for address in addresses:
            settled(api, address, **wanted)
        page.goto(page.url.partition("/destinations")[0] + "/destinations?q=act.bulk")
