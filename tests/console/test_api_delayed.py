"""Delayed messages as operators see them, and what they do about them."""

import pytest

from broker_core.engine import commands as c
from broker_core.engine.message import StoredBody
from tests.console import facts
from tests.console.api import call, problem


@pytest.fixture
def node(node):
    for number in range(4):
        node.send(b"%d" % number, delay=60_000 * (number + 1))
    node.does(c.Attach(1, 7, "queue/orders", credit=9))
    return node


def scheduled(client, node, query=""):
    response = call(client, "GET", f"destinations/{node.number()}/scheduled{query}")
    assert response.status_code == 200, response.document
    return response.document


def bodies(node):
    return [bytes(message.body or b"") for message in node.delivered]


def test_the_next_to_be_due_comes_first_page_by_page(node, operator):
    first = scheduled(operator, node, "?limit=3")
    assert len(first["items"]) == 3
    rest = scheduled(operator, node, f"?after={first['next']}")
    assert (len(rest["items"]), rest["next"]) == (1, None)
    due = [item["due_at"] for item in first["items"] + rest["items"]]
    assert due == sorted(due)
    problem(call(operator, "GET", f"destinations/{node.number()}/scheduled?after=x"), 400, "invalid")


def test_one_is_cancelled_one_delivered_and_one_moved(node, operator):
    number = node.number()
    first, second, third, fourth = (item["number"] for item in scheduled(operator, node)["items"])
    path = f"destinations/{number}/scheduled"
    assert call(operator, "POST", f"{path}/{first}/cancel", Idempotency_Key="once").document["result"] == {"cancelled": first}
    assert call(operator, "POST", f"{path}/{second}/deliver").document["result"] == {"delivered": second}
    moved = call(operator, "POST", f"{path}/{third}/reschedule", {"due_at": "2001-01-01T00:00:00Z"}).document
    assert moved["result"]["rescheduled"] == third
    assert [message.accepted_at for message in node.delivered] != []
    assert [item["number"] for item in scheduled(operator, node)["items"]] == [fourth]
    assert node.engine.shard.destinations["queue/orders"].scheduled == 1
    problem(call(operator, "POST", f"{path}/{first}/deliver"), 404, "not-found")
    problem(call(operator, "POST", f"{path}/{fourth}/reschedule", {"due_at": "tomorrow"}), 400, "invalid")
    first, second = [each["what"] for each in call(operator, "GET", "audit").document["items"]][:2]
    assert (first[:5], second) == ("POST ", "delayed"), "what there is not any more, too"


def test_the_body_of_what_is_moved_stays_and_that_of_what_is_cancelled_goes(node, operator):
    kept, gone = node.large(b"k" * 300_000), node.large(b"g" * 300_000)
    for body in (kept, gone):
        node.send(StoredBody(body, 300_000), delay=3_600_000)
    moved, cancelled = (item["number"] for item in scheduled(operator, node)["items"][-2:])
    path = f"destinations/{node.number()}/scheduled"
    assert call(operator, "POST", f"{path}/{moved}/reschedule", {"due_at": "2040-01-01T00:00:00Z"}).status_code == 200
    assert call(operator, "POST", f"{path}/{cancelled}/cancel").status_code == 200
    assert facts.rows(node.dsn, "SELECT segment, body FROM surety.body_reference") == [(-1, kept)]
    assert node.discarded == [gone]
