"""Template filters for quantities. None is shown as unknown, never as nothing or 0."""

from typing import Any

from django.template import Library
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = Library()

UNKNOWN = SafeString('<span class="unknown" title="No node tells this at present.">unknown</span>')
SECOND, MINUTE, HOUR, DAY = 1, 60, 3600, 86_400


@register.filter
def count(value: int | None) -> str:
    """1,234,567"""
    return UNKNOWN if value is None else f"{value:,}"


@register.filter
def octets(value: int | None) -> str:
    """1.2 MiB"""
    if value is None:
        return UNKNOWN
    size, unit = float(value), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:,.0f} {unit}" if unit == "B" or size >= 100 else f"{size:,.1f} {unit}"


@register.filter
def rate(value: float | None) -> str:
    """Messages a second, one decimal below ten."""
    if value is None:
        return UNKNOWN
    return f"{value:,.1f}" if 0 < value < 10 else f"{value:,.0f}"


@register.filter
def duration(seconds: float | None) -> str:
    """The two largest units: 3 d 4 h, 12 min 5 s."""
    if seconds is None:
        return UNKNOWN
    rest, parts = int(seconds), []
    for size, unit in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s")):
        number, rest = divmod(rest, size)
        if number:
            parts.append(f"{number} {unit}")
    return " ".join(parts[:2]) or "0 s"


@register.filter
def milliseconds(value: int | None) -> str:
    """A duration given in ms."""
    return duration(None if value is None else value / 1000)


STATES = {0: "running", 1: "consumers paused", 2: "producers paused", 3: "paused"}
"""Of a destination: union of 1 (consumers paused) and 2 (producers paused)."""


@register.filter
def paused(state: int) -> str:
    """The state of a destination as a badge."""
    return format_html('<span class="badge {}">{}</span>', "running" if state == 0 else "paused", STATES.get(state, f"state {state}"))


@register.filter
def destination_state(state: int) -> str:
    """The same as words."""
    return STATES.get(state, f"state {state}")


@register.filter
def spaced(name: str) -> str:
    """The name of a setting or right as words."""
    return name.replace("_", " ")


@register.filter
def particulars(told: dict[str, Any]) -> str:
    """Names and values of an audit entry as a person reads them: loopback only yes, depth 1,234."""
    return ", ".join(f"{spaced(name)} {_value(name, value)}" for name, value in told.items())


def _value(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name == "state" and isinstance(value, int) and value in STATES:
        return STATES[value]
    return f"{value:,}" if isinstance(value, int) else str(value)


@register.filter
def messages(value: int) -> str:
    return "1 message" if value == 1 else f"{value:,} messages"
