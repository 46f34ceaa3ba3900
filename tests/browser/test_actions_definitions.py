"""What is named and set up on pages: settings by name, aliases, objects, links, accounts, access rules, operators, grants, tokens, a whole document."""

from __future__ import annotations

import pytest

from broker_core.client import JMSSecurityException
from tests.acceptance.python_client import factory
from tests.browser.doing import agree, everything, row, told
from tests.browser.watched import PASSWORD

pytestmark = pytest.mark.slow

NAMED = {
    "policies": ("queue/act.named.*", {"max_messages": "10"}, {"max_messages": "20"}),
    "aliases": ("queue/act.alias", {"target": "queue/act.target"}, {"target": "queue/act.other"}),
    "objects": ("jms/act", {"destination": "queue/act.target"}, {"destination": "queue/act.other"}),
    "links": ("act-link", {"host": "127.0.0.1", "port": "1"}, {"host": "127.0.0.2"}),
}
"""By kind: a name, what its form says at first, and what then."""


def write(page, said: dict[str, str]) -> None:
    for name, value in said.items():
        page.fill(f"main form [name={name}]", value)
    page.click("main form button.primary")


@pytest.mark.clicks(*(f"named_{done} {kind}" for kind in NAMED for done in ("create", "change", "delete")))
def test_what_has_a_name_is_made_changed_and_deleted(page_as, api):
    for address in ("queue/act.target", "queue/act.other"):
        api.does("POST", "destinations", {"address": address})
    page = page_as().open("/")
    root = page.url.rstrip("/")
    for kind, (name, first, then) in NAMED.items():
        page.goto(f"{root}/{kind}")
        page.click(".page-head .buttons a >> nth=-1")
        write(page, {"its_name": name, **first})
        told(page, "made")
        row(page, name).locator("th a").click()
        write(page, then)
        told(page, "changed")
        said = next(each for each in everything(api, kind) if name in each.values())
        for value in then.values():
            assert value in str(said), (kind, said)
        row(page, name).locator("text=Delete").click()
        agree(page)
        told(page, "deleted")
        assert [each for each in everything(api, kind) if name in each.values()] == [], kind


CHANGES = {
    "password": {"password": "another one for the act"}, "levels": {"persistent": "reliable"}, "groups": {"groups": "actors, others"},
    "limits": {"connections_max": "2", "sessions_max": "3"}, "disable": {}, "enable": {}, "delete": {},
}  # fmt: skip


@pytest.mark.clicks("account_create", *(f"account_change {verb}" for verb in CHANGES), "access_create", "access_delete")
def test_an_account_is_made_changed_and_deleted_with_a_rule_of_its_own(page_as, service, api):
    page = page_as().open("/accounts")
    page.fill("main #name", "actor")
    page.fill("main #password", "one for the act")
    page.click('main button:text-is("Create")')
    told(page, "actor may connect")
    connects(service, "one for the act")
    page.goto(page.url.replace("/accounts", "/access"))
    for name, value in (("resource", "queue/act.forbidden"), ("principal", "actor")):
        page.fill(f"#{name}", value)
    page.select_option("#allow", "no")
    page.click('main button:text-is("Add")')
    told(page, "holds from now on")
    assert [each for each in everything(api, "access?limit=1000") if each["principal"] == "actor"]
    row(page, "actor").locator("text=Delete").click()
    agree(page)
    told(page, "is deleted")
    assert [each for each in everything(api, "access?limit=1000") if each["principal"] == "actor"] == []
    page.goto(page.url.replace("/access", "/accounts"))
    for verb, fields in CHANGES.items():
        row(page, "actor").locator(f'a:text-is("{verb.capitalize()}")').click()
        agree(page, **fields)
        told(page, "actor ")
        if verb == "limits":
            it = next(each for each in everything(api, "accounts?limit=1000") if each["name"] == "actor")
            assert (it["connections_max"], it["sessions_max"], sorted(it["groups"])) == (2, 3, ["actors", "others"])
            connects(service, "another one for the act")
        if verb == "disable":
            with pytest.raises(JMSSecurityException):
                connects(service, "another one for the act")
    assert [each for each in everything(api, "accounts?limit=1000") if each["name"] == "actor"] == []


