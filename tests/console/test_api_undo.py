"""Purges undone by the REST API."""

from __future__ import annotations

import pytest

from console.models import Grant
from tests.console import facts
from tests.console.api import bearer, call, person, problem, token
from tests.console.engine_node import EngineNode


@pytest.fixture
def node(database):
    with EngineNode(database, {"queue/orders": 5}) as node:
        yield node


def purged(operator) -> int:
    (found,) = call(operator, "GET", "destinations?address=queue/orders").document["items"]
    answer = call(operator, "POST", f"destinations/{found['number']}/purge", {"depth": 5})
    assert answer.document["result"]["undoable"] == 5, answer.document
    return answer.document["result"]["undo"]


def test_a_purge_is_listed_and_undone(node, database, operator):
    number = purged(operator)
    shown = call(operator, "GET", f"undo/{number}").document
    assert (shown["verb"], shown["address"], shown["messages"], shown["requested_by"], shown["ended_how"]) == ("purge", "queue/orders", 5, "olga", "")
    for query, found in (("open=true", [number]), ("search=ORDER", [number]), ("search=olg&open=true", [number]), ("search=red", []), ("search=%25", [])):
        assert [each["number"] for each in call(operator, "GET", f"undo?{query}").document["items"]] == found, query
    answer = call(operator, "POST", f"undo/{number}/undo", Idempotency_Key="k")
    assert answer.document["result"] == {"undo": number, "restored": 5}
    assert call(operator, "POST", f"undo/{number}/undo", Idempotency_Key="k").document == answer.document
    assert call(operator, "GET", "undo?open=true").document["items"] == []
    assert call(operator, "GET", f"undo/{number}").document["ended_how"] == "undone"
    assert "can be undone" in problem(call(operator, "POST", f"undo/{number}/undo"), 409, "refused")
    told = facts.rows(database, "SELECT who, what, address FROM surety.audit WHERE what = 'undo' ORDER BY entry LIMIT 1")
    assert told == [("olga", "undo", "queue/orders")]


def test_it_is_given_up(node, operator):
    number = purged(operator)
    assert call(operator, "DELETE", f"undo/{number}?dry_run=true").document["discarded"] == 5
    assert call(operator, "GET", f"undo/{number}").document["ended_how"] == ""
    assert call(operator, "DELETE", f"undo/{number}").status_code == 200
    assert call(operator, "DELETE", f"undo/{number}?dry_run=true").document["discarded"] == 0
    assert call(operator, "GET", f"undo/{number}").document["ended_how"] == "given up"


def test_who_may_purge_that_queue_undoes_it_and_nobody_else(node, operator):
    number = purged(operator)
    rita = person("rita", role="restricted")
    client = bearer(token(rita))
    assert call(client, "GET", f"undo/{number}").status_code == 404
    Grant.objects.create(user=rita, pattern="queue/orders", verbs=["metrics", "delete"])
    assert call(client, "GET", f"undo/{number}").status_code == 200
    assert call(client, "POST", f"undo/{number}/undo").status_code == 403
    Grant.objects.filter(user=rita).update(verbs=["metrics", "purge"])
    assert call(client, "POST", f"undo/{number}/undo").status_code == 200
