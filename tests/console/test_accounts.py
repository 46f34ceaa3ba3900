"""Client accounts: made, changed, disabled, deleted; never with a readable password."""

import psycopg
import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from broker_core.scram import Verifier, check_password
from console.services import accounts
from console.services.audit import Actor
from tests.console import facts
from tests.console.conftest import OPERATOR


@pytest.fixture
def olga(database):
    return Actor(User.objects.get(username=OPERATOR), "192.0.2.1")


def _verifier(database, name):
    [row] = facts.rows(database, f"SELECT salt, iterations, stored_key, server_key FROM surety.account WHERE name = '{name}'")
    return Verifier(*row)


@pytest.mark.parametrize("name", ["", " ", " shop", "shop ", "a\x00b", "a\nb", "x" * 256, "half\ud800"])
def test_a_bad_name_is_refused(name, olga):
    with pytest.raises(accounts.InvalidAccount, match="name"):
        accounts.create(olga, name, "long enough")


@pytest.mark.parametrize("password", ["", "short", "the-shop", "THE-SHOP", "bell\x07\x07\x07\x07\x07", "p" * 2000])
def test_a_bad_password_is_refused(password, olga, database):
    with pytest.raises(accounts.InvalidAccount, match="password"):
        accounts.create(olga, "the-shop", password)
    with pytest.raises(accounts.InvalidAccount, match="password"):
        accounts.set_password(olga, "the-shop", password)
    assert facts.rows(database, "SELECT name FROM surety.account") == [("guest",)]


def test_a_name_is_given_once(olga, database):
    with pytest.raises(accounts.InvalidAccount, match="There is an account guest already"):
        accounts.create(olga, "guest", "long enough")
    assert facts.rows(database, "SELECT * FROM surety.audit") == []


def test_what_does_not_exist_cannot_be_changed(olga, database):
    for change in (
        lambda: accounts.set_password(olga, "nobody", "long enough"),
        lambda: accounts.set_disabled(olga, "nobody", True),
        lambda: accounts.delete(olga, "nobody"),
        lambda: accounts.delete(olga, "no\x00body"),
    ):
        with pytest.raises(accounts.InvalidAccount, match=r"no (such )?account"):
            change()
    assert facts.rows(database, "SELECT * FROM surety.audit") == []


def test_an_account_keeps_a_verifier_and_every_step_is_recorded(olga, database):
    accounts.create(olga, "shop", "first password", loopback_only=True)
    first = _verifier(database, "shop")
    assert check_password("first password", first)
    assert first.iterations >= 4096
    accounts.set_password(olga, "shop", "second password")
    second = _verifier(database, "shop")
    assert check_password("second password", second)
    assert not check_password("first password", second)
    assert first.salt != second.salt
    accounts.set_disabled(olga, "shop", True)
    assert facts.rows(database, "SELECT disabled, loopback_only FROM surety.account WHERE name = 'shop'") == [(True, True)]
    accounts.set_disabled(olga, "shop", False)
    accounts.delete(olga, "shop")
    assert facts.rows(database, "SELECT name FROM surety.account") == [("guest",)]
    recorded = facts.rows(database, "SELECT what, address, arguments FROM surety.audit ORDER BY entry")
    assert [what for what, address, _ in recorded if address == "shop"] == [
        "account create", "account password", "account disable", "account enable", "account delete",
    ]  # fmt: skip
    assert "password" not in str([arguments for _, _, arguments in recorded])


def test_the_node_hears_of_a_change(olga, database):
    with psycopg.connect(database, autocommit=True) as node:
        node.execute(f"LISTEN {accounts.CHANNEL}")
        accounts.create(olga, "shop", "first password")
        accounts.set_disabled(olga, "shop", True)
        assert [notification.payload for notification in node.notifies(timeout=5, stop_after=1)] == ["shop"]


def test_an_operator_does_it_all_on_the_page(operator, database):
    page = operator.post(reverse("account_create"), {"name": "a&b", "password": "long enough", "loopback_only": "on"}, follow=True).content.decode()
    assert "a&amp;b may connect" in page
    assert "this machine only" in page
    assert "?name=a%26b" in page
    page = operator.post(reverse("account_change", args=["disable"]), {"name": "a&b"}, follow=True).content.decode()
    assert "disabled" in page
    operator.post(reverse("account_change", args=["delete"]), {"name": "a&b"})
    assert facts.rows(database, "SELECT name FROM surety.account") == [("guest",)]


