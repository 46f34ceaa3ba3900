"""Who may call, and with what: tokens, sessions with CSRF, throttling; parameters and bodies that nobody reads; what is answered."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings
from django.utils import timezone

from console.models import ApiToken
from tests.console import facts
from tests.console.api import ROOT, bearer, call, logged_in, person, problem, token
from tests.console.conftest import OPERATOR


@pytest.fixture
def olga(database):
    return User.objects.get(username=OPERATOR)


# -- tokens -------------------------------------------------------------------------------------------------------------------------
def test_a_token_is_shown_once_and_kept_as_a_hash(operator, database):
    made = call(operator, "POST", "tokens", {"name": "ci", "scope": "write", "days": 7})
    text = made.document["token"]
    assert made.status_code == 201
    [(digest,)] = facts.rows(database, "SELECT digest FROM console_apitoken")
    assert text not in digest
    for path in ("tokens", "audit"):
        assert text.encode() not in call(operator, "GET", path).content
    assert call(operator, "GET", "tokens").document["items"][0]["last_used_at"] is None
    told = call(bearer(text), "GET", "whoami").document
    assert (told["name"], told["superuser"], told["role"], told["read_only"]) == ("olga", True, "administrator", False)
    assert told["rights"] == ["discard_message", "manage_account", "manage_destination", "resolve_transactions"]
    assert call(operator, "GET", "tokens").document["items"][0]["last_used_at"] is not None
    assert call(operator, "DELETE", f"tokens/{made.document['number']}").status_code == 200
    problem(call(bearer(text), "GET", "whoami"), 401, "unauthenticated")
    told = facts.rows(database, "SELECT what FROM surety.audit WHERE what LIKE 'token %' ORDER BY entry")
    assert told == [("token create",), ("token revoke",)]


def test_what_a_token_did_is_in_the_audit_with_the_token(olga, database):
    call(bearer(token(olga)), "POST", "accounts", {"name": "shop", "password": "long enough"})
    number = ApiToken.objects.get().pk
    assert facts.rows(database, "SELECT who, origin FROM surety.audit WHERE what = 'account create'") == [("olga", f"127.0.0.1, token {number}")]


def test_an_expired_token_and_that_of_a_disabled_person_are_nothing(database):
    text = token(person("vera"))
    ApiToken.objects.update(expires_at=timezone.now())
    problem(call(bearer(text), "GET", "whoami"), 401, "unauthenticated")
    ApiToken.objects.update(expires_at=timezone.now() + timedelta(days=1))
    assert call(bearer(text), "GET", "whoami").status_code == 200
    User.objects.filter(username="vera").update(is_active=False)
    problem(call(bearer(text), "GET", "whoami"), 401, "unauthenticated")


def test_a_read_token_looks_and_does_nothing_else(olga, database):
    client = bearer(token(olga, "read"))
    assert call(client, "GET", "operators").status_code == 200
    assert problem(call(client, "POST", "accounts", {"name": "shop", "password": "long enough"}), 403, "forbidden") == "This token may only read."
    assert facts.rows(database, "SELECT name FROM surety.account") == [("guest",)]
    assert ("account create",) in facts.rows(database, "SELECT what FROM surety.audit WHERE result ? 'refused'")


def test_a_token_makes_no_tokens_and_nobody_revokes_those_of_others(olga, operator, database):
    problem(call(bearer(token(olga)), "POST", "tokens", {"name": "more", "scope": "write"}), 403, "forbidden")
    number = ApiToken.objects.get().pk
    vera = person("vera")
    client = logged_in(vera)
    assert "may revoke" in problem(call(client, "DELETE", f"tokens/{number}"), 404, "not-found")
    assert call(client, "GET", "tokens").document["items"] == []
    token(vera)
    problem(call(client, "GET", "tokens?everybody=true"), 403, "forbidden")
    assert [each["owner"] for each in call(operator, "GET", "tokens?everybody=true").document["items"]] == ["olga", "vera"]
    assert [each["owner"] for each in call(operator, "GET", "tokens").document["items"]] == ["olga"]
    assert call(operator, "DELETE", f"tokens/{ApiToken.objects.get(owner=vera).pk}").status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        {"name": "", "scope": "read"}, {"name": " a", "scope": "read"}, {"name": "a", "scope": "all"}, {"name": "a", "scope": "read", "days": 367},
    ],
)  # fmt: skip
def test_a_token_that_cannot_be_is_refused(body, operator):
    problem(call(operator, "POST", "tokens", body), 400, "invalid")


@override_settings(LOGIN_ATTEMPTS_MAX=3)
def test_guesses_are_throttled_and_good_tokens_still_work(olga, database):
    text = token(olga)
    for _ in range(3):
        problem(call(bearer("surety_wrong"), "GET", "whoami"), 401, "unauthenticated")
    response = call(bearer("x" * 10_000), "GET", "whoami")
    problem(response, 429, "throttled")
    assert int(response["Retry-After"]) > 0
    assert call(bearer(text), "GET", "whoami").status_code == 200


# -- sessions -----------------------------------------------------------------------------------------------------------------------
def test_a_write_from_a_browser_needs_the_csrf_token(olga, database):
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(olga)
    given = {"name": "shop", "password": "long enough"}
    assert "CSRF" in problem(call(browser, "POST", "accounts", given), 403, "forbidden")
    assert facts.rows(database, "SELECT who, what FROM surety.audit WHERE result ? 'refused'") == [("olga", "POST /api/v1/accounts")]
    browser.get("/accounts")
    csrf = browser.cookies["surety_csrf"].value
    assert call(browser, "POST", "accounts", given, X_CSRFToken=csrf).status_code == 201


def test_a_stranger_is_told_how_to_show_himself(stranger):
    for path in ("whoami", "nothing", "schema/"):
        response = call(stranger, "GET", path)
        problem(response, 401, "unauthenticated")
        assert response["WWW-Authenticate"] == "Bearer"


# -- what nobody reads, or could be read in two ways ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("sent", "kind", "status", "code"),
    [
        ('{"dry_run": true}', "application/json", 400, "invalid"), ("{", "application/json", 400, "invalid"), ("[]", "application/json", 400, "invalid"),
        ("null", "application/json", 400, "invalid"), ("a=b", "application/x-www-form-urlencoded", 415, "media-type"),
        (" " * 262_145, "application/json", 413, "too-large"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "k"}])
def test_a_call_that_takes_no_body_refuses_one(headers, sent, kind, status, code, operator, database):
    response = operator.post(f"{ROOT}totals/reset", data=sent, content_type=kind, headers=headers)
    assert (response.status_code, response.json()["code"]) == (status, code)
    assert facts.rows(database, "SELECT count(*) FROM surety.audit WHERE what = 'reset metrics'") == [(0,)]


@pytest.mark.parametrize("sent", ["", "{}"])
def test_a_body_with_nothing_in_it_is_none(sent, operator):
    assert operator.post(f"{ROOT}totals/reset", data=sent, content_type="application/json").status_code == 200


def test_a_body_to_an_address_that_is_none_changes_nothing_of_the_answer(operator):
    problem(call(operator, "POST", "nothing", {"a": 1}), 404, "not-found")


@pytest.mark.parametrize(("method", "path"), [
    ("POST", "node/compact?dry_run=true&dry_run=false"), ("GET", "destinations?limit=5&limit=5"), ("DELETE", "destinations/1?depth=0&depth=3"),
])  # fmt: skip
def test_a_parameter_that_comes_twice_is_refused(method, path, operator, database):
    body = {"percent": 50} if method == "POST" else None
    assert problem(call(operator, method, path, body), 400, "invalid") == f"Give the parameter {path.partition('?')[2].partition('=')[0]!r} once."
    assert facts.rows(database, "SELECT count(*) FROM surety.control_request") == [(0,)]


@pytest.mark.parametrize("sent", ['{"name": "a", "name": "b"}', '{"name": "a", "limits": {"b": 1, "b": 1}}'])
def test_a_member_that_comes_twice_is_refused(sent, operator):
    response = operator.post(f"{ROOT}accounts", data=sent, content_type="application/json")
    assert (response.status_code, response.json()["detail"]) == (400, "Two members of an object have the same name.")


# -- what is asked for, and what is a bug ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("path", "accept", "status"), [
    ("definitions", "application/yaml", 200), ("definitions", "text/html, application/yaml;q=0.5", 200), ("definitions", "text/html", 406),
    ("whoami", "application/yaml", 406), ("whoami", "application/problem+json", 200), ("destinations/999999", "application/problem+json", 404),
])  # fmt: skip
def test_what_a_call_is_documented_to_answer_may_be_asked_for(path, accept, status, operator):
    response = operator.get(f"/api/v1/{path}", headers={"Accept": accept})
    assert response.status_code == status
    assert response["Content-Type"] == ("application/yaml" if path == "definitions" and status == 200 else "application/json" if status == 200 else PROBLEM)


PROBLEM = "application/problem+json"


def test_a_bug_is_a_problem_document_to_machines_and_a_page_to_people(operator, monkeypatch, caplog):
    from console.selectors import health

    def breaks(*_arguments):
        raise RuntimeError("a secret")

    monkeypatch.setattr(health, "problems", breaks)
    operator.raise_request_exception = False
    response = operator.get("/api/v1/health")
    assert (response.status_code, response["Content-Type"]) == (500, PROBLEM)
    assert response.json()["code"] == "internal"
    assert b"a secret" not in response.content
    page = operator.get("/health/ready")
    assert (page.status_code, page["Content-Type"].partition(";")[0]) == (500, "text/html")


def test_what_no_call_answers_is_a_problem_document_as_well(operator):
    for path, host, status, code in (("/api/elsewhere", "testserver", 404, "not-found"), ("/api/v1/whoami", "evil.example", 400, "invalid")):
        response = operator.get(path, headers={"Host": host})
        assert (response.status_code, response["Content-Type"], response.json()["code"]) == (status, PROBLEM, code)


@pytest.mark.parametrize(
    ("instant", "status"), [("2026-01-01T00:00:00-20:49", 200), ("8175-11-26T03:14:06.165600%2B23:59", 200), ("9999-01-01T00:00:00Z", 400)]
)
def test_an_instant_may_be_of_any_zone(instant, status, operator):
    assert operator.get(f"/api/v1/audit?since={instant}").status_code == status
