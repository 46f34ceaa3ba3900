"""Operators: made, changed and disabled by superusers only, never the last superuser; everybody changes his own password."""

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.test import Client

from console.services import operators
from console.services.audit import Actor
from tests.console import facts
from tests.console.api import logged_in
from tests.console.conftest import OPERATOR, PASSWORD

GOOD = "battery staple 8"


@pytest.fixture
def olga(database):
    return Actor(User.objects.get(username=OPERATOR), "192.0.2.1")


@pytest.fixture
def otto(olga):
    operators.create(olga, "otto", GOOD, ["manage_account"])
    return User.objects.get(username="otto")


def _audit(database):
    return facts.rows(database, "SELECT who, what, address, arguments, result FROM surety.audit ORDER BY entry")


@pytest.mark.parametrize("name", ["", " otto", "ot to", "ot\x00to", "o" * 151, "otto\n", "half\ud800"])
def test_a_bad_name_is_refused(name, olga, database):
    with pytest.raises(operators.InvalidOperator, match="name"):
        operators.create(olga, name, GOOD)
    assert User.objects.count() == 1


@pytest.mark.parametrize("password", ["", "short", "1234567890", "password123", "p" * 1025, "nul\x00nul\x00nul"])
def test_a_bad_password_is_refused(password, olga, otto, database):
    with pytest.raises(operators.InvalidOperator):
        operators.create(olga, "otto-otto", password)
    with pytest.raises(operators.InvalidOperator):
        operators.set_password(olga, "otto", password)
    assert User.objects.get(username="otto").check_password(GOOD)


def test_a_password_like_the_name_is_refused(olga):
    with pytest.raises(operators.InvalidOperator, match="too similar"):
        operators.create(olga, "otto.the.operator", "otto.the.operator1")


def test_a_name_is_given_once(olga, otto):
    with pytest.raises(operators.InvalidOperator, match="There is an operator otto already"):
        operators.create(olga, "otto", GOOD)


def test_a_right_that_does_not_exist_is_refused(olga, otto):
    for right in ("manage_operator", "add_user", ""):
        with pytest.raises(operators.InvalidOperator, match="There are only the rights"):
            operators.set_rights(olga, "otto", [right], superuser=False)


def test_what_does_not_exist_cannot_be_changed(olga, database):
    for name in ("nobody", "no\x00body"):
        with pytest.raises(operators.InvalidOperator, match=r"no (such )?operator"):
            operators.set_disabled(olga, name, True)
    assert _audit(database) == []


def test_every_right_together_makes_no_operators(olga, otto, database):
    operators.set_rights(olga, "otto", ["manage_account", "manage_destination", "discard_message"], superuser=False)
    actor = Actor(User.objects.get(username="otto"), "192.0.2.2")
    with pytest.raises(PermissionDenied):
        operators.create(actor, "oskar", GOOD)
    with pytest.raises(PermissionDenied):
        operators.set_rights(actor, "otto", [], superuser=True)
    assert [row[4] is not None for row in _audit(database)][-2:] == [True, True], "both refusals are recorded"
    assert not User.objects.get(username="otto").is_superuser


def test_the_last_superuser_can_be_neither_disabled_nor_made_less(olga, otto):
    for change in (lambda: operators.set_disabled(olga, OPERATOR, True), lambda: operators.set_rights(olga, OPERATOR, [], superuser=False)):
        with pytest.raises(operators.InvalidOperator, match="the only superuser"):
            change()
    operators.set_rights(olga, "otto", [], superuser=True)
    operators.set_disabled(olga, OPERATOR, True)
    with pytest.raises(operators.InvalidOperator, match="the only superuser"):
        operators.set_disabled(olga, "otto", True)
    assert User.objects.filter(is_superuser=True, is_active=True).count() == 1
    User.objects.filter(username=OPERATOR).update(is_active=True)


def test_every_step_is_recorded_without_a_password(olga, otto, database):
    operators.set_rights(olga, "otto", ["manage_destination", "discard_message"], superuser=False)
    operators.set_password(olga, "otto", "another staple 9")
    operators.set_disabled(olga, "otto", True)
    operators.set_disabled(olga, "otto", False)
    assert _audit(database) == [
        (OPERATOR, "operator create", "otto", {"superuser": False, "rights": "manage_account", "role": "viewer"}, None),
        (OPERATOR, "operator rights", "otto", {"superuser": False, "rights": "discard_message, manage_destination"}, None),
        (OPERATOR, "operator password", "otto", {}, None),
        (OPERATOR, "operator disable", "otto", {}, None),
        (OPERATOR, "operator enable", "otto", {}, None),
    ]