def test_a_refusal_is_shown_on_the_page(operator):
    page = operator.post(reverse("account_create"), {"name": "shop", "password": "short"}, follow=True).content.decode()
    assert "at least 8 characters" in page
    response = operator.post(reverse("account_change", args=["password"]), {"name": "nobody", "password": "long enough"})
    assert response.status_code == 400
    assert "no account nobody" in response.content.decode()


def test_accounts_are_paged_by_key(operator, database):
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            """INSERT INTO surety.account (name, salt, iterations, stored_key, server_key)
               SELECT 'shop-' || lpad(n::text, 3, '0'), '', 4096, '', '' FROM generate_series(1, 150) n"""
        )
    first = operator.get(reverse("accounts")).content.decode()
    assert "shop-099" in first
    assert "shop-100<" not in first
    assert "shop-100<" in operator.get(reverse("accounts") + "?after=shop-099").content.decode()


# -- levels of reliability -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("persistent", "nonpersistent"), [("total", ""), ("", "none"), ("assured ", "")])
def test_delivery_modes_cannot_stand_for_what_is_no_level(persistent, nonpersistent, olga, database):
    with pytest.raises(accounts.InvalidAccount, match="can stand for one of best-effort, express, reliable-np, reliable, assured, as-destination"):
        accounts.set_levels(olga, "guest", persistent, nonpersistent)
    assert facts.rows(database, "SELECT persistent_reliability, nonpersistent_reliability FROM surety.account") == [("", "")]


def test_the_levels_of_nobody_cannot_be_set(olga, database):
    with pytest.raises(accounts.InvalidAccount, match="There is no account nobody"):
        accounts.set_levels(olga, "nobody", "reliable", "")


def test_an_operator_sets_what_an_accounts_delivery_modes_stand_for_and_is_warned_of_what_loses_messages(olga, database):
    assert accounts.set_levels(olga, "guest", "reliable", "as-destination") == []
    assert accounts.set_levels(olga, "guest", "express", "best-effort") == [
        "persistent messages are sent as express: they are lost when the broker stops"
    ]
    assert facts.rows(database, "SELECT persistent_reliability, nonpersistent_reliability FROM surety.account") == [("express", "best-effort")]
    recorded = facts.rows(database, "SELECT what, arguments FROM surety.audit ORDER BY entry")
    assert recorded[-1] == ("account levels", {"persistent_reliability": "express", "nonpersistent_reliability": "best-effort"})


def test_the_page_shows_the_levels_and_tells_the_warning(operator, database):
    page = operator.get(reverse("account_change", args=["levels"]) + "?name=guest")
    assert b"Persistent messages" in page.content
    told = operator.post(reverse("account_change", args=["levels"]), {"name": "guest", "persistent": "express", "nonpersistent": ""}, follow=True)
    assert b"persistent messages are sent as express: they are lost when the broker stops" in told.content
    page = operator.get(reverse("account_change", args=["levels"]) + "?name=guest")
    assert b"<option selected>express</option>" in page.content
    refused = operator.post(reverse("account_change", args=["levels"]), {"name": "guest", "persistent": "total"})
    assert refused.status_code == 400


# -- pages ------------------------------------------------------------------------------------------------------------------------------
def test_groups_limits_and_two_passwords_are_set_by_their_pages(operator, olga, database):
    accounts.create(olga, "shop", "first password")
    operator.post("/accounts/groups", {"name": "shop", "groups": "night, day,, "})
    operator.post("/accounts/limits", {"name": "shop", "connections_max": "5", "sessions_max": ""})
    operator.post("/accounts/password", {"name": "shop", "password": "another one", "overlap_seconds": "600"})
    listed = operator.get("/accounts").content.decode()
    assert "day, night" in listed
    assert "Two passwords are good" in listed
    assert facts.rows(database, "SELECT connections_max, sessions_max FROM surety.account WHERE name = 'shop'") == [(5, 0)]


@pytest.mark.parametrize("said", [{"connections_max": "many"}, {"connections_max": "-1"}, {"connections_max": "9" * 9}])
def test_a_limit_that_cannot_be_is_a_sentence(said, operator):
    response = operator.post("/accounts/limits", {"name": "guest", **said})
    assert (response.status_code, 'role="alert"' in response.content.decode()) == (400, True)
