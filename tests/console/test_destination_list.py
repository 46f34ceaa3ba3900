"""The list of destinations: every one with what is known of it, by pages, in few queries."""

import base64
import re

import psycopg
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.selectors import destinations
from tests.console import facts
from tests.console.engine_node import tell_statistics

COUNTERS = {"depth": 12_345, "octets": 5_000_000, "consumers": 3, "unsettled": 7, "accepted": 20_000, "settled": 7_655, "oldest_at": 1}
UNKNOWN = '<span class="unknown"'


# -- unknown is not 0 -----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "lease",
    [{"heartbeat_seconds": 6}, {"held": False}, {"acquired_seconds": -60}, None],
    ids=["silent node", "lease given up", "written under an earlier lease", "no node ever"],
)
def test_counters_of_a_node_that_is_not_alive_are_unknown(lease, viewer, database):
    facts.destination(database, 1, "queue/orders", **COUNTERS)
    if lease is not None:
        facts.lease(database, **lease)
        facts.status(database)
    [shown] = destinations.page().destinations
    assert (shown.known, shown.depth, shown.octets, shown.consumers, shown.unsettled, shown.oldest_ms) == (False, *[None] * 5)
    page = viewer.get("/destinations").content.decode()
    assert page.count(UNKNOWN) == 7
    assert "12,345" not in page


def test_a_destination_that_the_node_has_not_told_of_is_unknown(viewer, database):
    facts.well(database)
    facts.destination(database, 1, "queue/orders")
    assert destinations.page().destinations[0].depth is None


def test_a_heartbeat_of_five_seconds_still_counts(database):
    facts.lease(database, heartbeat_seconds=4.5)
    facts.destination(database, 1, "queue/orders", **COUNTERS)
    assert destinations.page().destinations[0].depth == 12_345


# -- what is known ------------------------------------------------------------------------------------------------------------------
def test_what_the_node_counts_is_shown(viewer, database):
    facts.well(database)
    facts.destination(database, 1, "queue/orders", state=2, **COUNTERS)
    page = viewer.get("/destinations").content.decode()
    for text in ("queue/orders", "12,345", "4.8 MiB", "producers paused", "node-1"):
        assert text in page
    assert page.count(UNKNOWN) == 2, "only the rates are unknown at the first look"


def test_an_empty_destination_has_no_oldest_message(viewer, database):
    facts.well(database)
    facts.destination(database, 1, "queue/orders", depth=0)
    page = viewer.get("/destinations").content.decode()
    assert 'data-live="destinations/1/depth">0<' in page
    assert 'data-live="destinations/1/oldest">none<' in page


def test_the_second_look_shows_rates(viewer, database):
    facts.well(database)
    facts.destination(database, 17, "queue/orders", accepted=100, settled=50)
    viewer.get("/destinations")
    with psycopg.connect(database, autocommit=True) as node:
        node.execute("UPDATE surety.destination_statistics SET accepted_total = 300, settled_total = 60, at = at + interval '2 s'")
    page = viewer.get("/destinations").content.decode()
    assert 'data-live="destinations/17/in">100<' in page
    assert 'data-live="destinations/17/out">5.0<' in page


def test_destroyed_destinations_are_gone(viewer, database):
    facts.well(database)
    facts.destination(database, 1, "queue/orders", destroyed=True, depth=1)
    assert "There is no destination yet" in viewer.get("/destinations").content.decode()


def test_names_are_escaped(viewer, database):
    facts.destination(database, 1, "queue/<script>alert(1)</script>")
    page = viewer.get("/destinations?q=%3Cscript%3E").content.decode()
    assert "<script>alert" not in page
    assert "queue/&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_the_live_part_asks_for_what_the_address_asks_for(viewer, database):
    facts.destination(database, 1, "queue/orders")
    page = viewer.get("/destinations?q=ord&sort=depth").content.decode()
    assert '<div id="live" hx-get="/destinations?q=ord&amp;sort=depth" hx-trigger="refresh" hx-select="#live"' in page


def test_a_session_that_ended_sends_the_whole_page_to_the_login(stranger):
    response = stranger.get("/", headers={"HX-Request": "true"})
    assert response["HX-Redirect"] == "/login"


# -- pages ----------------------------------------------------------------------------------------------------------------------------
@pytest.fixture
def many(database):
    facts.well(database)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            """INSERT INTO surety.destination (shard, destination, address, created_at, automatic, state, settings)
               SELECT 0, n, 'queue/' || chr(97 + n % 26) || '_' || n, 0, true, 0, '{}' FROM generate_series(1, 137) n"""
        )
        connection.execute(
            """INSERT INTO surety.destination_statistics (shard, destination, address, depth, octets, consumers, unsettled, accepted_total,
                   settled_total, dead_total, expired_total, redelivered_total, state)
               SELECT 0, destination, address, destination % 7, 0, 0, 0, 0, 0, 0, 0, 0, 0 FROM surety.destination WHERE destination <= 100"""
        )


@pytest.mark.parametrize("sort", ["name", "depth"])
def test_pages_together_hold_every_destination_once_and_in_order(sort, many):
    seen, after, pages = [], "", 0
    while pages == 0 or after:
        page = destinations.page(sort=sort, after=after, limit=50)
        seen += page.destinations
        after, pages = page.after, pages + 1
    assert pages == 3
    by_name = sorted(seen, key=lambda it: it.address)
    expected = by_name if sort == "name" else sorted(by_name, key=lambda it: -1 if it.depth is None else it.depth, reverse=True)
    assert [it.address for it in seen] == [it.address for it in expected]
    assert len({it.number for it in seen}) == 137


def test_the_page_links_to_the_next_with_search_and_order(many, viewer):
    page = viewer.get("/destinations?q=queue&sort=depth").content.decode()
    assert 'href="/destinations?q=queue&amp;sort=depth&amp;after=' in page


