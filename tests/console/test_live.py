"""The WebSocket that keeps pages up to date: to whom it speaks, of what, and that it says what the pages say."""

import asyncio
import json
import re

import psycopg
import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.contrib.auth.models import User

from console.live import person, socket
from console.live.feed import Feed
from console.live.topics import read, subject_of
from console.models import Grant, OperatorRole
from console.permissions import RESTRICTED
from console.selectors.shapes import SHAPES
from console.services import looking
from tests.console import facts

COUNTERS = {"depth": 12_345, "octets": 5_000_000, "consumers": 3, "unsettled": 7, "accepted": 20_000, "settled": 7_655, "oldest_at": 1}
WATCHED = ["service", "overview", "destinations/1", "destinations/2", "operations/1", "shape/destinations", "shape/operations"]


OPERATION = "INSERT INTO surety.operation VALUES (0, %s, 'delete', %s, '{}', 'olga', 'running', 9, 4, 1, 0, 9, '{}', 1000, NULL, '')"


@pytest.fixture
def told(database, monkeypatch):
    facts.well(database)
    facts.destination(database, 1, "queue/orders", **COUNTERS)
    facts.destination(database, 2, "queue/secret", depth=2)
    facts.execute(database, OPERATION, [1, "queue/orders"])
    monkeypatch.setattr(socket, "feed", Feed(socket.feed._read, every_seconds=0.05))
    return database


class Page(ApplicationCommunicator):
    """A WebSocket as a browser has it. (That of channels.testing wants a server of its own.)"""

    async def connect(self):
        """False: it was refused."""
        await self.send_input({"type": "websocket.connect"})
        return (await self.receive_output(5))["type"] == "websocket.accept"

    async def say(self, text):
        await self.send_input({"type": "websocket.receive", "text": text})

    async def hear(self):
        message = await self.receive_output(5)
        return json.loads(message["text"])

    async def disconnect(self):
        await self.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wait(5)


def opened(client, *, origin="http://localhost", host="localhost"):
    from console.asgi import application

    cookie = f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}" if client.cookies else ""
    headers = [(b"host", host.encode()), (b"origin", origin.encode()), (b"cookie", cookie.encode())]
    return Page(application, {"type": "websocket", "path": "/live", "headers": headers, "query_string": b"", "client": ("127.0.0.1", 1)})


async def watching(client, watch=WATCHED, **asked):
    page = opened(client)
    assert await page.connect()
    await page.say(json.dumps({"watch": watch, **asked}))
    return page, await page.hear()


async def closing_code(page):
    message = await page.receive_output(5)
    assert message["type"] == "websocket.close"
    return message["code"]


# -- to whom it does not speak --------------------------------------------------------------------------------------------------------
async def test_a_stranger_is_sent_to_the_login(told, stranger):
    page = opened(stranger)
    assert await page.connect()
    assert await closing_code(page) == socket.LOGGED_OUT


@pytest.mark.parametrize(
    ("origin", "host"),
    [("http://evil.example", "localhost"), ("", "localhost"), ("null", "localhost"), ("http://evil.example", "evil.example"), ("ftp://localhost", "localhost")],
)
async def test_a_page_of_another_origin_is_refused(origin, host, told, viewer):
    assert not await opened(viewer, origin=origin, host=host).connect()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"watch": "overview"}', '{"watch": ["nothing"]}', '{"watch": [1]}', '{"watch": [], "since": "x"}',
             '{"watch": ["destinations/1; DROP"]}', json.dumps({"watch": ["overview"] * 501}), "[" * 30_000, " " * 70_000],
)  # fmt: skip
async def test_what_no_page_says_ends_it(text, told, viewer):
    page = opened(viewer)
    await page.connect()
    await page.say(text)
    assert await closing_code(page) == socket.WRONG


