"""Who may connect, and for how long: client accounts with SCRAM-SHA-256 verifiers, read from the database, checked off the event loop."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import logging
import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, cast

from broker_core.engine.levels import UNMAPPED, LevelMapping
from broker_core.scram import ITERATIONS, NOBODY, SALT_OCTETS, Offer, Verifier

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
    previous: Verifier | None = None
    """Of the password that it had before and that is good for a while yet. Salted like the other: a client that logs in by SCRAM is told one salt."""
    previous_seconds: float = 0
    """How long."""
    connections_max: int = 0
    """At a time; 0: as many as the broker takes."""
    sessions_max: int = 0
    """Of one connection, by AMQP; 0: as many as the broker takes."""

    @property
    def passwords(self) -> tuple[Verifier, ...]:
        """Each of which is good. None if the account may not log in."""
        if self.disabled:
            return ()
        return (self.verifier,) if self.previous is None else (self.verifier, self.previous)


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
        self._known: dict[str, tuple[Verifier, ...]] = {}
        """With what the connections of an account may have logged in."""
        self._shown: dict[str, Verifier] = {}
        """With what the last of them has."""
        self._sessions_max: dict[str, int] = {}
        """Of accounts that have such a limit."""
        self._lapses: dict[str, float] = {}
        """When the former password of an account ends, by the loop's clock."""
        self._mappings: dict[str, LevelMapping] = {}
        """Of accounts that have any."""
        self._reviews = 0

    async def check(self, login: str, passcode: str, remote: str) -> tuple[str | None, str]:
        """(account, "") or (None, the sentence for the client). A missing account takes as long as a wrong password.

        Whoever is let in must be in `sessions` before the event loop runs on: a change of the account heard later ends what is there.
        """
        return await self.check_proof(login, Offer(passcode).matches, remote)

    async def check_proof(self, login: str, proves: Callable[[Verifier], bool], remote: str) -> tuple[str | None, str]:
        """The same of who proves otherwise that he knows the password, or needs none."""
        loop = asyncio.get_running_loop()
        async with self._turn:  # and only then the throttle is asked: of a thousand guesses that come at once all but five meet it
            seconds = self._throttle.refused_seconds(remote, login, loop.time())
            if seconds:
                return None, f"too many logins have failed; try again in {seconds} s"
            account, shown = await self._verified(login, proves, remote)
            if account is None or shown is None:
                self._throttle.failed(remote, login, loop.time())
                return None, REFUSED
        self._throttle.succeeded(remote, login)
        name = account.name
        if self._known.setdefault(name, account.passwords) != account.passwords:
            self._end(name, account)  # the change itself has not been heard of yet
        if account.connections_max and self._sessions.count(name) >= account.connections_max:
            return None, f"the account {name} has {self._sessions.count(name)} connections and may have no more"
        self._remember(account)
        self._shown[name] = shown
        return name, ""

    def _remember(self, account: Account) -> None:
        name = account.name
        for kept, value, nothing in ((self._mappings, account.mapping, UNMAPPED), (self._sessions_max, account.sessions_max, 0)):
            cast("dict[str, object]", kept).pop(name, None)
            if value != nothing:
                cast("dict[str, object]", kept)[name] = value
        self._lapses.pop(name, None)
        if account.previous is not None:
            self._lapses[name] = asyncio.get_running_loop().time() + account.previous_seconds

    def shown(self, name: str) -> Verifier | None:
        """The password with which the account was let in just now, for its session."""
        return self._shown.get(name)

    def sessions_max(self, name: str) -> int:
        """Of a connection of an account that was let in just now; 0: no limit of its own."""
        return self._sessions_max.get(name, 0)

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

    async def _verified(self, login: str, proves: Callable[[Verifier], bool], remote: str) -> tuple[Account | None, Verifier | None]:
        """The account if it may come in, and the password shown; as it is when this returns, if changes are heard in time."""
        loop = asyncio.get_running_loop()
        while True:
            reviews = self._reviews
            account = await self._source.account(login)
            verifiers = (NOBODY,) if account is None else account.passwords or (account.verifier,)
            shown = await loop.run_in_executor(self._pool, _first_proved, proves, verifiers)
            if account is None or shown is None or account.disabled or (account.loopback_only and not _is_loopback(remote)):
                return None, None
            if reviews == self._reviews:
                return account, shown

    async def administered(self, name: str) -> str | None:
        """For who was let in: the administered object of this name, as one line of JSON; None: there is none."""
        found = await self._source.administered(name)
        return None if found is None else json.dumps(found, separators=(",", ":"))

    async def review(self, name: str | None) -> None:
        """The account may have been changed, or None: any may. Ends its connections if it was disabled or deleted, and those with a password that is not
        good any more."""
        self._reviews += 1
        for each in self._sessions.accounts() if name is None else [name]:
            account = await self._source.account(each)
            if account is None or account.passwords != self._known.get(each):
                self._end(each, account)
            if account is not None:
                self._remember(account)
        connected = set(self._sessions.accounts())
        for kept in (self._known, self._shown, self._mappings, self._sessions_max, self._lapses):
            for gone in [each for each in kept if each not in connected]:
                del kept[gone]

    async def lapse(self) -> None:
        """Former passwords whose time has passed take their connections along. To be called about once a second."""
        now = asyncio.get_running_loop().time()
        for name in [name for name, ends in self._lapses.items() if ends <= now]:
            del self._lapses[name]
            await self.review(name)

    def _end(self, name: str, account: Account | None) -> None:
        if account is None:
            sentence = f"the account {name} was deleted"
        elif account.disabled:
            sentence = f"the account {name} was disabled"
        else:
            sentence = f"the password of the account {name} was changed; log in again"
        valid = account.passwords if account is not None else ()
        ended = self._sessions.shut(name, sentence, valid)
        self._known[name] = valid
        if ended:
            log.info("%d connections are ended: %s", ended, sentence)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


def _first_proved(proves: Callable[[Verifier], bool], verifiers: Sequence[Verifier]) -> Verifier | None:
    return next((verifier for verifier in verifiers if proves(verifier)), None)


def _is_loopback(remote: str) -> bool:
    try:
        address = ipaddress.ip_address(remote)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None  # a socket on :: shows IPv4 clients so
    return (mapped or address).is_loopback
