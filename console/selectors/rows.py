"""Rows of the broker's tables as dictionaries."""

from collections.abc import Mapping
from typing import Any

from django.db import connection


def rows(query: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(query, parameters or {})
        names = [column.name for column in cursor.description]
        return [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]