async def test_a_session_that_ends_elsewhere_ends_it(told, viewer, monkeypatch):
    monkeypatch.setattr(socket, "CHECKED_SECONDS", 0)
    page, _ = await watching(viewer)
    await sync_to_async(viewer.logout)()
    for _ in range(100):
        message = await page.receive_output(5)
        if message["type"] == "websocket.close":
            break
    assert message["code"] == socket.LOGGED_OUT


# -- what it says ---------------------------------------------------------------------------------------------------------------------
async def test_it_says_what_the_pages_say(told, viewer):
    """Every live cell of the pages, in the same words; a page that asks for what nobody tells would stay as it was."""
    page, snapshot = await watching(viewer)
    assert snapshot["full"]
    await page.disconnect()
    found = 0
    for path in ("/", "/destinations", "/operations", "/operations/1"):
        text = (await sync_to_async(viewer.get)(path)).content.decode()
        for key, shown in re.findall(r'data-live="([^"]+)"[^>]*>((?:<span class="unknown"[^>]*>)?[^<]*)<', text):
            expected = None if "unknown" in shown else shown.strip()
            assert snapshot["cells"][key] == expected or "/in" in key or "/out" in key, key
            found += 1
        for key in re.findall(r'data-(?:shape|live-state|live-value)="([^"]+)"', text):
            assert snapshot["cells"][key]
        for key, digest in re.findall(r'data-shape="([^"]+)" data-is="([^"]+)"', text):
            assert snapshot["cells"][key] == digest, "the page was made of what is told"
    assert found > 25


async def test_changes_follow_and_a_lost_connection_goes_on_where_it_was(told, viewer):
    page, _ = await watching(viewer)
    await page.disconnect()
    page, _ = await watching(viewer, ["destinations/1"])
    with psycopg.connect(told, autocommit=True) as node:
        node.execute("UPDATE surety.destination_statistics SET depth = 5 WHERE destination = 1")
    cells = {}
    for _ in range(50):
        message = await page.hear()
        cells |= message["cells"]
        if cells.get("destinations/1/depth") == "5":
            break
    assert cells["destinations/1/depth"] == "5"
    assert not message["full"]
    other, resumed = await watching(viewer, ["destinations/1"], feed=message["feed"], since=message["version"])
    assert (resumed["full"], "destinations/1/depth" in resumed["cells"]) == (False, False)
    stranger, anew = await watching(viewer, ["destinations/1"], feed="another process", since=message["version"])
    assert anew["full"]
    for each in (page, other, stranger):
        await each.disconnect()
    assert socket.feed.watchers == 0


async def test_who_comes_back_amid_a_reading_for_others_is_not_told_that_everything_is_gone(told, viewer, monkeypatch):
    began, goes_on = asyncio.Event(), asyncio.Event()

    async def slowly(subjects):
        began.set()
        await goes_on.wait()
        return await at_once(subjects)

    at_once = socket.feed._read
    other, _ = await watching(viewer, ["overview"])
    page, message = await watching(viewer, ["destinations/1"])
    await page.disconnect()
    monkeypatch.setattr(socket.feed, "_read", slowly)
    await asyncio.wait_for(began.wait(), 5)
    page = opened(viewer)
    assert await page.connect()
    asked = {"watch": ["destinations/1"], "feed": message["feed"], "since": message["version"]}
    await page.say(json.dumps(asked))
    while socket.feed.watchers < 2:
        await asyncio.sleep(0)
    goes_on.set()
    resumed = await page.hear()
    assert not resumed["full"] or resumed["cells"]["destinations/1/depth"] == "12,345"
    for each in (page, other):
        await each.disconnect()


async def test_who_has_not_said_what_it_shows_is_told_nothing(told, viewer):
    silent = opened(viewer)
    assert await silent.connect()
    other, _ = await watching(viewer)
    for _ in range(3):
        await other.hear()
    assert await silent.receive_nothing()
    for each in (silent, other):
        await each.disconnect()


