"""Template tags of the console's pages, loaded by `{% load console %}`."""

from __future__ import annotations

import json
from typing import Any

from django.template import Context, Library
from django.utils.html import format_html
from django.utils.safestring import SafeString

from console import permissions
from console.live.topics import shape_of
from console.selectors.shapes import SHAPES

from . import charts, icons
from .actor import actor_of
from .asked import Asked

register = Library()
register.simple_tag(icons.icon, name="icon")
register.simple_tag(charts.sparkline, name="sparkline")
register.simple_tag(charts.line_chart, name="line_chart")

HEX_OCTETS_MAX = 4096
SHAPED_SECONDS = 30


@register.simple_tag(takes_context=True)
def may(context: Context, right: str, address: str = "") -> bool:
    """`{% may "purge" it.address as may_purge %}`"""
    return permissions.may(actor_of(context["request"]), right, address)


@register.simple_tag(takes_context=True)
def live_part(context: Context, name: str = "live", shape: str = "", every: int = SHAPED_SECONDS) -> SafeString:
    """Attributes of an element that is fetched anew every five seconds. With a `shape` it is as soon as that changes: the name of a list of
    selectors.shapes, or the key of a live cell; then every so many seconds beside, for what it shows that changes without. It may hold no form that
    somebody fills in."""
    attributes = 'id="{}" hx-get="{}" hx-trigger="refresh" hx-select="#{}" hx-swap="outerHTML" data-refresh{}'
    shaped = format_html(' data-shape="{}" data-every="{}"', shape, every) if shape else ""
    if shape in SHAPES:
        shaped = format_html(' data-shape="shape/{}/is" data-is="{}" data-every="{}"', shape, shape_of(shape), every)
    return format_html(attributes, name, context["request"].get_full_path(), name, shaped)


@register.simple_tag
def link(asked: Asked, **changes: Any) -> str:
    """`<a href="{% link asked state="paused" %}">`: the same list with something changed, from its first page."""
    return asked.but(**{name: str(value) for name, value in changes.items()})


@register.simple_tag
def link_where(asked: Asked, name: str, value: str) -> str:
    """The same with the name of what changes in a variable."""
    return asked.but(**{name: value})


@register.filter
def item(values: Any, key: Any) -> Any:
    """`{{ values|item:key }}`; None if there is none."""
    return values.get(key) if hasattr(values, "get") else None


@register.filter
def pretty_json(value: Any) -> str:
    """A value of JSON, indented."""
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=False)


@register.filter
def hexadecimal(octets: bytes) -> str:
    """As a hex dump of 16 octets a line: offset, octets, characters. At most the first 4 KiB."""
    lines = []
    for start in range(0, min(len(octets), HEX_OCTETS_MAX), 16):
        part = octets[start : start + 16]
        shown = "".join(chr(octet) if 32 <= octet < 127 else "." for octet in part)
        lines.append(f"{start:08x}  {part[:8].hex(' '):23}  {part[8:].hex(' '):23}  {shown}")
    return "\n".join(lines)


@register.inclusion_tag("console/parts/sort.html")
def sort(asked: Asked, key: str, label: str, *, number: bool = False, descending: bool = False) -> dict[str, Any]:
    """The head of a column by which the list can be ordered."""
    return {"href": asked.but(sort=key), "label": label, "number": number, "current": asked["sort"] == key, "descending": descending}


@register.filter
def yes_no(value: bool | None) -> str | SafeString:
    return "unknown" if value is None else "yes" if value else "no"
