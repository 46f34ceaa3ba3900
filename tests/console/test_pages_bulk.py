"""What operators do on the pages of messages, with some or all of them: a real engine over a real store."""

import re
from datetime import UTC, datetime
from html import unescape

import pytest
from django.test import override_settings

from broker_core.engine import commands as c
from broker_core.engine.outcome import Outcome
from console.pages.message_search import standing
from console.selectors import operations
from tests.console import facts
from tests.console.api import call, granted, logged_in, person
from tests.console.message_pages import DEAD, dead_from, keys, path, text_of

pytestmark = pytest.mark.usefixtures("unhurried")


def test_what_is_picked_is_moved_and_told_one_by_one(node, operator):
    node.send(b"a", b"b", b"c")
    node.send(b"x", address="queue/other")
    asked = operator.get(path(node, "/act?verb=move&m=4-0&m=4-2"))
    assert "Move 2 messages" in text_of(asked)
    assert facts.rows(node.dsn, "SELECT * FROM surety.audit") == [], "looking does nothing"
    done = operator.post(path(node, "/act"), {"verb": "move", "m": ["4-0", "4-2"], "destination": "/queue/other"}, follow=True)
    assert "4-0 moved 4-2 moved" in text_of(done)
    assert (node.depth(), node.depth("queue/other")) == (1, 3)


def test_what_was_left_alone_is_not_called_done_though_it_has_gone_since(node, operator):
    node.send(b"a", b"b")
    node.does(c.Attach(1, 7, "queue/orders", credit=1, replenish=False))
    ended = operator.post(path(node, "/act"), {"verb": "delete", "m": ["4-0", "4-1"], "typed": "queue/orders"}, follow=True)
    assert "4-0 left alone a consumer has it, or a transaction 4-1 deleted" in text_of(ended)
    node.does(c.Settle(1, 7, [1]))
    shown = operator.get(ended.redirect_chain[-1][0])
    assert "4-0 left alone a consumer has it, or a transaction 4-1 deleted" in text_of(shown)


def test_of_what_was_picked_each_that_stayed_is_told_with_the_reason_by_the_api_and_its_page(node, operator):
    node.send(b"a", b"b", b"c")
    node.send(b"x", address="queue/other")
    number, other = node.number(), node.number("queue/other")
    call(operator, "PATCH", f"destinations/{other}", {"settings": {"max_messages": 2, "limit_behavior": "REJECT_NEWEST"}})
    call(operator, "POST", f"destinations/{number}/operations", {"verb": "delete", "messages": ["4-1"]})
    asked = {"verb": "move", "destination": "queue/other", "messages": ["4-2", "4-1", "4-0"]}
    begun = call(operator, "POST", f"destinations/{number}/operations", asked).document["number"]
    told = call(operator, "GET", f"operations/{begun}").document["results"]
    why = "queue/other holds as much as it may"
    assert told == [
        {"message": "4-2", "result": "failed", "why": why}, {"message": "4-1", "result": "gone", "why": "it was not there any more"},
        {"message": "4-0", "result": "done", "why": ""},
    ]  # fmt: skip
    shown = operator.get(f"/operations/{begun}")
    assert f"4-2 failed {why} 4-1 gone before it was not there any more 4-0 moved" in text_of(shown)
    assert f'href="/destinations/{number}/messages/4-2"' in shown.content.decode(), "it is there to be looked at"


def test_of_what_a_search_found_those_that_failed_are_told(node, operator):
    node.send(b"a", b"b")
    begun = call(operator, "POST", f"destinations/{node.number()}/operations", {"verb": "retry"}).document["number"]
    why = "a message that has not died has nowhere to go back to"
    told = call(operator, "GET", f"operations/{begun}").document["results"]
    assert told == [{"message": key, "result": "failed", "why": why} for key in ("4-0", "4-1")]
    assert f"Those that failed Message Result 4-0 failed {why} 4-1 failed" in text_of(operator.get(f"/operations/{begun}"))


def test_all_that_a_search_finds_is_counted_and_then_no_more_than_that_is_done(node, operator):
    node.send(b"a", b"b", colour="red")
    node.send(b"c", colour="blue")
    address = path(node, "/act?selector=colour%3D'red'")
    counted = operator.post(address, {"verb": "delete"})
    page = text_of(operator.get(counted["Location"]))
    assert "2 messages , of 3 looked at" in page
    assert "Delete 2 messages" in page
    assert node.depth() == 3
    node.send(b"later", colour="red")
    wrong = operator.post(counted["Location"], {"verb": "delete", "typed": "queue/other"})
    assert "Type queue/orders" in text_of(wrong, 400)
    assert node.depth() == 4
    shown = operator.post(counted["Location"], {"verb": "delete", "typed": "queue/orders"}, follow=True)
    assert node.depth() == 2, "what came later was not agreed to"
    assert "done" in text_of(shown)


