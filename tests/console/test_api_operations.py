"""Operations on many messages by the REST API."""

from __future__ import annotations

import json

import pytest
from django.test import override_settings

from broker_core.control import OPERATION_VERBS
from console.models import Grant
from console.services import operations as service
from tests.console import facts
from tests.console.api import bearer, call, person, problem, token
from tests.console.engine_node import EngineNode


@pytest.fixture
def node(database):
    with EngineNode(database, {"queue/orders": 5, "queue/other": 1}) as node:
        yield node


def number_of(operator, address: str) -> int:
    (found,) = call(operator, "GET", f"destinations?address={address}").document["items"]
    return found["number"]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, "verb"),
        ({"verb": "shovel"}, "verb"),
        ({"verb": "move"}, "destination"),
        ({"verb": "delete", "destination": "queue/other"}, "destination"),
        ({"verb": "move", "destination": "nowhere"}, "destination"),
        ({"verb": "delete", "messages": []}, "messages"),
        ({"verb": "delete", "messages": ["4"]}, "messages"),
        ({"verb": "delete", "messages": ["20-1"]}, "messages"),
        ({"verb": "delete", "limit": 0}, "limit"),
        ({"verb": "delete", "filter": {"colour": "red"}}, "colour"),
        ({"verb": "delete", "filter": {"selector": "colour ="}}, "selector"),
        ({"verb": "delete", "filter": {"json_path": "a"}}, "json_path"),
        ({"verb": "reprioritize"}, "priority"),
        ({"verb": "delete", "dry_run": True}, "dry_run"),
    ],
)
def test_what_cannot_be_is_a_problem_that_names_it(database, operator, body, named):
    facts.destination(database, 1, "queue/orders")
    assert named in problem(call(operator, "POST", "destinations/1/operations", body), 400, "invalid").lower()
    assert facts.rows(database, "SELECT * FROM surety.control_request") == []


def test_an_operation_is_begun_and_found_again(node, database, operator):
    number = number_of(operator, "queue/orders")
    conditions = {"age_min_ms": 0, "accepted_from": "2020-01-01T00:00:00Z"}
    body = {"verb": "move", "destination": "queue/other", "messages": ["4-1", "4-3"], "limit": 7, "filter": conditions}
    response = call(operator, "POST", f"destinations/{number}/operations", body)
    assert response.status_code == 201, response.document
    shown = response.document
    assert (shown["verb"], shown["address"], shown["total"], shown["requested_by"]) == ("move", "queue/orders", 2, "olga")
    assert shown["arguments"]["messages"] == [[4, 1], [4, 3]]
    assert shown["arguments"]["filter"] == {"age_min_ms": 0, "accepted_from": "2020-01-01T00:00:00+00:00"}
    assert response["Location"] == f"/api/v1/operations/{shown['number']}"
    waiting = [{"message": key, "result": "waiting", "why": ""} for key in ("4-1", "4-3")]
    assert call(operator, "GET", f"operations/{shown['number']}").document == shown | {"results": waiting}
    assert [each["number"] for each in call(operator, "GET", "operations?open=true").document["items"]] == [shown["number"]]


def ended(database, counts, *, results=(), **arguments):
    """Operation 7, a move of the messages that `arguments` name. `counts`: looked at, done, skipped, failed."""
    facts.execute(
        database,
        """INSERT INTO surety.operation (shard, operation, verb, address, arguments, requested_by, state, looked_at, done, skipped, failed, total, place,
                                         started_at, ended_at, error, results)
           VALUES (0, 7, 'move', 'queue/orders', %s, 'olga', 'done', %s, %s, %s, %s, %s, '{}', 0, 5, '', %s)""",
        [json.dumps(arguments), *counts, len(arguments["messages"]), json.dumps(results)],
    )


def test_what_became_of_single_messages_is_for_who_may_browse_there(database):
    user = person("rita", role="restricted")
    Grant.objects.create(user=user, pattern="queue/orders", verbs=["metrics"])
    ended(database, (1, 1, 0, 0), messages=[[4, 0], [4, 1]], limit=1, results=[["done", "", [[4, 0]]]])
    rita = bearer(token(user))
    assert call(rita, "GET", "operations/7").document["results"] is None
    Grant.objects.filter(user=user).update(verbs=["metrics", "browse_headers"])
    told = call(rita, "GET", "operations/7").document["results"]
    assert [each["result"] for each in told] == ["done", "left"], "the limit leaves the second out"


@pytest.mark.parametrize("counts", [(2, 2, 0, 0), (2, 0, 2, 0), (2, 0, 0, 2)], ids=["done", "skipped", "failed"])
def test_what_an_earlier_version_only_counted_is_not_said_to_be_gone(database, operator, counts):
    ended(database, counts, messages=[[4, 0], [4, 1]])
    assert call(operator, "GET", "operations/7").document["results"] == []
    assert "gone before" not in operator.get("/operations/7").content.decode()


def test_what_nothing_was_met_of_is_gone(database, operator):
    ended(database, (0, 0, 0, 0), messages=[[4, 0]])
    assert [each["result"] for each in call(operator, "GET", "operations/7").document["results"]] == ["gone"]


