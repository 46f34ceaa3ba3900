"""Logging in and out: throttled, guarded against forgery, sent only to places of ours."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from console.models import LoginAttempt
from console.services import login
from tests.console import facts
from tests.console.conftest import OPERATOR, PASSWORD

RIGHT = {"username": OPERATOR, "password": PASSWORD}
WRONG = {"username": OPERATOR, "password": "wrong"}


def test_a_wrong_password_and_an_unknown_name_read_the_same(stranger):
    wrong = stranger.post("/login", WRONG)
    unknown = stranger.post("/login", {"username": "nobody", "password": "wrong"})
    assert (wrong.status_code, unknown.status_code) == (401, 401)
    assert "The name or the password is not right." in wrong.content.decode()
    assert "The name or the password is not right." in unknown.content.decode()
    assert stranger.get("/").status_code == 302


def test_after_five_failures_even_the_right_password_waits(stranger):
    for _ in range(5):
        assert stranger.post("/login", WRONG).status_code == 401
    response = stranger.post("/login", RIGHT)
    assert response.status_code == 429
    assert 1 <= int(response["Retry-After"]) <= 301
    assert "Too many failed logins" in response.content.decode()
    assert stranger.get("/").status_code == 302


def test_the_throttle_ends_with_the_window(stranger):
    for _ in range(5):
        stranger.post("/login", WRONG)
    LoginAttempt.objects.update(at=timezone.now() - timedelta(seconds=301))
    assert stranger.post("/login", RIGHT).status_code == 302


def test_someone_elses_failures_do_not_lock_the_operator_out(stranger):
    for _ in range(5):
        stranger.post("/login", WRONG, REMOTE_ADDR="192.0.2.66")
    assert stranger.post("/login", RIGHT, REMOTE_ADDR="192.0.2.1").status_code == 302


def test_one_place_cannot_try_many_names(stranger):
    codes = [stranger.post("/login", {"username": f"name-{n}", "password": "wrong"}).status_code for n in range(31)]
    assert codes == [401] * 30 + [429]


def test_the_audit_has_one_row_of_what_the_throttle_turned_away_from_a_place_in_a_window(stranger, database):
    def turned_away():
        rows = facts.rows(database, "SELECT who, origin, address, result ->> 'refused' FROM surety.audit WHERE what = 'login' ORDER BY entry")
        return [row[:3] for row in rows if row[3].startswith("too many")]

    for name in (OPERATOR, "vera"):
        for _ in range(9):
            stranger.post("/login", {"username": name, "password": "wrong"}, REMOTE_ADDR="192.0.2.66")
    assert turned_away() == [("a stranger", "192.0.2.66", OPERATOR)]
    for _ in range(7):
        stranger.post("/login", WRONG, REMOTE_ADDR="192.0.2.1")
    assert turned_away()[1:] == [("a stranger", "192.0.2.1", OPERATOR)]
    LoginAttempt.objects.update(at=timezone.now() - timedelta(seconds=301))
    for _ in range(7):
        stranger.post("/login", WRONG, REMOTE_ADDR="192.0.2.66")
    assert len(turned_away()) == 3


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("192.0.2.1", "192.0.2.1"), ("::ffff:192.0.2.1", "192.0.2.1"), ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"), ("::1", "::"),
        ("", "local"), ("nonsense", "local"),
    ],
)  # fmt: skip
def test_an_ipv6_network_counts_as_one_place(address, counted):
    assert login.network(address) == counted


def test_a_success_forgets_the_failures(stranger):
    for _ in range(4):
        stranger.post("/login", WRONG)
    stranger.post("/login", RIGHT)
    assert LoginAttempt.objects.count() == 0


@pytest.mark.parametrize("name", ["x" * 10_000, "nul\x00", "", "é" * 150])
def test_hostile_names_are_refused_and_counted(name, stranger):
    assert stranger.post("/login", {"username": name, "password": "p"}).status_code == 401
    assert LoginAttempt.objects.count() == 1


def test_a_login_opens_the_console_and_a_logout_closes_it(stranger):
    response = stranger.post("/login", RIGHT)
    assert (response.status_code, response["Location"]) == (302, "/")
    cookie = response.cookies["surety_session"]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
    assert stranger.get("/").status_code == 200
    stolen = cookie.value
    assert stranger.post("/logout")["Location"] == "/login"
    thief = Client()
    thief.cookies["surety_session"] = stolen
    assert thief.get("/").status_code == 302


def test_the_session_changes_at_login(stranger):
    stranger.get("/login")
    stranger.cookies["surety_session"] = "fixed-by-someone-else-0123456789"
    stranger.post("/login", RIGHT)
    assert stranger.cookies["surety_session"].value != "fixed-by-someone-else-0123456789"


@pytest.mark.parametrize(("asked", "sent"), [("/audit", "/audit"), ("https://evil.example/", "/"), ("//evil.example/", "/"), ("javascript:alert(1)", "/")])
def test_a_login_leads_only_to_places_of_ours(asked, sent, stranger):
    assert stranger.post("/login", {**RIGHT, "next": asked})["Location"] == sent


@pytest.mark.parametrize("path", ["/login", "/logout", "/destinations/create", "/destinations/1/purge", "/accounts/create", "/accounts/delete"])
def test_a_forged_form_is_refused(path, database):
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.get(username=OPERATOR))
    assert client.post(path, {**RIGHT, "name": "guest", "depth": 0}).status_code == 403
    assert facts.rows(database, "SELECT who, what FROM surety.audit WHERE result ? 'refused'") == [(OPERATOR, f"POST {path}")]


def test_a_logout_is_no_link(operator):
    assert operator.get("/logout").status_code == 405


def test_a_web_process_of_an_earlier_version_notes_failures_while_a_new_one_has_migrated(database):
    """It does not know of `told`."""
    facts.execute(database, "INSERT INTO console_loginattempt (name, address, at) VALUES ('olga', '10.0.0.1', now())")
    assert [attempt.told for attempt in LoginAttempt.objects.all()] == [False]
