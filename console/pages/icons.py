"""Small pictures of our own, drawn by hand on a grid of 16: strokes in the colour of the text around them."""

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

PATHS = {
    "overview": "M2 13.5h12M4 11V8m4 3V3.5M12 11V6",
    "destinations": "M2.5 4.5h11v7h-11zM5.5 4.5v7m3-7v7",
    "messages": "M2 4h12v8.5H2zm0 .5 6 4.5 6-4.5",
    "dead": "M2 4h12v8.5H2zm4 2.5 4 3.5m0-3.5-4 3.5",
    "scheduled": "M8 2.2a5.8 5.8 0 1 1 0 11.6A5.8 5.8 0 0 1 8 2.2zM8 5v3.2l2.2 1.5",
    "subscriptions": "M3 13a10 10 0 0 0-.5-3M6.4 13A13 13 0 0 0 2.5 6.4M10 13A16.5 16.5 0 0 0 2.5 3",
    "transactions": "M2.5 5.5h10L10 3m3.5 7.5h-10L6 13",
    "connections": "M6 10 10 6M5 7 3.6 8.4a2.8 2.8 0 0 0 4 4L9 11m2-2 1.4-1.4a2.8 2.8 0 0 0-4-4L7 5",
    "producers": "M2.5 13.5v-3h11v3zM8 9V2.5M5.2 5.2 8 2.5l2.8 2.7",
    "consumers": "M8 2.5a2.6 2.6 0 1 1 0 5.2 2.6 2.6 0 0 1 0-5.2zM2.8 13.5a5.2 5.2 0 0 1 10.4 0",
    "operations": "M8 2.5v3m0 5v3M2.5 8h3m5 0h3M4.1 4.1l2.1 2.1m3.6 3.6 2.1 2.1m0-7.8L9.8 6.2m-3.6 3.6-2.1 2.1",
    "tasks": "M2.5 4l1.2 1.2L6 3M2.5 8.5l1.2 1.2L6 7.5M8 4.5h5.5M8 8.8h5.5M8 13h5.5M3 13h2",
    "nodes": "M2.5 3h11v4h-11zm0 6h11v4h-11zM5 5h.1M5 11h.1",
    "alerts": "M8 2.5a3.8 3.8 0 0 0-3.8 3.8c0 3.2-1.7 4.7-1.7 4.7h11s-1.7-1.5-1.7-4.7A3.8 3.8 0 0 0 8 2.5zM6.8 13.3a1.4 1.4 0 0 0 2.4 0",
    "reports": "M3.5 2h6l3 3v9h-9zM6 8h4m-4 3h4",
    "accounts": "M6 3a2.4 2.4 0 1 1 0 4.8A2.4 2.4 0 0 1 6 3zM1.8 13a4.2 4.2 0 0 1 8.4 0M11 4a2 2 0 0 1 0 4m1.2 2a4 4 0 0 1 2 3",
    "access": "M8 2l5 2v4c0 3-2.2 5-5 6-2.8-1-5-3-5-6V4zM6 8l1.5 1.5L10.2 6.5",
    "objects": "M8 2 13.5 5v6L8 14 2.5 11V5zM2.5 5 8 8l5.5-3M8 8v6",
    "definitions": "M6 3H4.5v3.5L3 8l1.5 1.5V13H6m4-10h1.5v3.5L13 8l-1.5 1.5V13H10",
    "operators": "M10.5 2.5a3 3 0 1 1 0 6 3 3 0 0 1 0-6zM8.3 7.7 2.5 13.5m2-2 1.5 1.5",
    "audit": "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zM10.3 10.3 13.5 13.5M5 7h4",
    "settings": "M2.5 4.5h6m3 0h2m-11 7h2m3 0h6M10 3v3M6 10v3",
    "undo": "M3 3v4h4M3.4 7a5.2 5.2 0 1 1-.6 3.2",
    "menu": "M2.5 4h11m-11 4h11m-11 4h11",
    "close": "M3.5 3.5l9 9m0-9-9 9",
    "search": "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zM10.3 10.3 13.5 13.5",
    "user": "M8 2.5a2.6 2.6 0 1 1 0 5.2 2.6 2.6 0 0 1 0-5.2zM2.8 13.5a5.2 5.2 0 0 1 10.4 0",
    "warning": "M8 2.5 14.5 13.5h-13zM8 6.5v3.2m0 1.7v.2",
    "good": "M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2zM5.3 8.2 7.2 10l3.5-4",
    "more": "M3.5 8h.1M8 8h.1m4.4 0h.1",
    "next": "M6 3.5 10.5 8 6 12.5",
    "back": "M10 3.5 5.5 8l4.5 4.5",
}


def icon(name: str) -> SafeString:
    """As inline SVG, hidden from who hears the page: words stand beside it. An unknown name is a bug."""
    path = PATHS[name]
    return format_html('<svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><path d="{}"/></svg>', mark_safe(path))  # noqa: S308 - ours
