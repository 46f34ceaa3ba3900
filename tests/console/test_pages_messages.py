"""Pages of messages: a real engine over a real store, browsed and searched."""

import re
import time
from html import unescape

import pytest
from django.test import override_settings

from broker_core.engine import commands as c
from console.pages.bodies import pretty_xml
from tests.console import facts
from tests.console.api import granted, logged_in, person
from tests.console.message_pages import keys, path, text_of

pytestmark = pytest.mark.usefixtures("unhurried")


# -- looking ------------------------------------------------------------------------------------------------------------------------------
@override_settings(LOOK_WAIT_SECONDS=0.01)
def test_without_a_node_what_it_holds_is_unknown(database, operator):
    facts.destination(database, 1, "queue/orders")
    assert "only a node knows" in text_of(operator.get("/destinations/1/messages"), 503)


def test_who_may_not_look_is_refused_and_offered_nothing(database, viewer):
    facts.destination(database, 1, "queue/orders", depth=3)
    from console.models import Grant

    Grant.objects.filter(role="viewer").update(verbs=["metrics"])
    assert viewer.get("/destinations/1/messages").status_code == 403
    assert 'href="/messages"' not in viewer.get("/destinations").content.decode()


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("?selector=colour%20%3D", "olumn 9"),
        ("?age_min=soon", "An age is like"),
        ("?accepted_from=then", "An instant is like"),
        ("?attempts_min=-1", "a whole number"),
        ("?json_path=a..b&json_value=1", "json_path"),
        ("?origin=nowhere", "queue/NAME"),
        ("?jump=first", "is like 4-123"),
        ("?subscription=mine", "Messages of"),
    ],
)
def test_what_cannot_be_looked_for_is_told_beside_its_field(database, operator, query, words):
    facts.destination(database, 1, "queue/orders")
    page = operator.get(f"/destinations/1/messages{query}")
    assert words in text_of(page, 400) or words in page.content.decode()
    assert facts.rows(database, "SELECT * FROM surety.control_request") == []


def test_a_page_goes_on_where_the_one_before_ended(node, operator):
    node.send(*[b"%d" % number for number in range(120)])
    first = operator.get(path(node))
    assert (len(keys(first)), keys(first)[0]) == (50, "4-0")
    assert "50 shown, of 120 messages" in text_of(first)
    following = re.search(r'rel="next" href="([^"]+)"', first.content.decode())[1]
    assert keys(operator.get(unescape(following)))[0] == "4-50"
    assert keys(operator.get(path(node, "?jump=4-117"))) == ["4-117", "4-118", "4-119"]
    assert keys(operator.get(path(node, "?order=newest")))[:2] == ["4-119", "4-118"]


def test_a_search_tells_how_far_it_looked(node, operator):
    node.send(b'{"order": {"id": 7}}', b"other", colour="red")
    node.send(b"blue one", colour="blue")
    assert "1 found in the 3 looked at, of 3 messages. That is all." in text_of(operator.get(path(node, "?json_path=order.id&json_value=7")))
    assert keys(operator.get(path(node, "?selector=colour%3D'red'"))) == ["4-0", "4-1"]
    assert keys(operator.get(path(node, "?text=blue+one"))) == ["4-2"]
    assert keys(operator.get(path(node, "?age_min=1+h"))) == []
    assert keys(operator.get(path(node, "?accepted_from=2020-01-01T00:00"))) == ["4-0", "4-1", "4-2"]
    assert keys(operator.get(path(node, "?accepted_from=2099-01-01T00:00&age_max=1+h"))) == [], "all that is given must be true"
    assert "nothing is between them" in text_of(operator.get(path(node, "?accepted_from=2020-01-01T00:00&accepted_to=2019-01-01T00:00")), 400)


def test_states_say_who_has_a_message(node, operator):
    node.send(b"a", b"b", b"c")
    node.does(c.Attach(1, 7, "queue/orders", credit=2, replenish=False))
    node.does(c.Begin(1, b"t"), c.Transacted(1, b"t", c.Settle(1, 7, [2])))
    node.passes(1000)
    page = text_of(operator.get(path(node)))
    assert "with a consumer 7 of guest" in page
    assert "reserved transaction 1" in page
    assert "ready" in page


def test_a_selector_is_checked_while_it_is_typed(operator):
    assert "olumn 9" in text_of(operator.get("/messages/selector?selector=colour%20%3D"))
    assert "This is a selector." in text_of(operator.get("/messages/selector?selector=colour%20IS%20NULL"))


