"""Single sign-on by OpenID Connect, with a provider over a real socket: who it shows comes in with the role of his groups, and nobody else."""

import time
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.test import Client, override_settings

from console import settings as console_settings
from console import single_sign_on
from console.models import LoginAttempt
from console.oidc_settings import Settings
from console.permissions import role_of
from tests.console import facts
from tests.support.oidc import CLIENT_ID, CLIENT_SECRET, Provider

ROLES = tuple((role, frozenset({group})) for role, group in (("administrator", "chiefs"), ("operator", "ops"), ("viewer", "staff"), ("restricted", "guests")))


@pytest.fixture(scope="module")
def running():
    provider = Provider()
    yield provider
    provider.stop()


@pytest.fixture
def provider(running, database):
    facts.empty_audit(database)
    single_sign_on._clients.clear()
    first = {"claims": dict(running.claims), "wrong": {}, "metadata": {}, "sign_with_other_key": False, "unsigned": False, "without_id_token": False}
    with override_settings(OIDC=Settings(running.issuer, CLIENT_ID, CLIENT_SECRET, "preferred_username", "groups", ROLES)):
        yield running
    for name, value in first.items():
        setattr(running, name, value)


def begins(client, following="/audit"):
    """Where the provider sends the browser back to."""
    response = client.get("/login/sign-on", {"next": following})
    assert response.status_code == 302
    return response["Location"]


def comes(provider, client, following="/audit"):
    return client.get(provider.authorize(begins(client, following)))


def refused(response, status=403):
    assert response.status_code == status
    assert "_auth_user_id" not in response.wsgi_request.session
    assert not User.objects.filter(username="erna").exists()
    return response.content.decode()


# -- off ----------------------------------------------------------------------------------------------------------------------------------
def test_unless_it_is_configured_there_is_none(stranger):
    assert stranger.get("/login/sign-on").status_code == 404
    assert stranger.get("/login/sign-on/back").status_code == 404
    assert b"sign-on" not in stranger.get("/login").content


GIVEN = {"ISSUER": "https://id.example/realm", "CLIENT_ID": "a", "CLIENT_SECRET": "b", "OPERATORS": "ops,on-call"}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"CLIENT_SECRET": ""}, "SURETY_OIDC_CLIENT_SECRET is missing"),
        ({"ISSUER": "http://id.example"}, "must be an https URL"),
        ({"OPERATORS": ""}, "must name a group"),
    ],
)
def test_half_a_configuration_stops_the_start(changed, why, monkeypatch):
    for name, value in {**GIVEN, **changed}.items():
        monkeypatch.setenv(f"SURETY_OIDC_{name}", value)
    with pytest.raises(ImproperlyConfigured, match=why):
        console_settings.single_sign_on()


def test_a_whole_configuration(monkeypatch):
    for name, value in GIVEN.items():
        monkeypatch.setenv(f"SURETY_OIDC_{name}", value)
    made = console_settings.single_sign_on()
    assert (made.issuer, made.name_claim, made.groups_claim, made.title) == ("https://id.example/realm", "preferred_username", "groups", "id.example")
    assert dict(made.roles)["operator"] == {"ops", "on-call"}


# -- what must not happen -----------------------------------------------------------------------------------------------------------------
WRONG_TOKENS = {
    "another's nonce": {"nonce": "of another login"},
    "no nonce": {"nonce": None},
    "another audience": {"aud": "another client"},
    "several audiences, ours not among them": {"aud": ["a", "b"]},
    "expired": {"exp": int(time.time()) - 3600},
    "no expiry": {"exp": None},
    "another issuer": {"iss": "https://evil.example"},
    "no subject": {"sub": None},
    "no name": {"preferred_username": None},
    "a name that is no text": {"preferred_username": ["erna"]},
    "groups that are no list": {"groups": {"staff": True}},
}


@pytest.mark.parametrize("wrong", WRONG_TOKENS)
def test_a_token_that_is_not_for_this_login_lets_nobody_in(wrong, provider, stranger, database):
    provider.wrong = WRONG_TOKENS[wrong]
    assert "has not shown who you are" in refused(comes(provider, stranger))
    [(who, result)] = facts.rows(database, "SELECT who, result FROM surety.audit")
    assert who == "a stranger"
    assert "refused" in result


def test_a_token_signed_by_somebody_else_lets_nobody_in(provider, stranger):
    provider.sign_with_other_key = True
    refused(comes(provider, stranger))


def test_an_unsigned_token_lets_nobody_in(provider, stranger):
    provider.unsigned = True
    refused(comes(provider, stranger))


def test_no_token_lets_nobody_in(provider, stranger):
    provider.without_id_token = True
    refused(comes(provider, stranger))


def test_a_state_that_this_browser_did_not_begin_with_is_refused_before_anybody_is_asked(provider, stranger):
    back = provider.authorize(begins(stranger))
    asked = len(provider.exchanged)
    refused(stranger.get(back.replace("state=", "state=x")))
    refused(Client().get(back))
    assert len(provider.exchanged) == asked


def test_a_cookie_that_is_forged_or_too_old_is_none(provider, stranger):
    back = provider.authorize(begins(stranger))
    stranger.cookies["surety_sign_on"] = "forged:" + stranger.cookies["surety_sign_on"].value
    refused(stranger.get(back))


