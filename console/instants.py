"""Instants of the engine, which counts milliseconds, as the console has them."""

from datetime import UTC, datetime

YEAR_9999_MS = 253_402_300_799_000
"""The end of the calendar."""


def instant(milliseconds: int | None) -> datetime | None:
    """None for none, and the end of the calendar for what is beyond it."""
    return None if milliseconds is None else datetime.fromtimestamp(min(max(milliseconds, 0), YEAR_9999_MS) / 1000, UTC)


def milliseconds(at: datetime) -> int:
    """As the node counts instants, which knows none before 1970."""
    return max(int(at.timestamp() * 1000), 0)
