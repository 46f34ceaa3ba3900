"""Verbs by destination: what roles and persons may do with what, and what a token leaves of that."""

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.test import override_settings

from console import permissions
from console.models import Grant
from console.permissions import ALL, BROWSE_BODIES, LOOK, MANAGE_ACCOUNT, MANAGE_DESTINATION, METRICS, PURGE, RESOLVE_TRANSACTIONS, SEND, VERBS, may, sight
from console.services import grants, operators
from console.services.audit import Actor, require
from tests.console import facts
from tests.console.api import bearer, call, granted, person, problem, token

NAMES = ["queue/orders", "queue/orders.eu", "queue/orders.eu.fr", "queue/ordersX", "queue/mq.sys.dmq", "topic/orders.eu", "queue/a+b", "queue/orders..x"]
MATCHES = {
    ">": NAMES,
    "queue/>": ["queue/orders", "queue/orders.eu", "queue/orders.eu.fr", "queue/ordersX", "queue/a+b", "queue/orders..x"],
    "queue/*": ["queue/orders", "queue/ordersX", "queue/a+b"],
    "queue/orders": ["queue/orders"],
    "queue/orders.*": ["queue/orders.eu"],
    "queue/orders.>": ["queue/orders", "queue/orders.eu", "queue/orders.eu.fr", "queue/orders..x"],
    "queue/orders.**": ["queue/orders.eu", "queue/orders.eu.fr", "queue/orders..x"],
    "queue/**.fr": ["queue/orders.eu.fr"],
    "queue/orders.**.x": ["queue/orders..x"],
    "topic/**": ["topic/orders.eu"],
    "queue/mq.sys.dmq": ["queue/mq.sys.dmq"],
    "queue/mq.>": ["queue/mq.sys.dmq"],
    "queue/a+b": ["queue/a+b"],
}


@pytest.fixture
def rita(database):
    return person("rita", role="restricted")


@pytest.mark.parametrize("pattern", MATCHES)
def test_a_pattern_means_the_same_here_and_in_the_database(pattern, rita):
    granted(rita, pattern, METRICS)
    within = sight(Actor(rita))
    assert [name for name in NAMES if may(Actor(rita), METRICS, name)] == MATCHES[pattern]
    condition, parameters = within.condition("name")
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT name FROM unnest(%(names)s::text[]) WITH ORDINALITY AS t(name, n) WHERE {condition} ORDER BY n", {"names": NAMES, **parameters})
        assert [name for (name,) in cursor.fetchall()] == MATCHES[pattern]


@pytest.mark.parametrize("pattern", ["", "*", ">>", "orders", "queue/", "queue/a*", "queue/>.a", "queue/**.**", "temp-queue/a", "queue/" + "a" * 300])
def test_what_is_no_pattern_is_refused_with_a_sentence(pattern, rita):
    with pytest.raises(grants.InvalidGrant, match="pattern"):
        grants.create(_administrator(), pattern, [METRICS], operator="rita")


def test_the_roles_may_what_they_have_at_first(database):
    viewer, operator = Actor(person("vera")), Actor(person("otto", role="operator"))
    assert [verb for verb in VERBS if may(viewer, verb, "queue/a")] == ["metrics", "browse_headers"]
    assert [verb for verb in VERBS if may(operator, verb, "queue/mq.sys.dmq")] == [verb for verb in VERBS if verb != RESOLVE_TRANSACTIONS]
    assert all(may(_administrator(), right, "queue/a") for right in (*VERBS, LOOK, MANAGE_ACCOUNT))
    assert may(operator, MANAGE_DESTINATION)
    assert not may(operator, MANAGE_ACCOUNT)
    rita = Actor(person("rita", role="restricted"))
    assert not any(may(rita, verb, "queue/a") for verb in VERBS)


def test_a_disabled_person_may_nothing(database):
    user = User.objects.get(username="olga")
    user.is_active = False
    assert not any(may(Actor(user), verb, "queue/a") for verb in VERBS)


