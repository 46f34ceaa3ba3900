"""Links to other brokers: made, changed, deleted by operators, and their passcodes read by nobody."""

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied

from console.services import foreign
from console.services.audit import Actor
from tests.console import facts
from tests.console.conftest import OPERATOR

LINK = {"host": "far.example", "tls": True, "login": "surety", "passcode": "s3cret"}


@pytest.fixture
def olga(database):
    return Actor(User.objects.get(username=OPERATOR), "192.0.2.1")


def _stored(database):
    return facts.rows(database, "SELECT name, attributes, passcode FROM surety.foreign_link ORDER BY name")


@pytest.mark.parametrize(
    ("name", "attributes", "sentence"),
    [
        ("", LINK, "A link needs a name"), ("a\x00", LINK, "A link needs a name"), ("far", {}, "Name the host"),
        ("far", LINK | {"port": "61613"}, "Port must be a port"), ("far", LINK | {"takes": {"/queue/a": "topic/*"}}, "Takes must be an object"),
        ("far", LINK | {"passcode": "s3cret\n"}, "Passcode must be a text"), ("far", LINK | {"password": "s3cret"}, "Password is not a link's"),
    ],
)  # fmt: skip
def test_what_no_node_could_use_is_refused_and_says_no_passcode(name, attributes, sentence, olga, database):
    with pytest.raises(foreign.InvalidLink, match=sentence) as told:
        foreign.create(olga, name, attributes)
    assert "s3cret" not in str(told.value)
    assert _stored(database) == []


def test_who_may_not_manage_destinations_changes_nothing(database, olga):
    viewer = Actor(User.objects.create_user("somebody"), "192.0.2.1")
    foreign.create(olga, "far", LINK)
    for change in (lambda: foreign.create(viewer, "b", LINK), lambda: foreign.update(viewer, "far", LINK), lambda: foreign.delete(viewer, "far")):
        with pytest.raises(PermissionDenied):
            change()
    assert len(_stored(database)) == 1


def test_what_is_not_there_cannot_be_changed_nor_made_twice(olga):
    for change in (lambda: foreign.update(olga, "far", LINK), lambda: foreign.delete(olga, "f\x00ar")):
        with pytest.raises(foreign.InvalidLink, match="There is no link"):
            change()
    foreign.create(olga, "far", LINK)
    with pytest.raises(foreign.InvalidLink, match="There is a link far already"):
        foreign.create(olga, "far", LINK)


def test_there_are_only_so_many(olga, database, monkeypatch):
    monkeypatch.setattr(foreign.definition, "LINKS_MAX", 1)
    foreign.create(olga, "far", LINK)
    with pytest.raises(foreign.InvalidLink, match="There are 1 links"):
        foreign.create(olga, "further", LINK)
    assert foreign.update(olga, "far", LINK) == []


def test_every_step_is_kept_and_recorded_without_the_passcode_and_what_is_unsafe_is_warned_of(olga, database):
    assert foreign.create(olga, "far", LINK) == []
    attributes = {name: value for name, value in LINK.items() if name != "passcode"}
    assert _stored(database) == [("far", attributes, "s3cret")]
    changed = {"host": "other.example", "persistent_reliability": "express"}
    assert foreign.update(olga, "far", changed) == ["persistent messages from there are express here: they are lost when the broker stops"]
    assert _stored(database) == [("far", changed, "s3cret")]
    assert foreign.update(olga, "far", changed | {"passcode": "other"})[0] == "the passcode travels as it is: without TLS whoever sees the network reads it"
    assert _stored(database) == [("far", changed, "other")]
    assert foreign.delete(olga, "far") == []
    told = facts.rows(database, "SELECT what, address, arguments::text FROM surety.audit WHERE what LIKE 'link %' ORDER BY entry")
    assert [what for what, _, _ in told] == ["link create", "link update", "link update", "link delete"]
    assert "s3cret" not in str(told) and 'other"' not in told[2][2] and '"***"' in told[0][2]
