"""Which consumer owns which message group of a subscription: the first message of a group chooses, the others follow as long as it is open.

A group has one owner, unless consumers with filters of their own are among them (selection.py): then those who have chosen it, in that order, and a
message goes to the first of them that takes it. So of the messages that the same consumers take all go to one.

The table is bounded. Groups are known by their names as long as there is room; those that come when there is none share an owner with all whose
names fall into the same bucket, until that owner closes. They stick like others, only that they cannot be closed one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from .cursor import Cursor
    from .link import Link

BUCKETS = 1_024
"""About 0.2 MiB for all of them. The same at every start: histories can be replayed."""

Key = str | int
"""A group's name, or the number of a bucket."""


class Owners:
    __slots__ = ("_keys", "_owners", "names", "queues")

    def __init__(self) -> None:
        self._owners: dict[Key, tuple[Link, ...]] = {}
        self._keys: dict[Link, dict[Key, None]] = {}
        """The same by owner."""
        self.names = 0
        """Groups that are known by their names."""
        self.queues: dict[Link, dict[Cursor, list[int]]] = {}
        """What is set aside for a consumer (Cursor.aside): heaps of positions, some of which may have ended there."""

    def of(self, name: str) -> tuple[Link, ...]:
        """Those who own the group, the first first; none: it is to be chosen."""
        found = self._owners.get(name)
        if found is None and len(self._owners) > self.names:
            found = self._owners.get(bucket_of(name))
        return found or ()

    def choose(self, name: str, link: Link, *, room: bool) -> None:
        """The link owns it from now on, behind those who do already. `room`: for a name more."""
        key: Key = name
        if name not in self._owners and (not room or bucket_of(name) in self._owners):
            key = bucket_of(name)
        self.names += key == name and name not in self._owners
        self._owners[key] = (*self._owners.get(key, ()), link)
        self._keys.setdefault(link, {})[key] = None

    def close(self, name: str) -> None:
        """The group is over. One that shares its owner with others stays with it."""
        owners = self._owners.pop(name, ())
        self.names -= bool(owners)
        for link in owners:
            del self._keys[link][name]

    def leave(self, link: Link) -> None:
        """It owns nothing any more."""
        for key in self._keys.pop(link, ()):
            rest = tuple(owner for owner in self._owners[key] if owner is not link)
            if rest:
                self._owners[key] = rest
            else:
                del self._owners[key]
                self.names -= isinstance(key, str)

    def owned(self) -> dict[Key, tuple[Link, ...]]:
        """All of them, by name or bucket: for operators, and for invariants."""
        return dict(self._owners)

    def owned_by(self, link: Link) -> list[Key]:
        return list(self._keys.get(link, ()))


def bucket_of(name: str) -> int:
    return crc32(name.encode()) % BUCKETS
