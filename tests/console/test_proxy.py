"""Who asks is the socket's other end; only a proxy that the settings name may say that it asks for somebody else."""

from __future__ import annotations

import asyncio
import runpy
import sys
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from broker_core.config import BrokerConfig
from console import settings
from console.launch.supervisor import roles
from tests.console import facts
from tests.console.api import logged_in

FORGED = [(b"x-forwarded-for", b"203.0.113.7"), (b"x-forwarded-proto", b"https")]


def seen(peer: str, headers: list[tuple[bytes, bytes]], trusted: list[str], monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Address and scheme that the pages see of a request that came from `peer`."""
    found: dict[str, Any] = {}

    async def pages(scope: dict[str, Any], _receive: Any, _send: Any) -> None:
        found.update(scope)

    monkeypatch.delitem(sys.modules, "console.asgi", raising=False)  # other tests may have had it
    monkeypatch.setattr("django.core.asgi.get_asgi_application", lambda: pages)
    with override_settings(TRUSTED_PROXIES=trusted):
        application = runpy.run_module("console.asgi")["application"]
    asyncio.run(application({"type": "http", "path": "/", "scheme": "http", "client": (peer, 4711), "headers": headers}, None, None))
    return found["client"][0], found["scheme"]


@pytest.mark.parametrize("peer", ["127.0.0.1", "::1", "198.51.100.1"])
def test_without_a_proxy_nobody_speaks_for_somebody_else(peer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert seen(peer, FORGED, settings.proxies("SURETY_TRUSTED_PROXIES", https=False), monkeypatch) == (peer, "http")


def test_the_server_itself_believes_no_header() -> None:
    assert "--no-proxy-headers" in roles(BrokerConfig())["web"].command


def test_a_proxy_that_was_not_named_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seen("198.51.100.1", FORGED, ["127.0.0.1"], monkeypatch) == ("198.51.100.1", "http")


def test_behind_a_proxy_the_client_is_the_last_that_no_proxy_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a client wrote itself stands before what the proxy added."""
    assert seen("127.0.0.1", FORGED, ["127.0.0.1"], monkeypatch) == ("203.0.113.7", "https")
    headers = [(b"x-forwarded-for", b"10.0.0.1, 203.0.113.7")]
    assert seen("127.0.0.1", headers, ["127.0.0.1"], monkeypatch) == ("203.0.113.7", "http")


def test_proxies_are_believed_only_with_https(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SURETY_TRUSTED_PROXIES", "10.0.0.0/8, ::1")
    assert settings.proxies("SURETY_TRUSTED_PROXIES", https=False) == []
    assert settings.proxies("SURETY_TRUSTED_PROXIES", https=True) == ["10.0.0.0/8", "::1"]
    monkeypatch.delenv("SURETY_TRUSTED_PROXIES")
    assert settings.proxies("SURETY_TRUSTED_PROXIES", https=True) == ["127.0.0.1", "::1"]


@pytest.mark.parametrize("given", ["*", "proxy.example", "10.0.0.1/8", "127.0.0.1;::1"])
def test_a_proxy_without_an_address_stops_the_start(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SURETY_TRUSTED_PROXIES", given)
    with pytest.raises(ImproperlyConfigured, match="SURETY_TRUSTED_PROXIES names"):
        settings.proxies("SURETY_TRUSTED_PROXIES", https=True)


@pytest.mark.parametrize("written", ["", "unknown", "<script>", "203.0.113.7:x", "fe80::1%" + "z" * 5000, "\x00"])
def test_what_is_no_address_is_unknown_in_the_audit(written: str, database: str) -> None:
    viewer = logged_in(User.objects.create_user("vera"))
    assert viewer.post("/accounts/delete", {"name": "guest"}, REMOTE_ADDR=written).status_code == 403
    assert facts.rows(database, "SELECT origin FROM surety.audit WHERE who = 'vera'") == [("unknown",)]
