"""Values within the statements of a commit."""

from __future__ import annotations

import json
import math
from typing import Any

from .rows import text_octets


def literal(text: str) -> bytes:
    """A string literal; standard_conforming_strings is on."""
    return b"'" + text_octets(text).replace(b"'", b"''") + b"'"


def json_literal(value: object) -> bytes:
    return literal(json.dumps(_cleaned(value), ensure_ascii=False)) + b"::jsonb"


def _cleaned(value: Any) -> Any:
    """Less what no jsonb holds: an answer that could not be written would cost the node its term, and the next one, too."""
    if isinstance(value, str):
        return text_octets(value).decode()
    if isinstance(value, dict):
        return {_cleaned(name): _cleaned(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(part) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