def test_bodies_are_shown_as_what_they_are(node, operator):
    node.send(b'{"a":[1,2]}', b"<a><b>x</b><c/></a>", b"\xff\xfe\x00", b"plain <b>", b"y" * 100_000)
    pages_shown = [operator.get(path(node, f"/4-{number}")).content.decode() for number in range(5)]
    assert "&quot;a&quot;: [\n" in pages_shown[0]
    assert "&lt;a&gt;\n  &lt;b&gt;x&lt;/b&gt;\n  &lt;c/&gt;\n&lt;/a&gt;" in pages_shown[1]
    assert "00000000  ff fe 00" in pages_shown[2]
    assert "plain &lt;b&gt;" in pages_shown[3]
    assert "There is more than is shown." in pages_shown[4]
    assert f"/api/v1/destinations/{node.number()}/messages/4-4/body" in pages_shown[4]
    assert len(pages_shown[4]) < 100_000


def test_a_body_that_is_shown_indented_is_shown_as_it_came_too(node, operator):
    node.send(b'{"a":1,"a":2,"b":1.10}', b"<a><!-- > --><![CDATA[<b>]]></a>", b"text" * 1000)
    pages_shown = [unescape(operator.get(path(node, f"/4-{number}")).content.decode()) for number in range(3)]
    assert '"a": 2' in pages_shown[0]
    assert ">\n" + '{"a":1,"a":2,"b":1.10}</pre>' in pages_shown[0]
    assert "<a>\n  <!-- > -->\n  <![CDATA[<b>]]>\n</a></pre>" in pages_shown[1]
    assert "<a><!-- > --><![CDATA[<b>]]></a></pre>" in pages_shown[1]
    assert "00000000  3c 61 3e" in pages_shown[1]
    assert "As it came" not in pages_shown[2]
    assert "the first 1.0 KiB" in pages_shown[2]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<?xml version='1.0'?><!DOCTYPE a><a/>", "<?xml version='1.0'?>\n<!DOCTYPE a>\n<a/>"),
        ('<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', ""),
        ("<a>x<!-- b --></a>", "<a>\n  x\n  <!-- b -->\n</a>"),
        ("<!--" * 15_000 + "<a>", ""),
        ("<a><![CDATA[" * 5_000 + ">", ""),
        ("<!DOCTYPE" * 7_281 + ">", "<!DOCTYPE" * 7_281 + ">"),
        ("<a></a></a>", ""),
    ],
)
def test_xml_is_indented_where_its_tags_say_all(text, shown):
    began = time.monotonic()
    assert pretty_xml(text) == shown
    assert time.monotonic() - began < 1


@pytest.mark.parametrize("body", [b'{"a": "\\ud800"}', b"[1e999]", b"[" * 880 + b"]" * 880])
def test_a_body_in_json_that_json_cannot_say_again_is_shown_as_it_is(body, node, operator):
    node.send(body)
    assert body.decode()[:40] in text_of(operator.get(path(node, "/4-0")))
    assert operator.get(f"/api/v1{path(node, '/4-0')}").status_code == 200


def test_who_may_not_read_bodies_sees_the_rest(node):
    node.send(b"secret", colour="red")
    reader = person("rita", role="restricted")
    granted(reader, "queue/orders", "metrics", "browse_headers")
    client = logged_in(reader)
    page = client.get(path(node, "/4-0")).content.decode()
    assert "You may not read bodies here." in page
    assert "colour" in page
    assert "secret" not in page
    assert not any(word in page for word in ("Delete", "Move", "Edit and send"))
    assert client.get(path(node, "?text=secret")).status_code == 403
    assert client.post(path(node, "/act"), {"verb": "delete", "m": "4-0", "typed": "queue/orders"}).status_code == 403


def test_a_message_that_is_gone_is_said_to_be(node, operator):
    node.send(b"a")
    assert "There is no such message any more" in text_of(operator.get(path(node, "/4-7")), 404)
    assert operator.get(path(node, "/33-7")).status_code == 404


# -- topics -------------------------------------------------------------------------------------------------------------------------------
def test_a_topic_shows_its_subscriptions_and_each_of_them_its_messages(node, operator):
    node.does(c.Attach(1, 5, "topic/prices", name="desk", durable=True))
    node.send(b"7", address="topic/prices")
    page = operator.get(path(node, "", "topic/prices"))
    link = re.search(r'href="([^"]+\?subscription=[0-9]+)">desk', page.content.decode())[1]
    assert keys(operator.get(link)) == ["4-0"]
