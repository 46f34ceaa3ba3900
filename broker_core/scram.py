"""SCRAM-SHA-256 verifiers (RFC 5802, RFC 7677): what the broker keeps of a client account's password, and how it checks one.

PURE: the salt comes in as an argument. Whoever steals the verifiers cannot log in with them: a login needs the client key, and only
its hash is kept.
"""

from __future__ import annotations

import hashlib
import hmac
import stringprep
import unicodedata
from dataclasses import dataclass

ITERATIONS_MIN = 4096
"""RFC 7677 section 4: a server announces at least this many."""
ITERATIONS_MAX = 1_000_000
"""0.3 s of one core; more would let a wrong row in the database stall a login."""
ITERATIONS = 15_000
"""About 5 ms of one core a login: a thousand clients that reconnect at once cost 5 s, and a stolen table is costly to guess from."""
SALT_OCTETS = 16
"""As PostgreSQL's own verifiers; RFC 5802 section 2.2 asks only for a random one."""
PASSWORD_OCTETS_MAX = 1024
"""HMAC hashes a longer key first, so length buys no strength; a bound keeps a hostile one cheap."""


class InvalidPassword(ValueError):
    """The password cannot be used: empty, too long, or with characters that RFC 4013 prohibits. The message says which."""


@dataclass(slots=True, frozen=True)
class Verifier:
    """What is kept of a password (RFC 5802 section 3)."""

    salt: bytes
    iterations: int
    stored_key: bytes
    """H(ClientKey): checks the client's proof."""
    server_key: bytes
    """HMAC(SaltedPassword, "Server Key"): signs the server's answer."""


NOBODY = Verifier(salt=bytes(SALT_OCTETS), iterations=ITERATIONS, stored_key=b"", server_key=b"")
"""Matches no password. Check against it when the account does not exist, so that a refusal takes the same time either way."""


def make_verifier(password: str, salt: bytes, iterations: int = ITERATIONS) -> Verifier:
    """The verifier of `password`. Raises InvalidPassword; ValueError for a short salt or a number of iterations out of bounds."""
    if len(salt) < SALT_OCTETS:
        raise ValueError(f"a salt has at least {SALT_OCTETS} octets, not {len(salt)}")
    if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
        raise ValueError(f"iterations must be from {ITERATIONS_MIN} to {ITERATIONS_MAX}, not {iterations}")
    salted = hashlib.pbkdf2_hmac("sha256", prepared(password), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    return Verifier(salt, iterations, hashlib.sha256(client_key).digest(), hmac.digest(salted, b"Server Key", "sha256"))


def check_password(password: str, verifier: Verifier) -> bool:
    """True if `password` is the one that `verifier` was made from; takes the same time for every wrong one."""
    try:
        offered = make_verifier(password, verifier.salt, verifier.iterations)
    except InvalidPassword:
        return False
    return hmac.compare_digest(offered.stored_key, verifier.stored_key)


def prepared(password: str) -> bytes:
    """SASLprep (RFC 4013), as RFC 5802 section 2.2 demands: one password typed on two keyboards gives one sequence of octets."""
    if len(password) > PASSWORD_OCTETS_MAX:
        raise InvalidPassword(f"the password is longer than {PASSWORD_OCTETS_MAX} octets")
    mapped = "".join(
        " " if stringprep.in_table_c12(c) else c for c in password if not stringprep.in_table_b1(c)
    )
    text = unicodedata.normalize("NFKC", mapped)
    if not text:
        raise InvalidPassword("the password is empty")
    if any(_is_prohibited(c) for c in text):
        raise InvalidPassword("the password has control or other characters that RFC 4013 prohibits")
    _check_direction(text)
    octets = text.encode()
    if len(octets) > PASSWORD_OCTETS_MAX:
        raise InvalidPassword(f"the password is longer than {PASSWORD_OCTETS_MAX} octets")
    return octets


def _is_prohibited(c: str) -> bool:
    """RFC 4013 section 2.3; unassigned code points (2.5) are left to the future: Python's Unicode is newer than the tables'."""
    return (
        stringprep.in_table_c12(c)
        or stringprep.in_table_c21_c22(c)
        or stringprep.in_table_c3(c)
        or stringprep.in_table_c4(c)
        or stringprep.in_table_c5(c)
        or stringprep.in_table_c6(c)
        or stringprep.in_table_c7(c)
        or stringprep.in_table_c8(c)
        or stringprep.in_table_c9(c)
    )


def _check_direction(text: str) -> None:
    """RFC 3454 section 6: text with a right-to-left character has no left-to-right one, and begins and ends right-to-left."""
    if not any(stringprep.in_table_d1(c) for c in text):
        return
    ends = stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])
    if not ends or any(stringprep.in_table_d2(c) for c in text):
        raise InvalidPassword("the password mixes writing directions in a way that RFC 4013 prohibits")
