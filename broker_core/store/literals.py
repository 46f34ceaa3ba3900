"""Values within the statements of a commit."""

from __future__ import annotations

from .rows import text_octets


def literal(text: str) -> bytes:
    """A string literal; standard_conforming_strings is on."""
    return b"'" + text_octets(text).replace(b"'", b"''") + b"'"
