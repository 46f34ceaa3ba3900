"""Calls of messages with every kind of caller: each verb of the destination opens its own, and no other verb does."""

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings

from console.permissions import VERBS
from tests.console import facts
from tests.console.api import ROOT, bearer, call, granted, person, token

HEADERS, BODIES, SEND = "browse_headers", "browse_bodies", "send"
CALLS = [
    ("GET", "destinations/1/messages", None, [HEADERS]),
    ("GET", "destinations/1/messages?text=a", None, [HEADERS, BODIES]),
    ("POST", "destinations/1/messages", {"text": "a"}, [SEND]),
    ("POST", "destinations/1/messages", {"from_message": {"destination": 1, "message": "4-0"}}, [SEND, BODIES]),
    ("GET", "destinations/1/messages/export", None, [HEADERS, BODIES]),
    ("GET", "destinations/1/messages/dead", None, [HEADERS]),
    ("GET", "destinations/1/messages/4-0", None, [HEADERS]),
    ("GET", "destinations/1/messages/4-0/body", None, [BODIES]),
    ("GET", "destinations/1/scheduled", None, [HEADERS]),
    ("POST", "destinations/1/scheduled/5/cancel", None, ["delete"]),
    ("POST", "destinations/1/scheduled/5/deliver", None, ["move"]),
    ("POST", "destinations/1/scheduled/5/reschedule", {"due_at": "2030-01-01T00:00:00Z"}, ["move"]),
]
ELSEWHERE = {
    ("GET", "/api/v1/connections"), ("GET", "/api/v1/connections/{number}"), ("DELETE", "/api/v1/connections/{number}"), ("GET", "/api/v1/consumers"),
    ("GET", "/api/v1/producers"), ("GET", "/api/v1/producers/{number}"), ("GET", "/api/v1/transactions"),
    ("GET", "/api/v1/consumers/{number}/deliveries"), ("POST", "/api/v1/consumers/{number}/release"), ("DELETE", "/api/v1/consumers/{number}"),
}  # fmt: skip
"""See test_api_connections.py: they need a node that has some."""
LINES = ("POST", "/api/v1/destinations/{number}/messages/import")
"""Not JSON, so that it is called otherwise."""
NAMED = {"/1/": "/{number}/", "4-0": "{key}", "/5/": "/{delayed}/"}


def _template(path):
    path = ROOT + path.partition("?")[0]
    for value, name in NAMED.items():
        path = path.replace(value, name)
    return path


MESSAGES = {(method, _template(path)) for method, path, _, _ in CALLS} | {LINES} | ELSEWHERE
READS = (HEADERS, BODIES)


@pytest.fixture(autouse=True)
def things(database):
    facts.destination(database, 1, "queue/orders", depth=0)
    with override_settings(LOOK_WAIT_SECONDS=0):
        yield database


def able(name, *verbs):
    made = person(name, role="restricted")
    granted(made, "queue/orders", "metrics", *verbs)
    return made


@pytest.mark.parametrize(("method", "path", "body", "needs"), CALLS)
def test_it_takes_just_these_verbs(method, path, body, needs, viewer):
    for stranger in (Client(), bearer("surety_wrong")):
        assert call(stranger, method, path, body).status_code == 401
    for missing in needs:
        rest = [verb for verb in VERBS if verb not in (missing, "metrics")]
        refused = call(bearer(token(able(f"without.{missing}", *rest))), method, path, body)
        assert (refused.status_code, refused.document["code"]) == (403, "forbidden")
    elsewhere = person("elsewhere", role="restricted")
    granted(elsewhere, "queue/invoices", *VERBS)
    assert call(bearer(token(elsewhere)), method, path, body).status_code == 404
    assert call(bearer(token(able("may", *needs))), method, path, body).status_code in (200, 201, 404, 503), "no node is there"
    reader = call(bearer(token(User.objects.get(username="may"), "read", "r")), method, path, body)
    assert (reader.status_code == 403) == (not set(needs) <= set(READS))
    assert (call(viewer, method, path, body).status_code == 403) == (needs != [HEADERS])


def test_lines_are_imported_by_who_may_send(viewer):
    path = LINES[1].replace("{number}", "1")
    for client, status in ((Client(), 401), (viewer, 403), (bearer(token(able("may", SEND))), 201)):
        assert client.post(path, '{"text": "a"}', "application/x-ndjson").status_code == status
