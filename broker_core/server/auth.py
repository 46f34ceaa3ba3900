"""Who may connect: client accounts with SCRAM-SHA-256 verifiers, read from the database, checked off the event loop."""

from __future__ import annotations

import asyncio
import ipaddress
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from broker_core.scram import NOBODY, Verifier, check_password

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


class AccountSource(Protocol):
    async def account(self, name: str) -> Account | None:
        """The account, as it is now."""


class Accounts:
    def __init__(self, source: AccountSource) -> None:
        self._source = source
        self._pool = ThreadPoolExecutor(CHECKS_AT_ONCE, thread_name_prefix="login")

    async def check(self, login: str, passcode: str, remote: str) -> tuple[str | None, str]:
        """(account, "") or (None, the sentence for the client). A missing account takes as long as a wrong password."""
        account = await self._source.account(login)
        verifier = account.verifier if account is not None else NOBODY
        loop = asyncio.get_running_loop()
        matches = await loop.run_in_executor(self._pool, check_password, passcode, verifier)
        if account is None or not matches or account.disabled or (account.loopback_only and not _is_loopback(remote)):
            return None, REFUSED
        return account.name, ""

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


def _is_loopback(remote: str) -> bool:
    try:
        address = ipaddress.ip_address(remote)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None  # a socket on :: shows IPv4 clients so
    return (mapped or address).is_loopback
