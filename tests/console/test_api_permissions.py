"""Every call of the API with every kind of caller: strangers are asked who they are, viewers and read tokens look, each right opens its own calls."""

import itertools

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings

from console.api.state import document
from console.models import ApiToken
from tests.console import facts
from tests.console.test_api_message_permissions import MESSAGES
from tests.console.api import ROOT, bearer, call, granted, logged_in, person, token

MANAGE, DISCARD, ACCOUNT, RESOLVE = RIGHTS = "manage_destination", "discard_message", "manage_account", "resolve_transactions"
SUPERUSER, ANYBODY, LOOKERS = "superuser", "", "who sees every destination"
READS = {
    "whoami": ANYBODY, "node": ANYBODY, "node/listeners": ANYBODY, "nodes": ANYBODY,
    "health": ANYBODY, "totals": LOOKERS, "audit": LOOKERS, "problems": ANYBODY, "schema/": ANYBODY,
    "totals/history": LOOKERS, "destinations/1/history": ANYBODY,
    "requests/1": ANYBODY, "destinations": ANYBODY, "destinations/1": ANYBODY, "policies": LOOKERS, "policies/queue/a": LOOKERS, "aliases": LOOKERS,
    "aliases/queue/a": LOOKERS, "objects": LOOKERS, "objects/a": LOOKERS, "links": LOOKERS, "links/a": LOOKERS, "subscriptions": ANYBODY,
    "subscriptions/stale": ANYBODY, "subscriptions/1": ANYBODY,
    "branches": LOOKERS, "branches/1": LOOKERS, "branches/1/items": LOOKERS, "operations": ANYBODY, "operations/1": ANYBODY,
    "undo": ANYBODY, "undo/1": ANYBODY,
    "accounts": LOOKERS, "accounts/guest": LOOKERS, "access": LOOKERS, "access/1": LOOKERS,
    "alerts": LOOKERS, "alerts/a": LOOKERS, "firing": LOOKERS, "alert-events": LOOKERS,
    "schedule": LOOKERS, "schedule/expire": LOOKERS,
    "pipeline": LOOKERS, "pipeline/runs": LOOKERS, "pipeline/runs/1": LOOKERS,
    "pipeline/audits": LOOKERS, "pipeline/audits/1": LOOKERS, "pipeline/audits/1/violations": LOOKERS, "pipeline/points": ANYBODY,
    "pipeline/replays": LOOKERS, "pipeline/replays/1": LOOKERS,
    "operators": SUPERUSER, "operators/olga": SUPERUSER,
    "definitions": SUPERUSER, "grants": SUPERUSER, "grants/1": SUPERUSER, "tokens": ANYBODY,
}  # fmt: skip
SETTINGS = {"settings": {"max_messages": 5}}
WRITES = [
    ("POST", "pipeline/replays", {"destination": "queue/orders", "into": "queue/a"}, SUPERUSER),
    ("POST", "pipeline/replays/1/cancel", None, SUPERUSER),
    ("POST", "destinations", {"address": "queue/new"}, MANAGE),
    ("PATCH", "destinations/1", SETTINGS, MANAGE),
    ("DELETE", "destinations/1?depth=0", None, DISCARD),
    ("DELETE", "destinations/1?dry_run=true", None, DISCARD),
    ("POST", "destinations/1/pause", {"direction": "ALL"}, MANAGE),
    ("POST", "destinations/1/resume", {"direction": "ALL"}, MANAGE),
    ("POST", "destinations/1/reset", None, MANAGE),
    ("POST", "totals/reset", None, MANAGE),
    ("POST", "destinations/1/purge", {"depth": 0}, DISCARD),
    ("POST", "destinations/1/purge?dry_run=true", {"depth": 0}, DISCARD),
    ("POST", "destinations/1/operations", {"verb": "delete"}, DISCARD),
    ("POST", "destinations/1/operations", {"verb": "purge", "filter": {"age_min_ms": 5}}, DISCARD),
    ("POST", "destinations/1/operations", {"verb": "move", "destination": "queue/b"}, SUPERUSER),
    ("POST", "operations/1/cancel", None, DISCARD),
    ("POST", "undo/1/undo", None, DISCARD),
    ("POST", "subscriptions", {"address": "topic/a", "name": "new", "account": "guest"}, MANAGE),
    ("DELETE", "subscriptions/1", None, DISCARD),
    ("DELETE", "subscriptions/1?dry_run=true", None, DISCARD),
    ("POST", "subscriptions/1/purge", None, DISCARD),
    ("POST", "subscriptions/1/purge?dry_run=true", None, DISCARD),
    ("DELETE", "undo/1", None, DISCARD),
    ("DELETE", "undo/1?dry_run=true", None, DISCARD),
    ("PUT", "policies/queue/a", SETTINGS, MANAGE),
    ("DELETE", "policies/queue/a", None, MANAGE),
    ("POST", "aliases", {"address": "queue/new", "target": "queue/a"}, MANAGE),
    ("PATCH", "aliases/queue/a", {"target": "queue/b"}, MANAGE),
    ("DELETE", "aliases/queue/a", None, MANAGE),
    ("POST", "objects", {"name": "b", "kind": "factory"}, MANAGE),
    ("PUT", "objects/a", {"attributes": {}}, MANAGE),
    ("DELETE", "objects/a", None, MANAGE),
    ("POST", "links", {"name": "b", "attributes": {"host": "far.example"}}, MANAGE),
    ("PUT", "links/a", {"attributes": {"host": "far.example"}}, MANAGE),
    ("DELETE", "links/a", None, MANAGE),
    ("POST", "branches/1/commit", None, RESOLVE),
    ("POST", "branches/1/rollback", None, RESOLVE),
    ("POST", "branches/1/forget", None, RESOLVE),
    ("POST", "accounts", {"name": "shop", "password": "long enough"}, ACCOUNT),
    ("PATCH", "accounts/guest", {"disabled": True}, ACCOUNT),
    ("DELETE", "accounts/a", None, ACCOUNT),
    ("POST", "access", {"resource": "queue/a", "operation": "consume", "allow": False, "principal": "guest"}, ACCOUNT),
    ("DELETE", "access/1", None, ACCOUNT),
    ("POST", "node/quiesce", None, SUPERUSER),
    ("POST", "node/unquiesce", None, SUPERUSER),
    ("POST", "node/drain", {"seconds": 5}, SUPERUSER),
    ("POST", "node/compact", {"percent": 50}, SUPERUSER),
    ("POST", "node/listeners/amqp/pause", None, SUPERUSER),
    ("POST", "node/listeners/amqp/resume", None, SUPERUSER),
    ("POST", "nodes/node-2/takeover", None, SUPERUSER),
    ("PATCH", "schedule/expire", {"enabled": True}, SUPERUSER),
    ("POST", "schedule/expire/run", None, SUPERUSER),
    ("POST", "alerts", {"name": "b", "metric": "in_doubt", "threshold": 5}, SUPERUSER),
    ("PATCH", "alerts/a", {"threshold": 7}, SUPERUSER),
    ("POST", "alert-tests", {"name": "a"}, SUPERUSER),
    ("DELETE", "alerts/a", None, SUPERUSER),
    ("POST", "operators", {"name": "otto", "password": "long enough 17"}, SUPERUSER),
    ("PATCH", "operators/vera", {"disabled": False}, SUPERUSER),
    ("POST", "grants", {"role": "viewer", "pattern": "queue/a", "verbs": ["send"]}, SUPERUSER),
    ("POST", "definitions", "accounts: {shop: {disabled: true}}", SUPERUSER),
    ("POST", "definitions?dry_run=true", "accounts: {shop: }", SUPERUSER),
    ("PATCH", "grants/1", {"verbs": ["metrics"]}, SUPERUSER),
    ("DELETE", "grants/2", None, SUPERUSER),
]
OWN = {("POST", "/api/v1/tokens"), ("DELETE", "/api/v1/tokens/{number}")}
"""Whoever has logged in has tokens of his own: test_api_calls.py."""
OPEN_TO_READ_TOKENS = "dry_run=true"
TABLES = (
    "surety.account", "surety.access_rule", "auth_user", "surety.administered", "surety.foreign_link", "surety.control_request", "auth_user_user_permissions",
    "console_grant", "console_alertrule", "console_alertevent", "console_totalsreset",
)  # fmt: skip


