"""Pages of connections and consumers: who holds what, giving it back, closing."""

import re

import pytest
from django.test import override_settings

from broker_core.engine import commands as c
from broker_core.engine import presence
from console.pages import destination
from tests.console import api as people
from tests.console.store_node import detachable, held_by_shop


@pytest.fixture
def node(node):
    held_by_shop(node)
    return node


def _page(client, path, status=200):
    response = client.get(path)
    assert response.status_code == status, response.content
    return response.content.decode()


def _restricted(*verbs):
    person = people.person("rita", role="restricted")
    people.granted(person, "queue/orders", *verbs)
    return people.logged_in(person)


@pytest.mark.parametrize(("verbs", "offered"), [(["metrics"], False), (["metrics", "browse_headers"], True)])
def test_what_one_may_not_see_of_a_client_is_not_offered(node, verbs, offered):
    node.produces(2, "queue/orders", sent=1)
    client = _restricted(*verbs)
    for path in (f"/consumers?destination={node.number()}", f"/producers?destination={node.number()}", f"/destinations/{node.number()}"):
        shown = _page(client, path)
        assert "shop" in shown or "/destinations/" in path
        assert 'href="/connections/' not in shown, "which needs the right to look at everything"
    assert ('href="/consumers/7"' in _page(client, f"/consumers?destination={node.number()}")) is offered
    assert client.get("/consumers/7").status_code == (200 if offered else 403)


@override_settings(LOOK_WAIT_SECONDS=0)
def test_without_a_node_the_page_says_that_it_is_unknown(operator):
    for path in ("/connections", "/consumers", "/producers", "/connections/1", "/consumers/7"):
        assert "only a node knows" in _page(operator, path, 503)


def test_who_is_not_there_is_not_there(node, operator):
    assert "no such consumer" in _page(operator, "/consumers/9", 404)
    for path in ("/connections/9", "/connections/9/close", "/consumers?destination=99", "/producers?destination=99"):
        _page(operator, path, 404)


def test_connections_lead_to_their_consumers_and_to_what_these_hold(node, operator):
    listed = _page(operator, "/connections")
    assert "shop" in listed
    assert "till" in listed
    shown = _page(operator, "/connections/2")
    assert "queue/orders" in shown
    assert 'href="/consumers/7"' in shown
    held = _page(operator, "/consumers/7")
    assert held.count("Give back</a>") == 2
    assert "queue/orders" in _page(operator, f"/consumers?destination={node.number()}")
    assert "Nobody consumes here" in _page(operator, "/consumers?connection=1")


def test_who_produces_is_shown_with_what_is_known_of_it(node, viewer):
    assert "Nobody produces anything" in _page(viewer, "/producers")
    node.produces(2, "queue/orders", sent=41)
    node.produces(1, "topic/prices")
    shown = _page(viewer, "/producers")
    assert shown.count("<tr>") == 3
    assert 'href="/connections/2">shop' in shown
    assert ">41<" in shown
    assert "topic/prices" not in _page(viewer, f"/producers?destination={node.number()}")
    assert "queue/orders" not in _page(viewer, "/producers?connection=1")
    assert "Nobody produces here" in _page(viewer, "/producers?connection=9")


def test_nobody_is_said_to_produce_only_when_all_were_looked_at(node, viewer, monkeypatch):
    monkeypatch.setattr(presence, "LOOKED_AT_MAX", 0)
    node.produces(1, "topic/prices")
    node.produces(2, "topic/prices")
    for path in (f"/producers?destination={node.number()}", f"/destinations/{node.number()}"):
        shown = _page(viewer, path)
        assert "Nobody produces here" not in shown
        assert "and there are more" in shown
    assert f'<a href="/producers?destination={node.number()}">All of them</a>' in shown


def test_what_a_connection_has_open_is_listed_with_what_is_in_it(node, viewer):
    assert "Open transactions</h2>" not in _page(viewer, "/connections/2")
    node.does(c.Begin(2, b"t-1"), c.Transacted(2, b"t-1", c.Settle(2, 7, [1])))
    shown = _page(viewer, "/connections/2")
    row = shown[shown.index("Open transactions</h2>") :]
    assert re.search(r'mono">t-1</th>.*active.*"Acknowledges">1<.*"Of">queue/orders<', row, re.DOTALL)


def test_a_suspended_branch_is_on_the_page_of_its_connection(node, viewer):
    node.does(c.BeginBranch(2, b"b", "7.61.62"), c.EndBranch(2, "7.61.62", c.Verb.SUSPEND))
    assert re.search(r'mono">7.61.62</th>.*suspended', _page(viewer, "/connections/2"), re.DOTALL)


