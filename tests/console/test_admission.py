"""How many are let in at a time, and what is said to those who waited too long, or whom the database does not answer."""

import asyncio
import threading
import time

import pytest
from asgiref.testing import ApplicationCommunicator
from django.db import OperationalError, connection
from django.test import Client

from console.api import streaming
from console.api.problems import LATER_SECONDS
from console.live.admission import BODY_OCTETS_MAX, Admission
from console.services import looking


async def all_at_once():
    return {"type": "http.request"}


async def never_all():
    await asyncio.Event().wait()


class House:
    """An application whose answers begin when one lets them."""

    def __init__(self):
        self.inside, self.ended = [], asyncio.Queue()
        self.go, self.read = asyncio.Event(), asyncio.Event()

    async def __call__(self, scope, receive, send):
        while (await receive()).get("more_body"):
            pass
        self.inside.append(scope["path"] + (" too late" if scope.get("surety.refused") == "late" else ""))
        await self.go.wait()
        await send({"type": "http.response.start"})
        await self.read.wait()
        self.ended.put_nowait(scope["path"])

    def visit(self, door, path, receive=all_at_once):
        async def send(message):
            pass

        return asyncio.create_task(door({"type": "http", "path": path}, receive, send))


async def some_turns():
    for _ in range(20):
        await asyncio.sleep(0)


async def test_so_many_are_inside_and_the_others_come_in_turn_as_answers_begin():
    house = House()
    door = Admission(house, 2)
    visits = [house.visit(door, path) for path in "abcd"]
    await some_turns()
    assert house.inside == ["a", "b"]
    house.go.set()
    await some_turns()
    assert house.inside == ["a", "b", "c", "d"], "nobody waits for those who read slowly"
    house.read.set()
    await asyncio.gather(*visits)


async def test_who_sends_slowly_keeps_nobody_waiting():
    house = House()
    door = Admission(house, 1)
    slow = [house.visit(door, "/login", never_all) for _ in range(3)]
    await some_turns()
    visit = house.visit(door, "/")
    await some_turns()
    assert house.inside == ["/"]
    house.go.set()
    house.read.set()
    await visit
    for each in slow:
        each.cancel()


async def test_static_files_and_health_wait_for_nobody():
    house = House()
    door = Admission(house, 1)
    visits = [house.visit(door, path) for path in ("/", "/audit", "/static/console/page.css", "/health/ready")]
    await some_turns()
    assert sorted(house.inside) == ["/", "/health/ready", "/static/console/page.css"]
    house.go.set()
    house.read.set()
    await asyncio.gather(*visits)


async def test_whoever_waits_too_long_is_told_so_and_a_place_is_left_by_who_fails():
    async def fail(scope, receive, send):
        await receive()
        raise OSError("gone")

    door = Admission(fail, 1)
    for _ in range(2):
        with pytest.raises(OSError, match="gone"):
            await door({"type": "http", "path": "/"}, all_at_once, None)
    house = House()
    door = Admission(house, 1, wait_seconds=0.01)
    visits = [house.visit(door, "/"), house.visit(door, "/late")]
    await asyncio.sleep(0.05)
    assert house.inside == ["/", "/late too late"]
    house.go.set()
    house.read.set()
    await asyncio.gather(*visits)


async def _answer(path, requests_max=0, bodies=(b"",), method="GET"):
    from console.asgi import pages

    scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 1)}
    visit = ApplicationCommunicator(Admission(pages, requests_max, wait_seconds=0.001), scope)
    for body in bodies:
        await visit.send_input({"type": "http.request", "body": body, "more_body": body is not bodies[-1]})
    start, body = await visit.receive_output(5), await visit.receive_output(5)
    await visit.wait(5)
    return start["status"], {name.lower(): value for name, value in start["headers"]}, body["body"].decode()


async def test_what_those_are_told_who_came_at_a_bad_time():
    status, headers, body = await _answer("/destinations?q=a")
    assert (status, headers[b"retry-after"]) == (503, str(LATER_SECONDS).encode())
    assert "More pages are asked for than the console can make at once" in body
    assert b"content-security-policy" in headers
    status, headers, body = await _answer("/api/v1/destinations")
    assert (status, headers[b"retry-after"], headers[b"content-type"]) == (503, str(LATER_SECONDS).encode(), b"application/problem+json")
    assert '"code": "busy"' in body


async def test_what_is_larger_than_anything_is_refused_before_it_fills_a_disk():
    endless = [b"a" * BODY_OCTETS_MAX, b"b", b"c", b"d"]
    status, headers, body = await _answer("/login", 1, endless, "POST")
    assert status == 413
    assert "larger than anything" in body
    assert b"content-security-policy" in headers
    status, headers, body = await _answer("/api/v1/destinations", 1, endless, "POST")
    assert (status, headers[b"content-type"]) == (413, b"application/problem+json")
    assert '"code": "too-large"' in body


def test_who_reads_slowly_keeps_no_connection_to_the_database(database):
    def pieces():
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        yield b"first"

    assert streaming._next(pieces()) == b"first"
    assert connection.connection is None, "it is the pool's again, until the next piece"


def _no_database(*_):
    raise OperationalError("couldn't get a connection after 2.00 sec")


@pytest.mark.parametrize("path", ["/", "/destinations", "/connections"])
def test_a_page_without_its_database_says_so_and_when_to_come_again(path, operator):
    operator.raise_request_exception = False
    with connection.execute_wrapper(_no_database):
        answer = operator.get(path)
    assert (answer.status_code, answer["Retry-After"]) == (503, str(LATER_SECONDS))
    assert "database does not answer" in answer.content.decode()
    assert "get a connection" not in answer.content.decode()


def test_the_api_without_its_database_says_so(operator):
    operator.raise_request_exception = False
    with connection.execute_wrapper(_no_database):
        answer = operator.get("/api/v1/destinations")
    assert (answer.status_code, answer["Retry-After"], answer.json()["code"]) == (503, str(LATER_SECONDS), "unavailable")


def test_a_bug_is_not_called_anything_else(operator, monkeypatch):
    monkeypatch.setattr("console.pages.overview.node.node_status", lambda: 1 / 0)
    client = Client(raise_request_exception=False)
    client.cookies = operator.cookies
    assert client.get("/").status_code == 500


def test_those_who_wait_while_a_node_is_silent_do_not_ask_it_one_after_another():
    asked, found = [], []
    begun, go_on = threading.Event(), threading.Event()

    def find():
        asked.append(1)
        begun.set()
        go_on.wait(5)
        raise looking.NodeSilent

    def look():
        try:
            looking.shared("a silent node", find)
        except looking.NodeSilent:
            found.append("silent")

    threads = [threading.Thread(target=look) for _ in range(3)]
    threads[0].start()
    begun.wait(5)
    for thread in threads[1:]:
        thread.start()
    time.sleep(0.5)  # they wait for a lock by now
    go_on.set()
    for thread in threads:
        thread.join()
    assert (len(asked), found) == (1, ["silent"] * 3)
