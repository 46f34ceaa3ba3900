"""LIKE: reads a pattern and matches values against it, in time proportional to the value whatever the pattern (JMS 3.8.1.1, SQL-92 8.5).

A pattern is cut at its `%` into segments. The first must stand at the beginning, the last at the end, those between are looked for one after
the other, each as early as possible: that finds a match if there is one, and nothing is tried twice. A segment without `_` is found by
str.find; one with `_` by shift-and, where bit i of a whole number says that the first i + 1 characters of the segment end here.
Characters are code points: `_` stands for one also where Java counts two.
"""

from __future__ import annotations

from collections.abc import Callable

from .error import SelectorError
from .syntax import Segment


def segments(pattern: str, escape: str | None, column: int) -> tuple[Segment, ...]:
    """The pattern cut at its %; what is between %% is nothing and left out. `escape` may stand before %, _ and itself only (SQL-92)."""
    found: list[list[str | None]] = [[]]
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            escaped = next(characters, "")
            if escaped not in ("%", "_", escape):
                raise SelectorError(column, "expected %, _ or the escape character itself behind every escape character of the pattern")
            found[-1].append(escaped)
        elif character == "%":
            found.append([])
        else:
            found[-1].append(None if character == "_" else character)
    first, *rest = map(tuple, found)
    return (first, *(segment for segment in rest[:-1] if segment), rest[-1]) if rest else (first,)


def plain(segment: Segment) -> str | None:
    """The segment as a string if no _ is in it."""
    return "".join(character or "" for character in segment) if None not in segment else None


def matcher(pattern: tuple[Segment, ...]) -> Callable[[str], bool]:
    """A function that says whether a value matches all of `pattern`."""
    strings = [literal for segment in pattern if (literal := plain(segment)) is not None]
    if len(strings) < len(pattern):
        return _general(pattern)
    match strings:
        case [text]:
            return lambda value: value == text
        case [text, ""]:
            return lambda value: value.startswith(text)
        case ["", text]:
            return lambda value: value.endswith(text)
        case ["", text, ""]:
            return lambda value: text in value
    return _general(pattern)


def _general(pattern: tuple[Segment, ...]) -> Callable[[str], bool]:
    begins, first = _at(pattern[0]), len(pattern[0])
    if len(pattern) == 1:
        return lambda value: len(value) == first and begins(value, 0)
    ends, last = _at(pattern[-1]), len(pattern[-1])
    searches = [_search(segment) for segment in pattern[1:-1]]

    def matches(value: str) -> bool:
        end = len(value) - last
        if end < first or not begins(value, 0) or not ends(value, end):
            return False
        position = first
        for search in searches:
            position = search(value, position, end)
            if position < 0:
                return False
        return True

    return matches


def _at(segment: Segment) -> Callable[[str, int], bool]:
    """Says whether the segment stands at a position of a value; that it fits is known."""
    runs: list[tuple[int, str]] = []
    start = 0
    for index in range(len(segment) + 1):
        if index == len(segment) or segment[index] is None:
            if text := plain(segment[start:index]):
                runs.append((start, text))
            start = index + 1

    def stands(value: str, position: int) -> bool:
        for offset, text in runs:  # noqa: SIM110 - a generator costs more than what it would say
            if not value.startswith(text, position + offset):
                return False
        return True

    return stands


def _search(segment: Segment) -> Callable[[str, int, int], int]:
    """Finds the segment in value[position:end]; says where its first occurrence ends, or -1."""
    text, length = plain(segment), len(segment)
    if text is not None:

        def find(value: str, position: int, end: int) -> int:
            found = value.find(text, position, end)
            return found + length if found >= 0 else -1

        return find
    anything = sum(1 << index for index, character in enumerate(segment) if character is None)
    places: dict[str, int] = {}
    for index, character in enumerate(segment):
        if character is not None:
            places[character] = places.get(character, anything) | 1 << index
    complete = 1 << length - 1

    def shift_and(value: str, position: int, end: int) -> int:
        state = 0
        for index in range(position, end):
            state = (state << 1 | 1) & places.get(value[index], anything)
            if state & complete:
                return index + 1
        return -1

    return shift_and
