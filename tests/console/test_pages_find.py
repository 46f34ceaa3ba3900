"""Finding by name across the console, and the settings in force: each as far as one may see."""

import re
from html import unescape

import pytest
from django.conf import settings
from django.test import override_settings

from broker_core.config import described
from broker_core.engine import commands as c
from broker_core.engine.outcome import Outcome
from console.pages import everywhere
from console.selectors import configuration
from console.selectors.node import instance
from console.services import looking
from tests.console import facts
from tests.console.api import granted, logged_in, person


def told(client, query, status=200):
    response = client.get("/find", {"q": query})
    text = response.content.decode().partition("<main")[2]
    assert response.status_code == status, text
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text)))


@pytest.fixture
def named(database):
    facts.one_of_each(database)
    facts.destination(database, 1, "topic/shop.news")
    facts.destination(database, 2, "queue/secret")
    facts.execute(database, "UPDATE surety.subscription SET name = 'shop.mail', client_id = 'shop-7'")
    facts.execute(database, "UPDATE surety.account SET name = 'shop' WHERE name = 'a'")
    facts.execute(database, "UPDATE surety.prepared SET xid = '1.73686f702d37.00'")
    return database


# -- finding ------------------------------------------------------------------------------------------------------------------------------
def test_everything_that_is_called_so_is_found(named, operator):
    shown = told(operator, "shop")
    for words in ("topic/shop.news", "shop.mail", "Accounts shop", "shop-7 (73686f702d37) prepared", "no node is alive"):
        assert words in shown
    assert "Accounts" not in told(operator, "shop-7").partition("Keys")[0]


def test_what_is_a_destination_only_leads_to_the_list(named, operator):
    assert operator.get("/find?q=secret")["Location"] == "/destinations?q=secret"


def test_where_nothing_is_called_so_that_is_said(named, operator):
    assert "Nothing that you may see is called so." in told(operator, "nobody")
    assert "Nothing" not in told(operator, "")


def test_who_sees_some_destinations_finds_these_and_nothing_of_the_whole_broker(named):
    rita = person("rita", role="restricted")
    granted(rita, "topic/other", "metrics")
    client = logged_in(rita)
    for text in ("shop", "secret", "guest", "queue"):
        assert "Nothing that you may see is called so." in told(client, text)


@pytest.mark.parametrize("text", ["%", "_", "\\", "'", "\x00x", "<b>", "x" * 2000, "ID:", "ID:x-" + "9" * 30, "٣"])
def test_whatever_is_typed_hurts_nobody(named, operator, text):
    assert operator.get("/find", {"q": text}).status_code in (200, 302)


def test_a_connection_is_found_by_its_client(named, operator, monkeypatch):
    row = {"connection": 7, "account": "guest", "client_id": "till-3"}
    facts.well(named)
    looking._shared.clear()
    monkeypatch.setattr(everywhere.connections, "connections", lambda *_, **__: {"connections": [row], "next": 5})
    assert "till-3 of guest" in told(operator, "TILL")
    assert "the first 1,000 were looked at" in told(operator, "till")


def test_a_message_is_found_by_its_identifier_where_it_lies_and_where_it_lay(node, operator):
    node.send(b"first", b"second")
    node.send(b"third", address="queue/other")
    numbers = [message.sequence for message in _all(node)]
    identity = f"ID:{instance()}-"
    assert [_place(operator, f"{identity}{number}") for number in numbers] == [
        f"/destinations/{node.number()}/messages/4-0/life",
        f"/destinations/{node.number()}/messages/4-1/life",
        f"/destinations/{node.number('queue/other')}/messages/4-0/life",
    ]
    node.does(c.Attach(1, 9, "queue/orders", credit=2, replenish=False))
    node.does(c.Settle(1, 9, [1], outcome=Outcome.ACCEPTED), c.Settle(1, 9, [2], outcome=Outcome.ACCEPTED))
    facts.execute(node.dsn, "TRUNCATE surety.message_0_1")
    assert _place(operator, f"{identity}{numbers[1]}") == f"/destinations/{node.number()}/messages/4-1/life", "each was alone in its commit"
    assert "Nothing that you may see" in told(operator, f"{identity}999999")
    assert "Nothing that you may see" in told(operator, f"ID:another-{numbers[0]}")
    rita = person("rita", role="restricted")
    granted(rita, "queue/other", "metrics", "browse_headers")
    client = logged_in(rita)
    assert "Nothing that you may see" in told(client, f"{identity}{numbers[0]}")
    assert _place(client, f"{identity}{numbers[2]}")


def _all(node):
    return [message for address in ("queue/orders", "queue/other") for message in sorted(_held(node, address), key=lambda message: message.position)]


def _held(node, address):
    with looking.connection.cursor() as cursor:
        cursor.execute("SELECT sequence, position FROM surety.message_0_1 WHERE destination = %s", [node.number(address)])
        return [_Row(*row) for row in cursor.fetchall()]


class _Row:
    def __init__(self, sequence, position):
        self.sequence, self.position = sequence, position


def _place(client, identity):
    page = client.get("/find", {"q": identity}).content.decode()
    return re.search(r'<a href="(/destinations/[^"]+/life)"', page)[1]


# -- settings -----------------------------------------------------------------------------------------------------------------------------
def shown(client, query=""):
    response = client.get(f"/settings{query}")
    assert response.status_code == 200
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode().partition("<main")[2])))


def test_every_setting_is_there_with_its_meaning(operator):
    text = shown(operator)
    for it in described():
        assert it.variable in text
        assert re.sub(r"\s+", " ", it.reason) in text
    documented = set(re.findall(r"`(SURETY_[A-Z_]+)`", (settings.BASE_DIR / "docs" / "console.md").read_text()))
    assert documented <= {each.variable for each in configuration.in_force()}


def test_no_secret_is_shown(operator):
    with override_settings(METRICS_TOKEN="hush-hush-1", COMMAND_TOKEN="hush-hush-2"):
        response = operator.get("/settings").content.decode()
    assert "hush-hush" not in response
    assert settings.SECRET_KEY not in response
    assert settings.ADMIN_PASSWORD not in response
    values = {each.variable: each.value for each in configuration.in_force()}
    assert (values["SURETY_SECRET_KEY"], values["SURETY_METRICS_TOKEN"]) == ("set", "not set")


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("postgresql://surety:hush@db.example:5432/surety?sslmode=require&password=hush", "postgresql://surety@db.example:5432/surety"),
        ("postgresql:///surety?host=/tmp", "postgresql:///surety"),
        ("postgresql://a:b@c@db/x", "postgresql://a@db/x"),
        ("postgresql://[", "set"),
    ],
)
def test_of_the_address_of_the_database_no_password_is_shown(url, seen):
    assert configuration.without_password(url) == seen


def test_what_differs_from_the_default_is_found(operator):
    text = shown(operator, "?show=changed")
    assert "DATABASE_URL" in text
    assert "SURETY_HEADERS_MAX" not in text
    assert "SURETY_LEDGER_RETENTION_DAYS" in shown(operator, "?q=ledger+segments")


def test_only_administrators_see_settings(viewer):
    assert viewer.get("/settings").status_code == 403
    assert 'href="/settings"' not in viewer.get("/").content.decode()
