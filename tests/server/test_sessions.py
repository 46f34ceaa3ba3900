"""An account that is disabled, deleted or given another password takes its connections along. Passwords are checked on a thread: a real loop."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from broker_core import scram
from broker_core.server import throttle
from broker_core.server.auth import REFUSED, Account, Accounts
from broker_core.server.stomp_peer import StompPeer

from .rig import Broker, Client, turns

PATIENCE = 10
OLD, NEW = (scram.make_verifier(password, b"s" * 16, scram.ITERATIONS_MIN) for password in ("old", "new"))


class Source:
    """The table of accounts; `read` is called between the reading and its answer."""

    def __init__(self) -> None:
        self.accounts: dict[str, Account | None] = {name: Account(name, OLD, False, False) for name in ("shop", "bank")}
        self.read: Callable[[], Awaitable[None]] | None = None

    async def account(self, name: str) -> Account | None:
        found = self.accounts.get(name)
        if self.read is not None:
            read, self.read = self.read, None
            await read()
        return found

    def change(self, name: str, **changes: Any) -> None:
        account = self.accounts[name]
        assert account is not None
        self.accounts[name] = dataclasses.replace(account, **changes)


class Shop(Broker):
    """A broker whose accounts are real."""

    async def open(self) -> Shop:
        self.source = Source()
        accounts: Any = Accounts(self.source, self.sessions)
        self.accounts = accounts
        await self.start()
        return self

    def enters(self, name: str, passcode: str = "old", *headers: tuple[str, str]) -> Client:
        client = self.connect()
        client.say("CONNECT", ("accept-version", "1.2"), ("host", "/"), ("login", name), ("passcode", passcode), *headers)
        return client

    async def let_in(self, name: str, passcode: str = "old", *headers: tuple[str, str]) -> Client:
        client = self.enters(name, passcode, *headers)
        assert [command for command, _, _ in await said(client)] == ["CONNECTED"]
        return client

    async def shut(self) -> None:
        self.accounts.close()  # type: ignore[attr-defined]
        await self.end()


async def said(client: Client) -> list[Any]:
    for _ in range(PATIENCE * 100):
        await asyncio.sleep(0.01)
        if frames := client.take():
            return frames
    raise AssertionError("the broker says nothing")


def disable(shop: Shop) -> None:
    shop.source.change("shop", disabled=True)


def delete(shop: Shop) -> None:
    shop.source.accounts["shop"] = None


def change_password(shop: Shop) -> None:
    shop.source.change("shop", verifier=NEW)


CHANGES = [
    (disable, "the account shop was disabled"),
    (delete, "the account shop was deleted"),
    (change_password, "the password of the account shop was changed; log in again"),
]


@pytest.mark.parametrize(("change", "sentence"), CHANGES)
@pytest.mark.parametrize("heard", ["shop", None])
def test_every_connection_of_a_changed_account_ends_with_the_reason_and_no_other(
    change: Callable[[Shop], None], sentence: str, heard: str | None
) -> None:
    async def story() -> None:
        shop = await Shop().open()
        first, second, other = await shop.let_in("shop"), await shop.let_in("shop"), await shop.let_in("bank")
        change(shop)
        await shop.accounts.review(heard)
        await turns()
        for client in (first, second):
            assert [(command, headers["message"]) for command, headers, _ in client.take()] == [("ERROR", sentence)]
            assert client.wire.gone
        other.send(b"m", "1")
        await turns()
        assert other.receipts() == ["1"]
        assert shop.sessions.accounts() == ["bank"]
        await shop.shut()

    asyncio.run(story())


@pytest.mark.parametrize("change", [change for change, _ in CHANGES])
def test_a_login_that_was_being_checked_while_its_account_was_changed_is_refused(change: Callable[[Shop], None]) -> None:
    async def story() -> None:
        shop = await Shop().open()

        async def changed() -> None:
            change(shop)
            await shop.accounts.review("shop")

        shop.source.read = changed
        client = shop.enters("shop")
        assert [(command, headers["message"]) for command, headers, _ in await said(client)] == [("ERROR", REFUSED)]
        assert shop.sessions.accounts() == []
        await shop.shut()

    asyncio.run(story())


@pytest.mark.parametrize(("change", "sentence"), CHANGES)
def test_a_login_whose_account_is_changed_while_its_client_identifier_is_looked_into_is_ended(
    change: Callable[[Shop], None], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        shop = await Shop().open()

        async def is_alive(_first: StompPeer) -> bool:
            change(shop)
            await shop.accounts.review("shop")
            return False

        monkeypatch.setattr(StompPeer, "is_alive", is_alive)
        await shop.let_in("shop", "old", ("client-id", "till"))
        second = shop.enters("shop", "old", ("client-id", "till"))
        assert [(command, headers["message"]) for command, headers, _ in await said(second)] == [("ERROR", sentence)]
        await turns()
        assert second.wire.gone
        assert shop.sessions.accounts() == []
        assert not shop.engine.shard.peers
        await shop.let_in("bank", "old", ("client-id", "till"))
        await shop.shut()

    asyncio.run(story())


def test_a_login_that_is_refused_for_its_client_identifier_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        shop = await Shop().open()

        async def is_alive(_first: StompPeer) -> bool:
            return True

        monkeypatch.setattr(StompPeer, "is_alive", is_alive)
        first = await shop.let_in("shop", "old", ("client-id", "till"))
        second = shop.enters("shop", "old", ("client-id", "till"))
        ((_, headers, _),) = await said(second)
        assert "in use by another connection" in headers["message"]
        await turns()
        assert second.wire.gone
        first.wire.lose()
        await turns()
        assert shop.sessions.accounts() == []
        await shop.shut()

    asyncio.run(story())


def test_a_login_with_the_new_password_ends_what_is_open_with_the_old_one_before_the_change_is_heard() -> None:
    async def story() -> None:
        shop = await Shop().open()
        old = await shop.let_in("shop")
        change_password(shop)
        new = await shop.let_in("shop", "new")
        await turns()
        assert old.commands() == ["ERROR"]
        await shop.accounts.review("shop")
        await turns()
        assert new.take() == []
        assert old.wire.gone
        assert not new.wire.gone
        await shop.shut()

    asyncio.run(story())


def overlap(shop: Shop, seconds: float = 3600) -> None:
    shop.source.change("shop", verifier=NEW, previous=OLD, previous_seconds=seconds)


def test_while_two_passwords_are_good_nobody_is_ended_and_both_let_in() -> None:
    async def story() -> None:
        shop = await Shop().open()
        old = await shop.let_in("shop")
        overlap(shop)
        await shop.accounts.review("shop")
        clients = [old, await shop.let_in("shop", "old"), await shop.let_in("shop", "new")]
        assert [command for command, _, _ in await said(shop.enters("shop", "wrong"))] == ["ERROR"]
        await shop.accounts.lapse()
        assert not any(client.wire.gone for client in clients)
        await shop.shut()

    asyncio.run(story())


def test_the_former_password_ends_with_its_time_and_takes_its_connections_along() -> None:
    async def story() -> None:
        shop = await Shop().open()
        overlap(shop, 0.05)
        old, new = await shop.let_in("shop", "old"), await shop.let_in("shop", "new")
        shop.source.change("shop", previous=None)
        await asyncio.sleep(0.06)
        await shop.accounts.lapse()
        await turns()
        assert [headers["message"] for _, headers, _ in old.take()] == ["the password of the account shop was changed; log in again"]
        assert not new.wire.gone
        assert [command for command, _, _ in await said(shop.enters("shop", "old"))] == ["ERROR"]
        await shop.shut()

    asyncio.run(story())


def test_who_is_disabled_while_two_passwords_are_good_is_ended_whichever_he_showed() -> None:
    async def story() -> None:
        shop = await Shop().open()
        overlap(shop)
        clients = [await shop.let_in("shop", "old"), await shop.let_in("shop", "new")]
        disable(shop)
        await shop.accounts.review("shop")
        await turns()
        assert all(client.wire.gone for client in clients)
        await shop.shut()

    asyncio.run(story())


def test_an_account_has_no_more_connections_than_it_may() -> None:
    async def story() -> None:
        shop = await Shop().open()
        shop.source.change("shop", connections_max=2)
        first, _ = await shop.let_in("shop"), await shop.let_in("shop")
        for _ in range(8):  # the throttle of wrong passwords has nothing to say of it
            [(command, headers, _)] = await said(shop.enters("shop"))
            assert (command, headers["message"]) == ("ERROR", "the account shop has 2 connections and may have no more")
        await shop.let_in("bank")
        first.wire.lose()
        await turns()
        await shop.let_in("shop")
        await shop.shut()

    asyncio.run(story())


def test_an_account_that_was_only_enabled_keeps_its_connections() -> None:
    async def story() -> None:
        shop = await Shop().open()
        client = await shop.let_in("shop")
        await shop.accounts.review("shop")
        await turns()
        assert not client.wire.gone
        client.wire.lose()
        await turns()
        assert shop.sessions.accounts() == [], "nothing is kept of a connection that is gone"
        await shop.shut()

    asyncio.run(story())


def test_messages_of_a_connection_that_was_ended_go_to_another_account() -> None:
    async def story() -> None:
        shop = await Shop().open()
        first = await shop.let_in("shop")
        first.say("SUBSCRIBE", ("id", "1"), ("destination", "/queue/q"), ("ack", "client"))
        first.send(b"m", "1")
        await said(first)
        disable(shop)
        await shop.accounts.review("shop")
        second = await shop.let_in("bank")
        second.say("SUBSCRIBE", ("id", "1"), ("destination", "/queue/q"), ("ack", "client"))
        (_, headers, body), = await said(second)
        assert (body, headers["redelivered"]) == (b"m", "true")
        await shop.shut()

    asyncio.run(story())


def test_who_guesses_is_told_to_wait_and_does_not_fill_the_log(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "REFUSE_SECONDS", throttle.REFUSE_SECONDS_MAX)  # the test must not take as long

    async def story() -> None:
        shop = await Shop().open()
        sentences = []
        for _ in range(20):
            ((_, headers, _),) = await said(shop.enters("shop", "guess"))
            sentences.append(headers["message"])
        assert sentences[:5] == [REFUSED] * 5
        assert all(sentence.startswith("too many logins have failed; try again in ") for sentence in sentences[5:])
        assert shop.metrics.refused_logins == 20
        await shop.shut()

    with caplog.at_level("INFO"):
        asyncio.run(story())
    assert sum("refused" in record.message for record in caplog.records) == 5