@pytest.fixture
def things(database):
    """One of everything that the calls name."""
    facts.destination(database, 1, "queue/orders", depth=0)
    facts.one_of_each(database)
    with override_settings(CONTROL_WAIT_SECONDS=0, LOOK_WAIT_SECONDS=0):
        yield database


def _state(database):
    return [facts.rows(database, f"SELECT * FROM {table} ORDER BY 1, 2") for table in TABLES]


def test_every_call_of_the_document_is_in_the_matrix():
    told = {(method.upper(), path) for path, methods in document()["paths"].items() for method in methods if method != "parameters"}
    covered = {("GET", _template(path)) for path in READS} | {(method, _template(path)) for method, path, _, _ in WRITES}
    assert told == covered | OWN | MESSAGES


def _template(path):
    """The address in the document of one that is called."""
    first, _, rest = path.partition("?")[0].partition("/")
    if not rest:
        return ROOT + path.partition("?")[0]
    if rest in ("stale", "reset", "history"):
        return ROOT + path
    if first == "pipeline":
        return f"{ROOT}pipeline/{rest.replace('/1', '/{number}')}"
    if rest == "1/items":
        return f"{ROOT}{first}/{{number}}/items"
    if first in ("destinations", "operations", "undo", "subscriptions", "branches", "requests", "grants", "access"):
        _, slash, verb = rest.partition("/")
        return f"{ROOT}{first}/{{number}}{slash}{verb if first in ('destinations', 'operations', 'undo', 'subscriptions') else '{verb}' if verb else ''}"
    if first in ("node", "nodes"):
        return ROOT + path.replace("/amqp/", "/{name}/").replace("/node-2/", "/{name}/")
    return f"{ROOT}{first}/{{name}}{'/run' if first == 'schedule' and rest.endswith('/run') else ''}"


