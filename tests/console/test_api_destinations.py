"""Destinations by REST: listed from counters, changed by the node, discarded only by who has seen how much."""

import pytest
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from tests.console import facts
from tests.console.api import call, problem
from tests.console.engine_node import EngineNode


@pytest.fixture
def node(database):
    with EngineNode(database, {"queue/orders": 3}) as node:
        yield node


def _number(operator, address="queue/orders"):
    [found] = call(operator, "GET", f"destinations?address={address}").document["items"]
    return found["number"]


# -- refused ------------------------------------------------------------------------------------------------------------------------
@override_settings(CONTROL_WAIT_SECONDS=0.05)
def test_without_a_node_the_answer_is_a_request_to_ask_again(operator, database):
    response = call(operator, "POST", "destinations", {"address": "queue/new"})
    assert (response.status_code, response["Location"]) == (202, "/api/v1/requests/1")
    assert (response.document["state"], response.document["result"]) == ("waiting", None)
    assert call(operator, "GET", "requests/1").document == response.document
    facts.execute(database, "UPDATE surety.control_request SET deadline = 1")
    assert call(operator, "GET", "requests/1").document["state"] == "lapsed"
    assert problem(call(operator, "GET", "requests/2"), 404, "not-found")


def test_what_the_node_refuses_says_which_way_of_saying_no_it_is(operator, node):
    response = call(operator, "POST", "destinations", {"address": "queue/orders"})
    assert problem(response, 409, "refused") == "a destination with this name exists already (queue/orders)."
    assert response.document["refusal"] == "DESTINATION_EXISTS"
    assert call(operator, "GET", f"requests/{response.document['request']}").document["state"] == "refused"