def test_the_nodes_refusal_is_a_problem(node, operator):
    number = number_of(operator, "queue/orders")
    detail = problem(call(operator, "POST", f"destinations/{number}/operations", {"verb": "move", "destination": "queue/nowhere"}), 409, "refused")
    assert "queue/nowhere" in detail


def test_one_key_begins_one_operation(node, database, operator):
    number = number_of(operator, "queue/orders")
    first, second = (call(operator, "POST", f"destinations/{number}/operations", {"verb": "delete"}, Idempotency_Key="k") for _ in range(2))
    assert first.document == second.document
    assert facts.rows(database, "SELECT count(*) FROM surety.operation") == [(1,)]


def test_one_that_runs_is_cancelled(node, database, operator):
    number = number_of(operator, "queue/orders")
    operation = call(operator, "POST", f"destinations/{number}/operations", {"verb": "delete"}).document["number"]
    assert call(operator, "POST", f"operations/{operation}/cancel").status_code == 200
    shown = call(operator, "GET", f"operations/{operation}").document
    assert shown["state"] == "cancelled" and shown["ended_at"] is not None
    assert call(operator, "GET", "operations?open=true").document["items"] == []
    assert "no operation" in problem(call(operator, "POST", f"operations/{operation}/cancel"), 409, "refused")


def test_what_became_of_it_is_in_the_audit(node, database, operator):
    number = number_of(operator, "queue/orders")
    operation = call(operator, "POST", f"destinations/{number}/operations", {"verb": "delete"}).document["number"]
    call(operator, "POST", f"operations/{operation}/cancel")
    told = facts.rows(database, "SELECT who, what, address, request, result ->> 'done' FROM surety.audit ORDER BY entry")
    assert ("olga", "operate", "queue/orders", operation, None) in told
    assert ("olga", "delete cancelled", "queue/orders", operation, "0") in told


def test_operations_are_pages_newest_first(database, operator):
    for number in range(1, 6):
        facts.execute(
            database,
            "INSERT INTO surety.operation VALUES (0, %s, 'delete', 'queue/orders', '{}', 'olga', 'done', 0, 0, 0, 0, NULL, '{}', 0, 5, '')", [number]
        )  # fmt: skip
    first = call(operator, "GET", "operations?limit=3").document
    assert [each["number"] for each in first["items"]] == [5, 4, 3]
    assert [each["number"] for each in call(operator, "GET", f"operations?limit=3&after={first['next']}").document["items"]] == [2, 1]
    assert first["items"][0]["started_at"] is None


# -- rights ---------------------------------------------------------------------------------------------------------------------------
NEEDS = [
    ({"verb": "delete"}, {"delete"}),
    ({"verb": "expire"}, {"delete"}),
    ({"verb": "purge"}, {"purge"}),
    ({"verb": "reprioritize", "priority": 3}, {"move"}),
    ({"verb": "move", "destination": "queue/other"}, {"move", "send"}),
    ({"verb": "copy", "destination": "queue/other"}, {"move", "send"}),
    ({"verb": "retry", "filter": {"origin": "queue/other"}}, {"move", "send", "browse_headers"}),
    ({"verb": "delete", "filter": {"age_min_ms": 5}}, {"delete", "browse_headers"}),
    ({"verb": "delete", "filter": {"text": "secret"}}, {"delete", "browse_bodies"}),
]


@pytest.mark.parametrize(("body", "needs"), NEEDS)
@override_settings(CONTROL_WAIT_SECONDS=0)
def test_each_right_that_it_needs_is_asked_for(database, body, needs):
    facts.destination(database, 1, "queue/orders")
    for missing in (None, *sorted(needs)):
        user = person(f"without.{missing}", role="restricted")
        for pattern in ("queue/orders", "queue/other"):
            Grant.objects.create(user=user, pattern=pattern, verbs=sorted({"metrics", *needs} - {missing}))
        response = call(bearer(token(user)), "POST", "destinations/1/operations", body)
        assert response.status_code == (202 if missing is None else 403), (missing, response.document)


@override_settings(CONTROL_WAIT_SECONDS=0)
def test_a_retry_that_may_go_anywhere_needs_the_right_to_send_anywhere(database):
    facts.destination(database, 1, "queue/mq.sys.dmq")
    user = person("rita", role="restricted")
    rita = bearer(token(user))
    Grant.objects.create(user=user, pattern="queue/mq.sys.dmq", verbs=["metrics", "move", "send"])
    assert call(rita, "POST", "destinations/1/operations", {"verb": "retry"}).status_code == 403
    Grant.objects.create(user=user, pattern=">", verbs=["send"])
    assert call(rita, "POST", "destinations/1/operations", {"verb": "retry"}).status_code == 202


def test_operations_on_destinations_that_one_does_not_see_are_not_shown(database):
    facts.one_of_each(database)
    user = person("rita", role="restricted")
    rita = bearer(token(user))
    assert call(rita, "GET", "operations/1").status_code == 404
    assert call(rita, "POST", "operations/1/cancel").status_code == 404
    Grant.objects.create(user=user, pattern="queue/orders", verbs=["metrics"])
    assert call(rita, "GET", "operations/1").status_code == 200
    assert call(rita, "POST", "operations/1/cancel").status_code == 403


def test_every_verb_has_its_right():
    assert set(service.RIGHTS) == set(OPERATION_VERBS)
