"""Messages as operators see them: a real engine over a real store, by the API."""

import base64
import json

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from broker_core.engine import commands as c
from broker_core.engine.dead import FAILURES
from broker_core.engine.message import Encoding, Header, StoredBody
from broker_core.engine.outcome import Outcome
from broker_core.viewing import page
from tests.console import facts
from tests.console.api import bearer, call, granted, person, problem, token
from tests.console.message_pages import DEAD, awaited
from tests.console.store_node import EXPRESS, StoreNode

pytestmark = pytest.mark.usefixtures("unhurried")


def listed(client, number, query="", **headers):
    response = call(client, "GET", f"destinations/{number}/messages{query}", **headers)
    assert response.status_code == 200, response.document
    return response.document


def texts(client, number, query=""):
    """Bodies of what is listed."""
    return [call(client, "GET", f"destinations/{number}/messages/{item['key']}").document["body"]["text"] for item in listed(client, number, query)["items"]]


# -- what is refused ----------------------------------------------------------------------------------------------------------------------
@override_settings(LOOK_WAIT_SECONDS=0.01)
def test_without_a_node_nothing_is_known(database, operator):
    facts.destination(database, 1, "queue/orders")
    assert "not known" in problem(call(operator, "GET", "destinations/1/messages"), 503, "node-silent")
    assert facts.rows(database, "SELECT count(*) FROM surety.control_request") == [(0,)], "nobody waits for it any more"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("?selector=colour%20%3D", "Selector: column 9"),
        ("?order=best", "order must be"),
        ("?after=4", "A message's key"),
        ("?after=20-1", "A message's key"),
        ("?subscription=a", "subscription must be"),
        ("?json_path=a", "together"),
        ("?age_min_ms=-1", "age_min_ms must be"),
        ("?accepted_to=noon", "accepted_to must be an instant"),
        ("?reason=BORED", "Reason:"),
        ("?colour=red", "There is no parameter"),
    ],
)
def test_what_is_asked_wrongly_is_said_precisely(node, operator, query, words):
    node.send(b"a")
    assert words in problem(call(operator, "GET", f"destinations/{node.number()}/messages{query}"), 400, "invalid")


def test_a_topic_is_seen_by_subscription(node, operator):
    node.send(b"a", address="topic/prices")
    number = node.number("topic/prices")
    refused = call(operator, "GET", f"destinations/{number}/messages")
    assert "by subscription" in problem(refused, 409, "refused")
    assert refused.document["refusal"] == "NO_SUCH_SUBSCRIPTION"
    node.does(c.Attach(1, 9, "topic/prices", name="s", durable=True))
    node.send(b"b", b"c", address="topic/prices")
    (subscription,) = node.engine.shard.destinations["topic/prices"].subscriptions
    assert len(listed(operator, number, f"?subscription={subscription.number}")["items"]) == 2


def test_bodies_are_for_who_may_read_them(node, viewer):
    node.send(b"secret", colour="red")
    number = node.number()
    shown = call(viewer, "GET", f"destinations/{number}/messages/4-0")
    assert shown.document["body"] is None
    assert shown.document["properties"] == {"colour": "red"}
    for path in ("messages/4-0/body", "messages/export", "messages?text=secret", "messages?json_path=a&json_value=1"):
        problem(call(viewer, "GET", f"destinations/{number}/{path}"), 403, "forbidden")
    rita = person("rita", role="restricted")
    granted(rita, "queue/orders", "metrics")
    problem(call(bearer(token(rita)), "GET", f"destinations/{number}/messages"), 403, "forbidden")
    problem(call(viewer, "POST", f"destinations/{number}/messages", {"text": "x"}), 403, "forbidden")
    assert node.depth() == 1


# -- pages --------------------------------------------------------------------------------------------------------------------------------
def test_a_queue_is_shown_page_by_page_from_either_end(node, operator):
    node.send(*[b"%d" % n for n in range(7)])
    node.send(b"urgent", priority=9)
    node.send(b"quick", level=EXPRESS)
    number = node.number()
    assert texts(operator, number) == ["urgent", *map(str, range(7)), "quick"]
    found, after = [], ""
    while after is not None:
        page = listed(operator, number, f"?limit=2&order=newest{after and f'&after={after}'}")
        assert page["depth"] == 9
        found += [item["key"] for item in page["items"]]
        after = page["next"]
    assert found == ["14-0", *[f"4-{position}" for position in range(6, -1, -1)], "9-0"]