def test_coming_back_twice_is_refused(provider, stranger):
    back = provider.authorize(begins(stranger))
    assert stranger.get(back).status_code == 302
    other = Client()
    assert other.get(back).status_code == 403


def test_what_the_provider_refuses_is_refused(provider, stranger):
    begins(stranger)
    refused(stranger.get("/login/sign-on/back", {"error": "access_denied", "state": "x"}))


def test_metadata_of_another_issuer_are_refused(provider, stranger):
    provider.metadata = {"issuer": "https://evil.example"}
    assert stranger.get("/login/sign-on").status_code == 502


def test_a_provider_that_cannot_be_reached_is_said_so(provider, stranger):
    with override_settings(OIDC=Settings("http://127.0.0.1:9", CLIENT_ID, CLIENT_SECRET, "preferred_username", "groups", ROLES)):
        response = stranger.get("/login/sign-on")
    assert response.status_code == 502
    assert "does not answer" in response.content.decode()


def test_who_is_in_no_group_that_counts_stays_outside(provider, stranger):
    provider.claims = {**provider.claims, "groups": ["nobody"]}
    assert "in no group" in refused(comes(provider, stranger))


def test_nobody_becomes_an_operator_that_is_there_by_having_his_name(provider, stranger):
    provider.claims = {**provider.claims, "preferred_username": "olga", "groups": ["chiefs"]}
    response = comes(provider, stranger)
    assert response.status_code == 403
    assert "logs in otherwise" in response.content.decode()
    assert "_auth_user_id" not in stranger.session


def test_who_is_disabled_here_stays_outside(provider, stranger):
    comes(provider, stranger)
    User.objects.filter(username="erna").update(is_active=False)
    response = comes(provider, Client())
    assert response.status_code == 403
    assert "disabled" in response.content.decode()


def test_failures_are_throttled_like_logins(provider, stranger):
    provider.sign_with_other_key = True
    assert [comes(provider, stranger).status_code for _ in range(6)] == [403] * 5 + [429]


@pytest.mark.parametrize("following", ["https://evil.example/", "//evil.example", "javascript:alert(1)"])
def test_nobody_is_sent_elsewhere(following, provider, stranger):
    assert comes(provider, stranger, following)["Location"] == "/"


# -- what does --------------------------------------------------------------------------------------------------------------------------------
def test_who_is_shown_comes_in_and_where_he_wanted_to(provider, stranger, database):
    assert b"/login/sign-on?next=%2Faudit" in stranger.get("/login?next=/audit").content
    response = comes(provider, stranger)
    assert (response.status_code, response["Location"]) == (302, "/audit")
    assert stranger.get("/audit").status_code == 200
    user = User.objects.get(username="erna")
    assert not user.has_usable_password()
    assert role_of(user) == "viewer"
    assert LoginAttempt.objects.count() == 0
    told = facts.rows(database, "SELECT who, what, address FROM surety.audit ORDER BY entry")
    assert told == [("single sign-on", "operator create", "erna"), ("erna", "login", "")]


def test_the_groups_of_each_login_give_the_role(provider, database):
    for groups, role in ((["guests"], "restricted"), (["staff", "ops"], "operator"), (["chiefs", "ops"], "administrator"), ("staff", "viewer")):
        provider.claims = {**provider.claims, "groups": groups}
        assert comes(provider, Client()).status_code == 302
        assert role_of(User.objects.get(username="erna")) == role
    assert User.objects.filter(username="erna").count() == 1
    roles = [role for (role,) in facts.rows(database, "SELECT arguments ->> 'role' FROM surety.audit WHERE what = 'operator role' ORDER BY entry")]
    assert roles == ["restricted", "operator", "administrator", "viewer"]


def test_who_has_left_all_groups_has_no_role_any_more(provider, database):
    """What he has made elsewhere acts for him still."""
    provider.claims = {**provider.claims, "groups": ["chiefs"]}
    comes(provider, Client())
    provider.claims = {**provider.claims, "groups": []}
    assert comes(provider, Client()).status_code == 403
    assert role_of(User.objects.get(username="erna")) == "restricted"
    provider.claims = {**provider.claims, "groups": ["ops"]}
    assert comes(provider, Client()).status_code == 302
    assert role_of(User.objects.get(username="erna")) == "operator"


def test_who_has_another_name_at_the_provider_now_is_the_same_operator(provider, stranger):
    comes(provider, stranger)
    provider.claims = {**provider.claims, "preferred_username": "erna.new"}
    assert comes(provider, Client()).status_code == 302
    assert not User.objects.filter(username="erna.new").exists()


def test_the_session_is_a_new_one_and_the_flows_cookie_is_gone(provider, stranger):
    url = begins(stranger)
    assert {"state", "nonce", "code_challenge"} <= set(parse_qs(urlsplit(url).query))
    cookie = stranger.cookies["surety_sign_on"]
    assert (cookie["httponly"], cookie["samesite"]) == (True, "Lax")
    assert "surety_session" not in stranger.cookies, "strangers make no sessions"
    stranger.get(provider.authorize(url))
    assert stranger.cookies["surety_sign_on"].value == ""
    assert stranger.cookies["surety_session"]["httponly"]
