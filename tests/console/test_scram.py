"""Verifiers of passwords, against the RFCs' own example."""

import base64
import hashlib
import hmac

import pytest

from broker_core.scram import ITERATIONS_MAX, NOBODY, InvalidPassword, check_password, make_verifier, prepared

# RFC 7677 section 3: user "user", password "pencil".
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
AUTH_MESSAGE = (
    b"n=user,r=rOprNGfwEbeRWgbNEkqO,"
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,"
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
)
PROOF = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
SERVER_SIGNATURE = base64.b64decode("6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def test_the_stored_key_verifies_the_proof_of_rfc_7677():
    verifier = make_verifier("pencil", SALT, 4096)
    signature = hmac.digest(verifier.stored_key, AUTH_MESSAGE, "sha256")
    client_key = bytes(a ^ b for a, b in zip(PROOF, signature, strict=True))
    assert hashlib.sha256(client_key).digest() == verifier.stored_key


def test_the_server_key_signs_as_in_rfc_7677():
    assert hmac.digest(make_verifier("pencil", SALT, 4096).server_key, AUTH_MESSAGE, "sha256") == SERVER_SIGNATURE


def test_a_password_matches_its_own_verifier_and_no_other_does():
    verifier = make_verifier("correct horse", b"s" * 16)
    assert check_password("correct horse", verifier)
    assert not any(check_password(wrong, verifier) for wrong in ("correct hors", "Correct horse", "", "correct horse\x00", "x" * 5000))


def test_nobody_has_no_password():
    assert not check_password("", NOBODY)
    assert not check_password("guest", NOBODY)


@pytest.mark.parametrize(
    ("typed", "octets"),
    [("I\u00adX", b"IX"), ("user", b"user"), ("\u00aa", b"a"), ("\u2168", b"IX"), ("a\u00a0b", b"a b"), ("e\u0301", "é".encode())],
)
def test_passwords_are_prepared_as_in_rfc_4013(typed, octets):
    assert prepared(typed) == octets


@pytest.mark.parametrize("password", ["", "\u00ad", "bell\x07", "nul\x00", "\u0627\u0031", "half \ud800", "p" * 1025, "é" * 600])
def test_a_password_that_cannot_be_typed_again_is_refused(password):
    with pytest.raises(InvalidPassword):
        make_verifier(password, SALT)


@pytest.mark.parametrize("iterations", [0, 4095, ITERATIONS_MAX + 1])
def test_iterations_out_of_bounds_are_refused(iterations):
    with pytest.raises(ValueError, match="iterations must be"):
        make_verifier("pencil", SALT, iterations)


def test_a_short_salt_is_refused():
    with pytest.raises(ValueError, match="salt"):
        make_verifier("pencil", b"short")