def connects(service, password: str) -> None:
    factory(service).create_connection("actor", password).close()


@pytest.mark.clicks(
    "operator_create", *(f"operator_change {verb}" for verb in ("role", "rights", "password", "disable", "enable")),
    "grant_create", "grant_change", "grant_delete",
)  # fmt: skip
def test_an_operator_is_made_and_changed_and_given_rights(page_as, api):
    page = page_as().open("/operators")
    page.fill("main #name", "oscar")
    page.fill("main #password", PASSWORD)
    page.click('main button:text-is("Create")')
    told(page, "oscar may log in")
    for verb, fields in (("role", {"role": "restricted"}), ("rights", {}), ("password", {"password": PASSWORD + " again"}), ("disable", {}), ("enable", {})):
        row(page, "oscar").locator(f'a:text-is("{verb.capitalize()}")').click()
        agree(page, **fields)
        told(page, "oscar ")
        it = next(each for each in everything(api, "operators?limit=1000") if each["name"] == "oscar")
        assert it["disabled"] is (verb == "disable")
    assert it["role"] == "restricted"
    page.goto(page.url.replace("/operators", "/grants"))
    page.fill("#operator", "oscar")
    page.fill("#pattern", "queue/act.**")
    page.check("[name=verbs][value=metrics]")
    page.click('main button:text-is("Grant")')
    told(page, "oscar may that")
    row(page, "oscar").locator("text=Change").click()
    page.wait_for_selector("#dialog[open]")
    page.check("#dialog [value=browse_headers]")
    agree(page)
    told(page, "oscar may that")
    grant = next(each for each in everything(api, "grants?limit=1000") if "oscar" in each.values())
    assert sorted(grant["verbs"]) == ["browse_headers", "metrics"]
    row(page, "oscar").locator("text=Take back").click()
    agree(page)
    told(page, "no more")
    assert [each for each in everything(api, "grants?limit=1000") if "oscar" in each.values()] == []


@pytest.mark.clicks("tokens", "token_revoke")
def test_a_token_is_made_shown_once_and_revoked(page_as, api):
    page = page_as().open("/tokens")
    page.fill("#name", "act-token")
    page.click('main button:text-is("Make it")')
    page.wait_for_selector("text=it is shown once")
    page.goto(page.url)
    assert "shown once" not in page.inner_text("main")
    row(page, "act-token").locator("text=Revoke").click()
    agree(page)
    told(page, "good for nothing")
    assert [each for each in everything(api, "tokens") if each["name"] == "act-token"] == []


@pytest.mark.clicks("definitions")
def test_a_document_is_tried_and_then_applied(page_as, api):
    page = page_as().open("/definitions")
    page.fill("#text", "version: 1\ndestinations:\n  queue/act.defined: {max_messages: 12}\n")
    page.click("text=Tell me what would be done")
    page.wait_for_selector("text=1 to do")
    assert everything(api, "destinations?address=queue/act.defined") == []
    page.click("text=Do these 1")
    page.wait_for_selector("text=All of it is done")
    assert everything(api, "destinations?address=queue/act.defined")[0]["settings"]["max_messages"] == 12


@pytest.mark.clicks("login", "logout", "own_password")
def test_somebody_changes_his_password_logs_out_and_in_again(page_as):
    page = page_as("restricted").open("/password")
    for name, value in (("old", PASSWORD), ("new", PASSWORD + " new"), ("again", PASSWORD + " new")):
        page.fill(f"#{name}", value)
    page.click("main button.primary")
    told(page, "Your password is changed")
    page.click(".drop summary")
    page.click("text=Log out")
    page.wait_for_url("**/login")
    page.fill("#username", "restricted")
    page.fill("#password", PASSWORD + " new")
    page.click("button.primary")
    page.wait_for_selector("#nav", state="attached")
