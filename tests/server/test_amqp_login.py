"""Logins by SASL: what each mechanism needs, and that wrong ones are refused."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from base64 import b64decode, b64encode

import pytest

from broker_core.amqp.sasl import ANONYMOUS, EXTERNAL, PLAIN, SCRAM_SHA_256, Login, Proof
from broker_core.scram import Exchange, Verifier, make_verifier
from broker_core.server.amqp_login import Authenticator, Challenge, Verdict, mechanisms, subject_of
from broker_core.server.auth import Account, Accounts
from broker_core.server.sessions import Sessions

SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
VERIFIER = make_verifier("pencil", SALT, 4096)
OWN = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
FINAL = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
SIGNATURE = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


# -- the exchange of RFC 7677 -----------------------------------------------------------------------------------------------------------
def begun() -> Exchange:
    exchange = Exchange(OWN)
    assert exchange.begin(FIRST) == "user"
    assert exchange.challenge(SALT, 4096) == b"r=rOprNGfwEbeRWgbNEkqO" + OWN.encode() + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    return exchange


def test_the_exchange_of_the_specification_is_understood() -> None:
    assert begun().conclude(FINAL, VERIFIER) == SIGNATURE


@pytest.mark.parametrize(
    "final",
    [
        b"", b"\xff", FINAL.replace(b"c=biws", b"c=eSws"), FINAL.replace(b"NEkqO%", b"NEkqP%"), FINAL.replace(b"p=dHz", b"p=eHz"),
        FINAL[:-1], FINAL.replace(b"p=", b"p=!"), FINAL.rpartition(b",p=")[0], FINAL.rpartition(b"p=")[0] + b"p=AAAA",
    ],
)  # fmt: skip
def test_a_proof_that_is_wrong_proves_nothing(final: bytes) -> None:
    assert begun().conclude(final, VERIFIER) is None


def test_nobody_proves_what_was_never_given() -> None:
    assert begun().conclude(FINAL, make_verifier("crayon", SALT, 4096)) is None
    assert begun().conclude(FINAL, Verifier(SALT, 4096, b"", b"")) is None


@pytest.mark.parametrize(
    "first",
    [
        b"", b"\xff\xfe", b"n,,", b"n,,n=user", b"n,,n=,r=rOprNGfwEbeRWgbNEkqO", b"n,,n=user,r=short", b"p=tls-unique,,n=user,r=rOprNGfwEbeRWgbNEkqO",
        b"n,,m=ext,n=user,r=rOprNGfwEbeRWgbNEkqO", b"n,a=other,n=user,r=rOprNGfwEbeRWgbNEkqO", b"n,,n=us=er,r=rOprNGfwEbeRWgbNEkqO", b"n,,n=u\0,r=rOprNGfwEbe",
    ],
)  # fmt: skip
def test_a_first_message_that_cannot_be_is_refused(first: bytes) -> None:
    assert Exchange(OWN).begin(first) is None


def test_names_may_have_commas_and_equals_signs() -> None:
    assert Exchange(OWN).begin(b"y,a=a=2Cb=3Dc,n=a=2Cb=3Dc,r=rOprNGfwEbeRWgbNEkqO") == "a,b=c"


# -- mechanisms -------------------------------------------------------------------------------------------------------------------------
class Source:
    async def account(self, name: str) -> Account | None:
        return Account(name, VERIFIER, disabled=name == "disabled", loopback_only=name == "near") if name != "nobody" else None

    async def administered(self, name: str) -> dict[str, object] | None:
        return None


def answers(*said: Login | Proof, remote: str = "192.0.2.1", subject: str = "", anonymous: str = "") -> list[Challenge | Verdict]:
    async def story() -> list[Challenge | Verdict]:
        accounts = Accounts(Source(), Sessions())
        authenticator = Authenticator(accounts, remote, subject, anonymous)
        try:
            return [await authenticator.answer(each) for each in said]
        finally:
            accounts.close()

    return asyncio.run(story())


@pytest.mark.parametrize(
    ("response", "account"),
    [
        (b"\0user\0pencil", "user"), (b"user\0user\0pencil", "user"), (b"other\0user\0pencil", None), (b"\0user\0wrong", None), (b"\0nobody\0pencil", None),
        (b"\0disabled\0pencil", None), (b"\0near\0pencil", None), (b"user", None),
    ],
)  # fmt: skip
def test_plain_needs_the_password(response: bytes, account: str | None) -> None:
    (verdict,) = answers(Login(PLAIN, response, ""))
    assert isinstance(verdict, Verdict)
    assert verdict.account == account
    assert (verdict.sentence == "") is (account is not None)


def scram(login: str, password: str) -> Verdict:
    """A whole exchange, the client's side by the same rules."""

    async def story() -> Verdict:
        accounts = Accounts(Source(), Sessions())
        authenticator = Authenticator(accounts, "192.0.2.1", "", "")
        try:
            challenge = await authenticator.answer(Login(SCRAM_SHA_256, f"n,,n={login},r=abcdefghij".encode(), ""))
            assert isinstance(challenge, Challenge)
            verdict = await authenticator.answer(Proof(_final(f"n={login},r=abcdefghij", challenge.octets.decode(), password)))
            assert isinstance(verdict, Verdict)
            return verdict
        finally:
            accounts.close()

    return asyncio.run(story())


