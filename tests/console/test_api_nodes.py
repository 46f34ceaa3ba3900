"""Nodes as operators see them, and what administrators ask of the one that serves."""

from threading import Timer

import pytest
from django.test import override_settings

from console.selectors.database import segment_octets
from tests.console import facts
from tests.console.api import call, problem
from tests.console.engine_node import EngineNode
from tests.console.facts import execute
from tests.console.terminal import mq

ABOUT = '{"version": "0.1", "host": "far", "state": "draining", "state_since": 1000, "drain": %s}'
DRAIN = '{"since": 1000, "until": 61000, "ended": null, "cut_off": 0, "connections": 2, "unsettled": 5, "transactions": 1}'


@pytest.fixture
def two(database):
    facts.well(database)
    facts.status(database, node="node-2", epoch=0, listeners={})
    execute(database, "UPDATE surety.node_status SET role = 'standby', about = '{\"version\": \"0.2\", \"host\": \"near\"}' WHERE node = 'node-2'")
    facts.status(database, node="node-0", epoch=3, seconds=20)
    return database


def test_nodes_are_listed_with_what_they_are(two, viewer):
    shown = call(viewer, "GET", "nodes").document
    assert [(each["node"], each["state"], each["epoch"], each["version"]) for each in shown] == [
        ("node-1", "serving", 7, ""),
        ("node-2", "standby", None, "0.2"),
        ("node-0", "silent", None, ""),
    ]
    assert [listener["name"] for listener in shown[0]["listeners"]] == ["stomp"]
    assert call(viewer, "GET", "node/listeners").document == shown[0]["listeners"]


def test_a_drain_is_told_and_health_says_who_is_left(two, viewer):
    execute(two, "UPDATE surety.node_status SET about = %s WHERE node = 'node-1'", [ABOUT % DRAIN])
    shown = call(viewer, "GET", "node").document
    assert (shown["state"], shown["drain"]["unsettled"], shown["drain"]["until"]) == ("draining", 5, "1970-01-01T00:01:01Z")
    (problem,) = call(viewer, "GET", "health").document["problems"]
    assert problem == {
        "name": "quiesced",
        "problem": "node-1 is being drained and takes no new connections: 2 connections are left, with 5 messages and 1 transactions",
    }


@pytest.mark.parametrize(("state", "says"), [("quiesced", "quiesced by an operator"), ("drained", "it is drained"), ("handing over", "it is handing over")])
def test_a_node_that_takes_no_connections_is_not_ready(state, says, two, stranger):
    execute(two, "UPDATE surety.node_status SET about = jsonb_build_object('state', %s::text) WHERE node = 'node-1'", [state])
    answer = stranger.get("/health/ready")
    assert answer.status_code == 503
    assert says in answer.json()["problems"]["quiesced"]


def test_a_listener_that_is_paused_is_not_ready_and_says_why(database, stranger):
    facts.lease(database)
    facts.status(database, listeners={"stomp": {"up": True}, "amqp": {"up": False, "paused": True, "host": "h", "port": 5672}})
    assert stranger.get("/health/ready").json()["problems"] == {"listeners": "amqp is paused by an operator, who may resume it"}


@pytest.mark.parametrize(
    ("path", "body", "verb", "arguments"),
    [
        ("node/quiesce", None, "quiesce", {}),
        ("node/unquiesce", None, "unquiesce", {}),
        ("node/drain", {}, "drain", {"seconds": 60}),
        ("node/listeners/stomp+tls/pause", None, "pause_listener", {"listener": "stomp+tls"}),
        ("node/listeners/amqp/resume", None, "resume_listener", {"listener": "amqp"}),
        ("nodes/node-2:17/takeover", None, "take_over", {"node": "node-2:17"}),
    ],
)
def test_what_is_asked_names_the_term_that_is_meant_and_is_in_the_audit(path, body, verb, arguments, two, operator):
    with override_settings(CONTROL_WAIT_SECONDS=0):
        assert call(operator, "POST", path, body).status_code == 202
    asked = facts.rows(two, "SELECT verb, arguments FROM surety.control_request")
    assert asked == [(verb, {"epoch": 7, **arguments})]
    assert facts.rows(two, "SELECT what, arguments FROM surety.audit") == asked


COMPACTION = (
    '{"request": 9, "percent": 50, "since": 1000, "segments": 7, "compacted": 2, "left": 4, "gone": 1, "rows": 30, '
    '"octets_before": 4194304, "octets_after": 1024, "ended": %s}'
)


