"""Pages of dead and of delayed messages, of subscriptions and of prepared transactions."""

import re
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from broker_core.engine import commands as c
from broker_core.engine.outcome import Outcome
from broker_core.engine.message import Encoding, Header, Message
from broker_core.viewing import groups
from broker_core.viewing import page as pages
from tests.console import facts
from tests.console.api import granted, logged_in, person
from tests.console.store_node import ASSURED, StoreNode
from tests.console.message_pages import DEAD, dead_from, keys, path, text_of

pytestmark = pytest.mark.usefixtures("unhurried")
XID = "7.6f726465722d3432.01"


# -- dead ---------------------------------------------------------------------------------------------------------------------------------
def test_nothing_has_died_yet(database, operator):
    assert "No message has died yet." in text_of(operator.get("/dead"))


def test_the_dead_are_counted_by_reason_origin_and_error_and_lead_to_themselves_and_back(node, operator):
    dead_from(node, b"a", b"b")
    node.send(b"late", address="queue/other", expires=node.now + 5)
    node.passes(60_000)
    node.does(c.Attach(1, 8, "queue/other", credit=1))
    shown = operator.get("/dead")
    page = text_of(shown)
    assert "3 messages ; 3 looked at" in page
    assert re.search(r"undeliverable The consumer rejected the message queue/orders 2 ", page)
    assert re.search(r"expired The message's time to live.*? queue/other 1 ", page)
    assert "Messages at most" in page
    links = [unescape(link) for link in re.findall(r'href="([^"]+origin=queue%2Forders[^"]*)"', shown.content.decode())]
    assert len(keys(operator.get(links[0]))) == 2
    assert "Count them first" in text_of(operator.get(links[1]))
    counted = operator.post(links[1], {"verb": "retry"})["Location"]
    assert "Retry 2 messages" in text_of(operator.get(counted))
    operator.post(counted, {"verb": "retry"})
    assert (node.depth(), node.depth(DEAD)) == (2, 1)


def test_how_long_the_dead_stay_is_said_with_the_variable_that_says_so(node, operator):
    dead_from(node, b"a")
    page = text_of(operator.get("/dead"))
    assert "From when they died 14 days (SURETY_DEAD_RETENTION_DAYS" in page


@pytest.mark.parametrize("error", ["shop:no-stock: 100% of 'red_ones' are gone", "x" * 300])
def test_those_with_an_error_of_their_own_are_a_group_of_their_own(error, node, operator):
    dead_from(node, b"a")
    node.send(b"b", b"c")
    node.does(c.Attach(1, 10, "queue/orders", credit=2))
    node.does(c.Settle(1, 10, [1, 2], outcome=Outcome.REJECTED, comment=error), c.Detach(1, 10))
    shown = operator.get("/dead")
    assert re.search(rf"undeliverable {re.escape(error[:1].upper() + error[1:200])} queue/orders 2 ", text_of(shown))
    links = [unescape(link) for link in re.findall(r'href="(/destinations/[^"]+/messages[?][^"]*selector=[^"]*)"', shown.content.decode())]
    assert [len(keys(operator.get(link))) for link in links] == [2, 1]


def test_what_one_look_cannot_count_is_counted_on_the_next_page(node, operator, monkeypatch):
    dead_from(node, *[b"%d" % number for number in range(6)])
    monkeypatch.setattr(groups, "ROWS", 4)
    monkeypatch.setattr(pages, "SECONDS", 0.0)
    first = operator.get(f"/destinations/{node.number(DEAD)}/dead")
    assert "The counts are of these only" in text_of(first)
    following = unescape(re.search(r'rel="next" href="([^"]+)"', first.content.decode())[1])
    assert "2 looked at" in text_of(operator.get(following))


# -- delayed ------------------------------------------------------------------------------------------------------------------------------
def test_where_delayed_messages_wait_is_listed(database, operator):
    facts.well(database)
    facts.destination(database, 1, "queue/orders", depth=1, scheduled=7)
    facts.destination(database, 2, "queue/other", depth=1)
    page = text_of(operator.get("/scheduled"))
    assert "queue/orders 7" in page
    assert "queue/other" not in page