def test_one_message_is_given_back_then_the_rest(node, operator):
    assert "1</strong> message will be" in _page(operator, "/consumers/7/release?delivery=1")
    done = operator.post("/consumers/7/release", {"delivery": ["1"]}, follow=True).content.decode()
    assert "Consumer 7 gives back: 1 message given back, 1 message left" in done
    assert "It holds nothing" in operator.post("/consumers/7/release", follow=True).content.decode()


def test_a_connection_is_closed_with_a_reason_that_its_client_is_told(node, operator):
    refused = operator.post("/connections/2/close", {"reason": " "})
    assert refused.status_code == 400
    assert "reason" in refused.content.decode()
    assert "Connection 2 closed" in operator.post("/connections/2/close", {"reason": "it hangs"}, follow=True).content.decode()
    assert node.dismissed == [(2, "closed by an operator: it hangs")]


def test_a_consumer_is_closed_with_a_reason_where_its_protocol_can(node, operator):
    detachable(node)
    listed = _page(operator, "/consumers")
    assert 'href="/consumers/8/close"' in listed
    assert 'href="/consumers/7/close"' not in listed, "which speaks a protocol that cannot"
    assert "no such consumer" in _page(operator, "/consumers/9/close", 404)
    assert "Close consumer 8 of shop" in _page(operator, "/consumers/8/close")
    refused = operator.post("/consumers/8/close", {"reason": " "})
    assert refused.status_code == 400
    assert "Give a reason" in refused.content.decode()
    assert "Consumer 8 closed" in operator.post("/consumers/8/close", {"reason": "it hangs"}, follow=True).content.decode()
    assert "close connection 2" in operator.post("/consumers/7/close", {"reason": "it hangs"}, follow=True).content.decode()


def test_who_may_only_look_is_offered_nothing_and_does_nothing(node, viewer):
    assert "Close it" not in _page(viewer, "/connections/2")
    assert "Give" not in _page(viewer, "/consumers/7")
    assert viewer.post("/connections/2/close", {"reason": "x"}).status_code == 403
    assert viewer.post("/consumers/7/release").status_code == 403
    detachable(node)
    assert "/consumers/8/close" not in _page(viewer, "/consumers")
    assert viewer.post("/consumers/8/close", {"reason": "x"}).status_code == 403
    assert node.dismissed == []


def test_a_destination_shows_the_first_of_its_clients_and_leads_to_all(node, viewer, monkeypatch):
    address = f"/destinations/{node.number()}"
    assert "Nobody produces here" in _page(viewer, address)
    node.produces(2, "queue/orders", sent=41)
    shown = _page(viewer, address)
    assert re.search(r"Producers</h2>.*queue/orders.*>41<.*Consumers</h2>", shown, re.DOTALL)
    assert "All of them" not in shown
    node.produces(1, "queue/orders")
    monkeypatch.setattr(destination, "PRODUCERS_MAX", 1)
    assert f'href="/producers?destination={node.number()}">All of them' in _page(viewer, address)
    node.does(c.Attach(2, 8, "queue/orders", credit=2, replenish=False))
    monkeypatch.setattr(destination, "CONSUMERS_MAX", 1)
    assert f'href="/consumers?destination={node.number()}">All of them' in _page(viewer, address)


def test_a_topic_shows_what_each_durable_subscription_holds_and_leads_to_it_and_to_all(node, viewer, monkeypatch):
    for name in ("desk", "wall"):
        node.does(c.Attach(1, 5, "topic/prices", name=name, durable=True))
        node.does(c.Detach(1, 5))
    node.send(b"a", b"b", address="topic/prices")
    node.does(c.Attach(1, 5, "topic/news", name="late", durable=True))
    number = node.number("topic/prices")
    shown = _page(viewer, f"/destinations/{number}")
    assert shown.count('data-label="Holds">2<') == 2
    assert len(re.findall(r'href="/subscriptions/[0-9]+/messages"', shown)) == 2
    assert "All of them" not in shown
    monkeypatch.setattr(destination, "SUBSCRIPTIONS_MAX", 1)
    assert f'href="/subscriptions?destination={number}">All of them' in _page(viewer, f"/destinations/{number}")
    listed = _page(viewer, f"/subscriptions?destination={number}")
    assert [name in listed for name in ("desk", "wall", "late")] == [True, True, False]
    assert "subscribed to it for good" in _page(viewer, f"/subscriptions?destination={node.number()}")
    _page(viewer, "/subscriptions?destination=99", 404)
