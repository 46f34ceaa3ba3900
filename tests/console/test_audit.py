"""The audit is only ever added to, and found in by who, what, where and when; refused attempts are in it."""

import re
from html import unescape
from pathlib import Path

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import InterfaceError, OperationalError
from django.test import Client

from console.launch.refusal import CannotStart
from console.management import audited
from console.services import scheduled
from console.services.audit import record
from tests.console import facts
from tests.console.api import bearer, call, problem, token
from tests.console.conftest import OPERATOR, PASSWORD


@pytest.fixture
def olga(database):
    return bearer(token(User.objects.get(username="olga")))


@pytest.mark.parametrize(
    "deed",
    [
        "UPDATE surety.audit SET who = 'nobody'",
        "DELETE FROM surety.audit",
        "TRUNCATE surety.audit",
        "SET surety.forgetting = 'x'; DELETE FROM surety.audit",
        "BEGIN; SELECT set_config('surety.forgetting', pg_current_xact_id()::text, true); DELETE FROM surety.audit; COMMIT",
        "SELECT surety.forget_audit(0, 100); DELETE FROM surety.audit",
    ],
)
def test_nobody_changes_what_was_recorded(deed, database):
    facts.empty_audit(database)
    record("olga", "10.0.0.1", "purge", "queue/a")
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="only added to"):
        facts.execute(database, deed)
    assert facts.rows(database, "SELECT who, what FROM surety.audit") == [("olga", "purge")]


def test_what_is_too_old_goes_by_the_clean_up_which_says_so(database):
    record("olga", "10.0.0.1", "purge", "queue/new")
    facts.execute(database, "INSERT INTO surety.audit (at, who, what) SELECT now() - make_interval(days => n), 'olga', 'old' FROM generate_series(1, 10) n")
    assert scheduled.forget(5) == 6
    assert facts.rows(database, "SELECT count(*) FILTER (WHERE what = 'old'), count(*) FILTER (WHERE what = 'purge') FROM surety.audit") == [(4, 1)]
    assert facts.rows(database, "SELECT who, result FROM surety.audit WHERE what = 'audit forget'") == [("scheduler", {"entries": 6})]


def test_a_look_that_nobody_took_shows_nobody_messages_and_is_forgotten(olga, database):
    request = "INSERT INTO surety.control_request (verb, address, requested_by, created_at, answered_at, done, result) VALUES"
    facts.execute(database, "TRUNCATE surety.control_request RESTART IDENTITY")
    for age, verb in ("1 hour", "browse"), ("1 second", "consumers"), ("1 hour", "purge"):
        facts.execute(database, f"""{request} ('{verb}', 'queue/a', 'olga', now() - interval '{age}', now(), true, '{{"messages": ["secret"]}}')""")
    assert [call(olga, "GET", f"requests/{number}").status_code for number in (1, 2, 3)] == [404, 404, 200]
    assert scheduled.forget(5) == 1
    assert facts.rows(database, "SELECT verb FROM surety.control_request ORDER BY request") == [("consumers",), ("purge",)]


def test_it_is_found_by_who_what_where_and_when(olga, database):
    facts.empty_audit(database)
    facts.execute(
        database,
        """INSERT INTO surety.audit (at, who, what, address, result) VALUES
           ('2026-01-01', 'olga', 'purge', 'queue/a', NULL), ('2026-01-02', 'vera', 'purge', 'queue/a', '{"refused": "x"}'),
           ('2026-01-03', 'olga', 'pause', 'queue/b', NULL), ('2026-01-04', 'olga', 'purge', 'queue/b', NULL)""",
    )

    def found(query):
        return [each["entry"] for each in call(olga, "GET", f"audit?{query}").document["items"]]

    assert found("who=vera") == [2]
    assert found("what=purge") == [4, 2, 1]
    assert found("address=queue/b&who=olga") == [4, 3]
    assert found("refused=true") == [2]
    assert found("since=2026-01-02T00:00:00Z&until=2026-01-04") == [3, 2]
    assert found("what=purge&limit=1&after=4") == [2]
    assert found("who=%00") == []
    for wrong in ("since=yesterday", "until=0001-01-01", "refused=maybe", "whom=olga"):
        problem(call(olga, "GET", f"audit?{wrong}"), 400, "invalid")


def test_its_page_is_searched_by_the_same(operator, database):
    facts.empty_audit(database)
    facts.execute(
        database,
        """INSERT INTO surety.audit (at, who, what, address, result) VALUES
           ('2026-01-01', 'olga', 'purge', 'queue/a', NULL), ('2026-01-02', 'vera', 'pause', 'queue/b', '{"refused": "x"}')""",
    )
    facts.execute(database, "INSERT INTO surety.audit (at, who, what) SELECT '2026-01-03', 'rob', 'step' FROM generate_series(1, 101)")

    def found(query, status=200):
        response = operator.get(f"/audit?{query}")
        assert response.status_code == status
        page = response.content.decode()
        return [page.count(f'data-label="Who">{who}') for who in ("olga", "vera", "rob")]

    for query in ("who=olga", "what=purge", "address=queue/a", "until=2026-01-02T00:00", "since=0001-01-01T00:00&until=2026-01-01T00:01"):
        assert found(query) == [1, 0, 0], query
    assert found("refused=1") == found("since=2026-01-02T00:00&until=2026-01-03T00:00") == [0, 1, 0]
    assert found("what=destroy") == found("who=%00olga%00x") == [0, 0, 0]
    assert "Nothing like that was done." in operator.get("/audit?what=destroy").content.decode()
    assert found("who=rob") == [0, 0, 100]
    following = re.search(r'rel="next" href="([^"]+)"', operator.get("/audit?who=rob").content.decode())[1]
    assert found(unescape(following).partition("?")[2]) == [0, 0, 1], "the next page is of the same search"
    assert found("since=yesterday", 400) == [0, 0, 0]


def test_logins_are_in_it_the_refused_ones_too(database):
    facts.empty_audit(database)
    client = Client()
    client.post("/login", {"username": OPERATOR, "password": "wrong"})
    client.post("/login", {"username": OPERATOR, "password": PASSWORD})
    call(bearer("surety_wrong"), "GET", "whoami")
    assert facts.rows(database, "SELECT who, origin, what, address, result IS NOT NULL FROM surety.audit ORDER BY entry") == [
        ("a stranger", "127.0.0.1", "login", OPERATOR, True),
        (OPERATOR, "127.0.0.1", "login", "", False),
        ("a stranger", "127.0.0.1", "login by token", "", True),
    ]


@pytest.mark.parametrize("kind", [OperationalError, InterfaceError])
def test_a_command_says_its_own_refusal_though_the_audit_cannot_be_told(monkeypatch, kind):
    def fails(*_, **__):
        raise kind("connection already closed")

    monkeypatch.setattr(audited, "record", fails)
    with pytest.raises(CannotStart, match="no room"), audited.audited("restore", Path("/nowhere")):
        raise CannotStart("no room")
    with pytest.raises(CannotStart, match="The restore is done, but the audit could not be told of it"), audited.audited("restore", Path("/nowhere")):
        pass