def test_a_message_says_in_which_state_it_is(node, operator):
    node.send(b"a", b"b", b"c", b"d")
    node.send(b"e", expires=node.now + 1)
    node.does(c.Attach(1, 7, "queue/orders", credit=2, replenish=False))
    node.does(c.Begin(1, b"t"), c.Transacted(1, b"t", c.Settle(1, 7, [2])))
    node.passes(1000)
    items = listed(operator, node.number())["items"]
    assert [item["state"] for item in items] == ["delivered", "reserved", "available", "available", "expired"]
    assert items[0]["delivery"] == {
        "consumer": 7, "connection": 1, "account": "guest", "client_id": "client", "since": items[0]["delivery"]["since"],
    }  # fmt: skip
    assert items[1]["reservation"] == {"kind": "transaction", "number": 1, "xid": ""}
    node.does(c.Settle(1, 7, [1], outcome=Outcome.FAILED))
    first = listed(operator, node.number())["items"][0]
    assert (first["state"], first["attempts"]) == ("delayed", 1)
    assert first["due_at"] is not None


def test_segments_come_and_go_behind_a_page(database, operator):
    with StoreNode(database, segment_rows=5) as node:
        node.send(*[b"%d" % n for n in range(23)])
        node.does(c.Attach(1, 7, "queue/orders", credit=30))
        node.does(c.Settle(1, 7, [2, 4, 6, 20]))
        number = node.number()
        assert texts(operator, number) == [str(n) for n in range(23) if n not in (1, 3, 5, 19)]
        assert texts(operator, number, "?selector=JMSPriority%3D4&limit=1000") == [str(n) for n in range(23) if n not in (1, 3, 5, 19)]


def test_what_is_spilled_and_what_is_in_memory_is_one_page(database, operator):
    with StoreNode(database, memory_octets=4_000, window_rows=10, page_rows=5, page_octets=500) as node:
        node.send(*[b"%d" % n + b"." * 100 for n in range(60)], level=EXPRESS)
        items = listed(operator, node.number(), "?limit=1000")["items"]
        assert [item["key"] for item in items] == [f"14-{n}" for n in range(60)]
        assert node.engine.shard.memory < 5_000
        shown = texts(operator, node.number(), "?limit=3&order=newest")
        assert [text.split(".")[0] for text in shown] == ["59", "58", "57"]


# -- filters ------------------------------------------------------------------------------------------------------------------------------
def test_messages_are_found_by_what_is_in_them(node, operator):
    node.send(b'{"order": {"id": 7}}', colour="red", content__type="application/json")
    node.send(b"the text", colour="blue", JMSXGroupID="g")
    node.send(b"volatile text", colour="red", level=EXPRESS)
    number = node.number()
    for query, found in (
        ("selector=colour%3D'red'", ["4-0", "14-0"]),
        ("text=text", ["4-1", "14-0"]),
        ("text=colour:blue", ["4-1"]),
        ("json_path=order.id&json_value=7", ["4-0"]),
        ("json_path=order.id&json_value=%227%22", []),
        ("group=g", ["4-1"]),
        ("age_max_ms=100000", ["4-0", "4-1", "14-0"]),
        ("age_min_ms=100000", []),
        ("accepted_from=2020-01-01T00:00:00Z&age_max_ms=100000", ["4-0", "4-1", "14-0"]),
        ("accepted_to=2020-01-01T00:00:00Z", []),
        ("attempts_min=1", []),
    ):
        page = listed(operator, number, f"?{query}")
        assert [item["key"] for item in page["items"]] == found, query
        assert (page["looked_at"], page["complete"]) == (3, True)
    identifier = listed(operator, number)["items"][1]["message_id"]
    assert [item["key"] for item in listed(operator, number, f"?message_id={identifier}")["items"]] == ["4-1"]


def test_a_map_of_amqp_is_found_as_json(node, operator):
    from broker_core.amqp.encoding import encode
    from broker_core.amqp.types import Described, ULong

    body = encode(Described(ULong(0x77), {"order": 7}))
    node.send(body, header=Header(b"", encoding=Encoding.AMQP, reliability=4))
    number = node.number()
    assert len(listed(operator, number, "?json_path=order&json_value=7")["items"]) == 1
    shown = call(operator, "GET", f"destinations/{number}/messages/4-0").document
    assert (shown["protocol"], shown["body"]["kind"], shown["body"]["value"]) == ("amqp", "map", {"order": 7})


