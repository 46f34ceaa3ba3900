"""Destinations: filters, orders, what is done with several at once, the page of one, and fields that are checked as they are typed."""

import re

import psycopg
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.models import Sample
from console.selectors import destinations
from tests.console import facts
from tests.console.engine_node import EngineNode


@pytest.fixture
def several(database):
    facts.well(database)
    facts.destination(database, 1, "queue/a", depth=5, octets=900, consumers=2, unsettled=2, oldest_at=2_000)
    facts.destination(database, 2, "queue/b", depth=9, octets=100, oldest_at=1_000)
    facts.destination(database, 3, "topic/c", state=3, depth=0)
    facts.execute(database, """UPDATE surety.destination SET settings = '{"max_messages": 5}' WHERE destination = 1""")
    return database


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"show": "full"}, ["queue/a"]), ({"show": "unread"}, ["queue/b"]), ({"show": "paused"}, ["topic/c"]), ({"show": "unsettled"}, ["queue/a"]),
        ({"kind": "topic"}, ["topic/c"]), ({"sort": "depth"}, ["queue/b", "queue/a", "topic/c"]), ({"sort": "size"}, ["queue/a", "queue/b", "topic/c"]),
        ({"sort": "oldest"}, ["queue/b", "queue/a", "topic/c"]), ({"sort": "consumers"}, ["queue/a", "queue/b", "topic/c"]),
    ],
)  # fmt: skip
def test_what_is_listed_and_in_which_order(asked, found, several):
    assert [it.address for it in destinations.page(**asked).destinations] == found
    pages = [destinations.page(limit=1, **asked)]
    while pages[-1].after:
        pages.append(destinations.page(limit=1, after=pages[-1].after, **asked))
    assert [it.address for page in pages for it in page.destinations] == found, "page by page it is the same"


# -- several at once ------------------------------------------------------------------------------------------------------------------
def test_what_is_picked_is_named_with_its_count_before_it_is_purged(several, operator):
    page = operator.get("/destinations/picked/purge?n=1&n=2&n=99&n=x").content.decode()
    assert "Purge 2 destinations" in page
    assert "Purge 14 messages" in page
    assert 'value="1:5"' in page
    assert 'data-typed="purge"' in page


def test_nothing_is_purged_before_it_is_typed(several, operator):
    response = operator.post("/destinations/picked/purge", {"n": ["1:5"]})
    assert (response.status_code, facts.rows(several, "SELECT verb FROM surety.control_request")) == (400, [])


def test_each_has_its_own_result(database, operator):
    with EngineNode(database, {"queue/a": 3, "queue/b": 1}):
        numbers = dict(facts.rows(database, "SELECT address, destination FROM surety.destination WHERE address LIKE 'queue/_'"))
        picked = [f"{numbers['queue/a']}:3", f"{numbers['queue/b']}:"]
        page = operator.post("/destinations/picked/purge", {"n": picked, "typed": "purge"}).content.decode()
    assert len(re.findall(r"<th scope=.row.>queue/[ab]<", page)) == 2
    assert page.count('<span class="badge good">done</span>') == 1
    assert page.count('<span class="badge bad">refused</span>') == 1, "nobody saw how many there are"


def test_a_viewer_is_offered_no_box_and_refused_if_he_tries(several, viewer):
    assert "picked" not in viewer.get("/destinations").content.decode().replace("/picked/", "")
    assert viewer.post("/destinations/picked/pause", {"n": ["1:5"], "direction": "ALL"}).status_code == 403
    assert facts.rows(several, "SELECT verb FROM surety.control_request") == []


# -- one ------------------------------------------------------------------------------------------------------------------------------
def test_the_page_of_one_says_what_it_holds_what_bounds_it_and_what_is_set(several, operator):
    page = operator.get("/destinations/1").content.decode()
    own = "<dt>Messages at most</dt><dd><strong>5</strong>"
    for text in ("queue/a", "5 of 5", ">full<", "No producer waits", own, 'data-live="destinations/1/depth"', "/destinations/1/messages"):
        assert text in page, text


def test_who_consumes_is_unknown_while_no_node_answers(several, operator):
    facts.release()
    assert "only a node knows" in operator.get("/destinations/1").content.decode()


def test_a_destination_that_is_not_there_is_not_found(several, operator):
    assert operator.get("/destinations/77").status_code == 404


# -- as it is typed -------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [("max_messages", "5", ""), ("max_messages", "-7", "greater than or equal to"), ("max_messages", "many", "whole number"), ("name", "a", "There is one"),
     ("name", "new", ""), ("name", "*", "not valid")],
)  # fmt: skip
def test_a_field_says_what_is_wrong_as_it_is_typed(name, value, problem, several, operator):
    said = operator.post("/destinations/check", {name: value}, headers={"HX-Request": "true", "HX-Trigger-Name": name}).content.decode()
    assert problem in said
    assert bool(said) == bool(problem)


# -- cost -----------------------------------------------------------------------------------------------------------------------------
def test_ten_thousand_destinations_cost_no_more_queries_than_one(database, operator):
    facts.well(database)
    with psycopg.connect(database, autocommit=True) as node:
        node.execute(
            """INSERT INTO surety.destination (shard, destination, address, created_at, automatic, state, settings)
               SELECT 0, n, 'queue/' || n, 0, true, 0, '{}' FROM generate_series(1, 10000) n"""
        )
        node.execute(
            """INSERT INTO surety.destination_statistics (shard, destination, address, depth, octets, consumers, unsettled, accepted_total,
                   settled_total, dead_total, expired_total, redelivered_total, state)
               SELECT 0, destination, address, destination % 7, 0, 0, 0, 0, 0, 0, 0, 0, 0 FROM surety.destination"""
        )
        node.execute("ANALYZE surety.destination, surety.destination_statistics")  # as autovacuum does when a table has grown so much
    Sample.objects.all().delete()
    for path, queries_max in (("/destinations", 13), ("/destinations?sort=oldest&show=unread", 13), ("/", 18)):
        with CaptureQueriesContext(connection) as queries:
            assert operator.get(path).status_code == 200
        assert len(queries) <= queries_max, [query["sql"] for query in queries]
        assert sum(float(query["time"]) for query in queries) < 1.0, "a bound that a busy machine keeps, too; at rest it is 50 ms"
