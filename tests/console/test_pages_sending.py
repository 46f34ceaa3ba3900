"""Pages on which messages are sent, sent again perhaps edited, and brought in: a real engine over a real store."""

import json
import re
from html import unescape

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from tests.console import facts
from tests.console.api import granted, logged_in, person
from tests.console.message_pages import DEAD, FORM, awaited, dead_from, keys, path, text_of

pytestmark = pytest.mark.usefixtures("unhurried")


def test_a_message_is_sent_with_typed_properties(node, operator):
    node.send(b"first")
    response = operator.post(path(node, "/send"), {**FORM, "properties": 'count=7\nurgent=true\nname="8"\nplain=x=y', "priority": "6", "type": "order"})
    assert response["Location"] == path(node)
    awaited(node, 2)
    shown = text_of(operator.get(path(node, "/6-0")))
    for words in ("count 7", "urgent true", 'name "8"', 'plain "x=y"', "type order", "hello"):
        assert words in shown


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"properties": "nothing"}, "write name=value"),
        ({"priority": "12"}, "from 0 to 9"),
        ({"delay": "soon"}, "The delay is like"),
        ({"reliability": "sometimes"}, "The reliability is one of"),
        ({"content_type": "application/json", "body": "{"}, "The body is no JSON"),
        ({"destination": "nowhere"}, "nowhere"),
    ],
)
def test_what_cannot_be_sent_is_told_and_what_was_typed_stays(database, operator, changed, words):
    facts.destination(database, 1, "queue/orders")
    page = operator.post("/destinations/1/messages/send", {**FORM, **changed})
    assert words in text_of(page, 400)
    assert "hello" in page.content.decode() or "body" in changed
    assert facts.rows(database, "SELECT * FROM surety.inbox") == []


def test_one_is_edited_sent_again_and_then_deleted(node, operator):
    dead_from(node, b"wrong")
    number = node.number(DEAD)
    key = keys(operator.get(f"/destinations/{number}/messages"))[0]
    form = operator.get(f"/destinations/{number}/messages/send?from={key}").content.decode()
    assert 'value="queue/orders"' in form, "where it died"
    assert ">\nwrong</textarea>" in form
    operator.post(f"/destinations/{number}/messages/send?from={key}", {**FORM, "body": "right", "remove": "1"})
    awaited(node, 1)
    assert node.depth(DEAD) == 0
    assert "right" in text_of(operator.get(path(node, keys(operator.get(path(node)))[0].join(("/", "")))))


@pytest.mark.parametrize(("way", "form"), [("/send", FORM), ("/import", {"lines": SimpleUploadedFile("a.ndjson", b'{"text": "a"}')})])
def test_who_may_send_and_not_look_is_told_that_it_was_sent(way, form, node):
    node.send(b"first")
    sender = person("sender", role="restricted")
    granted(sender, "queue/orders", "metrics", "send")
    client = logged_in(sender)
    page = client.post(path(node, way), form, follow=True)
    awaited(node, 2)
    assert [each[0] for each in page.redirect_chain] == [f"/destinations/{node.number()}"]
    assert "sent to queue/orders" in text_of(page).lower()


@pytest.mark.parametrize("body", [b"a\r\nb", b"\n\nfirst", b"a\rb\n", b""])
def test_a_body_that_nobody_touched_is_sent_as_it_is(node, operator, body):
    node.send(body)
    form = operator.get(path(node, "/send?from=4-0")).content.decode()
    shown = unescape(re.search(r'<textarea id="body"[^>]*>\n(.*?)</textarea>', form, re.DOTALL)[1])
    typed = re.sub("\r\n|\r|\n", "\r\n", shown)  # as browsers do
    operator.post(path(node, "/send?from=4-0"), {**FORM, "body": typed, "priority": "6", "content_type": "text/plain"})
    awaited(node, 2)
    assert b"".join(operator.get(f"/api/v1{path(node, '/6-0')}/body").streaming_content) == body
    assert "text/plain" in text_of(operator.get(path(node, "/6-0")))


def test_a_body_typed_in_place_of_another_is_not_said_to_be_encoded_as_that_one(node, operator):
    node.send(b"\x1f\x8b", content__encoding="gzip")
    for typed in ({"keep_body": "1"}, {"body": "plain"}):
        operator.post(path(node, "/send?from=4-0"), {**FORM, **typed})
    awaited(node, 3)
    lines = b"".join(operator.get(f"/api/v1{path(node)}/export").streaming_content).splitlines()
    assert [json.loads(line).get("content_encoding") for line in lines] == ["gzip", "gzip", None]


def test_the_form_has_what_is_left_of_a_time_to_live_and_what_is_taken_out_of_it_is_gone(node, operator):
    node.send(b"a", expires=node.now + 3_600_000)
    left = re.search(r'name="ttl"[^>]* value="([0-9]+) s"', operator.get(path(node, "/send?from=4-0")).content.decode())[1]
    assert 3_500 < int(left) <= 3_600
    for ttl in (f"{left} s", ""):
        operator.post(path(node, "/send?from=4-0"), {**FORM, "ttl": ttl})
    awaited(node, 3)
    expire = [each["expires_at"] is not None for each in operator.get(f"/api/v1{path(node)}").json()["items"]]
    assert expire == [True, True, False]


def test_what_has_no_body_any_more_is_not_sent_again_without_one(node, operator, monkeypatch):
    from broker_core.viewing import rendering

    node.send(b"a")
    monkeypatch.setattr(rendering, "content_of", lambda message: None)
    shown = operator.get(path(node, "/4-0"))
    assert "not to be had any more" in text_of(shown)
    assert "Edit and send again" not in text_of(shown)
    assert "no body any more" in text_of(operator.get(path(node, "/send?from=4-0")), 404)


def test_what_was_exported_can_be_brought_in(node, operator):
    node.send(b"a", b"b", colour="red")
    page = operator.get(path(node, "?selector=colour%3D'red'&accepted_from=2020-01-01T00:00")).content.decode()
    link = re.search(r'href="(/api/v1/[^"]+export[^"]*)"', page)[1]
    lines = b"".join(operator.get(unescape(link)).streaming_content)
    assert operator.post(path(node, "/import"), {"lines": SimpleUploadedFile("a.ndjson", lines)})["Location"] == path(node)
    awaited(node, 4)
    wrong = operator.post(path(node, "/import"), {"lines": SimpleUploadedFile("a.ndjson", lines + b"no json\n")})
    assert "line 3" in text_of(wrong, 400)
    assert "Choose a file" in text_of(operator.post(path(node, "/import"), {}), 400)