def test_a_filtered_page_stops_and_goes_on(node, operator, monkeypatch):
    node.send(*[b"%d" % n for n in range(50)], level=EXPRESS)
    node.send(*[b"%d" % n for n in range(50)])
    monkeypatch.setattr(page, "SECONDS", 0.0)
    monkeypatch.setattr(page, "ROWS", 10)
    found, after, pages = [], "", 0
    while after is not None:
        shown = listed(operator, node.number(), f"?selector=JMSPriority%3D4{after and f'&after={after}'}")
        found += [item["key"] for item in shown["items"]]
        assert shown["complete"] == (shown["next"] is None)
        after, pages = shown["next"], pages + 1
    assert found == [f"4-{n}" for n in range(50)] + [f"14-{n}" for n in range(50)]
    assert pages > 2


def test_the_number_of_queries_of_a_page_does_not_depend_on_it(node, operator):
    node.send(*[b"%d" % n for n in range(40)])
    number = node.number()
    counts = set()
    for query in ("?limit=1", "?limit=40", "?order=newest&limit=20"):
        with CaptureQueriesContext(connection) as queries:
            listed(operator, number, query)
        counts.add(len([each for each in queries if "SELECT coalesce" not in each["sql"] and "answered_at IS NOT NULL" not in each["sql"]]))
        assert any("message_0_1" in each["sql"] for each in queries)
    assert len(counts) == 1
    assert counts.pop() <= 17


# -- one message --------------------------------------------------------------------------------------------------------------------------
def test_one_message_is_shown_whole(node, operator):
    node.send(b'{"a": [1, 2]}', colour="red", content__type="application/json", correlation__id="c1", priority=7)
    shown = call(operator, "GET", f"destinations/{node.number()}/messages/7-0").document
    assert shown["properties"] == {"colour": "red"}
    assert shown["headers"] == {"content-type": "application/json", "correlation-id": "c1"}
    assert shown["body"] == {
        "kind": "map", "content_type": "application/json", "size": 13, "text": '{"a": [1, 2]}', "value": {"a": [1, 2]}, "hex": None, "truncated": False,
    }  # fmt: skip
    problem(call(operator, "GET", f"destinations/{node.number()}/messages/7-1"), 404, "not-found")


def test_octets_are_shown_in_hex_and_downloaded_as_they_are(node, operator):
    node.send(bytes(range(256)) * 8, level=EXPRESS)
    number = node.number()
    shown = call(operator, "GET", f"destinations/{number}/messages/14-0").document["body"]
    assert (shown["kind"], shown["size"], shown["truncated"]) == ("bytes", 2048, True)
    assert shown["hex"].startswith("000102")
    response = call(operator, "GET", f"destinations/{number}/messages/14-0/body")
    assert b"".join(response.streaming_content) == bytes(range(256)) * 8
    assert response["Content-Disposition"] == 'attachment; filename="message-14-0.bin"'
    assert response["Content-Type"] == "application/octet-stream"
    assert response["X-Content-Type-Options"] == "nosniff"


def test_a_large_body_is_cut_and_downloaded_in_chunks(node, operator):
    chunks = [b"a" * (1 << 20), b"b" * 1000]
    node.send(StoredBody(node.large(*chunks), (1 << 20) + 1000), content__type="text/html")
    number = node.number()
    shown = call(operator, "GET", f"destinations/{number}/messages/4-0").document["body"]
    assert (shown["kind"], shown["size"], shown["truncated"]) == ("text", (1 << 20) + 1000, True)
    assert shown["text"] == "a" * (64 << 10)
    response = call(operator, "GET", f"destinations/{number}/messages/4-0/body")
    assert response["Content-Type"] == "text/plain", "no browser runs it"
    assert b"".join(response.streaming_content) == b"".join(chunks)


# -- sending ------------------------------------------------------------------------------------------------------------------------------
def test_what_cannot_be_sent_is_said_and_nothing_is_sent(node, operator):
    node.send(b"a")
    number = node.number()
    for body, words in (
        ({"text": "a", "json": 1}, "Give one of"),
        ({"base64": "?"}, "base64"),
        ({"properties": {"a": []}}, "must be a text"),
        ({"properties": {"destination": "x"}}, "is the broker's"),
        ({"priority": 10}, "priority"),
        ({"group_sequence": 1}, "group_id is not"),
        ({"text": "a", "colour": "red"}, "There is no such member"),
    ):
        assert words in problem(call(operator, "POST", f"destinations/{number}/messages", body), 400, "invalid"), body
    dead = node.number(DEAD)
    assert "belongs to the broker" in problem(call(operator, "POST", f"destinations/{dead}/messages", {"text": "a"}), 400, "invalid")
    assert node.depth() == 1


