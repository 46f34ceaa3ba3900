"""Who may a little and tries for more: through settings, operations, tokens and names that lead elsewhere. Each attempt is refused, and in the audit."""

import json

import pytest
from django.contrib.auth.models import User
from django.test import override_settings

from console.permissions import VERBS
from tests.console import facts
from tests.console.api import bearer, call, granted, person, problem, token

LONG = "".join(f"{number:x}" for number in range(2_000))


@pytest.fixture(autouse=True)
def things(database):
    facts.destination(database, 1, "queue/mine.a", depth=0)
    facts.destination(database, 2, "queue/salaries", depth=0)
    facts.one_of_each(database)
    with override_settings(CONTROL_WAIT_SECONDS=0, LOOK_WAIT_SECONDS=0):
        yield database


def rita(*verbs, pattern="queue/mine.*"):
    user = User.objects.filter(username="rita").first() or person("rita", role="restricted")
    granted(user, pattern, *verbs)
    return user


def refused(database):
    """What the audit says last."""
    return facts.rows(database, "SELECT who, what, address, result ->> 'refused' FROM surety.audit ORDER BY entry DESC LIMIT 1")[0]


@pytest.mark.parametrize("verb", ["copy", "move"])
def test_what_one_may_not_read_does_not_come_to_where_one_reads(verb, things):
    rita(*VERBS)
    client = bearer(token(rita("metrics", "move", "browse_headers", pattern="queue/salaries")))
    problem(call(client, "POST", "destinations/2/operations", {"verb": verb, "destination": "queue/mine.a"}), 403, "forbidden")
    assert refused(things) == ("rita", verb, "queue/salaries", "needs the permission browse_bodies")
    granted(User.objects.get(username="rita"), "queue/blind", "send")
    assert call(client, "POST", "destinations/2/operations", {"verb": verb, "destination": "queue/blind"}).status_code == 202


@pytest.mark.parametrize(("settings", "needed"), [({"dead_queue": "queue/salaries"}, "manage"), ({"foreign_link": "a"}, "console.manage_destination")])
def test_settings_take_messages_nowhere_where_one_may_nothing(settings, needed, things):
    client = bearer(token(rita(*VERBS)))
    problem(call(client, "PATCH", "destinations/1", {"settings": settings}), 403, "forbidden")
    assert refused(things) == ("rita", "update", "queue/mine.a", f"needs the permission {needed}")
    problem(call(client, "POST", "destinations", {"address": "queue/mine.b", "settings": settings}), 403, "forbidden")
    facts.execute(things, f"UPDATE surety.destination SET settings = '{json.dumps(settings)}' WHERE destination = 1")
    assert call(client, "PATCH", "destinations/1", {"settings": {**settings, "max_messages": 5}}).status_code == 202, "it is so already"
    assert call(client, "PATCH", "destinations/1", {"settings": {"dead_queue": "queue/mine.dead"}}).status_code == 202
    olga = bearer(token(User.objects.get(username="olga")))
    assert call(olga, "PATCH", "destinations/1", {"settings": settings}).status_code == 202


def test_a_limited_token_revokes_none(things):
    user = rita(*VERBS)
    other = bearer(token(user, name="other"))
    number = call(other, "GET", "tokens").document["items"][0]["number"]
    for limits in ({"verbs": ["send"]}, {"patterns": ["queue/mine.a"]}):
        limited = bearer(token(user, "write", f"limited {limits}", **limits))
        problem(call(limited, "DELETE", f"tokens/{number}"), 403, "forbidden")
        assert refused(things)[3] == "the token is limited"
    assert call(other, "DELETE", f"tokens/{number}").status_code == 200


OF_THE_BROKER = [
    ("GET", "audit", None), ("GET", "accounts", None), ("GET", "totals", None), ("GET", "links", None), ("GET", "branches", None),
    ("POST", "links", {"name": "x", "attributes": {"host": "far.example"}}), ("PUT", "policies/queue/mine.*", {"settings": {"max_messages": 5}}),
    ("POST", "objects", {"name": "q", "kind": "factory"}), ("POST", "totals/reset", None),
]  # fmt: skip


@pytest.mark.parametrize("limits", [{"verbs": list(VERBS)}, {"patterns": [">"]}], ids=["verbs", "patterns"])
@pytest.mark.parametrize(("method", "path", "body"), OF_THE_BROKER, ids=lambda part: part if isinstance(part, str) else "")
def test_a_limited_token_of_an_administrator_neither_does_nor_sees_what_is_of_the_whole_broker(method, path, body, limits, things):
    adam = User.objects.create_superuser("adam", password="long enough 17")
    limited, other = bearer(token(adam, "write", "limited", **limits)), bearer(token(adam, "write", "not limited"))
    problem(call(limited, method, path, body), 403, "forbidden")
    assert refused(things)[3].startswith("needs the permission console.")
    assert call(other, method, path, body).status_code != 403
    assert call(limited, "GET", "destinations/1").status_code == 200


def test_a_limited_token_does_not_see_what_others_asked_the_node_for_but_of_destinations(things):
    facts.execute(things, "TRUNCATE surety.control_request RESTART IDENTITY")
    for address in ("", "queue/mine.a"):
        facts.execute(things, f"INSERT INTO surety.control_request (verb, address, requested_by) VALUES ('pause', '{address}', 'somebody')")
    olga = User.objects.get(username="olga")
    limited, other = bearer(token(olga, "write", "limited", verbs=["metrics"])), bearer(token(olga))
    assert [call(limited, "GET", f"requests/{number}").status_code for number in (1, 2)] == [404, 200]
    assert [call(other, "GET", f"requests/{number}").status_code for number in (1, 2)] == [200, 200]


def test_who_tries_to_change_what_he_may_not_see_is_in_the_audit(things):
    client = bearer(token(rita(*VERBS)))
    problem(call(client, "POST", "destinations/2/purge", {"depth": 0}), 404, "not-found")
    assert refused(things) == ("rita", "POST /api/v1/destinations/2/purge", "", "there is no such thing, or it may not be seen")
    assert call(client, "GET", "destinations/2").status_code == 404
    assert len(facts.rows(things, "SELECT FROM surety.audit WHERE what LIKE 'GET%'")) == 0


def test_whether_there_is_a_branch_or_an_account_is_not_for_who_may_nothing_with_it(things):
    client = bearer(token(rita(*VERBS)))
    for path, body in (("branches/1/commit", None), ("branches/999/commit", None)):
        problem(call(client, "POST", path, body), 403, "forbidden")
    for name in ("guest", "nobody"):
        problem(call(client, "PATCH", f"accounts/{name}", {"disabled": True}), 403, "forbidden")


@pytest.mark.parametrize(("method", "path", "body"), [("PUT", "policies/queue/", {"settings": {}}), ("DELETE", "objects/", None), ("DELETE", "alerts/", None)])
def test_who_names_what_no_index_can_hold_is_refused_and_in_the_audit_as_well(method, path, body, viewer, things):
    problem(call(viewer, method, path + LONG, body), 403, "forbidden")
    assert refused(things)[0] == "vera"
