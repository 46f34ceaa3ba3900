"""Durable subscriptions by the REST API."""

from __future__ import annotations

import pytest

from broker_core.engine import commands as c
from broker_core.engine.message import Header, Message, Reliability
from tests.console import facts
from tests.console.api import call, problem
from tests.console.engine_node import EngineNode
from tests.console.store_node import StoreNode

GIVEN = {"address": "topic/prices", "name": "s", "client_id": "c", "account": "guest"}


@pytest.fixture
def node(database):
    with EngineNode(database) as node:
        yield node


def test_one_is_made_queried_found_stale_and_ended(node, database, operator):
    call(operator, "POST", "destinations", {"address": "topic/prices"})
    made = call(operator, "POST", "subscriptions", GIVEN)
    assert made.status_code == 201, made.document
    number = made.document["result"]["subscription"]
    assert made["Location"] == f"/api/v1/subscriptions/{number}"
    shown = call(operator, "GET", f"subscriptions/{number}").document
    assert (shown["name"], shown["address"], shown["account"], shown["depth"], shown["segments"]) == ("s", "topic/prices", "guest", 0, 0)
    facts.execute(database, "UPDATE surety.subscription SET idle_since = 1 WHERE name = 's'")
    (stale,) = call(operator, "GET", "subscriptions/stale").document["items"]
    assert (stale["number"], stale["depth"], stale["growth"], stale["growth_since"]) == (number, 0, None, None)
    assert [item["number"] for item in call(operator, "GET", "subscriptions/stale?idle_seconds=0").document["items"]] == [number]
    begun = call(operator, "POST", f"subscriptions/{number}/purge")
    assert (begun.status_code, begun.document["verb"], begun.document["arguments"]["subscription"]) == (201, "purge", number)
    assert call(operator, "DELETE", f"subscriptions/{number}").document["result"] == {"subscription": number, "discarded": 0}


def test_what_would_be_discarded_is_counted_and_stays(database, operator):
    with StoreNode(database) as node:
        node.does(
            c.Open(2, "guest", "c"),
            c.Attach(2, 7, "topic/prices", credit=1, replenish=False, name="s", durable=True),
            *(c.Send(1, None, "topic/prices", Message(Header(b"", reliability=Reliability.ASSURED), b"x", 1)) for _ in range(3)),
        )
        (shown,) = call(operator, "GET", "subscriptions").document["items"]
        counted = [
            call(operator, method, f"subscriptions/{shown['number']}{path}?dry_run=true").document
            for method, path in (("DELETE", ""), ("POST", "/purge"))
        ]
        assert [(each["depth"], each["discarded"], each["kept"]) for each in counted] == [(3, 3, 0), (3, 2, 1)]
        assert call(operator, "GET", f"subscriptions/{shown['number']}").document["depth"] == 3


def test_it_needs_an_account_that_is_there_and_a_topic(node, operator):
    assert "no client account nobody" in problem(call(operator, "POST", "subscriptions", GIVEN | {"account": "nobody"}), 400, "invalid")
    assert "topic/prices" in problem(call(operator, "POST", "subscriptions", GIVEN), 409, "refused")
    assert "name" in problem(call(operator, "POST", "subscriptions", GIVEN | {"name": ""}), 400, "invalid")


def test_without_a_node_what_it_holds_is_not_known(database, operator):
    facts.destination(database, 1, "topic/prices")
    facts.one_of_each(database)
    shown = call(operator, "GET", "subscriptions/1").document
    assert (shown["name"], shown["depth"], shown["consumers"]) == ("s", None, None)


