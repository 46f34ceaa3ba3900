"""Rows of the broker's tables as dictionaries."""

from collections.abc import Mapping
from typing import Any

from django.db import OperationalError, connection, transaction

from broker_core.viewing.rows import TooSlow

QUERY_CANCELED = "57014"


def rows(query: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(query, parameters or {})
        names = [column.name for column in cursor.description]
        return [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]


def rows_within(seconds: float, query: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """The same where nobody can say how much there is to read. Raises TooSlow."""
    try:
        with transaction.atomic():
            rows("SELECT set_config('statement_timeout', %(ms)s, true)", {"ms": str(int(seconds * 1000))})
            return rows(query, parameters)
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", "") == QUERY_CANCELED:
            raise TooSlow from error
        raise
