"""What is done to the service itself on its pages: alerts, tasks; and to its nodes, for which it is one of its own."""

from __future__ import annotations

import http.server
import threading

import pytest

from tests.browser.doing import agree, ask_for_replay, everything, row, told
from tests.browser.watched import Console
from tests.support.clients import Connection, ConnectionLost, ErrorReceived
from tests.support.service import Service, await_true

pytestmark = pytest.mark.slow


@pytest.fixture
def webhook():
    """An address, and what it was told."""
    heard: list[bytes] = []

    class Hook(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            heard.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/hook", heard
        server.shutdown()


@pytest.mark.clicks("alert_create", "alert_change", "alert_test", "alert_delete")
def test_an_alert_is_made_tried_changed_and_deleted(page_as, api, webhook):
    address, heard = webhook
    page = page_as().open("/alerts")
    page.click("text=New alert")
    page.fill("#name", "act-alert")
    page.select_option("main [name=metric]", "depth")
    for name, value in (("pattern", "queue/act.*"), ("threshold", "1000000"), ("webhook", address)):
        page.fill(f"main [name={name}]", value)
    page.click("main button.primary")
    told(page, "act-alert is looked at")
    row(page, "act-alert").locator("text=Change").click()
    page.click("text=Tell its webhook a test")
    told(page, "has taken the test")
    assert len(heard) == 1
    row(page, "act-alert").locator("text=Change").click()
    page.fill("main [name=threshold]", "2000000")
    page.click("main button.primary")
    told(page, "act-alert is looked at")
    assert next(each for each in everything(api, "alerts") if each["name"] == "act-alert")["threshold"] == 2_000_000
    row(page, "act-alert").locator("text=Delete").click()
    agree(page)
    told(page, "is deleted")
    assert [each for each in everything(api, "alerts") if each["name"] == "act-alert"] == []


@pytest.mark.clicks("task_change", "task_run")
def test_a_task_is_run_now_and_runs_as_often_as_one_says(page_as, api):
    page = page_as().open("/tasks")
    task = row(page, "ledger").first
    task.locator("text=Change or run").click()
    page.wait_for_selector("#dialog[open]")
    page.click("#dialog >> text=Run now")
    told(page, "ledger has run")
    before = api.does("GET", "schedule/ledger")["seconds"]
    for seconds in (before + 1, before):
        row(page, "ledger").first.locator("text=Change or run").click()
        agree(page, seconds=str(seconds))
        told(page, "ledger runs as you said")
        assert api.does("GET", "schedule/ledger")["seconds"] == seconds


@pytest.mark.clicks("replay_cancel")
def test_a_replay_is_cancelled(page_as, service, api):
    number = ask_for_replay(service, "queue/act.kept", "queue/act.again")
    page = page_as().open("/reports/replays")
    row(page, "queue/act.kept").locator("th a").click()
    page.click('.page-head a:text-is("Cancel")')
    agree(page)
    told(page, "sends nothing more")
    assert api.does("GET", f"pipeline/replays/{number}")["state"] == "cancelled"


VERBS = ("quiesce", "unquiesce", "drain", "compact", "takeover", "pause", "resume")


@pytest.mark.clicks(*(f"node_do {verb}" for verb in VERBS))
def test_a_node_is_quiesced_drained_and_handed_over_and_a_listener_closed(browser, routes):
    """A service of its own, for nobody else could work beside this."""
    with Service() as service, service.standby() as standby:
        people = Console(browser, service)
        watched = people.page_as()
        page = watched.open("/nodes")
        page.click('.page-head a:text-is("Quiesce")')
        agree(page)
        told(page, "is quiesced")
        with pytest.raises((ConnectionLost, ErrorReceived)):
            Connection(service.stomp_port).confirmed("SEND", {"destination": "/queue/act.node"}, b"x")
        page.click("text=Let connections in again")
        agree(page)
        told(page, "lets connections in")
        connects(service.stomp_port)
        page.click('.page-head a:text-is("Compact")')
        agree(page, percent="30")
        told(page, "compacts what it can")
        page.click('[aria-label="Close stomp"]')
        agree(page)
        told(page, "is closed")
        with pytest.raises(ConnectionLost):
            Connection(service.stomp_port)
        page.reload()
        page.click('[aria-label="Open stomp"]')
        agree(page)
        told(page, "is open again")
        connects(service.stomp_port)
        page.reload()
        page.click('.page-head a:text-is("Drain")')
        agree(page, seconds="2")
        told(page, "drains")
        page.reload()
        page.click("text=Let connections in again")
        agree(page)
        told(page, "lets connections in")
        await_true(lambda: "Take over" in page.goto(page.url).text(), 30, "nobody stands by", 0.5)
        page.click("text=Take over")
        agree(page)
        told(page, "takes over")
        await_true(lambda: _serves(standby.stomp_port), 30, "the other node does not serve", 0.5)
        people.close()
        assert watched.wrong == []
        from tests.browser import posts

        done = {posts.name_of(routes, path, form) for path, form in watched.posted}
        assert {f"node_do {verb}" for verb in VERBS} <= done


def connects(port: int) -> None:
    with Connection(port) as connection:
        connection.confirmed("SEND", {"destination": "/queue/act.node", "persistent": "true"}, b"x")


def _serves(port: int) -> bool:
    try:
        connects(port)
    except (ConnectionLost, ErrorReceived):
        return False
    return True
