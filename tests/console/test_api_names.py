"""What operators name and set up, by REST: settings by pattern, aliases, administered objects, links, accounts, operators; prepared branches."""

import pytest
from django.contrib.auth.models import User

from tests.console import facts
from tests.console.api import call, problem
from tests.console.engine_node import EngineNode


@pytest.fixture
def node(database):
    with EngineNode(database) as node:
        yield node


def test_settings_by_pattern_are_set_replaced_and_dropped(operator, node):
    path = "policies/queue/orders.*"
    problem(call(operator, "GET", path), 404, "not-found")
    problem(call(operator, "PUT", "policies/orders", {"settings": {"max_messages": 5}}), 400, "invalid")
    assert call(operator, "PUT", path, {"settings": {"max_messages": 5}}).document["state"] == "done"
    assert call(operator, "GET", path).document == {"pattern": "queue/orders.*", "settings": {"max_messages": 5}}
    assert call(operator, "GET", "policies").document == {"items": [{"pattern": "queue/orders.*", "settings": {"max_messages": 5}}], "next": None}
    assert call(operator, "DELETE", path).document["state"] == "done"
    problem(call(operator, "DELETE", path), 409, "refused")


def test_an_alias_is_made_changed_and_deleted(operator, node):
    made = call(operator, "POST", "aliases", {"address": "queue/old name", "target": "queue/new"})
    assert (made.status_code, made["Location"]) == (201, "/api/v1/aliases/queue/old%20name")
    path = made["Location"].removeprefix("/api/v1/")
    problem(call(operator, "POST", "aliases", {"address": "queue/old name", "target": "queue/new"}), 409, "refused")
    assert call(operator, "PATCH", path, {"maximum_reliability": "express"}).document["state"] == "done"
    assert call(operator, "GET", path).document["maximum_reliability"] == "express"
    assert [each["target"] for each in call(operator, "GET", "aliases").document["items"]] == ["queue/new"]
    assert call(operator, "DELETE", path).status_code == 200
    problem(call(operator, "GET", path), 404, "not-found")


def test_an_administered_object_is_made_changed_and_deleted(operator, database):
    given = {"name": "jms/F/1", "kind": "factory", "attributes": {"persistent_reliability": "express"}}
    made = call(operator, "POST", "objects", given)
    assert (made.status_code, len(made.document["warnings"])) == (201, 1)
    path = made["Location"].removeprefix("/api/v1/")
    assert "already" in problem(call(operator, "POST", "objects", given), 409, "exists")
    assert call(operator, "PUT", path, {"attributes": {"priority": 5}}).status_code == 400
    assert call(operator, "PUT", path, {"attributes": {}, "read_only": True}).document == {"warnings": []}
    assert call(operator, "GET", path).document["read_only"] is True
    assert call(operator, "DELETE", path).status_code == 200
    for method, body in (("GET", None), ("PUT", {"attributes": {}}), ("DELETE", None)):
        problem(call(operator, method, path, body), 404, "not-found")


def test_the_passcode_of_a_link_comes_out_nowhere(operator, database):
    attributes = {"host": "far.example", "tls": True, "login": "surety", "passcode": "s3cret"}
    assert call(operator, "POST", "links", {"name": "far", "attributes": attributes}).status_code == 201
    assert call(operator, "PUT", "links/far", {"attributes": {"host": "other", "passcode": "s3cret"}}).document["warnings"]
    answers = [call(operator, "GET", path) for path in ("links", "links/far", "audit")]
    answers.append(call(operator, "PUT", "links/far", {"attributes": {"host": "other", "passcode": "s3cret", "port": "x"}}))
    assert not any(b"s3cret" in answer.content for answer in answers)
    assert call(operator, "GET", "links/far").document["has_passcode"] is True
    assert call(operator, "DELETE", "links/far").status_code == 200
    problem(call(operator, "DELETE", "links/far"), 404, "not-found")


def test_an_account_is_made_changed_as_a_whole_and_deleted(operator, database):
    made = call(operator, "POST", "accounts", {"name": "shop/1", "password": "long enough"})
    assert (made.status_code, made["Location"]) == (201, "/api/v1/accounts/shop/1")
    changed = {"disabled": True, "persistent_reliability": "express", "password": "long enough 2"}
    assert call(operator, "PATCH", "accounts/shop/1", changed).document["warnings"]
    shown = call(operator, "GET", "accounts/shop/1").document
    assert (shown["disabled"], shown["persistent_reliability"], shown["nonpersistent_reliability"]) == (True, "express", "")
    assert "password" not in str(shown) and "key" not in str(shown)
    problem(call(operator, "PATCH", "accounts/shop/1", {"disabled": False, "password": "short"}), 400, "invalid")
    assert call(operator, "GET", "accounts/shop/1").document["disabled"] is True
    problem(call(operator, "PATCH", "accounts/shop/1", {}), 400, "invalid")
    problem(call(operator, "PATCH", "accounts/nobody", {"disabled": True}), 404, "not-found")
    assert call(operator, "DELETE", "accounts/shop/1").status_code == 200
    assert [each["name"] for each in call(operator, "GET", "accounts").document["items"]] == ["guest"]
    assert b"long enough" not in call(operator, "GET", "audit").content


