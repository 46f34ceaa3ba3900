"""The two clocks of the client runtime."""

from __future__ import annotations

import time


def milliseconds() -> int:
    """Of a clock that never goes back."""
    return time.monotonic_ns() // 1_000_000


def time_of_day() -> int:
    """In ms since 1970."""
    return time.time_ns() // 1_000_000
