"""Properties of a message as one types them: a line each, `name=value`. Numbers, true and false are such; what is in quotes is a text."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

LINES_MAX = 200


class InvalidProperties(ValueError):
    """The message is a sentence that names the line."""


def read_properties(text: str) -> dict[str, Any]:
    """Raises InvalidProperties."""
    found: dict[str, Any] = {}
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > LINES_MAX:
        raise InvalidProperties(f"A message typed here has at most {LINES_MAX} properties.")
    for line in lines:
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise InvalidProperties(f"{line[:64]!r} is no property: write name=value.")
        if name.strip() in found:
            raise InvalidProperties(f"The property {name.strip()[:64]} is there twice.")
        found[name.strip()] = _value(value.strip())
    return found


def _value(text: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, float) and not math.isfinite(value):
        return text
    return value if isinstance(value, str | int | float | bool) else text


def written_properties(properties: Mapping[str, Any]) -> str:
    """So that `read_properties` reads the same."""
    return "\n".join([f"{name}={_written(value)}" for name, value in properties.items() if value is not None])


def _written(value: Any) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    plain = _value(value) == value and value == value.strip() and not any(letter in value for letter in "\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")
    return value if plain else json.dumps(value)


READERS: Mapping[str, Callable[[str], Any]] = {"int": int, "float": float, "bool": lambda text: {"true": True, "false": False}[text]}


def typed(properties: Mapping[str, Any], types: str) -> dict[str, Any]:
    """Properties with the types that the header `property-types` states for them, `count=int,urgent=bool`; what does not read so stays a text."""
    stated = dict(part.split("=", 1) for part in types.split(",") if "=" in part)
    return {name: _as(value, stated.get(name, "")) for name, value in properties.items()}


def _as(value: Any, kind: str) -> Any:
    if not isinstance(value, str) or kind not in READERS:
        return value
    try:
        return READERS[kind](value)
    except (ValueError, KeyError):
        return value