def test_operators_are_for_superusers(operator, viewer):
    given = {"name": "otto", "password": "long enough 17", "rights": ["discard_message"]}
    problem(call(viewer, "POST", "operators", given), 403, "forbidden")
    problem(call(viewer, "GET", "operators"), 403, "forbidden")
    problem(call(viewer, "GET", "operators/olga"), 403, "forbidden")
    assert call(operator, "POST", "operators", given).status_code == 201
    problem(call(operator, "PATCH", "operators/otto", {"rights": []}), 400, "invalid")
    assert call(operator, "PATCH", "operators/otto", {"rights": ["manage_account"], "superuser": False, "disabled": True}).status_code == 200
    shown = call(operator, "GET", "operators/otto").document
    assert (shown["rights"], shown["disabled"]) == (["manage_account"], True)
    assert "only superuser" in problem(call(operator, "PATCH", "operators/olga", {"disabled": True}), 400, "invalid")
    assert User.objects.get(username="olga").is_active
    names = [each["name"] for each in call(operator, "GET", "operators?limit=2").document["items"]]
    assert names == ["olga", "otto"]
    for sought, found in (("OT", ["otto"]), ("ol", ["olga"]), ("o%25", []), ("o%00t", ["otto"])):
        assert [each["name"] for each in call(operator, "GET", f"operators?search={sought}").document["items"]] == found, sought


def test_prepared_branches_are_listed_and_what_the_node_does_not_know_is_refused(operator, node, database):
    for number, state in ((7, 4), (8, 5)):
        facts.execute(database, "INSERT INTO surety.prepared VALUES (0, %s, '1:aa:bb', 'guest', %s, 2, 1, 10, 1000, NULL)", [number, state])
    first = call(operator, "GET", "branches?limit=1").document
    assert (first["items"][0]["state"], first["items"][0]["prepared_at"], first["next"]) == ("prepared", "1970-01-01T00:00:01Z", "7")
    assert [each["state"] for each in call(operator, "GET", "branches?after=7").document["items"]] == ["committed"]
    assert call(operator, "GET", "branches/7").document["sends"] == 2
    for verb in ("commit", "rollback", "forget"):
        response = call(operator, "POST", f"branches/7/{verb}")
        problem(response, 409, "refused")
        assert response.document["refusal"] == "XAER_NOTA"
        problem(call(operator, "POST", f"branches/9/{verb}"), 404, "not-found")
    done = facts.rows(database, "SELECT what FROM surety.audit WHERE who = 'olga' AND request IS NOT NULL ORDER BY entry")
    assert [what for (what,) in done] == ["commit", "rollback", "forget"]


def test_a_branch_is_told_by_the_parts_of_its_xid_and_with_what_is_in_it(operator, database):
    facts.destination(database, 5, "queue/orders")
    facts.execute(
        database,
        "INSERT INTO surety.prepared VALUES (0, 7, '7.6f726465722d34.00ff', 'guest', 4, 1, 2, 10, extract(epoch FROM now()) * 1000 - 60000, NULL)",
    )
    for item, outcome, destination, address in ((0, -1, 0, "topic/prices"), (1, 0, 5, ""), (2, 0, 6, "")):
        facts.execute(
            database,
            "INSERT INTO surety.prepared_item VALUES (0, 7, %s, %s, 0, %s, 0, '', 0, 41, 0, %s, 10, 0, 4, 4, 0, NULL, NULL, NULL, '', NULL, '', '')",
            [item, outcome, address, destination],
        )
    told = call(operator, "GET", "branches/7").document
    assert told["decoded"] == {"format": "7", "global_transaction": "order-4 (6f726465722d34)", "branch_qualifier": "00ff"}
    assert 60 <= told["age_seconds"] < 120
    first = call(operator, "GET", "branches/7/items?limit=1").document
    assert ([(each["sends"], each["address"], each["reliability"]) for each in first["items"]], first["next"]) == ([(True, "topic/prices", "assured")], "0")
    rest = call(operator, "GET", f"branches/7/items?after={first['next']}").document
    assert [(each["sends"], each["address"], each["position"]) for each in rest["items"]] == [(False, "queue/orders", 41), (False, None, 41)]
    problem(call(operator, "GET", "branches/8/items"), 404, "not-found")


