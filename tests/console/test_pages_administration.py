"""Pages of nodes, rules of access, rights, definitions and tokens."""

import pytest
from django.test import Client, override_settings

from console.pages import nodes
from tests.console import facts
from tests.console.api import ROOT

GRANT = {"role": "viewer", "pattern": "queue/mine.*", "verbs": ["send"]}


def _page(client, path, status=200):
    response = client.get(f"/{path}")
    assert response.status_code == status, response.content
    return response.content.decode()


def _said(response):
    return response.content.decode()


# -- nodes ----------------------------------------------------------------------------------------------------------------------------
def test_without_a_node_the_page_says_what_to_do(operator):
    shown = _page(operator, "nodes")
    assert "No node was heard of" in shown
    assert "Quiesce" not in shown


@override_settings(CONTROL_WAIT_SECONDS=0)
@pytest.mark.parametrize("verb", nodes.VERBS)
def test_what_is_done_to_a_node_is_asked_of_it(verb, database, operator):
    facts.well(database)
    assert "Quiesce" in _page(operator, "nodes")
    name = {"takeover": "node-2", "pause": "stomp", "resume": "stomp"}.get(verb, "")
    assert "Back" in _page(operator, f"nodes/{verb}?name={name}")
    assert "no node has answered" in _said(operator.post(f"/nodes/{verb}", {"name": name, "typed": name, "seconds": "5"}, follow=True))
    asked = {"takeover": "take_over", "pause": "pause_listener", "resume": "resume_listener"}.get(verb, verb)
    assert [row[0] for row in facts.rows(database, "SELECT verb FROM surety.control_request")] == [asked]


def test_a_takeover_wants_the_name_typed(database, operator):
    facts.well(database)
    response = operator.post("/nodes/takeover", {"name": "node-2", "typed": "node-1"})
    assert (response.status_code, "Type node-2" in _said(response)) == (400, True)
    assert facts.rows(database, "SELECT verb FROM surety.control_request") == []


@pytest.mark.parametrize("verb", nodes.VERBS)
def test_only_administrators_touch_a_node(verb, database, viewer):
    facts.well(database)
    assert "Quiesce" not in _page(viewer, "nodes")
    assert viewer.get(f"/nodes/{verb}").status_code == 403
    assert viewer.post(f"/nodes/{verb}", {"name": "x", "typed": "x"}).status_code == 403
    assert facts.rows(database, "SELECT verb FROM surety.control_request") == []


# -- rules of access, rights ------------------------------------------------------------------------------------------------------------
def test_a_rule_is_made_and_deleted(database, operator):
    rule = {"resource": "queue/orders", "operation": "consume", "principal": "*", "allow": "no"}
    shown = _said(operator.post("/access/create", rule, follow=True))
    assert "queue/orders" in shown
    assert "may not" in shown
    number = facts.rows(database, "SELECT max(rule) FROM surety.access_rule")[0][0]
    assert "Everybody may not consume queue/orders" in _page(operator, f"access/{number}/delete")
    assert "is deleted" in _said(operator.post(f"/access/{number}/delete", follow=True))
    _page(operator, f"access/{number}/delete", 404)
    assert operator.post(f"/access/{number}/delete").status_code == 404


def test_a_rule_that_cannot_be_is_a_sentence(operator):
    assert "toast error" in _said(operator.post("/access/create", {"resource": "orders", "operation": "eat", "principal": ""}, follow=True))


def test_a_right_is_granted_changed_and_taken_back(database, operator):
    assert "queue/mine.*" in _said(operator.post("/grants/create", GRANT, follow=True))
    number = facts.rows(database, "SELECT max(id) FROM console_grant")[0][0]
    assert "queue/mine.*" in _page(operator, "grants?q=MINE")
    assert "Nothing like that is granted" in _page(operator, "grants?q=nothing")
    assert operator.post(f"/grants/{number}", {"verbs": []}).status_code == 400
    operator.post(f"/grants/{number}", {"verbs": ["move", "send"]})
    assert facts.rows(database, f"SELECT verbs FROM console_grant WHERE id = {number}")[0][0] == ["send", "move"]
    assert "Take it back" in _page(operator, f"grants/{number}/delete")
    assert "no more" in _said(operator.post(f"/grants/{number}/delete", follow=True))
    for path in (f"grants/{number}", f"grants/{number}/delete"):
        _page(operator, path, 404)


def test_who_may_only_look_changes_no_rule_and_no_right(database, viewer):
    before = facts.rows(database, "SELECT * FROM surety.access_rule ORDER BY 1"), facts.rows(database, "SELECT * FROM console_grant ORDER BY 1")
    assert "New rule" not in _page(viewer, "access")
    for path, said in (("access/create", {"resource": "queue/a", "operation": "consume", "principal": "x"}), ("access/1/delete", {}), ("grants/create", GRANT)):
        assert viewer.post(f"/{path}", said).status_code == 403
    for path in ("grants", "grants/1", "grants/1/delete"):
        _page(viewer, path, 403)
    assert before == (facts.rows(database, "SELECT * FROM surety.access_rule ORDER BY 1"), facts.rows(database, "SELECT * FROM console_grant ORDER BY 1"))


# -- definitions ------------------------------------------------------------------------------------------------------------------------
DOCUMENT = "version: 1\nobjects:\n  jms/orders: {kind: queue, attributes: {destination: orders}}\n"