@pytest.mark.parametrize(
    ("search", "found"), [("a_26", 1), ("A_26", 1), ("%", 0), ("_", 137), ("a_", 5), ("\\", 0), ("\x00", 137), ("x" * 10_000, 0), ("queue/z", 5)]
)
def test_a_search_is_literal_and_without_case(search, found, many):
    assert len(destinations.page(search=search, limit=1000).destinations) == found


@pytest.mark.parametrize("after", ["!", "W10=", "eyJhIjogMX0=", "WzEsIDJd", "WyJhIiwgImIiXQ==", "Wzk5OTk5OTk5OTk5OTk5OTk5OTk5OSwgImEiXQ==", "é"])
def test_a_key_that_is_not_ours_means_the_first_page(after, many):
    assert destinations.page(after=after).destinations[0].address == "queue/a_104"


def test_an_order_that_does_not_exist_is_by_name(many):
    assert destinations.page(sort="address; DROP TABLE").destinations[0].address == "queue/a_104"


# -- temporary destinations -----------------------------------------------------------------------------------------------------------
@pytest.fixture
def temporary(database):
    facts.well(database)
    facts.destination(database, 1, "queue/orders", depth=1)
    with psycopg.connect(database, autocommit=True) as node:
        tell_statistics(node, -5, "temp-queue/a-1-2.replies", depth=2, consumers=1)


def test_temporary_destinations_are_listed_apart_and_marked(temporary, viewer):
    assert [it.address for it in destinations.page().destinations] == ["queue/orders"]
    [shown] = destinations.page(temporary=True).destinations
    assert (shown.address, shown.depth, shown.temporary, shown.automatic) == ("temp-queue/a-1-2.replies", 2, True, False)
    assert "temp-queue" not in viewer.get("/destinations").content.decode()
    page = viewer.get("/destinations?temporary=1&sort=depth").content.decode()
    assert "temp-queue/a-1-2.replies" in page
    assert ">temporary</span>" in page
    assert "queue/orders" not in page


def test_nobody_knows_of_temporary_destinations_when_no_node_is_alive(temporary, database):
    facts.release()
    facts.lease(database, heartbeat_seconds=60)
    assert destinations.page(temporary=True).destinations == []
    assert destinations.by_number(-5) is None


def test_a_temporary_destination_can_be_purged_and_has_no_settings(temporary, operator):
    page = operator.get("/destinations?temporary=1").content.decode()
    assert "/destinations/-5/purge" in page
    assert "/destinations/-5/update" not in page
    assert "temp-queue/a-1-2.replies" in operator.get("/destinations/-5/purge").content.decode()
    assert operator.get("/destinations/-5/update").status_code == 404


def test_a_scrape_does_not_name_temporary_destinations(temporary, viewer):
    assert "temp-queue" not in viewer.get("/metrics?destinations=1").content.decode()


# -- cost ---------------------------------------------------------------------------------------------------------------------------
def test_a_look_costs_nine_queries_whatever_the_number_of_destinations(many, viewer):
    """Session, person, permissions of the person and of groups, his grants, destinations, samples, node, and what the list is now."""
    with CaptureQueriesContext(connection) as queries:
        viewer.get("/destinations")
    assert len(queries) == 9, [query["sql"] for query in queries]


def test_no_page_reads_or_counts_messages(many, operator):
    with CaptureQueriesContext(connection) as queries:
        for path in ("/", "/destinations?sort=depth", "/audit", "/accounts", "/health/ready", "/metrics?destinations=1", "/destinations/1/purge"):
            assert operator.get(path).status_code == 200
    statements = " ".join(query["sql"] for query in queries)
    for table in ("surety.message", "surety.retained", "surety.segment", "surety.ledger", "surety.spill", "surety.lane", "surety.cursor"):
        assert table not in statements


def test_a_destination_at_rest_has_a_rate_of_0(viewer, database):
    """The node writes no row for it any more; that is knowledge."""
    facts.lease(database, acquired_seconds=3600)
    facts.status(database)
    facts.destination(database, 18, "queue/orders", accepted=100, settled=50)
    with psycopg.connect(database, autocommit=True) as node:
        node.execute("UPDATE surety.destination_statistics SET at = at - interval '10 minutes'")
    viewer.get("/destinations")
    page = viewer.get("/destinations").content.decode()
    assert 'data-live="destinations/18/in">0<' in page
    assert 'data-live="destinations/18/out">0<' in page


@pytest.mark.parametrize(
    ("path", "section"),
    [
        ("/", "Overview"),
        ("/destinations/create", "Destinations"),
        ("/accounts/delete?name=guest", "Accounts"),
        ("/operators/rights?name=olga", "Operators"),
    ],
)
def test_the_section_that_one_is_in_is_marked(path, section, operator):
    page = operator.get(path).content.decode()
    assert page.count('aria-current="page"') == 1
    assert re.search(f'aria-current="page"><svg[^>]*><path[^>]*/></svg>{section}<', page)


@pytest.mark.parametrize("key", [b'[0, "\\ud800"]', b"[0, 1]", b"[" * 40_000])
def test_a_key_that_was_tampered_with_means_the_first_page(key, database, operator):
    facts.destination(database, 1, "queue/orders")
    assert "queue/orders" in operator.get("/destinations", {"after": base64.urlsafe_b64encode(key).decode()}).content.decode()
    assert destinations.page(after=base64.urlsafe_b64encode(key).decode()).after == ""


def test_a_number_may_be_written_with_zeros_before_it(database, operator):
    facts.destination(database, 1, "queue/orders")
    assert operator.post("/destinations/picked/purge", {"n": "001:0", "typed": "purge"}).status_code == 200
