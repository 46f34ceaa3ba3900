"""Strangers log in, viewers look, operators act. Held for every page of the console; test_api_permissions.py does it for the API."""

import pytest
from django.urls import URLPattern, get_resolver, reverse

from console.pages.message_addresses import ADDRESSES
from tests.console import facts

PRODUCERS = {"max_active_consumers": -1, "max_backup_consumers": 0, "consumer_flow_limit": -1}
PRODUCERS |= {"default_reliability": "none", "maximum_reliability": "assured", "max_producers": -1, "time_to_live_ms": -1, "time_to_live_max_ms": -1}
PRODUCERS |= {"undo_ms": -1}
LIMITS = {"max_messages": -1, "max_octets": -1, "max_message_octets": -1, "limit_behavior": "FLOW_CONTROL", **PRODUCERS}
DELAYS = {"redelivery_delay_ms": 0, "redelivery_multiplier": 2, "redelivery_delay_max_ms": 0, "duplicate_window_ms": 0, "archive_ms": 0, **LIMITS}
OPEN = {"login", "sign_on", "sign_on_back", "health_live", "health_ready", "metrics"}
LOOKS = ["overview", "destinations", "accounts", "audit", "operations", "tasks", "policies", "aliases", "objects", "links"]
LOOKS += ["messages", "dead", "scheduled", "subscriptions", "transactions", "transactions_history", "undo"]
LOOKS += ["nodes", "access", "tokens", "alerts", "alert_history", "reports", "replays"]
ELSEWHERE = {
    "connections", "connection", "connection_close", "producers", "consumers", "holds", "release", "consumer_close",  # test_pages_clients.py
    "operation", "operation_cancel", "task_change", "task_run",  # test_pages_service.py
    "named_create", "named_change", "named_delete",  # test_pages_named.py
    "node_do", "access_create", "access_delete", "grants", "grant_create", "grant_change", "grant_delete", "definitions", "definitions_export",
    "delivery_audit", "replay", "replay_create", "replay_cancel",  # test_pages_reports.py
    "settings", "find", "token_revoke", "alert_create", "alert_change", "alert_delete", "alert_test",  # test_pages_administration.py
    "destination", "destination_check", "bulk",  # test_destination_pages.py
    "totals_reset", "totals_reset_all",  # test_resets.py
}  # fmt: skip
ELSEWHERE |= {address.name for address in ADDRESSES if address.name not in LOOKS}  # test_pages_messages.py and its neighbours
"""These are about what only a node knows, or about rows of their own: each has its test of who may what."""
ACTS = [
    ("create", {"name": "new", "redelivery_max": 10, **DELAYS}),
    ("update", {"redelivery_max": 3, **DELAYS}),
    ("pause", {"direction": "ALL"}),
    ("resume", {}),
    ("purge", {"depth": 0}),
    ("destroy", {"depth": 0}),
    ("account_create", {"name": "shop", "password": "long enough"}),
    ("password", {"name": "guest", "password": "long enough"}),
    ("groups", {"name": "guest", "groups": "a, b"}),
    ("limits", {"name": "guest", "connections_max": "5", "sessions_max": "0"}),
    ("disable", {"name": "guest"}),
    ("enable", {"name": "guest"}),
    ("delete", {"name": "guest"}),
    ("operator_create", {"name": "otto", "password": "long enough 17"}),
    ("operator password", {"name": "olga", "password": "long enough 17"}),
    ("operator rights", {"name": "olga"}),
    ("operator role", {"name": "olga", "role": "viewer"}),
    ("operator disable", {"name": "olga"}),
    ("operator enable", {"name": "olga"}),
]


@pytest.fixture
def orders(database):
    facts.destination(database, 1, "queue/orders", depth=0)


def _path(name):
    if name in {"pause", "resume", "purge", "destroy"}:
        return reverse("operate", args=[1, name])
    if name in {"password", "groups", "limits", "disable", "enable", "delete"}:
        return reverse("account_change", args=[name])
    if name.startswith("operator "):
        return reverse("operator_change", args=[name.split()[1]]) + "?name=olga"
    return reverse(name, args=[1]) if name == "update" else reverse(name)


def test_every_address_is_covered_here():
    named = {pattern.name for pattern in get_resolver().url_patterns if isinstance(pattern, URLPattern)}
    acts = {"create", "update", "operate", "account_create", "account_change", "operator_create", "operator_change"}
    assert named == OPEN | set(LOOKS) | acts | ELSEWHERE | {"logout", "operators", "own_password"}


@pytest.mark.parametrize("name", LOOKS)
def test_a_stranger_sees_the_login_and_nothing_else(name, stranger):
    response = stranger.get(_path(name))
    assert (response.status_code, response["Location"]) == (302, f"/login?next={_path(name)}")


@pytest.mark.parametrize(("name", "data"), ACTS)
def test_a_stranger_does_nothing(name, data, stranger, orders, database):
    assert stranger.post(_path(name), data)["Location"].startswith("/login")
    assert facts.rows(database, "SELECT what FROM surety.audit") == []
    assert facts.rows(database, "SELECT verb FROM surety.control_request") == []


@pytest.mark.parametrize("name", LOOKS)
def test_a_viewer_looks(name, viewer):
    assert viewer.get(_path(name)).status_code == 200


@pytest.mark.parametrize(("name", "data"), ACTS)
def test_a_viewer_does_nothing_and_his_attempt_is_recorded(name, data, viewer, orders, database):
    before = [facts.rows(database, f"SELECT * FROM {table} ORDER BY 1") for table in ("surety.account", "auth_user")]
    assert viewer.post(_path(name), data).status_code == 403
    [(who, origin, result)] = facts.rows(database, "SELECT who, origin, result FROM surety.audit")
    assert (who, origin) == ("vera", "127.0.0.1")
    assert "permission" in result["refused"]
    assert facts.rows(database, "SELECT verb FROM surety.control_request") == []
    assert [facts.rows(database, f"SELECT * FROM {table} ORDER BY 1") for table in ("surety.account", "auth_user")] == before


def test_a_viewer_sees_no_buttons_that_would_refuse_him(viewer, orders, database):
    facts.well(database)
    page = viewer.get("/destinations").content.decode()
    assert "queue/orders" in page
    assert not any(f">{word}<" in page for word in ("Purge", "Pause", "Destroy", "New queue"))


def test_permissions_are_apart(viewer, orders, database):
    """Whoever may pause may not discard."""
    from django.contrib.auth.models import Permission, User

    User.objects.get(username="vera").user_permissions.add(Permission.objects.get(codename="manage_destination"))
    page = viewer.get("/destinations").content.decode()
    assert ">Pause<" in page
    assert ">Purge<" not in page
    assert viewer.post(_path("purge"), {"depth": 0}).status_code == 403


def test_a_disabled_person_is_a_stranger(viewer):
    from django.contrib.auth.models import User

    User.objects.filter(username="vera").update(is_active=False)
    assert viewer.get("/destinations").status_code == 302


@pytest.mark.parametrize(("name", "data"), ACTS)
def test_looking_at_a_confirmation_does_nothing(name, data, operator, orders, database):
    assert operator.get(_path(name)).status_code in {200, 405}
    assert facts.rows(database, "SELECT what FROM surety.audit") == []
