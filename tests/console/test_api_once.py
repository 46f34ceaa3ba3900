"""How often the same call is done: idempotency keys, and for whom a stored answer is."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import override_settings
from django.utils import timezone

from console.models import Grant, IdempotentCall, OperatorRole
from console.services import idempotency, scheduled
from console.services.audit import Actor
from tests.console import facts
from tests.console.api import bearer, call, granted, logged_in, person, problem, token
from tests.console.conftest import OPERATOR
from tests.console.engine_node import EngineNode


@pytest.fixture
def olga(database):
    return User.objects.get(username=OPERATOR)


@pytest.fixture
def node(database):
    with EngineNode(database, {"queue/orders": 3}) as node:
        yield node


def make(operator):
    assert call(operator, "POST", "accounts", {"name": "shop", "password": "long enough"}).status_code == 201


def test_a_repeated_call_gets_the_first_answer_and_is_not_done_again(operator, node, database):
    [orders] = call(operator, "GET", "destinations?address=queue/orders").document["items"]
    path = f"destinations/{orders['number']}/purge"
    first = call(operator, "POST", path, {"depth": 3}, Idempotency_Key="k1")
    again = call(operator, "POST", path, {"depth": 3}, Idempotency_Key="k1")
    assert (again.status_code, again.document, again["Idempotent-Replayed"]) == (200, first.document, "true")
    assert facts.rows(database, "SELECT count(*) FROM surety.control_request") == [(1,)]
    problem(call(operator, "POST", path, {"depth": 4}, Idempotency_Key="k1"), 422, "key-reused")
    problem(call(operator, "DELETE", f"destinations/{orders['number']}?depth=3", Idempotency_Key="k1"), 422, "key-reused")
    assert call(operator, "POST", path, {"depth": 3}, Idempotency_Key="k2").document["result"]["purged"] == 0


@pytest.mark.parametrize("limits", [{"scope": "read"}, {"patterns": ["queue/a"]}, {"verbs": ["send"]}])
def test_a_stored_answer_is_for_tokens_that_may_the_same(limits, olga, operator, database):
    """Else one that may nothing would be told what became of it."""
    narrow, others = bearer(token(olga, name="narrow", **limits)), [bearer(token(olga, name=name)) for name in ("first", "second")]
    problem(call(narrow, "POST", "totals/reset", Idempotency_Key="k"), 403, "forbidden")
    for client in (*others, operator):
        assert call(client, "POST", "totals/reset", Idempotency_Key="k").status_code == 200
    problem(call(narrow, "POST", "totals/reset", Idempotency_Key="k"), 422, "key-reused")
    assert facts.rows(database, "SELECT count(*) FROM surety.audit WHERE what = 'reset metrics' AND NOT coalesce(result ? 'refused', false)") == [(1,)]


def _loses_a_right(user):
    user.user_permissions.clear()


def _loses_a_grant(user):
    Grant.objects.filter(user=user).delete()


def _has_another_role(user):
    OperatorRole.objects.update_or_create(user=user, defaults={"role": "restricted"})


def _is_administrator(user):
    User.objects.filter(pk=user.pk).update(is_superuser=True)


@pytest.mark.parametrize("changes", [_loses_a_right, _loses_a_grant, _has_another_role, _is_administrator])
def test_a_stored_answer_is_for_who_may_what_he_might_then(changes, database):
    """And the call is not done again: whoever may more now has not asked for it twice."""
    able = person("able", "manage_account")
    granted(able, "queue/a", "purge")
    client = logged_in(able)
    facts.one_of_each(database)
    assert call(client, "DELETE", "accounts/a", Idempotency_Key="k").status_code == 200
    assert call(client, "DELETE", "accounts/a", Idempotency_Key="k")["Idempotent-Replayed"] == "true"
    changes(able)
    problem(call(client, "DELETE", "accounts/a", Idempotency_Key="k"), 422, "key-reused")


def test_what_was_refused_leaves_its_key_free(operator, viewer, node, database):
    make(operator)
    problem(call(operator, "DELETE", "accounts/nobody", Idempotency_Key="k"), 404, "not-found")
    problem(call(viewer, "DELETE", "accounts/shop", Idempotency_Key="k"), 403, "forbidden")
    problem(call(operator, "DELETE", "policies/queue/x", Idempotency_Key="k"), 409, "refused")
    assert call(operator, "DELETE", "accounts/shop", Idempotency_Key="k").status_code == 200
    assert IdempotentCall.objects.count() == 1
    for key in ("", "a b", "é", "k" * 256):
        problem(call(operator, "DELETE", "accounts/shop", Idempotency_Key=key), 400, "invalid")


@override_settings(CONTROL_WAIT_SECONDS=0.05)
def test_a_call_without_an_answer_is_repeated_with_its_request(operator, database):
    facts.destination(database, 1, "queue/orders", depth=0)
    for _ in range(2):
        response = call(operator, "DELETE", "destinations/1?depth=0", Idempotency_Key="k")
        assert (response.status_code, response["Location"]) == (202, "/api/v1/requests/1")


def test_a_call_that_ended_in_the_middle_is_not_done_again(olga, operator, database):
    make(operator)
    idempotency.begin(Actor(olga), "k", "DELETE", "/api/v1/accounts/shop", {})
    problem(call(operator, "DELETE", "accounts/shop", Idempotency_Key="k"), 409, "call-unanswered")
    assert facts.rows(database, "SELECT name FROM surety.account ORDER BY name") == [("guest",), ("shop",)]


def test_of_two_calls_at_once_with_one_key_one_is_done(olga, operator, node, database):
    text = token(olga)
    path = f"/api/v1/destinations/{call(operator, 'GET', 'destinations?address=queue/orders').document['items'][0]['number']}/purge"
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(_purge, text, path) for _ in range(8)]
        statuses = {each.result() for each in asked}
    assert statuses <= {200, 409}
    assert 200 in statuses
    assert facts.rows(database, "SELECT count(*) FROM surety.control_request") == [(1,)]


def _purge(text, path):
    try:
        headers = {"Idempotency-Key": "k"}
        return bearer(text).post(path, data='{"depth": 3}', content_type="application/json", headers=headers).status_code
    finally:
        connection.close()  # the thread's own


def test_keys_are_forgotten_after_a_day(olga, operator, database):
    make(operator)
    call(operator, "DELETE", "accounts/shop", Idempotency_Key="k")
    IdempotentCall.objects.update(at=timezone.now() - timedelta(days=1, seconds=1))
    problem(call(operator, "DELETE", "accounts/shop", Idempotency_Key="k"), 404, "not-found")
    assert IdempotentCall.objects.count() == 0
    make(operator)
    call(operator, "DELETE", "accounts/shop", Idempotency_Key="k")
    IdempotentCall.objects.update(at=timezone.now() - timedelta(days=1, seconds=1))
    assert scheduled.forget(400) == 1