@pytest.mark.parametrize(
    ("method", "path", "body", "sentence"),
    [
        ("POST", "destinations", {}, "address: This field is required."),
        ("POST", "destinations", {"address": "orders"}, "address: Give queue/NAME or topic/NAME"),
        ("POST", "destinations", {"address": 7}, "address: Must be a text."),
        ("POST", "destinations", {"address": "queue/a", "setings": {}}, "setings: There is no such member"),
        ("POST", "destinations", {"address": "queue/a", "settings": {"max_messages": "7"}}, "settings.max_messages: Must be a whole number."),
        ("POST", "destinations", {"address": "queue/a", "settings": {"use_dead": 1}}, "settings.use_dead: Must be true or false."),
        ("POST", "destinations", {"address": "queue/a\x00"}, "The body has a text with NUL"),
        ("POST", "destinations", [1], "The body: Invalid data"),
        ("PATCH", "destinations/1", {"settings": {}}, "An update names at least one setting"),
        ("POST", "destinations/1/pause", {"direction": "UP"}, "direction:"),
        ("POST", "destinations/1/pause", None, "direction: This field is required."),
        ("POST", "destinations/1/purge", {}, "depth: This field is required."),
        ("POST", "destinations/1/purge?dryrun=true", {"depth": 1}, "There is no parameter 'dryrun'"),
        ("POST", "destinations/1/purge?dry_run=yes", {"depth": 1}, "dry_run must be true or false."),
        ("DELETE", "destinations/1", None, "Give the depth that you saw"),
        ("DELETE", "destinations/1?depth=-1", None, "depth must be a whole number"),
        ("GET", "destinations?limit=1001", None, "limit must be a whole number from 1 to 1000."),
        ("GET", "destinations?limit=0", None, "limit must be"),
        ("GET", "destinations?after=x", None, "after must be the `next` of another page."),
        ("GET", "destinations?sort=age", None, "sort must be one of name, depth, "),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_a_sentence_and_asks_no_node(method, path, body, sentence, operator, database):
    facts.destination(database, 1, "queue/orders", depth=0)
    assert problem(call(operator, method, path, body), 400, "invalid").startswith(sentence)
    assert facts.rows(database, "SELECT verb FROM surety.control_request") == []


def test_what_is_not_json_or_too_much_of_it_is_not_read(operator, database):
    def sent(text, kind="application/json"):
        response = operator.post("/api/v1/destinations", data=text, content_type=kind)
        response.document = response.json()
        return response

    for text in ("{", "[" * 100_000, "1" * 5000, '{"address": NaN}', '{"address": "queue/\\ud800"}', b"\xff"):
        problem(sent(text), 400, "invalid")
    problem(sent('{"address": "' + "a" * 300_000 + '"}'), 413, "too-large")
    problem(sent("address=queue/a", "application/x-www-form-urlencoded"), 415, "media-type")
    problem(call(operator, "GET", "whoami", Accept="text/html"), 406, "not-acceptable")
    problem(call(operator, "DELETE", "whoami"), 405, "method-not-allowed")
    problem(call(operator, "OPTIONS", "whoami"), 405, "method-not-allowed")
    assert "Content-Length" in problem(call(operator, "POST", "destinations", Transfer_Encoding="chunked"), 400, "invalid")
    for nowhere in ("", "nothing", "destinations/99", "destinations/x", "accounts/%00", "accounts/a%0Ab", "destinations/1/explode", "requests/" + "9" * 30):
        problem(call(operator, "GET", nowhere), 404, "not-found")


# -- done ---------------------------------------------------------------------------------------------------------------------------
def test_a_destination_is_made_changed_paused_resumed_and_destroyed(operator, node):
    made = call(operator, "POST", "destinations", {"address": "queue/new", "settings": {"max_messages": 5}})
    assert (made.status_code, made.document["state"]) == (201, "done")
    path = made["Location"].removeprefix("/api/v1/")
    shown = call(operator, "GET", path).document
    assert (shown["address"], shown["state"], shown["depth"], shown["settings"]["max_messages"]) == ("queue/new", "RUNNING", 0, 5)
    assert call(operator, "PATCH", path, {"settings": {"max_messages": 9}}).document["state"] == "done"
    assert call(operator, "GET", path).document["settings"]["max_messages"] == 9
    for direction, state in (("PRODUCERS", "PRODUCERS_PAUSED"), ("CONSUMERS", "PAUSED")):
        assert call(operator, "POST", f"{path}/pause", {"direction": direction}).status_code == 200
        assert call(operator, "GET", path).document["state"] == state
    assert call(operator, "POST", f"{path}/resume", {"direction": "PRODUCERS"}).status_code == 200
    assert call(operator, "GET", path).document["state"] == "CONSUMERS_PAUSED"
    assert call(operator, "DELETE", f"{path}?depth=0").document["state"] == "done"
    problem(call(operator, "GET", path), 404, "not-found")


def test_a_dry_run_counts_and_discards_nothing_and_the_purge_does(operator, node, database):
    number = _number(operator)
    for method, path, body in (("POST", f"destinations/{number}/purge", {"depth": 3}), ("DELETE", f"destinations/{number}", None)):
        counted = call(operator, method, f"{path}?dry_run=true", body)
        assert (counted.status_code, counted.document["discarded"], counted.document["depth"]) == (200, 3, 3)
    assert facts.rows(database, "SELECT verb FROM surety.control_request") == []
    assert call(operator, "GET", f"destinations/{number}").document["depth"] == 3
    assert call(operator, "POST", f"destinations/{number}/purge", {"depth": 3}).document["result"] == {"purged": 3, "outstanding": 0, "undo": 1, "undoable": 3}
    told = facts.rows(database, "SELECT who, what, address, arguments FROM surety.audit WHERE who = 'olga'")
    assert told == [("olga", "purge", "queue/orders", {"depth": 3})]


def test_what_no_node_tells_is_null(operator, database):
    facts.destination(database, 1, "queue/orders", depth=3)
    shown = call(operator, "GET", "destinations/1").document
    assert {shown[name] for name in ("depth", "octets", "consumers", "unsettled", "oldest_ms", "scheduled", "accepted_total", "at")} == {None}
    counted = call(operator, "DELETE", "destinations/1?dry_run=true").document
    assert (counted["discarded"], counted["kept"], counted["scheduled"]) == (None, None, None)
    totals = call(operator, "GET", "totals").document
    assert set(totals.values()) == {None}


@pytest.mark.parametrize("sort", ["name", "depth"])
def test_pages_together_hold_every_destination_once_each_in_one_query(sort, operator, database):
    facts.lease(database)
    for number in range(1, 8):
        facts.destination(database, number, f"queue/q{number}", depth=number % 3)
    seen, path = [], f"destinations?sort={sort}&limit=3"
    while path:
        with CaptureQueriesContext(connection) as queries:
            document = call(operator, "GET", path).document
        assert sum("surety." in each["sql"] for each in queries) == 1
        assert len(queries) <= 3  # the session and its user
        seen += [(-each["depth"] if sort == "depth" else 0, each["address"]) for each in document["items"]]
        path = document["next"] and f"destinations?sort={sort}&limit=3&after={document['next']}"
    assert seen == sorted(seen)
    assert len(seen) == 7
    assert [each["address"] for each in call(operator, "GET", "destinations?search=Q7").document["items"]] == ["queue/q7"]
    assert call(operator, "GET", "destinations?temporary=true").document == {"items": [], "next": None}