async def test_who_sees_some_destinations_is_told_of_these(told, viewer):
    def restrict():
        vera = User.objects.get(username="vera")
        OperatorRole.objects.create(user=vera, role=RESTRICTED)
        Grant.objects.create(user=vera, pattern="queue/orders", verbs=["metrics"])

    await sync_to_async(restrict)()
    page, snapshot = await watching(viewer)
    await page.disconnect()
    assert snapshot["cells"]["destinations/1/depth"] == "12,345"
    assert snapshot["cells"]["operations/1/done"] == "4"
    assert not [key for key in snapshot["cells"] if key.startswith(("destinations/2", "overview"))]


async def test_when_rights_become_others_a_page_is_told_everything_anew(told, viewer, monkeypatch):
    """What did not change meanwhile would be missing, or stay shown, for as long as the page is open."""
    monkeypatch.setattr(socket, "CHECKED_SECONDS", 0)

    def grant(*addresses):
        vera = User.objects.get(username="vera")
        OperatorRole.objects.update_or_create(user=vera, defaults={"role": RESTRICTED})
        Grant.objects.filter(user=vera).delete()
        Grant.objects.bulk_create(Grant(user=vera, pattern=address, verbs=["metrics"]) for address in addresses)

    async def told_of(page, number):
        cells = {}
        for _ in range(50):
            message = await page.hear()
            cells = {**({} if message["full"] else cells), **message["cells"]}
            if message["full"] and f"destinations/{number}/depth" in cells:
                break
        return message, {key[:14] for key in cells if key.endswith("/depth")}

    watch = ["destinations/1", "destinations/2"]
    await sync_to_async(grant)("queue/orders")
    page, message = await watching(viewer, watch)
    assert {key[:14] for key in message["cells"] if key.endswith("/depth")} == {"destinations/1"}
    await sync_to_async(grant)("queue/orders", "queue/secret")
    assert (await told_of(page, 2))[1] == {"destinations/1", "destinations/2"}
    await sync_to_async(grant)("queue/secret")
    message, known = await told_of(page, 2)
    assert known == {"destinations/2"}
    await page.disconnect()
    await sync_to_async(grant)("queue/orders", "queue/secret")
    page, message = await watching(viewer, watch, feed=message["feed"], since=message["version"])
    assert message["full"], "also if it was away while they changed"
    await page.disconnect()


async def test_nothing_is_read_when_nobody_listens():
    asked = []

    async def read(subjects):
        asked.append(subjects)
        return {}

    feed = Feed(read, every_seconds=0.01)
    feed.watch("a page", frozenset([("overview", "")]))
    await asyncio.sleep(0.05)
    feed.forget("a page")
    await asyncio.sleep(0.03)
    count = len(asked)
    await asyncio.sleep(0.05)
    assert count == len(asked) > 1


async def test_what_the_node_has_told_is_read_at_once():
    told, read_at = ["first"], []

    async def read(subjects):
        read_at.append(told[0])
        return {}

    async def pulse():
        return told[0]

    feed = Feed(read, pulse, every_seconds=60)
    feed.watch("a page", frozenset([("overview", "")]))
    await asyncio.sleep(0.5)
    assert len(read_at) == 2, "the first reading may have come before the first beat"
    told[0] = "second"
    await asyncio.sleep(0.3)
    assert read_at[2:] == ["second"]
    feed.forget("a page")


def test_what_is_watched_has_a_known_form():
    assert subject_of("destinations/-5") == ("destinations", "-5")
    for text in ("destinations", "destinations/", "destinations/1/2", "overview/1", "destinations/٣", None, "shape", "shape/x", "operations/-1"):
        assert subject_of(text) is None


def test_behind_a_proxy_the_origin_is_one_of_https(settings_of_https):
    assert person.is_ours({b"host": b"localhost", b"origin": b"https://localhost"})
    assert not person.is_ours({b"host": b"localhost", b"origin": b"http://localhost"})


