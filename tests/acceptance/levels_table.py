"""The table of five levels of reliability, cell by cell (checklist item 114): what is promised, and how what was found is said beside it.

A cell that says "Yes", and the "No" of a level that is not persistent where it is about a stop, a crash or a backup, must be so. Every other "No" and
"Possibly" permits a loss and asks for none: what happens is shown. "Never" is item 123's: best effort is not written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

LEVELS = ("best-effort", "express", "reliable-np", "reliable", "assured")
"""Of the header `reliability`, in their order."""


class Demand(Enum):
    ALL = "all"
    NONE = "none"
    NOTHING = "nothing"
    """Whatever happens is permitted."""


@dataclass(frozen=True)
class Promise:
    word: str
    """The document's."""
    demand: Demand


YES, NO = Promise("Yes", Demand.ALL), Promise("No", Demand.NONE)
MAY, MAY_NOT = Promise("Possibly", Demand.NOTHING), Promise("No", Demand.NOTHING)
MAY_BE = Promise("Yes", Demand.NOTHING)
NEVER, NOT_TORN = Promise("Never", Demand.NONE), Promise("Yes", Demand.NONE)


class Row(Enum):
    """What it is called, the verb of what is counted, and the promise of each level."""

    MODE = "JMS delivery mode is persistent", "persistent", (NO, NO, NO, YES, YES)
    PRESSED = "Transactionally atomic: committed when memory is short", "kept", (MAY_NOT, YES, YES, YES, YES)
    ROLLED_BACK = "Transactionally atomic: rolled back", "kept", (NO, NO, NO, NO, NO)
    REFUSED = "Transactionally atomic: one of eleven is refused at the commit", "kept", (MAY_NOT, NO, NO, NO, NO)
    FULL = "Transactionally atomic: one of eleven finds its queue full", "kept", (MAY_NOT, NO, NO, NO, NO)
    TORN = "Transactionally atomic: node killed at the commit", "torn", (MAY_NOT, NOT_TORN, NOT_TORN, NOT_TORN, NOT_TORN)
    HARDENED = "Messages hardened", "written", (NEVER, MAY, MAY, YES, YES)
    PILED = "Messages hardened: when they build up", "written", (NEVER, MAY, MAY, YES, YES)
    DISCARDED = "Discarded in normal operation: when they build up", "discarded", (MAY_BE, NO, NO, NO, NO)
    DUPLICATED = "Duplicated: acknowledged before a failure", "again", (NO, MAY, MAY, MAY, NO)
    SHUTDOWN = "Retained beyond planned shutdown", "kept", (NO, NO, NO, YES, YES)
    PRODUCER = "Retained beyond client failure: the producer's", "kept", (MAY_NOT, MAY_NOT, YES, YES, YES)
    CONSUMER = "Retained beyond client failure: the consumer's", "kept", (MAY_NOT, MAY_NOT, YES, YES, YES)
    LINK = "Retained beyond engine communications failure: a foreign link cut", "kept", (MAY_NOT, YES, YES, YES, YES)
    NODE = "Retained beyond engine crash: node killed", "kept", (NO, NO, NO, MAY, YES)
    DATABASE = "Retained beyond engine crash: PostgreSQL killed", "kept", (NO, NO, NO, MAY, YES)
    BACKUP = "Retained beyond backup and restore", "kept", (NO, NO, NO, MAY, YES)

    @property
    def title(self) -> str:
        return self.value[0]

    @property
    def verb(self) -> str:
        return self.value[1]

    def promise(self, level: str) -> Promise:
        return self.value[2][LEVELS.index(level)]


@dataclass(frozen=True)
class Count:
    """How many of how many."""

    found: int
    of: int

    def __add__(self, other: Count) -> Count:
        return Count(self.found + other.found, self.of + other.of)

    def is_kept(self, promise: Promise) -> bool:
        demanded = {Demand.ALL: self.of, Demand.NONE: 0, Demand.NOTHING: self.found}
        return self.of > 0 and self.found == demanded[promise.demand]


Key = tuple[Row, str]
Found = dict[Key, Count]
KEYS: tuple[Key, ...] = tuple((row, level) for row in Row for level in LEVELS)


def counted(row: Row, of: int, count: Callable[[str], int]) -> Found:
    """A row's cells, each `count(level)` of `of`."""
    return {(row, level): Count(count(level), of) for level in LEVELS}


def together(found: Found, more: Found) -> Found:
    """What several rounds found."""
    return found | {key: found.get(key, Count(0, 0)) + count for key, count in more.items()}


def broken(found: Mapping[Key, Count]) -> list[Key]:
    """Cells that are not as promised, or were not looked at."""
    return [key for key in KEYS if key not in found or not found[key].is_kept(key[0].promise(key[1]))]


def table(found: Mapping[Key, Count]) -> str:
    """A line a row: in each cell what is promised, and what was found."""
    wrong = broken(found)
    lines = [["", *LEVELS], ["---"] * (len(LEVELS) + 1)]
    lines += [[row.title, *(_cell(row, level, found, (row, level) in wrong) for level in LEVELS)] for row in Row]
    widths = [max(len(line[column]) for line in lines) for column in range(len(LEVELS) + 1)]
    return "\n".join("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines)


def _cell(row: Row, level: str, found: Mapping[Key, Count], wrong: bool) -> str:
    count = found.get((row, level))
    seen = f"{count.found} of {count.of} {row.verb}" if count else "not looked at"
    return f"{'WRONG: ' if wrong else ''}{row.promise(level).word}: {seen}"