@pytest.mark.parametrize("condition", ["age_min", "accepted_to"])
def test_what_was_counted_is_what_is_meant_however_late_the_button_is_pressed(node, operator, condition):
    node.send(b"a")
    typed = "0 s" if condition == "age_min" else f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}"
    counted = operator.post(path(node, "/act"), {}, query_params={condition: typed, "verb": "delete"})["Location"]
    assert "Delete 1 message" in text_of(operator.get(counted))
    node.does(c.Attach(1, 7, "queue/orders", credit=1, replenish=False), c.Settle(1, 7, [1]), c.Detach(1, 7))
    node.passes(600_000)
    node.send(b"later")
    node.passes(600_000)
    operator.post(counted, {"verb": "delete", "typed": "queue/orders"})
    assert node.depth() == 1, "it came when the search was over"


def test_an_age_means_an_instant_once_it_was_counted():
    assert standing({"age_min_ms": 300, "text": "a"}, 1000) == {"accepted_to": 701, "text": "a"}
    assert standing({"age_max_ms": 300}, 1000) == {"accepted_from": 700}
    assert standing({"age_max_ms": 300, "accepted_from": 900}, 1000) == {"accepted_from": 900}
    assert standing({"age_min_ms": 300, "accepted_to": 900}, 1000) == {"accepted_to": 701}
    assert standing({"age_max_ms": (1 << 53) - 1}, 1000) == {"accepted_from": 0}


def test_nobody_does_what_somebody_else_counted(node, operator, viewer):
    from console.models import Grant

    node.send(b"a")
    counted = operator.post(path(node, "/act"), {"verb": "delete"})["Location"]
    Grant.objects.filter(role="viewer").update(verbs=["metrics", "browse_headers", "delete"])
    assert viewer.get(counted).status_code == 404


def test_nothing_ticked_does_not_mean_everything(node, operator):
    node.send(b"a")
    back = operator.get(path(node, "/act?picked=1&verb=delete"))
    assert back["Location"] == path(node)
    assert "Tick the messages" in text_of(operator.get(path(node)))


def test_where_there_is_no_such_destination_nothing_is_moved(node, operator):
    node.send(b"a")
    assert "queue/nowhere" in text_of(operator.post(path(node, "/act"), {"verb": "move", "m": "4-0", "destination": "queue/nowhere"}), 400)
    assert node.depth() == 1


def test_dead_ones_go_back_to_where_they_died(node, operator):
    dead_from(node, b"a", b"b")
    page = operator.get(path(node, address=DEAD))
    assert "undeliverable queue/orders" in text_of(page)
    first = keys(page)[0]
    assert "Died in queue/orders" in text_of(operator.get(path(node, f"/{first}", DEAD)))
    operator.post(path(node, "/act", DEAD), {"verb": "retry", "m": keys(page)})
    assert (node.depth(), node.depth(DEAD)) == (2, 0)


def test_a_group_of_dead_messages_is_dealt_with_whole_and_the_others_stay(node, operator):
    dead_from(node, b"a", b"b")
    node.send(b"another", address="queue/other")
    node.does(c.Attach(1, 8, "queue/other", credit=1, replenish=False))
    node.does(c.Settle(1, 8, [1], outcome=Outcome.REJECTED), c.Detach(1, 8))
    page = operator.get(f"/destinations/{node.number(DEAD)}/dead").content.decode()
    assert "All 3 messages here" in page
    links = [unescape(link) for link in re.findall(r'href="([^"]+/act\?[^"]*verb=(?:retry|move|delete))"', page) if "orders" in link]
    assert [link.partition("verb=")[2] for link in links] == ["retry", "move", "delete"]
    counted = operator.post(links[2], {"verb": "delete"})
    assert "Delete 2 messages" in text_of(operator.get(counted["Location"]))
    operator.post(counted["Location"], {"verb": "delete", "typed": DEAD})
    assert node.depth(DEAD) == 1


def test_how_many_all_are_is_said_where_it_is_known(node, operator):
    node.send(*[b"%d" % number for number in range(60)], colour="red")
    node.send(b"blue one", colour="blue")
    assert "All 61 messages here" in text_of(operator.get(path(node)))
    assert "All 1 that this search finds" in text_of(operator.get(path(node, "?selector=colour%3D'blue'")))
    assert "All that this search finds" in text_of(operator.get(path(node, "?selector=colour%3D'red'")))


@override_settings(CONTROL_WAIT_SECONDS=0.01)
def test_who_may_move_and_not_look_is_told_that_no_node_has_answered(database):
    facts.destination(database, 1, "queue/orders")
    mover = person("mover", role="restricted")
    granted(mover, "queue/orders", "metrics", "move")
    granted(mover, "queue/other", "send")
    client = logged_in(mover)
    page = client.post("/destinations/1/messages/act", {"verb": "move", "m": ["4-0"], "destination": "queue/other"}, follow=True)
    assert [each[0] for each in page.redirect_chain] == ["/destinations/1"]
    assert "no node has answered" in text_of(page)


def test_operations_know_whether_they_have_ended(database, operator):
    from console.services import operations as service

    facts.one_of_each(database)
    assert service.awaited(1, 0.05).state == "running"
    assert service.awaited(99, 0.05) is None
    assert operations.by_number(99) is None