# -- what is made as a whole ----------------------------------------------------------------------------------------------------------
CHANGES = {
    "alerts": "UPDATE console_alertrule SET threshold = threshold + 1 WHERE id = (SELECT min(id) FROM console_alertrule)",
    "audit": "INSERT INTO surety.audit (who, what) VALUES ('olga', 'login')",
    "clients": "UPDATE surety.node_status SET metrics = '{\"connections\": 1, \"connections_total\": 5}'",
    "destinations": "UPDATE surety.destination SET destroyed_at = now() WHERE destination = 2",
    "nodes": "UPDATE surety.node_status SET listeners = '{\"stomp\": {\"up\": false}}'",
    "operations": "UPDATE surety.operation SET state = 'done', ended_at = 5 WHERE operation = 1",
    "replays": "INSERT INTO surety.pipeline_replay (shard, requested_by, address, \"into\", rate) VALUES (0, 'olga', 'queue/orders', 'queue/a', 9)",
    "scheduled": "UPDATE surety.destination_statistics SET scheduled = 3 WHERE destination = 1",
    "subscriptions": "INSERT INTO surety.subscription (shard, subscription, destination, name, client_id, shared, selector, no_local, account) "
    "VALUES (0, 1, 1, 's', 'c', false, '', false, 'guest')",
    "tasks": "INSERT INTO console_taskrun (name, by, started_at, problem) VALUES ('expire', 'olga', now(), '')",
    "transactions": "INSERT INTO surety.prepared VALUES (0, 1, '1:aa:bb', 'guest', 4, 2, 1, 10, 1000, NULL)",
    "undo": "INSERT INTO surety.undo VALUES (0, 1, 'purge', 'queue/orders', 1, 'olga', 1000, 2000, 0, 4, 40, NULL, NULL)",
}


def test_every_list_is_another_when_something_of_it_is(told):
    assert CHANGES.keys() == SHAPES.keys()
    for name, change in CHANGES.items():
        before = {each: shape() for each, shape in SHAPES.items()}
        assert before[name] == SHAPES[name](), "nothing has changed"
        facts.execute(told, change)
        assert before[name] != SHAPES[name](), name


def test_how_far_an_operation_is_is_no_change_of_the_list(told):
    before = SHAPES["operations"]()
    facts.execute(told, "UPDATE surety.operation SET done = 5, looked_at = 10")
    assert before == SHAPES["operations"]()


def test_the_overview_is_another_when_something_wants_attention(told):
    def shape():
        return read([("overview", "")])["overview", ""].cells["shape"]

    before = shape()
    assert before == shape()
    alert = "INSERT INTO console_alert (rule_id, subject, value, since, fired_at) SELECT min(id), '', 9, now(), now() FROM console_alertrule"
    for change in (CHANGES["transactions"], alert, "UPDATE surety.node_status SET metrics = metrics || '{\"memory_level\": 2}'"):
        facts.execute(told, change)
        assert before != shape(), change
        before = shape()


def test_what_many_pages_ask_is_asked_once_a_second(monkeypatch):
    asked, now = [], [100.0]
    monkeypatch.setattr(looking.time, "monotonic", lambda: now[0])
    ask = lambda: asked.append(1) or len(asked)  # noqa: E731
    assert [looking.shared("a test", ask), looking.shared("a test", ask)] == [1, 1]
    now[0] += 1
    assert looking.shared("a test", ask) == 2


def test_who_asks_when_it_fails_is_told_so_and_the_next_asks_again():
    def silent():
        raise looking.NodeSilent

    with pytest.raises(looking.NodeSilent):
        looking.shared("another test", silent)
    assert looking.shared("another test", lambda: 5) == 5


def test_however_much_is_asked_little_is_kept():
    assert [looking.shared(("many", number), lambda number=number: number) for number in range(2 * looking.SHARED_MAX)] == list(range(2 * looking.SHARED_MAX))
    assert len(looking._shared) <= looking.SHARED_MAX


@pytest.fixture
def settings_of_https(monkeypatch):
    monkeypatch.setattr(settings, "HTTPS", True)
