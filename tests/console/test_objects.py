"""Administered objects: made, changed, deleted by operators, and never with what no client could use."""

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied

from broker_core import administered
from broker_core.client import ConnectionFactory
from console.services import objects
from console.services.audit import Actor
from tests.console import facts
from tests.console.conftest import OPERATOR


@pytest.fixture
def olga(database):
    return Actor(User.objects.get(username=OPERATOR), "192.0.2.1")


def _stored(database):
    return facts.rows(database, "SELECT name, kind, attributes, read_only FROM surety.administered ORDER BY name")


@pytest.mark.parametrize(
    ("name", "kind", "attributes", "sentence"),
    [
        ("", "factory", {}, "needs a name"), ("a\nb", "factory", {}, "needs a name"), (" a", "factory", {}, "needs a name"),
        ("x" * 256, "factory", {}, "needs a name"),
        ("a", "session", {}, "The kind must be one of factory, queue, topic"),
        ("a", "factory", {"destination": "orders"}, "Destination is no attribute of a factory"),
        ("a", "factory", {"username": "guest"}, "Username is no attribute of a factory"),
        ("a", "factory", {"configured_client_id": "x" * 256}, "must be a text of 1 to 255"),
        ("a", "factory", {"configured_client_id": "a\x00"}, "must be a text of 1 to 255"),
        ("a", "factory", {"override_priority": 10}, "must be a whole number from 0 to 9"),
        ("a", "factory", {"override_priority": True}, "must be a whole number"),
        ("a", "factory", {"override_expiration": float("nan")}, "must be a number from 0"),
        ("a", "factory", {"persistent_reliability": "none"}, "must be one of best-effort"),
        ("a", "factory", {"override_delivery_mode": 2}, "must be one of PERSISTENT, NON_PERSISTENT"),
        ("a", "factory", {"ack_on_produce": 1}, "must be true or false"),
        ("a", "queue", {}, "Name the destination"),
        ("a", "queue", {"destination": "mq.sys.dmq"}, "must be the name of a queue"),
        ("a", "topic", {"destination": "prices.*"}, "must be the name of a topic"),
        ("a", "queue", {"destination": "orders", "configured_client_id": "x"}, "is no attribute of a queue"),
    ],
)  # fmt: skip
def test_what_no_client_could_use_is_refused(name, kind, attributes, sentence, olga, database):
    with pytest.raises(objects.InvalidObject, match=sentence):
        objects.create(olga, name, kind, attributes)
    assert _stored(database) == []


def test_who_may_not_manage_destinations_changes_nothing(database, olga):
    viewer = Actor(User.objects.create_user("somebody"), "192.0.2.1")
    objects.create(olga, "shop", "factory", {})
    for change in (
        lambda: objects.create(viewer, "b", "factory", {}), lambda: objects.update(viewer, "shop", {}), lambda: objects.delete(viewer, "shop"),
    ):  # fmt: skip
        with pytest.raises(PermissionDenied):
            change()
    assert len(_stored(database)) == 1


def test_what_is_not_there_cannot_be_changed_nor_made_twice(olga):
    for change in (lambda: objects.update(olga, "shop", {}), lambda: objects.delete(olga, "sh\x00op")):
        with pytest.raises(objects.InvalidObject, match="There is no administered object"):
            change()
    objects.create(olga, "shop", "factory", {})
    with pytest.raises(objects.InvalidObject, match="There is an administered object shop already"):
        objects.create(olga, "shop", "queue", {"destination": "orders"})
    with pytest.raises(objects.InvalidObject, match="Destination is no attribute"):
        objects.update(olga, "shop", {"destination": "orders"})


def test_every_step_is_kept_and_recorded_and_what_loses_messages_is_warned_of(olga, database):
    assert objects.create(olga, "shop", "factory", {"persistent_reliability": "express"}, read_only=True) == [
        "persistent messages are sent as express: they are lost when the broker stops"
    ]
    assert objects.update(olga, "shop", {"persistent_reliability": "reliable", "ack_timeout": 2.5}) == []
    assert _stored(database) == [("shop", "factory", {"persistent_reliability": "reliable", "ack_timeout": 2.5}, False)]
    objects.delete(olga, "shop")
    assert _stored(database) == []
    recorded = facts.rows(database, "SELECT what, address FROM surety.audit ORDER BY entry")
    assert recorded == [("object create", "shop"), ("object update", "shop"), ("object delete", "shop")]


def test_every_attribute_of_a_factory_is_a_setting_of_the_client():
    assert set(administered.OF_FACTORIES) - {"profile"} <= set(ConnectionFactory.__dataclass_fields__)
