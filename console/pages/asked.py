"""What the address of a list asks for: search, order, filters, page. Every state of a list has an address of its own, which links are made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import HttpRequest

TEXT_CHARACTERS_MAX = 1000


@dataclass(slots=True, frozen=True)
class Asked:
    path: str
    values: dict[str, str]
    """All that the list knows of, by name; empty: not asked for."""
    usual: dict[str, str]
    """What holds if nothing is said, so that it is left out of links."""

    def __getitem__(self, name: str) -> str:
        return self.values[name]

    @property
    def query(self) -> str:
        return urlencode({name: value for name, value in self.values.items() if value and value != self.usual.get(name)})

    @property
    def is_narrowed(self) -> bool:
        """Something is searched or filtered, so that an empty list does not mean that there is nothing."""
        return any(value and value != self.usual.get(name) for name, value in self.values.items() if name not in ("sort", "after"))

    def but(self, **changes: str) -> str:
        """As a link: the same list with something changed. It begins at its first page unless `after` is given."""
        told = {**self.values, "after": "", **changes}
        return f"{self.path}?{urlencode({name: value for name, value in told.items() if value and value != self.usual.get(name)})}"


def asked(request: HttpRequest, sorts: Sequence[str] = (), choices: Mapping[str, Sequence[str]] | None = None, texts: Sequence[str] = ("q",)) -> Asked:
    """`sorts` and each of `choices` begin with what holds if nothing is said; what is none of them counts as nothing said. `texts` may be anything."""
    given = {name: request.GET.get(name, "").replace("\x00", "")[:TEXT_CHARACTERS_MAX].strip() for name in texts}
    allowed = {**({"sort": sorts} if sorts else {}), **(choices or {})}
    for name, values in allowed.items():
        value = request.GET.get(name, "")
        given[name] = value if value in values else values[0]
    given["after"] = request.GET.get("after", "").replace("\x00", "")[:TEXT_CHARACTERS_MAX]
    return Asked(request.path, given, {name: values[0] for name, values in allowed.items()})


def whole(text: str, digits_max: int, otherwise: int = 0) -> int:
    """What is no whole number of so many digits counts as nothing said."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits_max else otherwise


def is_again(request: HttpRequest) -> bool:
    """A part of a page that is open is fetched again: what is shared with other pages, and at most a second old, will do."""
    return request.method == "GET" and bool(getattr(request, "htmx", False))
