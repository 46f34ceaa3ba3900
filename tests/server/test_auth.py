"""Who may connect. Passwords are checked on a thread, so these run on a real loop."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from broker_core import scram
from broker_core.server import throttle
from broker_core.server.auth import REFUSED, Account, Accounts
from broker_core.server.sessions import Sessions
from broker_core.engine.levels import UNMAPPED, LevelMapping
from broker_core.store import CommitLost

GUEST = scram.make_verifier("secret", b"s" * 16)


class Source:
    def __init__(self, *, disabled: bool = False, loopback_only: bool = False) -> None:
        self._account = Account("guest", GUEST, disabled, loopback_only)

    async def account(self, name: str) -> Account | None:
        return self._account if name == "guest" else None


def check(source: Any, login: str, passcode: str, remote: str = "192.0.2.1") -> tuple[str | None, str]:
    async def ask() -> tuple[str | None, str]:
        accounts = Accounts(source, Sessions())
        try:
            return await accounts.check(login, passcode, remote)
        finally:
            accounts.close()

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("login", "passcode"), [("guest", "wrong"), ("guest", ""), ("nobody", "secret"), ("", ""), ("guest", "x" * 5000), ("guest", "a\x01b"), ("guest", "\u0627a")]
)
def test_bad_credentials_are_refused_with_one_sentence(login: str, passcode: str) -> None:
    assert check(Source(), login, passcode) == (None, REFUSED)


def test_a_disabled_account_is_refused_like_a_wrong_password() -> None:
    assert check(Source(disabled=True), "guest", "secret") == (None, REFUSED)


@pytest.mark.parametrize("remote", ["192.0.2.1", "::ffff:192.0.2.1", "2001:db8::1", "fe80::1%eth0", "", "localhost"])
def test_a_loopback_account_is_refused_from_elsewhere(remote: str) -> None:
    assert check(Source(loopback_only=True), "guest", "secret", remote) == (None, REFUSED)


@pytest.mark.parametrize("remote", ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"])
def test_a_loopback_account_is_accepted_from_this_machine(remote: str) -> None:
    assert check(Source(loopback_only=True), "guest", "secret", remote) == ("guest", "")


def test_the_right_password_is_accepted() -> None:
    assert check(Source(), "guest", "secret") == ("guest", "")


def test_an_unknown_account_costs_as_much_hashing_as_a_wrong_password(monkeypatch: pytest.MonkeyPatch) -> None:
    work: list[tuple[int, bool]] = []
    derive: Callable[..., bytes] = hashlib.pbkdf2_hmac

    def counted(name: str, password: bytes, salt: bytes, iterations: int) -> bytes:
        work.append((iterations, threading.current_thread() is threading.main_thread()))
        return derive(name, password, salt, iterations)

    monkeypatch.setattr(hashlib, "pbkdf2_hmac", counted)
    check(Source(), "guest", "wrong")
    check(Source(), "nobody", "wrong")
    assert work == [(scram.ITERATIONS, False)] * 2, "and off the event loop"


def test_a_source_that_fails_is_no_refusal() -> None:
    class Broken:
        def account(self, _name: str) -> Coroutine[Any, Any, None]:
            raise CommitLost("the database does not answer")

    with pytest.raises(CommitLost):
        check(Broken(), "guest", "secret")


def test_of_a_thousand_guesses_at_once_five_are_looked_at_and_the_rest_is_told_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []
    derive: Callable[..., bytes] = hashlib.pbkdf2_hmac

    def counted(name: str, password: bytes, salt: bytes, iterations: int) -> bytes:
        hashed.append(name)
        return derive(name, password, salt, iterations)

    monkeypatch.setattr(hashlib, "pbkdf2_hmac", counted)
    monkeypatch.setattr(throttle, "REFUSE_SECONDS", throttle.REFUSE_SECONDS_MAX)  # the test must not take as long

    async def story() -> None:
        accounts = Accounts(Source(), Sessions())
        answers = await asyncio.gather(*(accounts.check("guest", f"guess {n}", "192.0.2.1") for n in range(1000)))
        assert answers[:5] == [(None, REFUSED)] * 5
        assert all(account is None and sentence.startswith("too many logins have failed; try again in ") for account, sentence in answers[5:])
        assert len(hashed) == 5
        assert (await accounts.check("guest", "secret", "192.0.2.1"))[0] is None, "the right guess is not told from a wrong one"
        assert await accounts.check("guest", "secret", "192.0.2.2") == ("guest", ""), "the account is not locked for others"
        accounts.close()

    asyncio.run(story())


def test_logins_that_succeed_at_once_are_all_let_in() -> None:
    async def story() -> None:
        accounts = Accounts(Source(), Sessions())
        answers = await asyncio.gather(*(accounts.check("guest", "secret", "192.0.2.1") for _ in range(20)))
        assert answers == [("guest", "")] * 20
        accounts.close()

    asyncio.run(story())


def test_an_accounts_levels_are_known_once_it_is_let_in_and_follow_its_row() -> None:
    async def story() -> None:
        mapped = LevelMapping("reliable", "best-effort")
        source = Source()
        source._account = dataclasses.replace(source._account, mapping=mapped)
        accounts = Accounts(source, Sessions())
        assert accounts.mapping("guest") == UNMAPPED
        await accounts.check("guest", "wrong", "192.0.2.1")
        assert accounts.mapping("guest") == UNMAPPED
        await accounts.check("guest", "secret", "192.0.2.1")
        assert accounts.mapping("guest") == mapped
        source._account = dataclasses.replace(source._account, mapping=UNMAPPED)
        await accounts.check("guest", "secret", "192.0.2.1")
        assert accounts.mapping("guest") == UNMAPPED
        accounts.close()

    asyncio.run(story())
