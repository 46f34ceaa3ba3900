"""Who may connect, and for how long: client accounts with SCRAM-SHA-256 verifiers, read from the database, checked off the event loop."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import logging
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from broker_core.engine.levels import UNMAPPED, LevelMapping
from broker_core.scram import ITERATIONS, NOBODY, SALT_OCTETS, Verifier, check_password

from .sessions import Sessions
from .throttle import Throttle

log = logging.getLogger("surety.login")

REFUSED = "login or passcode is wrong, or the account may not connect from here"
"""One sentence for every cause: a stranger learns nothing about which accounts exist."""
CHECKS_AT_ONCE = 1
"""A check costs about 5 ms of one core; one thread keeps a storm of logins from starving the event loop."""


@dataclass(slots=True, frozen=True)
class Account:
    name: str
    verifier: Verifier
    disabled: bool
    loopback_only: bool
    mapping: LevelMapping = UNMAPPED
    """What delivery modes stand for where a connection factory says nothing."""


class AccountSource(Protocol):
    async def account(self, name: str) -> Account | None:
        """The account, as it is now."""

    async def administered(self, name: str) -> dict[str, object] | None:
        """The administered object of this name, as it is now."""


class Accounts:
    def __init__(self, source: AccountSource, sessions: Sessions) -> None:
        self._source = source
        self._sessions = sessions
        self._pool = ThreadPoolExecutor(CHECKS_AT_ONCE, thread_name_prefix="login")
        self._turn = asyncio.Semaphore(CHECKS_AT_ONCE)
        self._throttle = Throttle()
        self._secret = secrets.token_bytes(32)
        self._known: dict[str, Verifier] = {}
        """What the connections of an account have logged in with."""
        self._mappings: dict[str, LevelMapping] = {}
        """Of accounts that have any."""
        self._reviews = 0

    async def check(self, login: str, passcode: str, remote: str) -> tuple[str | None, str]:
        """(account, "") or (None, the sentence for the client). A missing account takes as long as a wrong password.

        Whoever is let in must be in `sessions` before the event loop runs on: a change of the account heard later ends what is there.
        """
        return await self.check_proof(login, lambda verifier: check_password(passcode, verifier), remote)

    async def check_proof(self, login: str, proves: Callable[[Verifier], bool], remote: str) -> tuple[str | None, str]:
        """The same of who proves otherwise that he knows the password, or needs none."""
        loop = asyncio.get_running_loop()
        async with self._turn:  # and only then the throttle is asked: of a thousand guesses that come at once all but five meet it
            seconds = self._throttle.refused_seconds(remote, login, loop.time())
            if seconds:
                return None, f"too many logins have failed; try again in {seconds} s"
            account = await self._verified(login, proves, remote)
            if account is None:
                self._throttle.failed(remote, login, loop.time())
                return None, REFUSED
        self._throttle.succeeded(remote, login)
        if self._known.setdefault(account.name, account.verifier) != account.verifier:
            self._end(account.name, account)  # the change itself has not been heard of yet
            self._known[account.name] = account.verifier
        self._mappings.pop(account.name, None)
        if account.mapping != UNMAPPED:
            self._mappings[account.name] = account.mapping
        return account.name, ""

    def mapping(self, name: str) -> LevelMapping:
        """Of an account that was let in just now, of delivery modes to levels."""
        return self._mappings.get(name, UNMAPPED)

    async def salt(self, login: str) -> tuple[bytes, int]:
        """Salt and iterations with which who logs in by SCRAM has to prove that he knows the password. Of an account that is not there others, always the
        same: a stranger learns nothing about which accounts exist."""
        account = await self._source.account(login)
        if account is not None:
            return account.verifier.salt, account.verifier.iterations
        return hmac.digest(self._secret, login.encode(), "sha256")[:SALT_OCTETS], ITERATIONS

    async def _verified(self, login: str, proves: Callable[[Verifier], bool], remote: str) -> Account | None:
        """The account if it may come in; as it is when this returns, if changes are heard in time."""
        loop = asyncio.get_running_loop()
        while True:
            reviews = self._reviews
            account = await self._source.account(login)
            verifier = account.verifier if account is not None else NOBODY
            matches = await loop.run_in_executor(self._pool, proves, verifier)
            if account is None or not matches or account.disabled or (account.loopback_only and not _is_loopback(remote)):
                return None
            if reviews == self._reviews:
                return account

    async def administered(self, name: str) -> str | None:
        """For who was let in: the administered object of this name, as one line of JSON; None: there is none."""
        found = await self._source.administered(name)
        return None if found is None else json.dumps(found, separators=(",", ":"))

    async def review(self, name: str | None) -> None:
        """The account may have been changed, or None: any may. Ends its connections if it was disabled, deleted or given another password."""
        self._reviews += 1
        for each in self._sessions.accounts() if name is None else [name]:
            account = await self._source.account(each)
            if account is None or account.disabled or account.verifier != self._known.get(each):
                self._end(each, account)
        connected = set(self._sessions.accounts())
        self._known = {each: verifier for each, verifier in self._known.items() if each in connected}
        self._mappings = {each: mapping for each, mapping in self._mappings.items() if each in connected}

    def _end(self, name: str, account: Account | None) -> None:
        if account is None:
            sentence = f"the account {name} was deleted"
        elif account.disabled:
            sentence = f"the account {name} was disabled"
        else:
            sentence = f"the password of the account {name} was changed; log in again"
        ended = self._sessions.shut(name, sentence)
        if ended:
            log.info("%d connections are ended: %s", ended, sentence)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


def _is_loopback(remote: str) -> bool:
    try:
        address = ipaddress.ip_address(remote)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None  # a socket on :: shows IPv4 clients so
    return (mapped or address).is_loopback