def test_what_is_granted_by_name_is_added_to_the_role(database):
    vera = person("vera")
    granted(vera, "queue/orders.*", SEND, PURGE)
    assert may(Actor(vera), PURGE, "queue/orders.eu")
    assert not may(Actor(vera), PURGE, "queue/orders")
    assert not may(Actor(vera), PURGE), "of every destination"
    assert may(Actor(vera), METRICS, "queue/orders")


def test_what_concerns_any_destination_needs_the_verb_of_all(rita):
    granted(rita, "queue/>", RESOLVE_TRANSACTIONS)
    assert not may(Actor(rita), RESOLVE_TRANSACTIONS)
    granted(rita, ALL, RESOLVE_TRANSACTIONS)
    assert may(Actor(User.objects.get(username="rita")), RESOLVE_TRANSACTIONS)


def test_a_token_leaves_less_than_its_owner_may(database):
    otto = person("otto", role="operator")
    limited = Actor(otto, verbs=(SEND, METRICS), patterns=("queue/orders.*",))
    assert may(limited, SEND, "queue/orders.eu")
    assert not may(limited, SEND, "queue/other")
    assert not may(limited, PURGE, "queue/orders.eu")
    assert not may(limited, LOOK)
    assert not may(Actor(User.objects.get(username="olga"), patterns=(ALL,)), MANAGE_ACCOUNT), "it is no token of the whole broker"
    reads = Actor(otto, read_only=True)
    assert may(reads, BROWSE_BODIES, "queue/a")
    assert not may(reads, PURGE, "queue/a")


def test_a_token_gives_nothing_that_its_owner_has_not(rita):
    granted(rita, "queue/a", METRICS)
    assert not may(Actor(rita, verbs=(PURGE,), patterns=(ALL,)), PURGE, "queue/a")
    assert not may(Actor(rita, patterns=("queue/b",)), METRICS, "queue/b")
    assert may(Actor(rita, patterns=("queue/*",)), METRICS, "queue/a")


def test_a_refusal_names_the_verb_and_is_recorded(rita, database):
    with pytest.raises(PermissionDenied, match="the permission purge"):
        require(Actor(rita, "10.0.0.1"), PURGE, "purge", "queue/a")
    assert facts.rows(database, "SELECT who, origin, what, address, result ->> 'refused' FROM surety.audit") == [
        ("rita", "10.0.0.1", "purge", "queue/a", "needs the permission purge")
    ]


def test_grants_by_rest(database):
    olga = bearer(token(User.objects.get(username="olga")))
    rita = person("rita", role="restricted")
    assert call(olga, "POST", "grants", {"operator": "rita", "pattern": "queue/orders.*", "verbs": ["purge", "metrics"]}).status_code == 201
    problem(call(olga, "POST", "grants", {"operator": "rita", "pattern": "queue/orders.*", "verbs": ["send"]}), 409, "exists")
    problem(call(olga, "POST", "grants", {"operator": "nobody", "pattern": "queue/a", "verbs": ["send"]}), 400, "invalid")
    problem(call(olga, "POST", "grants", {"operator": "rita", "role": "viewer", "pattern": "queue/a", "verbs": ["send"]}), 400, "invalid")
    problem(call(olga, "POST", "grants", {"pattern": "queue/a", "verbs": ["send"]}), 400, "invalid")
    problem(call(olga, "POST", "grants", {"operator": "rita", "pattern": "queue/b", "verbs": []}), 400, "invalid")
    [listed] = [each for each in call(olga, "GET", "grants").document["items"] if each["operator"] == "rita"]
    assert (listed["pattern"], listed["verbs"]) == ("queue/orders.*", ["metrics", "purge"])
    for sought, found in (("Orders", {"rita"}), ("rit", {"rita"}), ("VIEWER", {""}), ("nothing", set())):
        assert {each["operator"] for each in call(olga, "GET", f"grants?search={sought}").document["items"]} == found, sought
    assert call(olga, "PATCH", f"grants/{listed['number']}", {"verbs": ["send"]}).status_code == 200
    assert Grant.objects.get(user=rita).verbs == ["send"]
    assert call(olga, "DELETE", f"grants/{listed['number']}").status_code == 200
    problem(call(olga, "DELETE", f"grants/{listed['number']}"), 404, "not-found")
    told = facts.rows(database, "SELECT what, address, arguments ->> 'to' FROM surety.audit WHERE what LIKE 'grant%' ORDER BY entry")
    assert told == [(f"grant {verb}", "queue/orders.*", "rita") for verb in ("create", "update", "delete")]


