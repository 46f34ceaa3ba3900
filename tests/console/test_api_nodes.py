"""Nodes as operators see them, and what administrators ask of the one that serves."""

import pytest
from django.test import override_settings

from tests.console import facts
from tests.console.api import call, problem
from tests.console.engine_node import EngineNode
from tests.console.facts import execute

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


def test_what_the_node_cannot_be_is_refused(database, operator):
    problem(call(operator, "POST", "node/drain", {"seconds": -1}), 400, "invalid")
    problem(call(operator, "POST", "node/listeners/telnet%20/pause"), 404, "not-found")
    with EngineNode(database):
        problem(call(operator, "POST", "node/quiesce"), 409, "refused")