def test_accounts_rules_and_branches_are_found_by_whose_they_are(operator, database):
    for name in ("shop", "Workshop"):
        call(operator, "POST", "accounts", {"name": name, "password": "long enough"})
    call(operator, "POST", "access", {"resource": "queue/a", "operation": "consume", "allow": True, "principal": "shop"})
    for number, account in ((7, "shop"), (8, "guest")):
        facts.execute(database, "INSERT INTO surety.prepared VALUES (0, %s, '1:aa:bb', %s, 4, 2, 1, 10, 1000, NULL)", [number, account])
    for path, name, expected in (
        ("accounts?search=SHOP", "name", ["Workshop", "shop"]),
        ("accounts?search=%25", "name", []),
        ("access?principal=shop", "resource", ["queue/a"]),
        ("branches?account=shop", "number", [7]),
    ):
        assert [each[name] for each in call(operator, "GET", path).document["items"]] == expected


def test_the_audit_goes_back_by_pages(operator, database):
    for number in range(5):
        call(operator, "POST", "accounts", {"name": f"a{number}", "password": "long enough"})
    first = call(operator, "GET", "audit?limit=2").document
    assert [each["address"] for each in first["items"]] == ["a4", "a3"]
    assert [each["address"] for each in call(operator, "GET", f"audit?limit=3&after={first['next']}").document["items"]] == ["a2", "a1", "a0"]
    problem(call(operator, "GET", "audit?after=x"), 400, "invalid")


def test_node_and_health_say_what_is(operator, database):
    assert call(operator, "GET", "health").document["ready"] is False
    assert call(operator, "GET", "node").document["alive"] is False
    assert call(operator, "GET", "node").document["connections"] is None
    facts.well(database)
    assert call(operator, "GET", "health").document == {"ready": True, "problems": [], "warnings": []}
    shown = call(operator, "GET", "node").document
    assert (shown["holder"], shown["listeners"]) == ("node-1", [{"name": "stomp", "up": True, "paused": False, "detail": ""}])


def test_what_is_there_already_and_what_is_not_have_codes_of_their_own(operator, database):
    given = {
        "accounts": {"name": "a", "password": "long enough"}, "links": {"name": "a", "attributes": {"host": "far.example"}},
        "objects": {"name": "a", "kind": "factory"}, "operators": {"name": "a", "password": "long enough 17"}, "tokens": {"name": "a", "scope": "read"},
    }  # fmt: skip
    for path, body in given.items():
        assert call(operator, "POST", path, body).status_code == 201
        problem(call(operator, "POST", path, body), 409, "exists")
    for path in ("accounts/nobody", "links/nobody", "objects/nobody", "tokens/999"):
        problem(call(operator, "DELETE", path), 404, "not-found")
    for method, path, body in (
        ("PATCH", "accounts/nobody", {"disabled": True}), ("PUT", "links/nobody", {"attributes": {"host": "far.example"}}),
        ("PUT", "objects/nobody", {"attributes": {}}), ("PATCH", "operators/nobody", {"disabled": True}), ("GET", "operators/nobody", None),
    ):  # fmt: skip
        problem(call(operator, method, path, body), 404, "not-found")


def test_durable_subscriptions_are_listed_and_those_that_nobody_uses_are_found(operator, database):
    facts.destination(database, 1, "topic/prices")
    insert = """INSERT INTO surety.subscription (shard, subscription, destination, name, client_id, shared, selector, no_local, account, idle_since, pattern,
                                                 destroyed_at)
                VALUES (0, %s, %s, %s, 'c', false, '', false, 'guest', %s, %s, CASE WHEN %s THEN now() END)"""
    for number, destination, name, idle, pattern, gone in (
        (1, 1, "", 0, "", False), (2, 1, "used", 0, "", False), (3, 1, "left", 1000, "", False), (4, 0, "all", 1000, "topic/>", False),
        (5, 1, "old", 1, "", True),
    ):  # fmt: skip
        facts.execute(database, insert, [number, destination, name, idle, pattern, gone])

    def listed(query=""):
        return [(each["name"], each["address"], each["state"]) for each in call(operator, "GET", f"subscriptions{query}").document["items"]]

    assert listed() == [("used", "topic/prices", None), ("left", "topic/prices", None), ("all", "topic/>", None)]
    facts.lease(database)
    assert listed("?limit=2") == [("used", "topic/prices", "active"), ("left", "topic/prices", "inactive")]
    assert listed("?idle_seconds=60&after=3") == [("all", "topic/>", "inactive")]
    assert listed("?idle_seconds=60") == [("left", "topic/prices", "inactive"), ("all", "topic/>", "inactive")]
    assert call(operator, "GET", "subscriptions?limit=2").document["next"] == "3"
    assert listed(f"?idle_seconds={10 * 366 * 86_400}") == [("left", "topic/prices", "inactive"), ("all", "topic/>", "inactive")]
    problem(call(operator, "GET", "subscriptions?idle_seconds=x"), 400, "invalid")