def test_lists_show_what_one_may_see(rita, database):
    for number, name in enumerate(("queue/orders.eu", "queue/salaries", "topic/orders.eu"), 1):
        facts.destination(database, number, name, depth=number)
    granted(rita, "queue/orders.*", METRICS)
    client = bearer(token(rita))
    assert [each["address"] for each in call(client, "GET", "destinations").document["items"]] == ["queue/orders.eu"]
    assert call(client, "GET", "destinations?search=salaries").document["items"] == []
    assert call(client, "GET", "destinations?address=queue/salaries").document["items"] == []
    assert call(client, "GET", "destinations/1").status_code == 200
    assert call(client, "GET", "destinations/2").status_code == 404
    assert call(client, "GET", "audit").status_code == 403
    olga = bearer(token(User.objects.get(username="olga"), patterns=["topic/>"]))
    assert [each["address"] for each in call(olga, "GET", "destinations").document["items"]] == ["topic/orders.eu"]
    assert call(olga, "POST", "accounts", {"name": "shop", "password": "long enough"}).status_code == 403


@override_settings(CONTROL_WAIT_SECONDS=0)
def test_an_alias_is_for_who_manages_what_it_stands_for(rita, database):
    granted(rita, "queue/mine.*", "manage")
    client = bearer(token(rita))
    problem(call(client, "POST", "aliases", {"address": "queue/mine.a", "target": "queue/salaries"}), 403, "forbidden")
    assert call(client, "POST", "aliases", {"address": "queue/mine.a", "target": "queue/mine.b"}).status_code == 202
    problem(call(client, "PATCH", "aliases/queue/mine.a", {"target": "queue/salaries"}), 403, "forbidden")


def test_who_asks_is_told_what_he_may(rita):
    granted(rita, "queue/orders.*", METRICS)
    told = call(bearer(token(rita, patterns=["queue/orders.eu"])), "GET", "whoami").document
    assert told["role"] == "restricted"
    assert told["grants"] == [{"pattern": "queue/orders.*", "verbs": ["metrics"]}]
    assert told["token_patterns"] == ["queue/orders.eu"]


def test_roles_are_given_by_administrators(database):
    person("vera")
    olga = bearer(token(User.objects.get(username="olga")))
    for role in (*permissions.ROLES, "viewer"):
        assert call(olga, "PATCH", "operators/vera", {"role": role}).status_code == 200
        assert call(olga, "GET", "operators/vera").document["role"] == role
        assert User.objects.get(username="vera").is_superuser == (role == "administrator")
    problem(call(olga, "PATCH", "operators/vera", {"role": "king"}), 400, "invalid")
    problem(call(olga, "PATCH", "operators/olga", {"role": "viewer"}), 400, "invalid")
    with pytest.raises(operators.InvalidOperator, match="role"):
        operators.set_role(_administrator(), "vera", "king")


def test_the_grants_of_a_person_cost_one_query(rita, django_queries):
    actor = Actor(User.objects.get(username="rita"))
    with django_queries() as asked:
        for verb in VERBS:
            may(actor, verb, "queue/a")
        sight(actor)
    assert len([query for query in asked if "grant" in query["sql"]]) == 1


@pytest.fixture
def django_queries():
    from django.test.utils import CaptureQueriesContext

    return lambda: CaptureQueriesContext(connection)


def _administrator():
    return Actor(User.objects.get(username="olga"))
