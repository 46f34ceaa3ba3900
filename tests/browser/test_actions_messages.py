"""What is done with messages on their pages: sent, brought in, moved, copied, retried, expired, deleted, with and without a search; those that are not due."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

import pytest

from broker_core.client import Queue, Topic
from tests.acceptance.python_client import SOON, factory, fill, leave_in_doubt, texts
from tests.browser.doing import agree, destination, ended, everything, row, settled, told
from tests.support.service import await_true

pytestmark = pytest.mark.slow
DEAD = "queue/mq.sys.dmq"


def listed(api, address: str, query: str = "") -> list[dict]:
    it = destination(api, address)
    return everything(api, f"destinations/{it['number']}/messages?limit=100{query}") if it else []


def of(page, number: int, what: str) -> None:
    parts = urlsplit(page.url)
    page.goto(f"{parts.scheme}://{parts.netloc}/destinations/{number}/{what}")


@pytest.fixture
def filled(service, api):
    """A queue with so many messages, as the API has it."""

    def made(name: str, *bodies: str) -> dict:
        with factory(service).create_connection() as connection:
            fill(connection, Queue(name), *bodies)
        return settled(api, f"queue/{name}", depth=len(bodies))

    return made


@pytest.mark.clicks("message_send", "message_import")
def test_a_message_is_typed_and_some_are_brought_in(page_as, service, api, filled):
    it = filled("act.sent", "first")
    page = page_as().open(f"/destinations/{it['number']}/messages/send")
    page.fill("#body", '{"typed": true}')
    page.fill("#content_type", "application/json")
    page.select_option("#priority", "7")
    page.click("form.send button.primary")
    told(page, "Sent to queue/act.sent")
    of(page, it["number"], "messages/send")
    page.fill("#body", "twice")
    page.click("summary >> text=More than once")
    page.fill("#count", "2")
    page.click("form.send button.primary")
    told(page, "2 sent to queue/act.sent")
    of(page, it["number"], "messages/import")
    lines = "".join(json.dumps({"text": f"line {number}"}) + "\n" for number in range(2))
    page.set_input_files("#lines", {"name": "lines.ndjson", "mimeType": "application/x-ndjson", "buffer": lines.encode()})
    page.click("main form button.primary")
    told(page, "2 sent to queue/act.sent")
    with factory(service).create_connection() as connection, connection.create_session() as session:
        assert texts(session.create_consumer(Queue("act.sent")), 6) == [{"typed": True}, "first", "twice", "twice", "line 0", "line 1"]


@pytest.mark.clicks("message_act move", "message_act copy", "message_act delete")
def test_one_message_is_moved_another_copied_a_third_deleted(page_as, api, filled):
    it, there = filled("act.from", "a", "b", "c"), filled("act.to", "z")
    page = page_as().open(f"/destinations/{it['number']}/messages")
    for words, expected in (("Move", (2, 2)), ("Copy", (2, 3)), ("Delete", (1, 3))):
        page.click(".list.messages tbody th a >> nth=0")
        page.click(f'.page-head a:text-is("{words}")')
        agree(page, **({"destination": "queue/act.to"} if words != "Delete" else {}))
        ended(page)
        assert (len(listed(api, "queue/act.from")), len(listed(api, "queue/act.to"))) == expected, words
        of(page, it["number"], "messages")
    assert there["number"] != it["number"]


@pytest.mark.clicks("message_act expire", "message_act reprioritize", "message_act retry")
def test_all_that_a_search_finds_is_counted_first_and_then_done(page_as, service, api, filled):
    it = filled("act.many", *[f"text {number}" for number in range(20)])
    page = page_as().open(f"/destinations/{it['number']}/messages?text=text+1")
    page.click("text=Change priority")
    page.select_option("#priority", "9")
    page.click("text=Count them first")
    page.wait_for_selector("text=11 messages, of 20 looked at")
    page.click("main form button.primary")
    ended(page)
    assert sorted(each["priority"] for each in listed(api, "queue/act.many")) == [4] * 9 + [9] * 11
    of(page, it["number"], "messages?text=text+2")
    page.click("text=Count to expire them")
    page.wait_for_selector("text=1 message")
    page.click("main form button.primary, main form button.danger")
    ended(page)
    settled(api, "queue/act.many", depth=19)
    died = listed(api, DEAD, "&origin=queue/act.many")
    assert len(died) == 1
    page.goto(page.url.partition("/operations")[0] + "/dead")
    row(page, "queue/act.many").locator("text=Retry").click()
    agree(page)
    page.wait_for_selector("text=1 message")
    page.click("main form button.primary, main form button.danger")
    ended(page)
    settled(api, "queue/act.many", depth=20)


@pytest.mark.clicks("operation_cancel")
def test_an_operation_is_cancelled_while_others_are_before_it(page_as, service, api):
    with factory(service).create_connection() as connection:
        for _ in range(10):
            fill(connection, Queue("act.wide"), *map(str, range(2_000)))
    it = settled(api, "queue/act.wide", depth=20_000)
    counts = {"verb": "delete", "filter": {"text": "nothing says this"}}
    for _ in range(40):
        last = api.does("POST", f"destinations/{it['number']}/operations?dry_run=true", counts)["number"]
    page = page_as().open(f"/operations/{last}")
    page.click('.page-head a:text-is("Cancel")')
    agree(page)
    told(page, "cancelled")
    assert api.does("GET", f"operations/{last}")["state"] == "cancelled"
    api.does("POST", f"destinations/{it['number']}/purge", {"depth": 20_000})


@pytest.mark.clicks("scheduled_change deliver", "scheduled_change reschedule", "scheduled_change cancel")
def test_what_is_not_due_is_delivered_moved_and_cancelled(page_as, service, api):
    with factory(service).create_connection() as connection, connection.create_session() as session:
        producer = session.create_producer(Queue("act.delayed"))
        producer.delivery_delay = 3600
        for text in ("a", "b", "c"):
            producer.send(text)
        it = settled(api, "queue/act.delayed", scheduled=3)
        page = page_as().open("/scheduled")
        page.click("main th a:has-text('queue/act.delayed')")
        for words, fields, left in (("Deliver now", {}, 2), ("Reschedule", {"in": "2 h"}, 2), ("Cancel", {}, 1)):
            page.click(f'tbody tr >> nth=0 >> a:text-is("{words}")')
            agree(page, **fields)
            told(page, "Message")
            settled(api, "queue/act.delayed", scheduled=left)
        assert texts(session.create_consumer(Queue("act.delayed")), 1) == ["a"]
    assert it["number"]


@pytest.mark.clicks("subscription_create", "subscription_change purge", "subscription_change destroy")
def test_a_subscription_is_made_purged_and_ended(page_as, service, api):
    with factory(service).create_connection() as connection:
        fill(connection, Topic("act.news"), "which makes the topic")
    page = page_as().open("/subscriptions/create")
    for name, value in (("address", "topic/act.news"), ("name", "act-reader"), ("account", "guest"), ("client_id", "act-client")):
        page.fill(f"#{name}", value)
    page.click("main button.primary")
    told(page, "made")
    with factory(service).create_connection() as connection:
        fill(connection, Topic("act.news"), "a", "b")

    def it() -> dict:
        found = next((each for each in everything(api, "subscriptions?limit=1000") if each["name"] == "act-reader"), None)
        return api.does("GET", f"subscriptions/{found['number']}") if found else {}

    await_true(lambda: it().get("depth") == 2, SOON, "the subscription does not hold them", 0.2)
    page.reload()
    row(page, "act-reader").locator("text=Purge").click()
    agree(page)
    ended(page)
    assert it()["depth"] == 0
    page.goto(page.url.partition("/operations")[0] + "/subscriptions")
    row(page, "act-reader").locator('a:text-is("End")').click()
    agree(page)
    told(page, "ended")
    assert it() == {}


@pytest.mark.clicks("transaction_end commit", "transaction_end rollback", "transaction_end forget")
def test_branches_in_doubt_are_committed_rolled_back_and_forgotten(page_as, service, api):
    for name in ("act-commit", "act-rollback"):
        leave_in_doubt(service, Queue("act.ledger"), name, "payments", name)
    page = page_as().open("/transactions")
    for name, words, done in (("act-commit", "Commit", "committed"), ("act-rollback", "Roll back", "rolled back")):
        row(page, name).locator("a").click()
        number = page.url.rpartition("/")[2]
        page.click(f'.page-head a:text-is("{words}")')
        agree(page)
        told(page, done)
        page.goto(page.url.partition("/transactions")[0] + f"/transactions/{number}")
        page.click('.page-head a:text-is("Forget")')
        agree(page)
        told(page, "forgotten")
    with factory(service).create_connection() as connection, connection.create_session() as session:
        consumer = session.create_consumer(Queue("act.ledger"))
        assert texts(consumer, 1) == ["act-commit"]
        assert consumer.receive(0.3) is None
    assert [each for each in everything(api, "branches") if "act-" in json.dumps(each)] == []
