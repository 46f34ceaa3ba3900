"""Settings that keep the console safe: keys, headers, hosts, hashes."""

import re
import stat
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from console import settings


def test_a_secret_key_is_made_once_for_the_owner_only(tmp_path, monkeypatch):
    monkeypatch.delenv("SURETY_SECRET_KEY", raising=False)
    first = settings.secret_key(tmp_path / "home")
    kept = tmp_path / "home" / "secret_key"
    assert len(first) >= 50
    assert settings.secret_key(tmp_path / "home") == first
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert [file.name for file in kept.parent.iterdir()] == ["secret_key"]


def test_a_given_secret_key_holds(tmp_path, monkeypatch):
    monkeypatch.setenv("SURETY_SECRET_KEY", "given")
    assert settings.secret_key(tmp_path / "home") == "given"
    assert not (tmp_path / "home").exists()


def test_a_flag_that_is_none_stops_the_start(monkeypatch):
    monkeypatch.setenv("SURETY_HTTPS", "perhaps")
    with pytest.raises(ImproperlyConfigured, match="SURETY_HTTPS is 'perhaps'"):
        settings.env_flag("SURETY_HTTPS")


def test_a_list_has_its_parts_trimmed(monkeypatch):
    monkeypatch.setenv("SURETY_ALLOWED_HOSTS", " a.example , ,b.example,")
    assert settings.env_list("SURETY_ALLOWED_HOSTS") == ["a.example", "b.example"]


def test_a_uri_becomes_djangos_settings_and_the_rest_goes_to_libpq():
    found = settings.database("postgresql://shop:p%40ss@db.example:6432/broker?sslmode=require")
    assert [found[key] for key in ("NAME", "USER", "PASSWORD", "HOST", "PORT")] == ["broker", "shop", "p@ss", "db.example", "6432"]
    assert found["OPTIONS"]["sslmode"] == "require"


def test_passwords_of_operators_are_hashed_slowly():
    assert settings.PASSWORD_HASHERS == ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]


@pytest.mark.parametrize("path", ["/login", "/", "/health/live", "/static/console/page.css", "/nothing"])
def test_every_answer_carries_the_headers(path, viewer):
    headers = viewer.get(path).headers
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'")
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    if not path.startswith("/static"):
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Cache-Control"] in {"no-store", "max-age=0, no-cache, no-store, must-revalidate, private"}


@pytest.mark.parametrize("path", ["/", "/destinations", "/accounts", "/audit", "/destinations/create", "/operators", "/operators/rights?name=olga"])
def test_no_page_has_inline_code_or_foreign_hosts(path, operator):
    page = operator.get(path).content.decode()
    assert not re.search(r"<script(?![^>]*src=)|<style|\sstyle=|\son[a-z]+=|javascript:|https?://", page)


def test_what_the_pages_name_is_served(viewer):
    page = viewer.get("/destinations").content.decode()
    for path in set(re.findall(r'"(/static/[^"]+)"', page)):
        response = viewer.get(path)
        assert response.status_code == 200
        assert response.content == Path(finders.find(path.partition("?")[0].removeprefix("/static/"))).read_bytes()


def test_a_browser_keeps_what_pages_name_until_they_name_another(viewer):
    [path] = set(re.findall(r'"(/static/console/page.css[^"]*)"', viewer.get("/destinations").content.decode()))
    assert "immutable" in viewer.get(path)["Cache-Control"]
    for other in (path.partition("?")[0], f"{path}0"):
        assert "immutable" not in viewer.get(other)["Cache-Control"]


def test_a_host_that_is_not_ours_is_refused(database):
    assert Client(headers={"Host": "evil.example"}).get("/login").status_code == 400