def test_a_message_is_sent_once_with_all_that_it_says(node, operator):
    node.send(b"a")
    number = node.number()
    body = {
        "json": {"order": 7}, "properties": {"count": 3, "urgent": True, "colour": "red"}, "persistent": True, "priority": 7, "correlation_id": "c1",
        "type": "order", "group_id": "g", "ttl_ms": 60_000,
    }  # fmt: skip
    for _ in range(2):
        sent = call(operator, "POST", f"destinations/{number}/messages", body, Idempotency_Key="once")
        assert sent.status_code == 201
    awaited(node, 2)
    shown = call(operator, "GET", f"destinations/{number}/messages/7-0").document
    assert shown["message_id"] == sent.document["message_id"]
    assert shown["body"]["value"] == {"order": 7}
    assert shown["properties"] == {"count": "3", "urgent": "true", "colour": "red"}
    assert shown["headers"]["property-types"] == "count=int,urgent=bool"
    assert (shown["headers"]["type"], shown["persistent"]) == ("order", True)
    assert node.depth() == 2
    (entry, *_) = call(operator, "GET", "audit").document["items"]
    assert (entry["what"], entry["address"]) == ("send", "queue/orders")


def test_a_message_is_edited_and_sent_again(node, operator):
    node.send(b"wrong", colour="red", size="1", content__type="text/plain", priority=6)
    number = node.number()
    reference = {"destination": number, "message": "6-0"}
    sent = call(operator, "POST", f"destinations/{number}/messages", {"from_message": reference, "text": "right", "properties": {"size": None, "new": 1}})
    assert sent.status_code == 201
    awaited(node, 2)
    shown = call(operator, "GET", f"destinations/{number}/messages/6-1").document
    assert (shown["body"]["text"], shown["properties"]) == ("right", {"colour": "red", "new": "1"})
    problem(call(operator, "POST", f"destinations/{number}/messages", {"from_message": {"destination": number, "message": "6-9"}}), 404, "not-found")


# -- files --------------------------------------------------------------------------------------------------------------------------------
def lines_of(response):
    return [json.loads(line) for line in b"".join(response.streaming_content).splitlines()]


def test_what_was_exported_is_imported_as_it_was(node, operator):
    node.send(b"one", colour="red", correlation__id="c")
    node.send(bytes([0, 255]), priority=8)
    node.send(b"two", level=EXPRESS)
    node.send(b"x", address="queue/copies")
    number, copies = node.number(), node.number("queue/copies")
    exported = call(operator, "GET", f"destinations/{number}/messages/export?selector=JMSPriority%20%3C%209")
    raw = b"".join(exported.streaming_content)
    lines = [json.loads(line) for line in raw.splitlines()]
    assert [line.get("text", line.get("base64")) for line in lines] == [base64.b64encode(bytes([0, 255])).decode(), "one", "two"]
    response = operator.post(f"/api/v1/destinations/{copies}/messages/import", raw, "application/x-ndjson")
    assert response.json() == {"sent": 3}
    awaited(node, 4, "queue/copies")
    again = lines_of(call(operator, "GET", f"destinations/{copies}/messages/export"))
    known = {"key", "message_id", "accepted_at"}
    assert [{k: v for k, v in line.items() if k not in known} for line in again if line.get("text") != "x"] == [
        {k: v for k, v in line.items() if k not in known} for line in lines
    ]


def test_what_would_expire_still_does_when_it_was_exported_or_sent_again_and_its_encoding_stays(node, operator):
    node.send(b"mortal", expires=node.now + 3_600_000, content__encoding="gzip")
    node.send(b"immortal")
    number = node.number()
    first, second = lines_of(call(operator, "GET", f"destinations/{number}/messages/export"))
    assert 3_500_000 < first["ttl_ms"] <= 3_600_000 and first["content_encoding"] == "gzip"
    assert not {"ttl_ms", "content_encoding"} & second.keys()
    imported = operator.post(f"/api/v1/destinations/{number}/messages/import", json.dumps(first), "application/x-ndjson")
    again = {"from_message": {"destination": number, "message": "4-0"}}
    changes: list[dict[str, object]] = [{}, {"text": "new"}, {"ttl_ms": 5_000_000}]
    answers = [imported, *(call(operator, "POST", f"destinations/{number}/messages", again | change) for change in changes)]
    assert [answer.status_code for answer in answers] == [201] * 4
    awaited(node, 6)
    lines = lines_of(call(operator, "GET", f"destinations/{number}/messages/export"))[2:]
    assert [3_500_000 < line["ttl_ms"] <= 3_600_000 for line in lines] == [True, True, True, False]
    assert [line.get("content_encoding") for line in lines] == ["gzip", "gzip", None, "gzip"]


