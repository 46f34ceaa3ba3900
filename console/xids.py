"""Names of branches of distributed transactions in a form that people read."""

from __future__ import annotations

TAIL = 6
"""Characters that are typed to say which branch is meant."""


def parts(xid: str) -> list[tuple[str, str]]:
    """`<format>.<global identifier>.<qualifier>` decoded: what is printable as text, beside its hexadecimal digits."""
    named, pieces = ("Format", "Global transaction", "Branch qualifier"), xid.split(".")
    if len(pieces) != len(named):
        return [("XID", xid)]
    return [(named[0], pieces[0]), *((name, _decoded(piece)) for name, piece in zip(named[1:], pieces[1:], strict=True))]


def _decoded(digits: str) -> str:
    if not digits:
        return "none"
    try:
        text = bytes.fromhex(digits).decode()
    except ValueError:
        return digits
    return f"{text} ({digits})" if text.isprintable() else digits


def tail(xid: str) -> str:
    """Its last characters, without the dots."""
    return xid.replace(".", "")[-TAIL:]
