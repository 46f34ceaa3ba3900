"""Loads queries.sql: each statement under a line `-- name: what_it_does`."""

from __future__ import annotations

import importlib.resources
import re
from typing import LiteralString, cast

_NAME = re.compile(r"^-- name: ([a-z_]+)$", re.MULTILINE)


def load() -> dict[str, LiteralString]:
    """Statements by name."""
    text = importlib.resources.files("broker_core.store").joinpath("queries.sql").read_text("utf-8")
    parts = _NAME.split(text)
    return {name: cast(LiteralString, statement.strip()) for name, statement in zip(parts[1::2], parts[2::2], strict=True)}


QUERIES = load()
