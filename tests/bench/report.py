"""The table in Markdown, and its place in docs/benchmarks.md."""

from __future__ import annotations

import datetime as dt
import statistics
from pathlib import Path

from tests.bench.machine import commit
from tests.bench.run import Row
from tests.support.service import REPOSITORY

DOCUMENT = REPOSITORY / "docs" / "benchmarks.md"
BEGIN, END = "<!-- measured: begin (python -m tests.bench --write writes what follows) -->", "<!-- measured: end -->"
KEPT = {True: "yes", False: "**no**", None: "unknown"}
HEAD = ["| work (1 KiB) | ours | peer | ratio | must | kept | aim | notes | measured |", "|---|---|---|---|---|---|---|---|---|"]


def lines(rows: list[Row]) -> list[str]:
    """A line each, without the head."""
    today = dt.datetime.now(dt.UTC).date().isoformat()
    return [
        f"| {row.title} | {_figures(row.ours, row)} | {_figures(row.peer, row) if row.peer else '-'} "
        f"| {f'{row.ratio:.2f}' if row.ratio is not None else '-'} | {row.must} | {KEPT[row.kept]} | {row.aim or '-'} "
        f"| {'; '.join(row.notes)} | {today} {commit()} |"
        for row in rows
    ]


def _figures(values: list[float], row: Row) -> str:
    median = f"{statistics.median(values):,.{row.decimals}f} {row.unit}"
    return median if len(values) == 1 else f"{median} ({', '.join(f'{value:,.{row.decimals}f}' for value in values)})"


def write(rows: list[Row], description: str = "", document: Path = DOCUMENT) -> None:
    """Put the rows into the document's measured section; rows of other cases that stand there already stay, and so does what is said of the machine if
    nothing is given."""
    text = document.read_text() if document.exists() else "# Benchmarks\n"
    if BEGIN not in text:
        text += f"\n{BEGIN}\n{END}\n"
    before, _, rest = text.partition(BEGIN)
    section, _, after = rest.partition(END)
    new = lines(rows)
    titles = {_title(line) for line in new}
    description = description or next((line for line in section.splitlines() if line and not line.startswith("|")), "")
    old = [line for line in section.splitlines() if line.startswith("| ") and line != HEAD[0]]
    kept = [line for line in old if _title(line) not in titles]
    body = "\n".join([BEGIN, "", description, "", *HEAD, *kept, *new, "", END])
    document.parent.mkdir(exist_ok=True)
    document.write_text(before + body + after)


def _title(line: str) -> str:
    return line.split("|")[1].strip()