def test_delayed_messages_are_delivered_now_moved_and_cancelled(node, operator):
    node.send(b"a", b"b", b"c", delay=3_600_000)
    node.passes(1000)
    of = f"/destinations/{node.number()}/scheduled"
    numbers = re.findall(r"/scheduled/([0-9]+)/cancel", operator.get(of).content.decode())
    assert len(numbers) == 3
    assert "Cancel 1 message" in text_of(operator.get(f"{of}/{numbers[0]}/cancel"))
    assert facts.rows(node.dsn, "SELECT * FROM surety.control_request") == []
    assert operator.post(f"{of}/{numbers[0]}/cancel")["Location"] == of
    operator.post(f"{of}/{numbers[1]}/deliver")
    assert node.depth() == 1
    assert "Say when" in text_of(operator.post(f"{of}/{numbers[2]}/reschedule", {"in": "soon"}), 400)
    operator.post(f"{of}/{numbers[2]}/reschedule", {"at": "2037-01-01T08:00"})
    assert "2037-01-01 08:00:00" in text_of(operator.get(of))
    assert "delivered or cancelled" in text_of(operator.post(f"{of}/{numbers[0]}/cancel"), 404)


def test_who_may_only_look_is_offered_nothing_and_refused(node):
    node.send(b"a", delay=3_600_000)
    node.passes(1000)
    reader = person("rita", role="restricted")
    granted(reader, "queue/orders", "metrics", "browse_headers")
    client = logged_in(reader)
    of = f"/destinations/{node.number()}/scheduled"
    assert "/cancel" not in client.get(of).content.decode()
    assert client.post(f"{of}/1/cancel").status_code == 403
    assert client.get("/transactions").status_code == 403
    assert 'href="/transactions"' not in client.get("/scheduled").content.decode()


def test_a_way_to_messages_is_offered_where_one_may_see_them_and_nowhere_else(node, operator):
    for subscription, address in enumerate(("topic/prices", "topic/news"), 5):
        node.does(c.Attach(1, subscription, address, name=f"desk {subscription}", durable=True))
    node.send(b"a")
    node.send(b"a", address="queue/other")
    begun = [operator.post(path(node, "/act", address), {"verb": "delete"})["Location"].rpartition("=")[2] for address in ("queue/orders", "queue/other")]
    reader = person("rita", role="restricted")
    for address in ("queue/orders", "topic/prices"):
        granted(reader, address, "metrics", "browse_headers")
    for address in ("queue/other", "topic/news"):
        granted(reader, address, "metrics")
    client = logged_in(reader)
    shown = client.get("/subscriptions").content.decode()
    assert ("topic/prices" in shown, "topic/news" in shown, len(re.findall(r'href="/subscriptions/[0-9]+/messages"', shown))) == (True, True, 1)
    offered = ["/messages" in re.search(r"<main.*</main>", client.get(f"/operations/{number}").content.decode(), re.DOTALL)[0] for number in begun]
    assert offered == [True, False]


# -- subscriptions ------------------------------------------------------------------------------------------------------------------------
def test_subscriptions_show_who_uses_them_and_lead_to_their_messages(node, operator, viewer):
    node.does(c.Attach(1, 5, "topic/prices", name="desk", durable=True))
    node.send(b"7", address="topic/prices")
    page = text_of(operator.get("/subscriptions"))
    assert "desk topic/prices client guest active 1 unknown 0 in use" in page
    assert "/purge" not in viewer.get("/subscriptions").content.decode()
    assert viewer.post("/subscriptions/create", {"address": "topic/prices", "name": "mine", "account": "guest"}).status_code == 403
    node.does(c.Detach(1, 5))
    node.passes(5000)
    assert "inactive" in text_of(operator.get("/subscriptions"))
    assert "No durable subscription has been unused" in text_of(operator.get("/subscriptions?idle=30"))
    [link] = re.findall(r'href="(/subscriptions/[0-9]+/messages)"', operator.get("/subscriptions").content.decode())
    assert keys(operator.get(link, follow=True)) == ["4-0"]
    assert operator.get("/subscriptions/77/messages").status_code == 404


def test_a_subscription_is_made_purged_and_ended(node, operator):
    node.send(b"before", address="topic/prices")
    form = {"address": "topic/prices", "name": "archive", "account": "guest", "client_id": "shop"}
    assert "There is no client account nobody" in text_of(operator.post("/subscriptions/create", {**form, "account": "nobody"}), 400)
    assert "archive of topic/prices made" in text_of(operator.post("/subscriptions/create", form, follow=True))
    node.send(b"a", b"b", address="topic/prices")
    node.passes(5000)
    page = operator.get("/subscriptions")
    assert "archive topic/prices shop guest inactive 2 unknown 0" in text_of(page)
    [purge] = re.findall(r'href="(/subscriptions/[0-9]+/purge)"', page.content.decode())
    assert "Purge 2 messages" in text_of(operator.get(purge))
    assert "Type archive" in text_of(operator.post(purge, {"typed": "other"}), 400)
    assert "done" in text_of(operator.post(purge, {"typed": "archive"}, follow=True))
    destroy = purge.replace("purge", "destroy")
    assert "End it with 0 messages" in text_of(operator.get(destroy))
    operator.post(destroy, {"typed": "archive"})
    assert "There is no durable subscription." in text_of(operator.get("/subscriptions"))
    assert operator.get(destroy).status_code == 404


