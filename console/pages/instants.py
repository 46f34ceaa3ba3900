"""Instants of the engine as people read them."""

from datetime import UTC, datetime

YEAR_9999_MS = 253_402_300_799_000


def instant(milliseconds: int | None) -> datetime | None:
    """None for none, and the end of the calendar for what is beyond it."""
    return None if milliseconds is None else datetime.fromtimestamp(min(max(milliseconds, 0), YEAR_9999_MS) / 1000, UTC)
