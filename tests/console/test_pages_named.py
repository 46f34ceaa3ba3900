"""Pages of settings by name, aliases, administered objects and links."""

import pytest
from django.test import override_settings

from console.pages.named_kinds import KINDS
from tests.console import facts
from tests.console.engine_node import EngineNode

NEW = {
    "policies": ("policies/new", {"its_name": "queue/orders.*", "max_messages": "5"}),
    "aliases": ("aliases/new", {"its_name": "queue/invoices", "target": "queue/orders"}),
    "objects": ("objects/new?variant=queue", {"its_name": "jms/orders", "destination": "orders", "priority": "7", "read_only": "true"}),
    "links": ("links/new", {"its_name": "far", "host": "far.example", "passcode": "s3cret", "takes": "/queue/there queue/here\n\n"}),
}
CHANGED = {
    "policies": {"max_messages": "6"}, "aliases": {"target": "queue/other"}, "objects": {"destination": "orders", "delivery_mode": "PERSISTENT"},
    "links": {"host": "other.example", "port": "61614"},
}  # fmt: skip


@pytest.fixture
def node(database):
    with EngineNode(database, {"queue/orders": 1, "queue/other": 1}) as node:
        yield node


def _page(client, path, status=200):
    response = client.get(f"/{path}")
    assert response.status_code == status, response.content
    return response.content.decode()


@pytest.mark.parametrize("plural", KINDS)
def test_one_is_made_shown_changed_and_deleted(plural, node, operator):
    assert "There is none yet" in _page(operator, plural)
    path, said = NEW[plural]
    made = operator.post(f"/{path}", said, follow=True).content.decode()
    assert f"{said['its_name']} made" in made, [line for line in made.splitlines() if "toast" in line]
    name = {"name": said["its_name"]}
    shown = operator.get(f"/{plural}/change", name)
    assert "Save" in shown.content.decode()
    assert "s3cret" not in shown.content.decode()
    changed = operator.post(f"/{plural}/change", {"its_name": said["its_name"], **CHANGED[plural]}, follow=True).content.decode()
    assert f"{said['its_name']} changed" in changed
    assert list(CHANGED[plural].values())[-1] in changed
    assert "Delete it" in operator.get(f"/{plural}/delete", name).content.decode()
    assert "There is none yet" in operator.post(f"/{plural}/delete", {"its_name": said["its_name"]}, follow=True).content.decode()


@pytest.mark.parametrize("plural", KINDS)
def test_who_may_only_look_sees_no_buttons_and_makes_nothing(plural, database, viewer):
    assert "New " not in _page(viewer, plural)
    path, said = NEW[plural]
    assert viewer.get(f"/{path}").status_code == 403
    assert viewer.post(f"/{path}", said).status_code == 403
    assert facts.rows(database, "SELECT verb FROM surety.control_request") == []


@pytest.mark.parametrize("plural", KINDS)
def test_what_is_not_there_is_not_there(plural, operator):
    for verb in ("change", "delete"):
        _page(operator, f"{plural}/{verb}?name=nothing", 404)
        assert operator.post(f"/{plural}/{verb}", {"its_name": "no\x00thing"}).status_code == 404


@pytest.mark.parametrize(
    ("path", "said", "sentence"),
    [
        ("policies/new", {"its_name": "queue/**a", "max_messages": "5"}, "pattern"),
        ("policies/new", {"its_name": "queue/a", "max_messages": "many"}, "whole number"),
        ("aliases/new", {"its_name": "queue/a"}, "required"),
        ("objects/new?variant=factory", {"its_name": " ", "priority": "7"}, "needs a name"),
        ("objects/new?variant=topic", {"its_name": "a", "destination": "a.*"}, "without wildcards"),
        ("links/new", {"its_name": "far", "host": "h", "takes": "one"}, "Each line of takes"),
        ("links/new", {"its_name": "far away", "host": "h"}, "needs a name"),
    ],
)
@override_settings(CONTROL_WAIT_SECONDS=0)
def test_what_cannot_be_is_said_in_a_sentence_beside_what_was_typed(path, said, sentence, operator):
    response = operator.post(f"/{path}", said)
    assert response.status_code == 400
    assert sentence in response.content.decode()


def test_what_the_node_refuses_is_said_beside_what_was_typed(node, operator):
    response = operator.post("/aliases/new", {"its_name": "queue/invoices", "target": "queue/orders", "reliability_override": "false"})
    assert response.status_code == 400
    assert "setting is not valid" in response.content.decode()
    assert 'value="queue/invoices"' in response.content.decode()


def test_there_is_no_fourth_kind_of_object(operator):
    _page(operator, "objects/new?variant=session", 404)


@override_settings(CONTROL_WAIT_SECONDS=0)
def test_without_a_node_the_answer_is_not_known_yet(operator):
    path, said = NEW["policies"]
    assert "no node has answered" in operator.post(f"/{path}", said, follow=True).content.decode()
