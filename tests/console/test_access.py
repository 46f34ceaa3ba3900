"""Rules of access as operators make them, and passwords that overlap."""

import psycopg
import pytest
from django.contrib.auth.models import User

from broker_core.control import Rule
from broker_core.scram import Verifier, check_password
from console.services import access, accounts
from console.services.audit import Actor
from tests.console import facts
from tests.console.api import bearer, call, problem, token

RULE = {"resource": "queue/orders.*", "operation": "consume", "allow": False, "principal": "shop"}


@pytest.fixture
def olga(database):
    return Actor(User.objects.get(username="olga"), "10.0.0.1")


@pytest.fixture
def client(olga):
    return bearer(token(olga.user))


def test_at_first_every_account_may_everything(client):
    listed = call(client, "GET", "access").document["items"]
    assert [(each["resource"], each["principal"], each["allow"]) for each in listed] == [(">", "*", True)] * 4


@pytest.mark.parametrize(
    "wrong", [{"resource": "orders"}, {"resource": "queue/a*"}, {"operation": "eat"}, {"principal": ""}, {"principal": "a\nb"}, {"resource": "temp-queue/a"}]
)
def test_what_is_no_rule_is_refused(wrong, client, database):
    problem(call(client, "POST", "access", {**RULE, **wrong}), 400, "invalid")
    assert facts.rows(database, "SELECT count(*) FROM surety.access_rule") == [(4,)]


def test_a_rule_is_made_told_to_the_node_and_recorded(client, database):
    with psycopg.connect(database, autocommit=True) as listening:
        listening.execute("LISTEN surety_access")
        made = call(client, "POST", "access", RULE)
        assert made.status_code == 201
        number = made["Location"].rpartition("/")[2]
        assert call(client, "GET", f"access/{number}").document == {"number": int(number), "group": False, **RULE}
        problem(call(client, "POST", "access", RULE), 409, "exists")
        assert call(client, "DELETE", f"access/{number}").status_code == 200
        problem(call(client, "DELETE", f"access/{number}"), 404, "not-found")
        assert len(list(listening.notifies(timeout=5, stop_after=2))) == 2
    told = facts.rows(database, "SELECT what, address, arguments ->> 'principal' FROM surety.audit WHERE what LIKE 'access %' ORDER BY entry")
    assert told == [("access create", "queue/orders.*", "shop"), ("access delete", "queue/orders.*", "shop")]


def test_whoever_shuts_everybody_out_is_warned(olga):
    assert "no account may consume" in access.create(olga, Rule(">", "consume", False, "*")).warnings[0]
    assert "no account may produce" in access.delete(olga, 1)[0]


def test_two_passwords_are_good_for_a_while(client, olga, database):
    accounts.create(olga, "shop", "the first one")
    assert call(client, "PATCH", "accounts/shop", {"password": "the second one", "overlap_seconds": 60}).status_code == 200
    now, before = _verifiers(database)
    assert check_password("the second one", now)
    assert check_password("the first one", before)
    assert call(client, "GET", "accounts/shop").document["rotating_until"] is not None
    assert call(client, "PATCH", "accounts/shop", {"password": "the third one"}).status_code == 200
    assert facts.rows(database, "SELECT previous_stored_key, previous_until FROM surety.account WHERE name = 'shop'") == [(None, None)]
    assert call(client, "GET", "accounts/shop").document["rotating_until"] is None


@pytest.mark.parametrize("wrong", [{"overlap_seconds": 60}, {"password": "long enough", "overlap_seconds": 30 * 86_400 + 1}, {"connections_max": -1},
                                   {"groups": [""]}, {"groups": ["*"]}])  # fmt: skip
def test_what_cannot_be_of_an_account(wrong, client):
    problem(call(client, "PATCH", "accounts/guest", wrong), 400, "invalid")


def test_groups_and_limits(client, olga):
    accounts.create(olga, "shop", "the first one")
    assert call(client, "PATCH", "accounts/shop", {"groups": ["b", "a", "b"], "connections_max": 3}).status_code == 200
    assert call(client, "PATCH", "accounts/shop", {"sessions_max": 2}).status_code == 200
    told = call(client, "GET", "accounts/shop").document
    assert (told["groups"], told["connections_max"], told["sessions_max"]) == (["a", "b"], 3, 2)


def _verifiers(database):
    [row] = facts.rows(
        database, "SELECT salt, iterations, stored_key, server_key, previous_stored_key, previous_server_key FROM surety.account WHERE name = 'shop'"
    )
    return Verifier(*row[:4]), Verifier(*row[:2], *row[4:])
