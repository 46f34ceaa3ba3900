"""Cuts the text of a selector into tokens (JMS 3.8.1.1)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from . import number
from .error import SelectorError, extract
from .identifier import end_of_identifier

KEYWORDS = frozenset({"NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"})
"""Reserved in whatever case; all other names are told apart by case."""


class Kind(Enum):
    """The value names the kind in a sentence."""

    SIGN = "a sign"
    KEYWORD = "a keyword"
    IDENTIFIER = "an identifier"
    STRING = "a string"
    NUMBER = "a number"
    END = "the end of the selector"


@dataclass(frozen=True, slots=True)
class Token:
    kind: Kind
    text: str
    """As written; keywords in capitals, strings without their quotes, empty at the end."""
    column: int
    """Of its first character, from 1."""
    value: int | float = 0
    """Of a number, without sign."""


_SPACE = re.compile(r"[ \t\f\r\n]*")
_SIGN = re.compile(r"<>|<=|>=|[=<>+\-*/(),]")
_STRING = re.compile(r"'[^']*+(?:''[^']*+)*+'")
_NUMBER = re.compile(r"0[xX](?:[pP][+-]|[0-9A-Za-z_.])*|\.?[0-9](?:[eE][+-]|[0-9A-Za-z_.])*")
"""More than a number may be: what runs on behind it is part of the mistake, and said so."""
_MEANT = {
    '"': "strings stand in single quotes",
    "!": "unequal is <>",
    "=": "equal is =",
    "%": "there is no remainder",
    ";": "a selector is one condition",
}


def tokens(text: str) -> list[Token]:
    """All tokens of `text` and END."""
    found: list[Token] = []
    position = _end(_SPACE, text, 0)
    while position < len(text):
        token, position = _token(text, position)
        found.append(token)
        position = _end(_SPACE, text, position)
    found.append(Token(Kind.END, "", len(text) + 1))
    return found


def _end(pattern: re.Pattern[str], text: str, position: int) -> int:
    found = pattern.match(text, position)
    return found.end() if found else position


def _token(text: str, start: int) -> tuple[Token, int]:
    column = start + 1
    if (end := _end(_NUMBER, text, start)) > start:
        written = text[start:end]
        return Token(Kind.NUMBER, written, column, number.literal(written, column)), end
    if (end := _end(_SIGN, text, start)) > start:
        return Token(Kind.SIGN, text[start:end], column), end
    if (end := _end(_STRING, text, start)) > start:
        return Token(Kind.STRING, text[start + 1 : end - 1].replace("''", "'"), column), end
    if (end := end_of_identifier(text, start)) > start:
        word = text[start:end]
        capitals = word.upper() if word.isascii() else word  # beyond ASCII a letter may have a keyword's letter as its capital
        return (Token(Kind.KEYWORD, capitals, column) if capitals in KEYWORDS else Token(Kind.IDENTIFIER, word, column)), end
    if text[start] == "'":
        raise SelectorError(column, f"expected a closing quote for the string that begins with {extract(text[start:])}")
    meant = f": {_MEANT[text[start]]}" if text[start] in _MEANT else ""
    raise SelectorError(column, f"expected an identifier, a literal or a sign, found {extract(text[start])}{meant}")
