"""Connections and consumers as operators see them, and what they do about them."""

import pytest
from django.test import Client

from broker_core.engine import commands as c
from tests.console.api import bearer, call, granted, person, problem, token
from tests.console.store_node import detachable, held_by_shop


@pytest.fixture
def node(node):
    held_by_shop(node)
    return node


def test_who_is_connected_and_who_holds_what(node, operator):
    items = call(operator, "GET", "connections").document["items"]
    assert [(item["connection"], item["account"], item["unsettled"]) for item in items] == [(1, "guest", 0), (2, "shop", 2)]
    assert call(operator, "GET", "connections/2").document["client_id"] == "till"
    problem(call(operator, "GET", "connections/9"), 404, "not-found")
    (consumer,) = call(operator, "GET", f"consumers?destination={node.number()}").document["items"]
    assert (consumer["consumer"], consumer["unsettled"], consumer["credit"]) == (7, 2, 0)
    held = call(operator, "GET", "consumers/7/deliveries?limit=1").document
    assert ([(each["delivery"], each["key"]) for each in held["items"]], held["next"]) == ([(1, "4-0")], "1")
    problem(call(operator, "GET", "consumers/9/deliveries"), 404, "not-found")


def test_who_produces_to_which_destination(node, operator):
    number, other = node.produces(2, "queue/orders", sent=41), node.produces(1, "topic/prices")
    items = call(operator, "GET", "producers").document["items"]
    assert [(item["producer"], item["destination"], item["sent"], item["link"]) for item in items] == [
        (other, "topic/prices", None, None),
        (number, "queue/orders", 41, "to queue/orders"),
    ]
    assert call(operator, "GET", "producers?limit=1").document["next"] == str(other)
    assert [item["producer"] for item in call(operator, "GET", f"producers?limit=1&after={other}").document["items"]] == [number]
    assert [item["account"] for item in call(operator, "GET", f"producers?destination={node.number()}").document["items"]] == ["shop"]
    assert [item["producer"] for item in call(operator, "GET", "producers?connection=1").document["items"]] == [other]
    one = call(operator, "GET", f"producers/{number}").document
    assert (one["client_id"], one["connection"], one["waiting"], one["held_up"], one["alias"]) == ("till", 2, 0, False, None)
    problem(call(operator, "GET", f"producers/{number + 1}"), 404, "not-found")
    problem(call(operator, "GET", f"producers/{1 << 60}"), 404, "not-found")


def test_connections_are_found_by_account_and_by_client(node, operator):
    for query, expected in (("account=shop", [2]), ("client_id=till", [2]), ("account=guest&client_id=till", []), ("account=sho", [])):
        assert [item["connection"] for item in call(operator, "GET", f"connections?{query}").document["items"]] == expected


def test_what_is_open_is_listed_of_one_connection_and_of_all(node, operator):
    assert call(operator, "GET", "transactions").document == {"items": [], "next": None}
    node.does(c.Begin(2, b"t-1"), c.Transacted(2, b"t-1", c.Settle(2, 7, [1])), c.Begin(1, b"t-2"), c.Begin(1, b"t-3"))
    first = call(operator, "GET", "transactions?limit=1").document
    assert ([(item["connection"], item["name"]) for item in first["items"]], first["next"]) == ([(1, "t-2"), (1, "t-3")], "1")
    assert [item["client_id"] for item in call(operator, "GET", "transactions?after=1").document["items"]] == ["till"]
    (open_one,) = call(operator, "GET", "transactions?connection=2").document["items"]
    assert (open_one["name"], open_one["state"], open_one["acknowledgements"], open_one["destinations"]) == ("t-1", "active", 1, ["queue/orders"])
    assert (open_one["xid"], open_one["refused"]) == (None, None)
    assert "no such connection" in problem(call(operator, "GET", "transactions?connection=9"), 409, "refused").lower()


def test_what_hangs_is_given_back(node, operator):
    released = call(operator, "POST", "consumers/7/release", {"deliveries": [1]}, Idempotency_Key="once")
    assert released.document["result"] == {"released": 1, "left": 1}
    shown = call(operator, "GET", f"destinations/{node.number()}/messages").document["items"]
    assert [(item["state"], item["redelivered"]) for item in shown] == [("available", True), ("delivered", False), ("available", False)]
    assert call(operator, "GET", "audit").document["items"][0]["what"] == "release"


def test_a_connection_is_closed_with_a_reason(node, operator):
    assert "give a reason" in problem(call(operator, "DELETE", "connections/2"), 400, "invalid").lower()
    assert problem(call(operator, "DELETE", "connections/9?reason=x"), 409, "refused")
    assert call(operator, "DELETE", "connections/2?reason=it%20hangs").document["result"]["account"] == "shop"
    assert node.dismissed == [(2, "closed by an operator: it hangs")]


def test_a_consumer_is_closed_and_its_connection_goes_on(node, operator):
    detachable(node)
    items = {item["consumer"]: item["closable"] for item in call(operator, "GET", "consumers").document["items"]}
    assert items == {7: False, 8: True}
    assert "give a reason" in problem(call(operator, "DELETE", "consumers/8"), 400, "invalid").lower()
    assert "close connection 2" in problem(call(operator, "DELETE", "consumers/7?reason=x"), 409, "refused").lower()
    assert "no such consumer" in problem(call(operator, "DELETE", "consumers/9?reason=x"), 409, "refused").lower()
    answer = call(operator, "DELETE", "consumers/8?reason=it%20hangs").document["result"]
    assert answer == {"consumer": 8, "connection": 3, "account": "shop", "unsettled": 1}
    assert call(operator, "GET", "connections/3").document["consumers"] == 0
    entry = call(operator, "GET", "audit").document["items"][0]
    assert (entry["what"], entry["arguments"]) == ("detach", {"consumer": 8, "reason": "it hangs"})


def test_each_needs_its_right(node, viewer):
    for path in ("connections", "connections/2", "transactions", "consumers", "consumers/7/deliveries", "producers"):
        assert call(Client(), "GET", path).status_code == 401
        assert call(viewer, "GET", path).status_code == 200
    for method, path in (("DELETE", "connections/2?reason=x"), ("DELETE", "consumers/7?reason=x"), ("POST", "consumers/7/release")):
        problem(call(viewer, method, path, {} if method == "POST" else None), 403, "forbidden")
        assert call(Client(), method, path, {} if method == "POST" else None).status_code == 401
    rita = person("rita", role="restricted")
    producer = node.produces(2, "queue/orders")
    for path in ("connections", "connections/2", "transactions", "consumers", "producers"):
        problem(call(bearer(token(rita, name=path.replace("/", "."))), "GET", path), 403, "forbidden")
    client = bearer(token(rita, name="t"))
    problem(call(client, "GET", "consumers/7/deliveries"), 404, "not-found")
    problem(call(client, "GET", f"producers/{producer}"), 404, "not-found")
    granted(rita, "queue/orders", "metrics")
    problem(call(client, "GET", "consumers/7/deliveries"), 403, "forbidden")
    for path in (f"consumers?destination={node.number()}", f"producers?destination={node.number()}", f"producers/{producer}"):
        assert call(client, "GET", path).status_code == 200
    problem(call(client, "POST", "consumers/7/release", {}), 403, "forbidden")
    granted(rita, "queue/*", "metrics", "manage", "browse_headers")
    assert call(client, "GET", "consumers/7/deliveries").status_code == 200
    assert call(client, "POST", "consumers/7/release", {}).status_code == 200
    reader = bearer(token(rita, "read", "r"))
    problem(call(reader, "POST", "consumers/7/release", {}), 403, "forbidden")