@pytest.mark.parametrize("path", READS)
def test_reading(path, things, viewer):
    for stranger in (Client(), bearer("surety_wrong")):
        assert call(stranger, "GET", path).status_code == 401
    vera, olga = User.objects.get(username="vera"), User.objects.get(username="olga")
    expected = 403 if READS[path] == SUPERUSER else 200
    for client in (viewer, bearer(token(vera)), bearer(token(vera, "read", "r"))):
        assert call(client, "GET", path).status_code == expected
    for client in (logged_in(olga), bearer(token(olga)), bearer(token(olga, "read", "r"))):
        assert call(client, "GET", path).status_code == 200


@pytest.mark.parametrize(("method", "path", "body", "needs"), WRITES)
def test_nothing_is_done_by_who_may_not(method, path, body, needs, things, viewer):
    others = [person(f"has all but {needs}".replace(" ", "."), *(right for right in RIGHTS if right != needs))]
    able = person("able", needs) if needs in RIGHTS else User.objects.get(username="olga")
    vera = User.objects.get(username="vera")
    refused = [viewer, bearer(token(vera)), bearer(token(vera, "read", "r")), *map(logged_in, others), bearer(token(others[0]))]
    if OPEN_TO_READ_TOKENS not in path:
        refused.append(bearer(token(able, "read")))
    before = _state(things)
    facts.empty_audit(things)
    for stranger in (Client(), bearer("surety_wrong")):
        assert call(stranger, method, path, body).status_code == 401
    for client in refused:
        response = call(client, method, path, body)
        assert (response.status_code, response.document["code"]) == (403, "forbidden")
    assert _state(things) == before
    counted = "SELECT count(*) FILTER (WHERE who = 'a stranger'), count(*) FILTER (WHERE who <> 'a stranger') FROM surety.audit WHERE result ? 'refused'"
    assert facts.rows(things, counted) == [(1, len(refused))]


@pytest.mark.parametrize(("method", "path", "body", "needs"), WRITES)
@pytest.mark.parametrize("by", ["session", "token"])
def test_who_has_the_right_does_it(by, method, path, body, needs, things, viewer):
    able = person("able", needs) if needs in RIGHTS else User.objects.get(username="olga")
    response = call(logged_in(able) if by == "session" else bearer(token(able)), method, path, body)
    assert response.status_code in (200, 201, 202), response.document


def test_the_role_of_operators_opens_what_is_done_to_destinations_and_nothing_else(things):
    client = bearer(token(person("otto", role="operator")))
    for path, needs in READS.items():
        assert (path, call(client, "GET", path).status_code) == (path, 403 if needs == SUPERUSER else 200)
    for method, path, body, needs in WRITES:
        moves = path.startswith("pipeline/replays") or (isinstance(body, dict) and body.get("verb") == "move")  # by several verbs, so by no single right
        found = call(client, method, path, body).status_code
        assert (method, path, found in (200, 201, 202)) == (method, path, moves or needs in (MANAGE, DISCARD))
        assert found in (200, 201, 202, 403)


@pytest.mark.parametrize("path", READS)
def test_who_is_restricted_sees_nothing_of_others(path, things):
    expected = {ANYBODY: 200, LOOKERS: 403, SUPERUSER: 403}[READS[path]]
    for client in (logged_in(restricted := person("rita", role="restricted")), bearer(token(restricted))):
        response = call(client, "GET", path)
        if path in ("destinations/1", "destinations/1/history", "requests/1", "operations/1", "undo/1", "subscriptions/1"):
            expected = 404
        assert response.status_code == expected
        if path in ("destinations", "subscriptions", "operations", "undo", "subscriptions/stale"):
            assert response.document["items"] == []


@pytest.mark.parametrize(("method", "path", "body", "needs"), WRITES)
def test_who_is_restricted_does_nothing_that_is_not_granted_to_him(method, path, body, needs, things, viewer):
    before = _state(things)
    restricted = person("rita", role="restricted")
    assert call(logged_in(restricted), method, path, body).status_code in (403, 404)
    after = _state(things)
    assert after[:2] + after[3:] == before[:2] + before[3:], "all but the operators, of whom he is one more"


@pytest.mark.parametrize(("method", "path", "body", "needs"), [each for each in WRITES if each[3] in (MANAGE, DISCARD) and "destinations" in each[1]])
def test_a_verb_of_the_destination_is_as_good_as_the_right_to_all(method, path, body, needs, things):
    verbs = ["metrics", *(["manage"] if needs == MANAGE else ["purge", "delete", "browse_headers"])]
    able = person("able", role="restricted")
    for address in ("queue/orders", "queue/new"):
        granted(able, address, *verbs)
    assert call(logged_in(able), method, path, body).status_code in (200, 201, 202)


def test_no_right_opens_the_calls_of_another(things):
    """A person with all rights but one is refused what needs that, whichever they are."""
    for held in itertools.combinations(RIGHTS, len(RIGHTS) - 1):
        client = bearer(token(person(".".join(held), *held)))
        for method, path, body, needs in WRITES:
            if needs not in held and needs != ANYBODY:
                assert call(client, method, path, body).status_code == 403
    assert ApiToken.objects.count() == len(RIGHTS)