@override_settings(LOOK_WAIT_SECONDS=0.01)
def test_without_a_node_nobody_knows_who_uses_them(database, operator):
    facts.destination(database, 1, "topic/prices")
    facts.execute(
        database,
        """INSERT INTO surety.subscription (shard, subscription, destination, name, client_id, shared, selector, no_local, account)
           VALUES (0, 1, 1, 'desk', 'c', false, '', false, 'guest')""",
    )
    assert "desk topic/prices c guest unknown unknown unknown unknown" in text_of(operator.get("/subscriptions"))


# -- transactions -------------------------------------------------------------------------------------------------------------------------
@pytest.fixture
def in_doubt(node):
    node.send(b"a", b"b")
    node.does(c.Attach(1, 7, "queue/orders", credit=1, replenish=False))
    sent = Message(Header(b"", 4, ASSURED, 0, Encoding.STOMP), b"x", 10)
    node.does(c.BeginBranch(1, b"t", XID), c.Transacted(1, b"t", c.Settle(1, 7, [1])), c.Transacted(1, b"t", c.Send(1, None, "queue/paid", sent)))
    node.does(c.EndBranch(1, XID, c.Verb.PREPARE), c.Detach(1, 7))
    return node


def test_nothing_is_in_doubt(operator, database):
    assert "Nothing is in doubt." in text_of(operator.get("/transactions"))
    assert "Nobody has ended" in text_of(operator.get("/transactions?state=ended"))
    assert "Nobody has ended" in text_of(operator.get("/transactions/history"))
    assert operator.get("/transactions/5").status_code == 404


def test_what_is_in_doubt_is_shown_with_what_is_in_it_and_committed(in_doubt, operator):
    assert "order-42" in text_of(operator.get("/transactions"))
    [number] = re.findall(r'href="/transactions/([0-9]+)"', operator.get("/transactions").content.decode())
    page = text_of(operator.get(f"/transactions/{number}"))
    for words in ("Global transaction order-42 (6f726465722d3432)", "Format 7", "guest", "sends queue/paid", "acknowledges queue/orders"):
        assert words in page
    asked = text_of(operator.get(f"/transactions/{number}/commit"))
    assert "1 message will be sent and 1 acknowledged" in asked
    assert "343201" in asked
    assert "Type 343201" in text_of(operator.post(f"/transactions/{number}/commit", {"typed": "343200"}), 400)
    assert facts.rows(in_doubt.dsn, "SELECT * FROM surety.audit") == []
    done = operator.post(f"/transactions/{number}/commit", {"typed": "343201"}, follow=True)
    assert f"Branch {number} committed" in text_of(done)
    assert in_doubt.depth("queue/paid") == 1
    assert "committed by hand" in text_of(operator.get("/transactions?state=ended"))
    assert "An operator decided this." in text_of(operator.get(f"/transactions/{number}"))
    assert operator.get(f"/transactions/{number}/rollback").status_code == 302, "it has ended"
    operator.post(f"/transactions/{number}/forget")
    assert "Nobody has ended" in text_of(operator.get("/transactions?state=ended"))
    history = text_of(operator.get("/transactions/history"))
    assert history.index("forget") < history.index("commit")


def test_what_is_rolled_back_is_delivered_again(in_doubt, operator):
    [number] = re.findall(r'href="/transactions/([0-9]+)"', operator.get("/transactions").content.decode())
    operator.post(f"/transactions/{number}/rollback", {"typed": "343201"})
    assert in_doubt.depth() == 2
    assert keys(operator.get(path(in_doubt))) == ["4-0", "4-1"]


def test_who_may_not_end_branches_is_not_offered_it(in_doubt, viewer):
    [number] = re.findall(r'href="/transactions/([0-9]+)"', viewer.get("/transactions").content.decode())
    assert f"/transactions/{number}/commit" not in viewer.get(f"/transactions/{number}").content.decode()
    assert viewer.post(f"/transactions/{number}/commit", {"typed": "343201"}).status_code == 403
    assert facts.rows(in_doubt.dsn, "SELECT who, what FROM surety.audit") == [("vera", "commit")]


