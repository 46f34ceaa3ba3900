"""How header names and values are written in each version of the protocol.

1.2 escapes backslash, CR, LF and colon; 1.1 the same but CR; 1.0 nothing ("Value Encoding"). Headers are kept in one canonical form
whatever the sender spoke: `name:value` lines escaped as in 1.2, joined by LF, no LF at the end. Receivers of 1.2 get it as it is; for the
others `for_version` rewrites it, and only if a backslash occurs at all.
"""

from __future__ import annotations

import re

VERSIONS = ("1.0", "1.1", "1.2")

_ESCAPES = {
    "1.1": str.maketrans({"\\": "\\\\", "\n": "\\n", ":": "\\c"}),
    "1.2": str.maketrans({"\\": "\\\\", "\r": "\\r", "\n": "\\n", ":": "\\c"}),
}
_MEANINGS = {
    "1.1": {"\\\\": "\\", "\\n": "\n", "\\c": ":"},
    "1.2": {"\\\\": "\\", "\\r": "\r", "\\n": "\n", "\\c": ":"},
}
_ESCAPED = re.compile(r"\\.?", re.DOTALL)


class UndefinedEscape(ValueError):
    """A backslash followed by something the version gives no meaning to; the argument is the sequence."""


def escape(text: str, version: str) -> str:
    """`text` as a header name or value of `version`. 1.0 has no way to say a line feed: it becomes a space."""
    if version == "1.0":
        return text.replace("\n", " ")
    return text.translate(_ESCAPES[version])


def unescape(text: str, version: str) -> str:
    """The meaning of a header name or value as written in `version`. Raises UndefinedEscape, which the protocol calls fatal."""
    if version == "1.0" or "\\" not in text:
        return text
    meanings = _MEANINGS[version]
    return _ESCAPED.sub(lambda found: _meaning(meanings, found[0]), text)


def _meaning(meanings: dict[str, str], sequence: str) -> str:
    meaning = meanings.get(sequence)
    if meaning is None:
        raise UndefinedEscape(sequence)
    return meaning


def header_line(name: str, value: str, version: str) -> str:
    """One header without its LF. For 1.0, a name it cannot say (with a colon or line feed) gives the empty text: better left out than
    read as another header."""
    if version == "1.0" and (":" in name or "\n" in name):
        return ""
    return f"{escape(name, version)}:{escape(value, version)}"


def canonical(headers: dict[str, str]) -> bytes:
    """Headers in the form in which they are stored."""
    text = "\n".join([f"{name}:{value}" for name, value in headers.items()])
    count = len(headers)
    if text.count(":") != count or text.count("\n") >= count > 0 or "\\" in text or "\r" in text:
        text = "\n".join([header_line(name, value, "1.2") for name, value in headers.items()])
    return text.encode()


def read_canonical(octets: bytes) -> dict[str, str]:
    """The headers that `canonical` wrote."""
    headers = {}
    for line in octets.decode().split("\n") if octets else ():
        name, _, value = line.partition(":")
        headers[unescape(name, "1.2")] = unescape(value, "1.2")
    return headers


def for_version(octets: bytes, version: str) -> bytes:
    """Canonical header lines as a receiver of `version` must read them."""
    if version == "1.2" or b"\\" not in octets:
        return octets
    lines = [header_line(name, value, version) for name, value in read_canonical(octets).items()]
    return "\n".join([line for line in lines if line]).encode()
