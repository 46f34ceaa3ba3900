"""What lists cost: few queries, whatever the page; each finds its rows by an index; none counts messages."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.api.state import document
from tests.console import facts
from tests.console.api import ROOT, call

LISTS = {
    "destinations": 1, "destinations?sort=depth": 1, "destinations?search=q1": 1, "destinations?temporary=true": 1,
    "destinations?address=queue/q1": 1, "destinations/1": 2, "destinations/1/history": 2, "totals/history": 1,
    "policies": 1, "policies/queue/a": 1, "aliases": 1, "aliases/queue/a": 1, "objects": 1,
    "objects/a": 1, "links": 1, "links/a": 1, "subscriptions": 1, "subscriptions?idle_seconds=60": 1, "branches": 1, "branches/1": 1, "branches/1/items": 2,
    "accounts": 1,
    "accounts/a": 1, "access": 1, "access/1": 1, "operators": 2, "operators/olga": 2, "grants": 1, "grants/1": 1, "tokens": 1, "audit": 1,
    "audit?who=olga": 1, "accounts?search=gue": 1, "access?principal=*": 1, "branches?account=guest": 1, "tokens?everybody=true": 1,
    "audit?what=purge": 1, "audit?address=queue/a": 1, "audit?refused=true": 1, "audit?since=2026-01-01": 1, "requests/1": 1,
    "operations": 1, "operations?open=true": 1, "operations/1": 1, "undo": 1, "undo?open=true": 1, "undo/1": 1,
    "undo?search=ord": 1, "operators?search=ol": 2, "grants?search=view": 1,
    "node": 1, "node/listeners": 1, "nodes": 1, "health": 6, "totals": 2, "whoami": 0,
    "schedule": 2, "schedule/expire": 2, "alerts": 1, "alerts/a": 1, "firing": 1, "alert-events": 1, "alert-events?alert=a": 1,
    "pipeline": 3, "pipeline/runs": 1, "pipeline/runs/1": 1,
    "pipeline/replays": 1, "pipeline/replays/1": 1,
    "pipeline/audits": 1, "pipeline/audits/1": 1, "pipeline/audits/1/violations": 2, "pipeline/points": 1, "pipeline/points?destination=1": 1,
}  # fmt: skip
"""Queries of their own, beside the two that find the session and its user."""
SMALL = {"lease", "node_status"}
"""Tables of a row a shard or a node, read as a whole."""


ASK_THE_NODE = {"subscriptions/stale", "subscriptions/{number}", "connections", "connections/{number}", "consumers", "consumers/{number}/deliveries"}
ASK_THE_NODE |= {"producers", "producers/{number}", "transactions"}
"""They look at no table but that of requests."""
OF_MESSAGES = ("scheduled", "messages", "messages/export", "messages/dead", "messages/{key}", "messages/{key}/body")
READ_MESSAGES = {f"destinations/{{number}}/{path}" for path in OF_MESSAGES}
"""They ask the node, too, and then read rows of messages by their keys: viewing.page says by which, and tests/console/test_pages_messages.py what is found."""
WITHOUT_ROWS = {"problems", "schema/"}
ALL_OF_IT = {"definitions"}
"""An export."""


def test_every_call_that_reads_is_counted():
    told = {path.removeprefix(ROOT) for path, methods in document()["paths"].items() if "get" in methods}
    called = [path.partition("?")[0] for path in LISTS]
    left = {path for path in told if not any(re.fullmatch(re.sub("{[^}]+}", ".+", path), each) for each in called)}
    assert left == ASK_THE_NODE | READ_MESSAGES | WITHOUT_ROWS | ALL_OF_IT


def test_a_page_of_many_destinations_reads_no_more_than_it_shows(database, operator):
    """By the index of addresses, and the counters by their key."""
    facts.well(database)
    facts.execute(
        database,
        """INSERT INTO surety.destination (shard, destination, address, created_at, automatic, state, settings)
           SELECT 0, n, 'queue/q' || n, 0, false, 0, '{}' FROM generate_series(100, 3099) AS n""",
    )
    facts.execute(
        database,
        """INSERT INTO surety.destination_statistics (shard, destination, address, depth, octets, consumers, unsettled, accepted_total, settled_total,
                  dead_total, expired_total, redelivered_total, scheduled, state)
           SELECT 0, destination, address, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0 FROM surety.destination""",
    )
    facts.execute(database, "ANALYZE surety.destination, surety.destination_statistics, surety.lease")
    with CaptureQueriesContext(connection) as queries:
        assert len(call(operator, "GET", "destinations?limit=50").document["items"]) == 50
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, TIMING off, BUFFERS off, FORMAT json) {queries[-1]['sql']}")
        read = dict(_read(cursor.fetchone()[0][0]["Plan"]))
    assert read == {"destination": 51, "destination_statistics": 51, "lease": read["lease"]}


def _read(node):
    """Rows that a plan has taken from each table."""
    if "Relation Name" in node:
        yield node["Relation Name"], node["Actual Rows"] * node["Actual Loops"]
    for part in node.get("Plans", ()):
        yield from _read(part)


@pytest.fixture
def things(database):
    facts.well(database)
    for number in range(1, 4):
        facts.destination(database, number, f"queue/q{number}", depth=number)
    facts.one_of_each(database)
    return database


@pytest.mark.parametrize("path", LISTS)
def test_the_number_of_queries_is_known(path, things, operator):
    with CaptureQueriesContext(connection) as queries:
        assert call(operator, "GET", path).status_code == 200
    assert len(queries) == 2 + LISTS[path], [each["sql"] for each in queries]


@pytest.mark.parametrize("path", sorted(set(LISTS) - {"totals", "whoami", "destinations?temporary=true"}))
def test_rows_are_found_by_an_index(path, things, operator):
    """With sequential scans forbidden the planner takes one only where no index serves. Sums, and what only the node tells, read all of the counters."""
    with CaptureQueriesContext(connection) as queries:
        call(operator, "GET", path)
    with connection.cursor() as cursor:
        cursor.execute("SET enable_seqscan = off")
        try:
            for query in queries:
                cursor.execute(f"EXPLAIN {query['sql']}")
                plan = [line for (line,) in cursor.fetchall()]
                scanned = {line.split("Seq Scan on ")[1].split()[0] for line in plan if "Seq Scan on " in line}
                assert scanned <= SMALL, plan
                assert not any(re.search(r" (message|spill|ledger)_\d", line) for line in plan)
        finally:
            cursor.execute("RESET enable_seqscan")