def test_how_far_a_compaction_is_is_told(two, viewer):
    assert call(viewer, "GET", "node").document["compaction"] is None
    execute(two, "UPDATE surety.node_status SET about = jsonb_build_object('compaction', %s::jsonb) WHERE node = 'node-1'", [COMPACTION % "null"])
    shown = call(viewer, "GET", "node").document["compaction"]
    assert (shown["request"], shown["compacted"], shown["since"], shown["ended"]) == (9, 2, "1970-01-01T00:00:01Z", None)
    page = viewer.get("/nodes").content.decode()
    for text in ("2 of 7 segments compacted", "30 messages moved", "4.0 MiB became 1.0 KiB", "with at most 50 % unsettled"):
        assert text in page


def test_what_a_compaction_would_do_is_counted_and_nothing_is_done(database, operator, viewer):
    with EngineNode(database, {"queue/orders": 3}):
        counted = call(operator, "POST", "node/compact?dry_run=true", {"percent": 30})
        assert (counted.status_code, counted.document) == (
            200, {"percent": 30, "segments": 0, "looked_at": 0, "compactable": 0, "rows": 0, "unsettled": 0, "octets": 0},
        )  # fmt: skip
        assert "0 of 0 closed segments" in operator.post("/nodes/compact", {"percent": "30", "count": "yes"}).content.decode()
        assert problem(call(viewer, "POST", "node/compact?dry_run=true", {}), 403, "forbidden")
        assert facts.rows(database, "SELECT verb FROM surety.control_request") == []
        begun = call(operator, "POST", "node/compact", {})
    assert (begun.document["verb"], begun.document["result"]) == ("compact", {"percent": 50, "segments": 0})
    assert facts.rows(database, "SELECT who, what, arguments FROM surety.audit WHERE result IS NULL") == [("olga", "compact", {"percent": 50})]
    for wrong in ({"percent": 101}, {"percent": -1}, {"percent": "all"}):
        problem(call(operator, "POST", "node/compact", wrong), 400, "invalid")
    for wrong in ("101", "-1", "5%", ""):
        assert operator.post("/nodes/compact", {"percent": wrong}).status_code == 400
    assert operator.post("/nodes/drain", {"seconds": "soon"}).status_code == 400


def test_what_the_segments_take_on_disk_is_counted(database):
    execute(database, "CREATE TABLE surety.message_0_77 AS SELECT repeat('x', 1000) AS text FROM generate_series(1, 1000)")
    try:
        assert segment_octets([77, 78]) > 1_000_000 * 0.01
        assert segment_octets([78]) == segment_octets([]) == 0
    finally:
        execute(database, "DROP TABLE surety.message_0_77")


def test_a_compaction_is_followed_to_its_end_by_command_though_it_is_told_a_second_later(two):
    with override_settings(CONTROL_WAIT_SECONDS=0):
        told = COMPACTION % "2000"
        facts.execute(two, "SELECT setval('surety.control_request_request_seq', 9, false)")
        tells = "UPDATE surety.node_status SET about = jsonb_build_object('compaction', %s::jsonb) WHERE node = 'node-1'"
        later = Timer(0.7, lambda: facts.execute(two, tells, [told]))
        later.start()
        facts.execute(two, ANSWERED)
        try:
            ran = mq("compact", "bkr", "--percent", "50", "--force", "--json")
        finally:
            later.join()
            facts.execute(two, "DROP TRIGGER answered ON surety.control_request; DROP FUNCTION surety.answered")
    assert (ran.code, ran.document["octets_after"], ran.document["ended"]) == (0, 1024, "1970-01-01T00:00:02Z")


ANSWERED = """
    CREATE FUNCTION surety.answered() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        NEW.answered_at := now(); NEW.done := true; NEW.result := '{"percent": 50, "segments": 7}'; RETURN NEW; END $$;
    CREATE TRIGGER answered BEFORE INSERT ON surety.control_request FOR EACH ROW EXECUTE FUNCTION surety.answered()"""
"""As by a node that is quick."""


def test_what_the_node_cannot_be_is_refused(database, operator):
    problem(call(operator, "POST", "node/drain", {"seconds": -1}), 400, "invalid")
    problem(call(operator, "POST", "node/listeners/telnet%20/pause"), 404, "not-found")
    with EngineNode(database):
        problem(call(operator, "POST", "node/quiesce"), 409, "refused")