def test_a_document_is_tried_applied_and_then_there_is_nothing_to_do(database, operator):
    tried = _said(operator.post("/definitions", {"text": DOCUMENT}))
    assert "Nothing is done yet" in tried
    assert facts.rows(database, "SELECT name FROM surety.administered") == []
    assert "All of it is done" in _said(operator.post("/definitions", {"text": DOCUMENT, "apply": "yes"}))
    assert facts.rows(database, "SELECT name FROM surety.administered") == [("jms/orders",)]
    assert "as the document says" in _said(operator.post("/definitions", {"text": DOCUMENT}))
    assert "jms/orders" in _page(operator, "definitions/export")


@pytest.mark.parametrize("text", ["", "objects: [", "version: 1\nobjects: {a: {kind: session}}"])
def test_what_is_no_document_is_said(text, operator):
    response = operator.post("/definitions", {"text": text})
    assert (response.status_code, 'role="alert"' in _said(response)) == (400, True)


def test_what_is_too_large_to_be_typed_is_refused(operator):
    assert operator.post("/definitions", {"text": "x" * 1_100_000}).status_code == 400


def test_definitions_are_for_administrators(viewer):
    assert [viewer.get(path).status_code for path in ("/definitions", "/definitions/export")] == [403, 403]
    assert viewer.post("/definitions", {"text": DOCUMENT}).status_code == 403


# -- tokens -----------------------------------------------------------------------------------------------------------------------------
def test_a_token_is_shown_once_works_and_is_revoked(database, viewer):
    made = _said(viewer.post("/tokens", {"name": "mine", "scope": "read", "days": "7"}))
    token = made[made.index("surety_") :].split("<")[0]
    assert Client().get(f"{ROOT}whoami", headers={"Authorization": f"Bearer {token}"}).status_code == 200
    shown = _page(viewer, "tokens")
    assert ("mine" in shown, token in shown) == (True, False)
    number = facts.rows(database, "SELECT id FROM console_apitoken")[0][0]
    assert "good for nothing" in _said(viewer.post(f"/tokens/{number}/revoke", follow=True))
    assert Client().get(f"{ROOT}whoami", headers={"Authorization": f"Bearer {token}"}).status_code == 401


@pytest.mark.parametrize("wrong", [{"name": ""}, {"scope": "all"}, {"days": "soon"}])
def test_a_token_that_cannot_be_is_a_sentence(wrong, viewer):
    response = viewer.post("/tokens", {"name": "x", "scope": "read", "days": "7", **wrong})
    assert (response.status_code, 'role="alert"' in _said(response)) == (400, True)


def test_nobody_revokes_anothers_token(database, viewer, operator):
    operator.post("/tokens", {"name": "hers", "scope": "read", "days": "7"})
    number = facts.rows(database, "SELECT id FROM console_apitoken")[0][0]
    assert viewer.post(f"/tokens/{number}/revoke").status_code == 404
    assert len(facts.rows(database, "SELECT id FROM console_apitoken")) == 1


# -- alerts -----------------------------------------------------------------------------------------------------------------------------
ALERT = {"name": "backlog", "metric": "depth", "pattern": "queue/>", "comparator": ">", "threshold": "100", "for_seconds": "60", "enabled": "true"}


def test_an_alert_is_made_changed_and_deleted(database, operator):
    facts.execute(database, "DELETE FROM console_alertrule")
    assert "There is no alert" in _page(operator, "alerts")
    made = _said(operator.post("/alerts/new", ALERT, follow=True))
    assert "depth &gt; 100" in made
    assert "nobody is told" in made
    operator.post("/alerts/change", {**ALERT, "threshold": "7.5", "enabled": "false"})
    assert facts.rows(database, "SELECT threshold, enabled, for_seconds FROM console_alertrule") == [(7.5, False, 60)]
    assert "Nothing has fired" in _page(operator, "alerts/history?alert=backlog")
    assert "has no webhook" in _said(operator.post("/alerts/test", {"name": "backlog"}, follow=True))
    assert "Delete it" in _page(operator, "alerts/delete?name=backlog")
    assert "is deleted" in _said(operator.post("/alerts/delete", {"name": "backlog"}, follow=True))
    for path in ("alerts/change", "alerts/delete"):
        _page(operator, f"{path}?name=backlog", 404)
    assert operator.post("/alerts/test", {"name": "backlog"}).status_code == 404


@pytest.mark.parametrize("wrong", [{"name": ""}, {"pattern": ""}, {"threshold": "much"}, {"comparator": "="}, {"webhook": "ftp://far.example"}])
def test_an_alert_that_cannot_be_is_a_sentence(wrong, operator):
    response = operator.post("/alerts/new", {**ALERT, **wrong})
    assert (response.status_code, 'role="alert"' in _said(response)) == (400, True)


def test_alerts_are_made_by_administrators(database, viewer):
    assert "New alert" not in _page(viewer, "alerts")
    for verb in ("new", "change", "delete"):
        assert viewer.get(f"/alerts/{verb}", {"name": "backlog"}).status_code == 403
        assert viewer.post(f"/alerts/{verb}", ALERT).status_code == 403
    assert viewer.post("/alerts/test", ALERT).status_code == 403