# -- in the browser -------------------------------------------------------------------------------------------------------------------
def test_a_superuser_makes_an_operator_who_may_do_what_was_ticked_and_no_more(operator, database):
    data = {"name": "otto", "password": GOOD, "rights": ["manage_destination"]}
    assert "otto may log in." in operator.post("/operators/create", data, follow=True).content.decode()
    client = Client()
    assert client.post("/login", {"username": "otto", "password": GOOD}).status_code == 302
    page = client.get("/destinations").content.decode()
    assert "New queue" in page
    assert "Operators" not in page
    assert client.get("/operators").status_code == 403
    assert client.post("/accounts/disable", {"name": "guest"}).status_code == 403


def test_who_is_disabled_is_logged_out_at_once_and_stays_out(operator, otto):
    client = logged_in(otto)
    assert client.get("/").status_code == 200
    assert "otto is disabled." in operator.post("/operators/disable", {"name": "otto"}, follow=True).content.decode()
    assert client.get("/").status_code == 302
    assert client.post("/login", {"username": "otto", "password": GOOD}).status_code == 401


def test_an_operator_is_found_by_a_part_of_his_name(operator):
    assert ">olga</th>" in operator.get("/operators?q=OLG").content.decode()
    assert "Nobody has such a name." in operator.get("/operators?q=nobody").content.decode()


def test_a_name_is_escaped_and_an_operator_who_is_not_there_is_not_found(operator):
    page = operator.get("/operators/disable?name=%3Cscript%3E")
    assert page.status_code == 404
    assert "<script>alert" not in operator.get("/operators?after=%00%3Cscript%3Ealert(1)").content.decode()


def test_the_page_of_rights_ticks_what_there_is(operator, otto):
    page = operator.get("/operators/rights?name=otto").content.decode()
    assert 'value="manage_account" checked' in page
    assert page.count(" checked") == 1
    operator.post("/operators/rights", {"name": "otto", "rights": ["discard_message"]})
    assert [p.codename for p in User.objects.get(username="otto").user_permissions.all()] == ["discard_message"]


def test_a_problem_is_told_on_the_page_and_nothing_changes(operator):
    page = operator.post("/operators/disable", {"name": OPERATOR})
    assert page.status_code == 400
    assert "is the only superuser" in page.content.decode()
    assert User.objects.get(username=OPERATOR).is_active


# -- one's own password ---------------------------------------------------------------------------------------------------------------
@pytest.fixture
def seat(otto):
    """Two browsers of otto's, logged in."""
    browsers = Client(), Client()
    for browser in browsers:
        assert browser.post("/login", {"username": "otto", "password": GOOD}).status_code == 302
    return browsers


NEW = "another staple 9"


@pytest.mark.parametrize(
    ("old", "new", "again", "said"),
    [
        ("wrong", NEW, NEW, "The old password is not right."),
        (GOOD, NEW, "something else 1", "not the same both times"),
        (GOOD, "short", "short", "too short"),
        (GOOD, "p\x00" * 8, "p\x00" * 8, "none of them NUL"),
    ],
)
def test_a_password_is_not_changed_by_mistake(old, new, again, said, seat):
    response = seat[0].post("/password", {"old": old, "new": new, "again": again})
    assert response.status_code == 400
    assert said in response.content.decode()
    assert User.objects.get(username="otto").check_password(GOOD)


def test_changing_the_own_password_ends_the_other_sessions_and_is_recorded(seat, database):
    here, elsewhere = seat
    assert "Your password is changed." in here.post("/password", {"old": GOOD, "new": NEW, "again": NEW}, follow=True).content.decode()
    assert here.get("/").status_code == 200
    assert elsewhere.get("/").status_code == 302
    assert _audit(database)[-1] == ("otto", "operator password", "otto", {}, None)
    assert Client().post("/login", {"username": "otto", "password": NEW}).status_code == 302


def test_the_old_password_cannot_be_guessed_at_will(seat, database):
    for _ in range(5):
        assert seat[0].post("/password", {"old": "wrong", "new": NEW, "again": NEW}).status_code == 400
    response = seat[0].post("/password", {"old": GOOD, "new": NEW, "again": NEW})
    assert response.status_code == 429
    assert int(response["Retry-After"]) > 0
    *wrong, last = [row[4]["refused"] for row in _audit(database)[-6:]]
    assert wrong == ["the old password was not right"] * 5
    assert last.startswith("too many have failed from there: not looked at")


def test_a_superuser_who_gives_himself_a_password_stays_logged_in(database):
    browser = Client()
    browser.post("/login", {"username": OPERATOR, "password": PASSWORD})
    assert browser.post("/operators/password", {"name": OPERATOR, "password": NEW}).status_code == 302
    try:
        assert browser.get("/operators").status_code == 200
    finally:
        user = User.objects.get(username=OPERATOR)
        user.set_password(PASSWORD)
        user.save()
