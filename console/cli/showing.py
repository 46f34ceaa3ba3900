"""What is printed: tables and lines for people, documents for scripts, and how far an operation is."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

NONE = "-"
BAR = 30
CELL_MAX = 120
"""Characters of a cell of a table; a query shows all."""
GAP = "  "
LINES_AT_ONCE = 1_000
"""So many rows decide how wide a column is."""


def plain(text: str) -> str:
    """What clients named and wrote may hold what a terminal obeys: only what can be seen is printed."""
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def words(value: Any) -> str:
    if value is None or value in ("", [], {}):
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(each, str | int | float) for each in value):
        return plain(", ".join(map(str, value)))
    return plain(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def member(item: Mapping[str, Any], path: str) -> Any:
    """None: one of the names on the way is not there."""
    found: Any = item
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def columns_of(item: Mapping[str, Any]) -> list[str]:
    return [name for name, value in item.items() if not isinstance(value, dict)]


@dataclass(slots=True)
class Table:
    """Rows as they come; the first ones say how wide the columns are."""

    columns: Sequence[str]
    out: TextIO
    widths: list[int] = field(default_factory=list)

    def add(self, items: Sequence[Mapping[str, Any]]) -> None:
        if not items:
            return
        found = [[member(item, path) for path in self.columns or columns_of(items[0])] for item in items]
        cells = [[words(value)[:CELL_MAX] for value in row] for row in found]
        if not self.widths:
            self.columns = self.columns or columns_of(items[0])
            heads = [path.replace("_", " ") for path in self.columns]
            self.widths = [max(map(len, column)) for column in zip(heads, *cells[:LINES_AT_ONCE], strict=True)]
            self._line(heads, [False] * len(heads))
        for row, values in zip(cells, found, strict=True):
            self._line(row, [isinstance(value, int | float) and not isinstance(value, bool) for value in values])

    def _line(self, cells: Sequence[str], numbers: Sequence[bool]) -> None:
        fitted = [cell.rjust(width) if number else cell.ljust(width) for cell, width, number in zip(cells, self.widths, numbers, strict=True)]
        print(GAP.join(fitted).rstrip(), file=self.out)


@dataclass(slots=True)
class Documents:
    """The same as one document of JSON, item by item: `{"items": [...], "next": ...}`, as the API has it."""

    out: TextIO
    _begun: bool = False

    def add(self, items: Iterable[Mapping[str, Any]]) -> None:
        for item in items:
            self.out.write(("," if self._begun else '{"items": [') + "\n" + json.dumps(item))
            self._begun = True

    def end(self, others: Mapping[str, Any]) -> None:
        self.out.write("\n]" if self._begun else '{"items": []')
        for name, value in others.items():
            self.out.write(f', "{name}": {json.dumps(value)}')
        self.out.write("}\n")


def show(document: Any, out: TextIO, columns: Sequence[str] = ()) -> None:
    """One thing, for people; or the few that there are of it."""
    if not isinstance(document, dict):
        items = document if isinstance(document, list) else [{"answer": document}]
        Table(columns, out).add(items)
    elif set(document) == {"warnings"}:
        print("Done.", file=out)
    elif {"verb", "state", "result", "number"} <= set(document):
        told = {name: value for name, value in (document["result"] or {}).items() if name != "warnings"}
        parts = ", ".join(f"{plain(name).replace('_', ' ')} {words(value)}" for name, value in told.items())
        print(f"Done: {parts}." if parts else "Done.", file=out)
    else:
        lines = list(_lines("", document))
        width = max((len(name) for name, _ in lines), default=0)
        for name, value in lines:
            print(f"{plain(name):{width}}{GAP}{value}", file=out)


def _lines(prefix: str, document: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    for name, value in document.items():
        if isinstance(value, dict) and value:
            yield from _lines(f"{prefix}{name}.", value)
        elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
            for number, each in enumerate(value, 1):
                yield from _lines(f"{prefix}{name}.{number}.", each if isinstance(each, dict) else {"": each})
        else:
            yield f"{prefix}{name}", words(value)


def warnings_of(document: Any) -> list[str]:
    if not isinstance(document, dict):
        return []
    result = document.get("result")
    found = document.get("warnings") or (result.get("warnings") if isinstance(result, dict) else None)
    return [plain(str(each)) for each in found or ()]


# -- how far it is ------------------------------------------------------------------------------------------------------------------------------
class Progress:
    """A bar, on a terminal; elsewhere nothing."""

    def __init__(self, out: TextIO) -> None:
        self._out, self._began, self._shown = out, time.monotonic(), False

    def tell(self, operation: Mapping[str, Any]) -> None:
        done, total = operation["done"], operation["total"]
        part = min(1.0, (done + operation["skipped"] + operation["failed"]) / total) if total else 0.0
        bar = "#" * int(part * BAR)
        of = f"{part:4.0%} [{bar:-<{BAR}}] {done:,} of {total:,}" if total else f"{done:,}"
        rate = done / max(time.monotonic() - self._began, 0.1)
        self.say(f"{operation['verb']}: {of}, looked at {operation['looked_at']:,}, {rate:,.0f}/s, {operation['state']}")

    def say(self, line: str) -> None:
        """In place of the line before."""
        if self._out.isatty():
            self._out.write(f"\r\x1b[K{line}")
            self._out.flush()
            self._shown = True

    def end(self) -> None:
        if self._shown:
            self._out.write("\n")