def _final(bare: str, first: str, password: str) -> bytes:
    nonce, salt, iterations = (part[2:] for part in first.split(","))
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), b64decode(salt), int(iterations))
    key = hmac.digest(salted, b"Client Key", "sha256")
    without = f"c=biws,r={nonce}"
    signature = hmac.digest(hashlib.sha256(key).digest(), f"{bare},{first},{without}".encode(), "sha256")
    return f"{without},p={b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()}".encode()


def test_scram_needs_the_password_and_proves_that_the_broker_knows_it_too() -> None:
    verdict = scram("user", "pencil")
    assert verdict.account == "user"
    assert verdict.additional is not None and verdict.additional.startswith(b"v=")


@pytest.mark.parametrize(("login", "password"), [("user", "crayon"), ("nobody", "pencil"), ("disabled", "pencil"), ("near", "pencil")])
def test_scram_refuses_as_plain_does(login: str, password: str) -> None:
    verdict = scram(login, password)
    assert (verdict.account, verdict.additional) == (None, None)


def test_who_is_not_there_is_given_a_salt_that_stays_the_same() -> None:
    async def story() -> None:
        accounts = Accounts(Source(), Sessions())
        assert await accounts.salt("nobody") == await accounts.salt("nobody")
        assert await accounts.salt("user") == (SALT, 4096)
        accounts.close()

    asyncio.run(story())


def test_a_proof_without_a_challenge_proves_nothing() -> None:
    (verdict,) = answers(Proof(FINAL))
    assert isinstance(verdict, Verdict) and verdict.account is None


@pytest.mark.parametrize(
    ("subject", "response", "account"), [("user", b"", "user"), ("user", b"user", "user"), ("user", b"other", None), ("nobody", b"", None)]
)  # fmt: skip
def test_external_is_the_account_of_the_certificate(subject: str, response: bytes, account: str | None) -> None:
    (verdict,) = answers(Login(EXTERNAL, response, ""), subject=subject)
    assert isinstance(verdict, Verdict) and verdict.account == account


def test_anonymous_is_the_account_that_the_operator_has_named() -> None:
    (verdict,) = answers(Login(ANONYMOUS, b"", ""), anonymous="user")
    assert isinstance(verdict, Verdict) and verdict.account == "user"


def test_what_is_offered_depends_on_the_certificate_and_on_the_operator() -> None:
    assert mechanisms("", "") == (SCRAM_SHA_256, PLAIN)
    assert mechanisms("user", "somebody") == (EXTERNAL, SCRAM_SHA_256, PLAIN, ANONYMOUS)
    assert subject_of({"subject": ((("countryName", "XX"),), (("commonName", "user"),))}) == "user"
    assert subject_of({"subject": ((("commonName", "a"),), (("commonName", "b"),))}) == subject_of({}) == subject_of(None) == ""
