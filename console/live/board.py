"""What the feed has read last, and since when it has been so: a page is told everything once, and then what has changed. Nothing here reads or waits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

Subject = tuple[str, str]
"""A topic, and which of its things; empty: there is only one."""
Cells = Mapping[str, str | None]
"""What is shown of a subject, by name. None: unknown, which is also what is not there."""


@dataclass(slots=True, frozen=True)
class Told:
    """Of one reading."""

    address: str
    """Of the destination it is about, empty if it is about none: who may not see it is not told."""
    cells: Cells


@dataclass(slots=True)
class _Kept:
    begun: int
    """Version of its first reading: a page that has an older one knows nothing of it."""
    address: str
    cells: dict[str, tuple[str | None, int]] = field(default_factory=dict)
    """Each with the version in which it became so."""


@dataclass(slots=True, frozen=True)
class Change:
    version: int
    full: bool
    """The page forgets what it had: what is not in `cells` is unknown."""
    cells: dict[str, str | None]
    """By key: topic, thing and name, joined by slashes."""


class Board:
    def __init__(self) -> None:
        self.version = 0
        self._kept: dict[Subject, _Kept] = {}

    def put(self, reading: Mapping[Subject, Told]) -> None:
        """All that was read at one time; what is no longer read is forgotten."""
        self.version += 1
        for subject in self._kept.keys() - reading.keys():
            del self._kept[subject]
        for subject, told in reading.items():
            kept = self._kept.get(subject)
            if kept is None or (kept.address != told.address and told.cells):
                kept = self._kept[subject] = _Kept(self.version, told.address)
            for name in kept.cells.keys() | told.cells.keys():
                value = told.cells.get(name)
                if name not in kept.cells or kept.cells[name][0] != value:
                    kept.cells[name] = (value, self.version)

    def since(self, version: int | None, subjects: Iterable[Subject], shows: Callable[[Subject, str], bool]) -> Change:
        """What a page with that version must be told of its subjects; None: it has none. `shows(subject, address)`: whether it may be."""
        found = [(subject, self._kept.get(subject)) for subject in subjects]
        shown = [(subject, kept) for subject, kept in found if kept is not None and shows(subject, kept.address)]
        # What is not kept may be what the page still shows from before it was forgotten.
        full = version is None or version > self.version or any(kept is None or kept.begun > version for _, kept in found)
        after = -1 if full or version is None else version
        cells = {key_of(subject, name): value for subject, kept in shown for name, (value, at) in kept.cells.items() if at > after}
        return Change(self.version, full, cells)


def key_of(subject: Subject, name: str) -> str:
    topic, thing = subject
    return f"{topic}/{thing}/{name}" if thing else f"{topic}/{name}"