def test_a_dead_message_is_exported_with_its_own_end_and_not_that_of_the_dead_message_queue(node, operator):
    for body, expires in (b"mortal", node.now + 3_600_000), (b"immortal", 0):
        node.send(body, expires=expires)
    node.does(c.Attach(1, 9, "queue/orders", credit=2, replenish=False))
    node.does(c.Settle(1, 9, upto=2, outcome=Outcome.REJECTED), c.Detach(1, 9))
    mortal, immortal = lines_of(call(operator, "GET", f"destinations/{node.number(DEAD)}/messages/export"))
    assert 3_500_000 < mortal["ttl_ms"] <= 3_600_000 and "ttl_ms" not in immortal


def test_an_export_has_all_there_is_unless_it_is_told_how_many(node, operator):
    node.send(*[b"x"] * 1_001)
    exported = [lines_of(call(operator, "GET", f"destinations/{node.number()}/messages/export{query}")) for query in ("", "?limit=150")]
    assert list(map(len, exported)) == [1_001, 150]


def test_of_lines_that_cannot_be_sent_all_are_named_and_none_is_sent(node, operator):
    node.send(b"x")
    number = node.number()
    bad = ["no json", "[]", '{"priority": 77}', '{"left_out": "large"}', '{"text": "a", "text": "b"}']
    lines = ['{"text": "good"}', *bad, '{"properties": {"destination": "x"}}']
    response = operator.post(f"/api/v1/destinations/{number}/messages/import", "\n".join(lines), "application/x-ndjson")
    assert response.status_code == 400
    assert [error["field"] for error in response.json()["errors"]] == ["line 2", "line 3", "line 4", "line 5", "line 6"]
    response = operator.post(f"/api/v1/destinations/{number}/messages/import", "\n".join([lines[0], lines[-1]]), "application/x-ndjson")
    assert response.json()["errors"] == [{"field": "line 2", "message": "header 'destination' is the broker's to state, or is said by an argument of its own"}]
    assert node.depth() == 1


# -- dead messages ------------------------------------------------------------------------------------------------------------------------
def test_dead_messages_are_counted_by_reason_and_origin(node, operator):
    for address, count in (("queue/orders", 3), ("queue/invoices", 2)):
        node.send(*[b"%d" % n for n in range(count)], address=address, expires=node.now + 10)
    node.send(b"r")
    node.does(c.Attach(1, 7, "queue/orders", credit=9))
    node.does(c.Settle(1, 7, [4], outcome=Outcome.REJECTED))
    node.does(c.Detach(1, 7))
    node.passes(1000)
    node.does(c.Control(1_000_000, "expire"))
    number = node.number(DEAD)
    found = call(operator, "GET", f"destinations/{number}/messages/dead").document
    assert [(group["reason"], group["origin"], group["count"]) for group in found["items"]][:2] == [
        ("EXPIRED", "queue/orders", 3), ("EXPIRED", "queue/invoices", 2),
    ]  # fmt: skip
    assert found["items"][2]["error"] == "the consumer rejected the message"
    assert (found["complete"], found["looked_at"]) == (True, node.depth(DEAD))
    items = listed(operator, number, "?origin=queue/invoices&reason=EXPIRED")["items"]
    assert len(items) == 2
    assert (items[0]["dead"]["reason"], items[0]["dead"]["origin"], items[0]["dead"]["deliveries"]) == ("EXPIRED", "queue/invoices", 0)
    assert FAILURES in call(operator, "GET", f"destinations/{number}/messages/{items[0]['key']}").document["added"]


def test_a_stranger_is_asked_who_he_is(node, stranger):
    node.send(b"a")
    assert call(stranger, "GET", f"destinations/{node.number()}/messages").status_code == 401
    assert User.objects.count() == 1
