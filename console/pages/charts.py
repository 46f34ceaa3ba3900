"""Lines over time as inline SVG, drawn here: no script, and no style but classes. None is a gap: unknown is not 0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

Values = Sequence[float | None]
SPARK_WIDTH, SPARK_HEIGHT = 96, 22
WIDTH, HEIGHT = 640, 180
LEFT, RIGHT, TOP, BOTTOM = 48, 8, 10, 22
GRID_LINES = 4
TIME_LABELS = 5
DATELESS, YEARLESS = timedelta(days=2), timedelta(days=60)
"""A chart of no more than that needs no dates; of no more than that they need no year."""
HOVERED_MAX = 120
"""Strips that tell their values when pointed at; more points than that share one."""


@dataclass(slots=True, frozen=True)
class Series:
    name: str
    tone: str
    """A class of charts.css: in, out, depth, dead, rest, plain."""
    values: Values


def sparkline(values: Values, label: str, tone: str = "plain") -> SafeString:
    """A line of a table's row. `label`: what it shows, for who points at it or hears it."""
    top = max((value for value in values if value is not None), default=0)
    path = _path(values, top or 1, (1, SPARK_WIDTH - 1), (2, SPARK_HEIGHT - 2))
    return format_html(
        '<svg class="spark {}" viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-label="{}"><title>{}</title><path d="{}"/></svg>',
        tone, SPARK_WIDTH, SPARK_HEIGHT, SPARK_WIDTH, SPARK_HEIGHT, label, label, mark_safe(path),  # noqa: S308 - numbers
    )  # fmt: skip


def line_chart(times: Sequence[datetime], series: Sequence[Series], label: str, unit: str = "") -> SafeString:
    """A chart with axes; every series has as many values as there are times. Whoever points at an instant is told its values."""
    if len(times) < 2 or all(value is None for each in series for value in each.values):
        return format_html('<p class="chart none">{}: not enough is known yet.</p>', label)
    highest = max((value for each in series for value in each.values if value is not None), default=0)
    top = _nice(highest if unit else max(highest, GRID_LINES))  # what has no unit is counted in whole numbers
    across, down = (LEFT, WIDTH - RIGHT), (TOP, HEIGHT - BOTTOM)
    lines = [
        format_html('<path class="line {}" d="{}"/>', each.tone, mark_safe(_path(each.values, top, across, down)))  # noqa: S308 - numbers
        for each in series
    ]
    parts = [*_grid(top, down), *_clock(times, across), *lines, *_pointed(times, series, unit, across, down)]
    legend = format_html_join("", '<li class="{}">{}</li>', ((each.tone, each.name) for each in series))
    return format_html(
        '<figure class="chart"><figcaption>{}<ul class="legend">{}</ul></figcaption>'
        '<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg></figure>',
        label, legend, WIDTH, HEIGHT, _spoken(label, series, unit), mark_safe("".join(parts)),  # noqa: S308 - of parts made above
    )  # fmt: skip


def short(value: float) -> str:
    """1.2 k, 3 M: what fits beside an axis."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {letter}"
    return f"{value:.3g}"


def _nice(top: float) -> float:
    """The next of 1, 2, 4, 10 times a power of ten: its quarters are read easily."""
    if top <= 0:
        return 4
    power = 10.0 ** math.floor(math.log10(top))
    return next(step * power for step in (1, 2, 4, 10) if step * power >= top)


def _path(values: Values, top: float, across: tuple[float, float], down: tuple[float, float]) -> str:
    """A gap lifts the pen; a value alone between two gaps is a dot."""
    step = (across[1] - across[0]) / max(1, len(values) - 1)
    parts, pen = [], False
    for number, value in enumerate(values):
        if value is None:
            pen = False
            continue
        x, y = across[0] + number * step, down[1] - (down[1] - down[0]) * min(value, top) / top
        alone = not pen and (number + 1 == len(values) or values[number + 1] is None)
        parts.append(f"{'L' if pen else 'M'}{x:.1f} {y:.1f}{'h.1' if alone else ''}")
        pen = True
    return "".join(parts)


def _grid(top: float, down: tuple[float, float]) -> list[SafeString]:
    found = []
    for number in range(GRID_LINES + 1):
        y = down[1] - (down[1] - down[0]) * number / GRID_LINES
        found.append(format_html('<path class="grid" d="M{} {}H{}"/>', LEFT, f"{y:.1f}", WIDTH - RIGHT))
        found.append(format_html('<text class="axis" x="{}" y="{}" text-anchor="end">{}</text>', LEFT - 6, f"{y + 3.5:.1f}", short(top * number / GRID_LINES)))
    return found


def _clock(times: Sequence[datetime], across: tuple[float, float]) -> list[SafeString]:
    length = times[-1] - times[0]
    form = "%H:%M:%S" if length < timedelta(minutes=10) else "%H:%M" if length <= DATELESS else "%m-%d %H:%M" if length <= YEARLESS else "%Y-%m-%d"
    found = []
    for number in range(TIME_LABELS):
        place = (len(times) - 1) * number // (TIME_LABELS - 1)
        x = across[0] + (across[1] - across[0]) * number / (TIME_LABELS - 1)
        anchor = "start" if number == 0 else "end" if number == TIME_LABELS - 1 else "middle"
        found.append(format_html('<text class="axis" x="{}" y="{}" text-anchor="{}">{}</text>', f"{x:.1f}", HEIGHT - 5, anchor, f"{times[place]:{form}}"))
    return found


def _pointed(times: Sequence[datetime], series: Sequence[Series], unit: str, across: tuple[float, float], down: tuple[float, float]) -> list[SafeString]:
    """Strips over the whole height, each with the values of its instant as a title."""
    shown = min(len(times), HOVERED_MAX)
    width = (across[1] - across[0]) / shown
    form = "%H:%M:%S" if times[-1] - times[0] <= DATELESS else "%Y-%m-%d %H:%M"
    found = []
    for number in range(shown):
        place = (len(times) - 1) * number // max(1, shown - 1)
        told = ", ".join(f"{each.name} {_told(each.values[place], unit)}" for each in series)
        strip = '<rect class="pointed" x="{}" y="{}" width="{}" height="{}"><title>{} UTC: {}</title></rect>'
        found.append(format_html(strip, f"{across[0] + number * width:.1f}", down[0], f"{width:.1f}", down[1] - down[0], f"{times[place]:{form}}", told))
    return found


def _spoken(label: str, series: Sequence[Series], unit: str) -> str:
    return f"{label}; now " + ", ".join(f"{each.name} {_told(each.values[-1], unit)}" for each in series)


def _told(value: float | None, unit: str) -> str:
    if value is None:
        return "unknown"
    return f"{value:,.1f}{unit}" if 0 < value < 10 and value != int(value) else f"{value:,.0f}{unit}"