@pytest.mark.parametrize(("page", "queries"), [("/transactions", 7), ("/subscriptions", 6), ("/scheduled", 6), ("/transactions/history", 9), ("/messages", 6)])
def test_pages_cost_few_queries(operator, database, page, queries):
    """Session, person and what the frame shows; then one, or one for each kind of deed."""
    operator.get(page)
    with CaptureQueriesContext(connection) as asked:
        operator.get(page)
    assert len(asked) <= queries, [query["sql"][:80] for query in asked]


@override_settings(CONTROL_WAIT_SECONDS=0.01)
def test_without_a_node_a_branch_is_not_ended_and_it_says_so(database, operator):
    facts.execute(database, f"INSERT INTO surety.prepared VALUES (0, 1, '{XID}', 'guest', 4, 2, 1, 10, 1000, NULL)")
    page = text_of(operator.post("/transactions/1/commit", {"typed": "343201"}, follow=True))
    assert "no node has answered" in page
    assert User.objects.count() == 1


# -- undo ---------------------------------------------------------------------------------------------------------------------------------
def test_what_was_purged_is_brought_back_from_where_one_looks_first(database, operator):
    with StoreNode(database, undo_ms=3_600_000) as node:
        node.send(b"a", b"b", b"c")
        assert "There is nothing to undo." in text_of(operator.get("/undo"))
        purged = operator.post(f"/destinations/{node.number()}/purge", {"depth": "3"}, follow=True)
        assert "It can be undone for a while. Undo" in text_of(purged)
        shown = operator.get(path(node))
        assert "3 messages of this destination were discarded by olga" in text_of(shown)
        link = re.search(r'href="(/undo/[0-9]+/back)"', shown.content.decode())[1]
        assert "3 messages will wait again" in text_of(operator.get(link))
        assert node.depth() == 0
        operator.post(link)
        assert node.depth() == 3
        assert "no: undone" in text_of(operator.get("/undo?all=1"))
        assert "cannot be undone any more" in text_of(operator.get(link))


def test_what_is_given_up_is_gone_and_who_may_not_is_not_asked(database, operator, viewer):
    with StoreNode(database, undo_ms=3_600_000) as node:
        node.send(b"a")
        operator.post(f"/destinations/{node.number()}/purge", {"depth": "1"})
        [link] = re.findall(r'href="(/undo/[0-9]+/give-up)"', operator.get("/undo").content.decode())
        assert "/give-up" not in viewer.get("/undo").content.decode()
        assert viewer.post(link).status_code == 403
        operator.post(link)
        assert "There is nothing to undo." in text_of(operator.get("/undo"))
        for sought, found in (("orders", True), ("olga", True), ("red", False)):
            shown = text_of(operator.get(f"/undo?all=1&q={sought}"))
            assert ("Nothing like that was discarded." not in shown) is found, sought
    assert operator.get("/undo/99/back").status_code == 404


def test_each_of_several_purges_is_undone_from_where_they_are_told(database, operator):
    with StoreNode(database, undo_ms=3_600_000) as node:
        for address in ("queue/orders", "queue/other"):
            node.send(b"a", address=address)
        node.passes(1000)
        picked = {"n": [f"{node.number(address)}:1" for address in ("queue/orders", "queue/other")], "typed": "purge"}
        links = re.findall(r'href="(/undo/[0-9]+/back)"', operator.post("/destinations/picked/purge", picked).content.decode())
        assert (len(links), node.depth()) == (2, 0)
        operator.post(links[0])
        assert (node.depth(), node.depth("queue/other")) == (1, 0)


@pytest.mark.parametrize(("verb", "offered"), [("purge", True), ("delete", False)])
def test_who_may_discard_so_is_offered_to_take_it_back(database, operator, verb, offered):
    with StoreNode(database, undo_ms=3_600_000) as node:
        node.send(b"a")
        operator.post(f"/destinations/{node.number()}/purge", {"depth": "1", "typed": "queue/orders"})
        reader = person("rita", role="restricted")
        granted(reader, "queue/orders", "metrics", "browse_headers", verb)
        client = logged_in(reader)
        page = client.get(path(node)).content.decode()
        assert "were discarded by olga" in page
        assert bool(re.search(r'href="/undo/[0-9]+/back"', page)) is offered
