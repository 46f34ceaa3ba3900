"""Numbers as written: in a selector by Java's rules for literals (JMS 3.8.1.1), in a header by the plain decimal ones."""

from __future__ import annotations

import re
import struct

from .error import SelectorError, extract

LONG_MIN = -(1 << 63)
LONG_MAX = (1 << 63) - 1

_DIGITS = "[0-9](?:_*[0-9])*"
_HEX = "[0-9a-fA-F](?:_*[0-9a-fA-F])*"
_EXACT = (
    (re.compile("(0|[1-9](?:_*[0-9])*)[lL]?"), 10),
    (re.compile("0(_*[0-7](?:_*[0-7])*)[lL]?"), 8),
    (re.compile(f"0[xX]({_HEX})[lL]?"), 16),
    (re.compile("0[bB]([01](?:_*[01])*)[lL]?"), 2),
)
_EXPONENT = f"[eE][+-]?{_DIGITS}"
_APPROXIMATE = re.compile(f"((?:{_DIGITS}\\.(?:{_DIGITS})?|\\.{_DIGITS})(?:{_EXPONENT})?|{_DIGITS}{_EXPONENT}|{_DIGITS}(?=[fFdD]))([fFdD]?)")
_APPROXIMATE_HEX = re.compile(f"(0[xX](?:{_HEX}\\.?|(?:{_HEX})?\\.{_HEX})[pP][+-]?{_DIGITS})([fFdD]?)")
_PLAIN = re.compile(r"[+-]?(?:([0-9]+)|(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][+-]?[0-9]+)?)")

_EXACT_CHARACTERS_MAX = 80
"""A long has 64 binary digits and a sign; underscores and leading zeros leave room. Longer runs are refused before they cost anything."""
PLAIN_CHARACTERS_MAX = 64
"""A header's value that is longer is no number: a double written in full has 24 characters."""


def literal(text: str, column: int) -> int | float:
    """The value of an exact (int) or approximate (float) literal without sign.

    Decimal ones reach 2**63, which is a long only under a minus sign: the parser sees to it. Hexadecimal, octal and binary ones name the 64
    bits of a long, as in Java. F rounds to a float, as a property set by setFloatProperty is.
    """
    for pattern, base in _EXACT:
        if found := pattern.fullmatch(text):
            return _exact(found[1].replace("_", ""), base, column)
    for pattern in (_APPROXIMATE, _APPROXIMATE_HEX):
        if found := pattern.fullmatch(text):
            return _approximate(found[1].replace("_", ""), found[2] in ("f", "F"), column)
    if text[0] == "0" and text.rstrip("lL").isdecimal():
        raise SelectorError(column, f"expected octal digits, 0 to 7, behind a leading 0, found {extract(text)}")
    raise SelectorError(column, f"expected a number as Java writes it (57, 0x1F, 6.2E3, 7.), found {extract(text)}")


def _exact(digits: str, base: int, column: int) -> int:
    value = int(digits, base) if len(digits) <= _EXACT_CHARACTERS_MAX else 1 << 64
    if base == 10 and value <= LONG_MAX + 1:
        return value
    if base == 10 or value >= 1 << 64:
        raise SelectorError(column, f"expected a number in the range of Java's long, found {extract(digits)}")
    return value if value <= LONG_MAX else value - (1 << 64)


def _approximate(text: str, single: bool, column: int) -> float:
    mantissa = re.split("[pP]" if text[:2] in ("0x", "0X") else "[eE]", text)[0]
    try:
        value = float.fromhex(text) if text[:2] in ("0x", "0X") else float(text)
        if single:
            value = float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        value = float("inf")
    if value in (0.0, float("inf")) and (value or mantissa.removeprefix("0x").removeprefix("0X").strip("0.")):
        raise SelectorError(column, f"expected a number in the range of Java's {'float' if single else 'double'}, found {extract(text)}")
    return value


def plain(text: str) -> int | float | None:
    """The number that a header's text is (`12`, `-3`, `1.5`, `6e3`), None if it is none. What exceeds a long is approximate."""
    if len(text) < 19 and text.isdecimal() and text.isascii():  # nearly all: no need to look closer
        return int(text)
    found = _PLAIN.fullmatch(text) if len(text) <= PLAIN_CHARACTERS_MAX else None
    if found is None:
        return None
    if found[1] is not None and LONG_MIN <= (value := int(text)) <= LONG_MAX:
        return value
    return float(text)


def boolean(text: str) -> bool | None:
    """The boolean that a header's text is, in whatever case; None if it is none."""
    lower = text.lower() if len(text) <= 5 else ""
    return True if lower == "true" else False if lower == "false" else None
