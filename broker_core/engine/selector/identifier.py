"""Which characters make an identifier: those of Java (JMS 3.8.1.1 names isJavaIdentifierStart and isJavaIdentifierPart).

Java decides by Unicode categories: letters, letter numbers, currency and connecting punctuation begin an identifier; digits, marks and
ignorable characters continue it. str knows letters and what Python calls an identifier; where that differs from Java's is listed here.
"""

from __future__ import annotations

import re

_CURRENCY = (
    r"$\xa2-\xa5\u058f\u060b\u07fe\u07ff\u09f2\u09f3\u09fb\u0af1\u0bf9\u0e3f\u17db\u20a0-\u20c0\ua838\ufdfc\ufe69\uff04\uffe0\uffe1\uffe5\uffe6"
    r"\U00011fdd-\U00011fe0\U0001e2ff\U0001ecb0"
)
_CONNECTING = r"_\u203f\u2040\u2054\ufe33\ufe34\ufe4d-\ufe4f\uff3f"
_IGNORABLE = (
    r"\x00-\x08\x0e-\x1b\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f"
    r"\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U00013438\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f"
)
_ALSO_STARTS = re.compile(f"[{_CURRENCY}{_CONNECTING}]")
_ALSO_CONTINUES = re.compile(f"[{_CURRENCY}{_CONNECTING}{_IGNORABLE}]")
_STARTS_PYTHON_ONLY = "\u1885\u1886\u2118\u212e"
_CONTINUES_PYTHON_ONLY = "\xb7\u0387\u1369\u136a\u136b\u136c\u136d\u136e\u136f\u1370\u1371\u19da\u2118\u212e"


def is_start(character: str) -> bool:
    """True if an identifier may begin with `character` (one code point)."""
    if character.isalpha() or _ALSO_STARTS.match(character):
        return True
    return character.isidentifier() and character not in _STARTS_PYTHON_ONLY


def is_part(character: str) -> bool:
    """True if `character` (one code point) may stand in an identifier behind its first."""
    if character.isalpha() or _ALSO_CONTINUES.match(character):
        return True
    return f"a{character}".isidentifier() and character not in _CONTINUES_PYTHON_ONLY


def end_of_identifier(text: str, start: int) -> int:
    """Where the identifier that begins at `start` ends; `start` if none begins there."""
    if start == len(text) or not is_start(text[start]):
        return start
    end = start + 1
    while end < len(text) and is_part(text[end]):
        end += 1
    return end
