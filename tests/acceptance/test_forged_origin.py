"""Headers that only a proxy should write, sent by a client to the real server: they change neither who is counted nor who may read."""

from __future__ import annotations

import http.client
import re
from urllib.parse import urlencode

from tests.support.service import Service

FAILURES_MAX = 5


def ask(service: Service, method: str, path: str, headers: dict[str, str], body: str = "") -> tuple[int, str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", service.http_port, timeout=10)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    found = answer.status, answer.read().decode(), answer.headers.get("Set-Cookie", "")
    connection.close()
    return found


def test_a_client_that_names_another_address_each_time_is_throttled_all_the_same(service: Service) -> None:
    _, page, cookie = ask(service, "GET", "/login", {})
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    assert token is not None
    form = urlencode({"username": "nobody.there", "password": "guess", "csrfmiddlewaretoken": token[1]})
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": cookie.partition(";")[0]}
    statuses = [ask(service, "POST", "/login", headers | {"X-Forwarded-For": f"203.0.113.{n}"}, form)[0] for n in range(FAILURES_MAX + 1)]
    assert statuses == [401] * FAILURES_MAX + [429]


def test_what_a_client_writes_does_not_change_where_it_sits(service: Service) -> None:
    assert ask(service, "GET", "/metrics", {"X-Forwarded-For": "203.0.113.7"})[0] == 200, "loopback stays loopback"
