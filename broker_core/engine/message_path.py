"""A path into a JSON document: `order.items[0].id`, `$.order`, `items[*].sku`, `["a name.with dots"].x`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Constant = str | int | float | bool | None
PATH_CHARACTERS_MAX = 256
STEPS_MAX = 16
_STEP = re.compile(r"""\.?([^.\[\]"\s]+) | \[ \s* (?: (\d{1,9}) | (\*) | "([^"]+)" ) \s* \]""", re.VERBOSE)


class InvalidPath(ValueError):
    """The message says what is wrong, and where."""


class Every:
    """All elements of a list."""


EVERY = Every()
Step = str | int | Every


@dataclass(slots=True, frozen=True)
class Path:
    text: str
    steps: tuple[Step, ...]

    def values(self, document: Any) -> Iterator[Any]:
        """What stands at the path: one value, more with [*], or none. Each part of the document is met once at the most."""
        found = [document]
        for step in self.steps:
            found = [each for value in found for each in _within(value, step)]
        yield from found


def _within(value: Any, step: Step) -> list[Any]:
    if isinstance(step, str):
        return [value[step]] if isinstance(value, dict) and step in value else []
    if not isinstance(value, list):
        return []
    if isinstance(step, int):
        return [value[step]] if step < len(value) else []
    return value


def read_path(text: str) -> Path:
    """Raises InvalidPath."""
    if len(text) > PATH_CHARACTERS_MAX:
        raise InvalidPath(f"a path has at most {PATH_CHARACTERS_MAX} characters")
    at = 1 if text[:1] == "$" and text[1:2] in (".", "[") else 0
    steps: list[Step] = []
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None or (match[1] is not None and at and text[at] != "."):
            raise InvalidPath(f'column {at + 1}: expected .NAME, [NUMBER], [*] or ["NAME"], as in order.items[0].id')
        name, number, every, quoted = match.groups()
        steps.append(EVERY if every else int(number) if number else name or quoted)
        at = match.end()
    if not steps or len(steps) > STEPS_MAX:
        raise InvalidPath(f"a path has 1 to {STEPS_MAX} steps, as order.items[0].id has four")
    return Path(text, tuple(steps))


def is_constant(value: Any) -> bool:
    return value is None or isinstance(value, str | bool | int | float)


def same(found: Any, wanted: Constant) -> bool:
    """True is not 1; 1 is 1.0."""
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    if isinstance(wanted, int | float):
        return isinstance(found, int | float) and found == wanted
    return type(found) is type(wanted) and found == wanted
