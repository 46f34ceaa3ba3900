"""SCRAM-SHA-256 verifiers (RFC 5802, RFC 7677): what the broker keeps of a client account's password, and how it checks one.

PURE: the salt comes in as an argument. Whoever steals the verifiers cannot log in with them: a login needs the client key, and only
its hash is kept.
"""

from __future__ import annotations

import hashlib
import hmac
import stringprep
import unicodedata
from base64 import b64decode, b64encode
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
    return Offer(password).matches(verifier)


class Offer:
    """A password that a client states. It is hashed once for all verifiers that are salted alike, as those of one account are."""

    def __init__(self, password: str) -> None:
        self._password = password
        self._made: tuple[bytes, int, bytes] = (b"", 0, b"")

    def matches(self, verifier: Verifier) -> bool:
        if self._made[:2] != (verifier.salt, verifier.iterations):
            try:
                stored_key = make_verifier(self._password, verifier.salt, verifier.iterations).stored_key
            except InvalidPassword:
                return False
            self._made = (verifier.salt, verifier.iterations, stored_key)
        return hmac.compare_digest(self._made[2], verifier.stored_key)


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


# -- the exchange ---------------------------------------------------------------------------------------------------------------------
class Exchange:
    """The server's side of one login by SCRAM-SHA-256 (RFC 5802 section 5), without channel binding. The password never comes here."""

    def __init__(self, nonce: str) -> None:
        """`nonce`: unguessable, printable ASCII without a comma."""
        self._own = nonce
        self._header = self._bare = self._first = ""
        self._nonce = ""

    def begin(self, message: bytes) -> str | None:
        """client-first-message: the login's name. None: it is not one, or asks for what is not there."""
        text = _text(message)
        flag, _, rest = text.partition(",")
        act_as, _, self._bare = rest.partition(",")
        attributes = self._bare.split(",")
        if flag not in ("n", "y") or not attributes[0].startswith("n=") or len(attributes) < 2 or not attributes[1].startswith("r="):
            return None
        login, client_nonce = _unescaped(attributes[0][2:]), attributes[1][2:]
        if login is None or len(client_nonce) < NONCE_MIN or (act_as and _unescaped(act_as.removeprefix("a=")) != login):
            return None
        self._header, self._nonce = f"{flag},{act_as},", client_nonce + self._own
        return login

    def challenge(self, salt: bytes, iterations: int) -> bytes:
        """server-first-message."""
        self._first = f"r={self._nonce},s={b64encode(salt).decode()},i={iterations}"
        return self._first.encode()

    def conclude(self, message: bytes, verifier: Verifier) -> bytes | None:
        """client-final-message: the server's signature if the client has proved that it knows the password; else None."""
        without, _, proof = _text(message).rpartition(",p=")
        attributes = without.split(",")
        binding = b64encode(self._header.encode()).decode()
        if attributes[:2] != [f"c={binding}", f"r={self._nonce}"] or not verifier.stored_key:
            return None
        said = f"{self._bare},{self._first},{without}".encode()
        signature = hmac.digest(verifier.stored_key, said, "sha256")
        try:
            proved = b64decode(proof, validate=True)
        except ValueError:
            return None
        if len(proved) != len(signature):
            return None
        client_key = bytes(a ^ b for a, b in zip(proved, signature, strict=True))
        if not hmac.compare_digest(hashlib.sha256(client_key).digest(), verifier.stored_key):
            return None
        return b"v=" + b64encode(hmac.digest(verifier.server_key, said, "sha256"))


NONCE_MIN = 8
"""Characters of a client's nonce: fewer could be guessed."""


def _text(message: bytes) -> str:
    """Empty: it is not UTF-8, or has what no message has."""
    try:
        text = message.decode()
    except UnicodeDecodeError:
        return ""
    return text if "\0" not in text else ""


def _unescaped(name: str) -> str | None:
    """A name in which comma and equals sign are written otherwise; None: it is not valid."""
    plain = name.replace("=2C", ",").replace("=3D", "=")
    return plain if name and name.count("=") == name.count("=2C") + name.count("=3D") else None
