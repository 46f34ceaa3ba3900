"""PostgreSQL array literals of long columns: joined in C, where the driver would adapt element by element (ten thousand destinations a report)."""

from __future__ import annotations

from collections.abc import Iterable


def integers(values: Iterable[int | bool | None]) -> str:
    """For a parameter that the statement casts to an array of integers."""
    return "{" + ",".join(["NULL" if value is None else str(int(value)) for value in values]) + "}"


def texts(values: Iterable[str]) -> str:
    """For a parameter that the statement casts to text[]."""
    return "{" + ",".join(['"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' for value in values]) + "}"
