"""Every page that one gets to by links, one of each kind: nobody has to keep a list of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from html import unescape
from urllib.parse import urljoin, urlsplit

NO_PAGES = ("/api/", "/static/", "/logout", "/login", "/definitions/export", "/metrics", "/health")
_LINK = re.compile(r'<a\s[^>]*?href="([^"]+)"')
_NAMED = re.compile(r"^(/tasks)/[a-z_]+")


def reached(get: Callable[[str], str], first: Iterable[str] = ("/",)) -> dict[str, str]:
    """Addresses by kind, which is the path with a mark for each number and name. `get`: the HTML of an address. Of two of a kind the one that is found first;
    `first` are looked at before all others."""
    found: dict[str, str] = {}
    waiting = list(first)
    while waiting:
        address = waiting.pop(0)
        if kind_of(address) in found:
            continue
        found[kind_of(address)] = address
        for link in _LINK.findall(get(address)):
            path = urljoin(address, unescape(link).partition("#")[0])
            if not urlsplit(path).netloc and path.startswith("/") and not path.startswith(NO_PAGES) and kind_of(path) not in found:
                waiting.append(path)
    return found


def kind_of(address: str) -> str:
    return re.sub(r"[0-9]+", "N", _NAMED.sub(r"\1/NAME", urlsplit(address).path))
