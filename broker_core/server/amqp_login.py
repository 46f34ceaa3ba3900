"""Who logs in by SASL: PLAIN and SCRAM-SHA-256 against an account's verifier, EXTERNAL by the certificate that TLS has checked, ANONYMOUS if an operator
has named an account for it."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from broker_core.amqp.sasl import ANONYMOUS, EXTERNAL, PLAIN, SCRAM_SHA_256, Login, Proof, read_plain
from broker_core.scram import Exchange, Verifier

from .auth import REFUSED, Accounts

NONCE_OCTETS = 18
"""144 bits: 24 characters."""


def mechanisms(subject: str, anonymous: str) -> tuple[str, ...]:
    """That are offered to a client with this name in its certificate, if it has any. `anonymous`: the account of those who state none; empty: nobody may."""
    offered = (SCRAM_SHA_256, PLAIN)
    return (*((EXTERNAL,) if subject else ()), *offered, *((ANONYMOUS,) if anonymous else ()))


def subject_of(certificate: Any) -> str:
    """The common name of a certificate as `ssl` tells it; empty: there is none."""
    names = [value for part in (certificate or {}).get("subject", ()) for name, value in part if name == "commonName"]
    return names[0] if len(names) == 1 else ""


@dataclass(slots=True)
class Challenge:
    octets: bytes


@dataclass(slots=True)
class Verdict:
    account: str | None
    """None: it is wrong."""
    sentence: str = ""
    """Why."""
    additional: bytes | None = None
    login: str = ""
    """As the client stated it, for the log."""


class Authenticator:
    """Of one connection."""

    def __init__(self, accounts: Accounts, remote: str, subject: str, anonymous: str) -> None:
        self._accounts = accounts
        self._remote = remote
        self._subject = subject
        self._anonymous = anonymous
        self._exchange: Exchange | None = None
        self._login = ""

    async def answer(self, said: Login | Proof) -> Challenge | Verdict:
        if isinstance(said, Proof):
            return await self._conclude(said.response)
        if said.mechanism == PLAIN:
            return await self._plain(said.response)
        if said.mechanism == SCRAM_SHA_256:
            return await self._begin(said.response)
        login = self._subject if said.mechanism == EXTERNAL else self._anonymous
        if said.mechanism == EXTERNAL and said.response not in (b"", login.encode()):
            return Verdict(None, "the certificate does not allow to act as another account", login=login)
        account, sentence = await self._accounts.check_proof(login, bool, self._remote)
        return Verdict(account, sentence, login=login)

    async def _plain(self, response: bytes) -> Verdict:
        read = read_plain(response)
        if read is None:
            return Verdict(None, "the response of PLAIN is not valid")
        act_as, login, password = read
        if act_as not in ("", login):
            return Verdict(None, "nobody may act as another account", login=login)
        account, sentence = await self._accounts.check(login, password, self._remote)
        return Verdict(account, sentence, login=login)

    async def _begin(self, response: bytes) -> Challenge | Verdict:
        exchange = Exchange(secrets.token_urlsafe(NONCE_OCTETS))
        login = exchange.begin(response)
        if login is None:
            return Verdict(None, "the response of SCRAM-SHA-256 is not valid")
        self._exchange, self._login = exchange, login
        return Challenge(exchange.challenge(*await self._accounts.salt(login)))

    async def _conclude(self, response: bytes) -> Verdict:
        exchange, self._exchange = self._exchange, None
        if exchange is None:
            return Verdict(None, REFUSED)
        signatures: list[bytes] = []

        def proves(verifier: Verifier) -> bool:
            signature = exchange.conclude(response, verifier)
            signatures.append(signature or b"")
            return signature is not None

        account, sentence = await self._accounts.check_proof(self._login, proves, self._remote)
        return Verdict(account, sentence, signatures[-1] if account is not None else None, self._login)
