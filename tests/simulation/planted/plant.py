"""Puts a bug into the product, and takes it out again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Plant:
    """Replaces attributes until it is pulled."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def put(self, thing: Any, name: str, wrong: Any) -> None:
        self._before.append((thing, name, getattr(thing, name)))
        setattr(thing, name, wrong)

    def pull(self) -> None:
        for thing, name, right in reversed(self._before):
            setattr(thing, name, right)


Bug = Callable[[Plant], None]
