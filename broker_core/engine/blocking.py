"""When producers of a destination waited for room (R20), for the ledger to say: the next commit does, whatever it is for. What lasts is noted once a minute,
so that a crash loses no more of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .destination import Destination
    from .shard import Shard

NOTED_MS = 60_000
"""What lasts is noted so often, and waits no longer for a commit: then there is one for it alone."""
UNTOLD_MAX = 100
"""So many wait for a commit: of volatile messages there is none."""


def block(shard: Shard, destination: Destination) -> None:
    """Something waits for it."""
    shard.blocked.setdefault(destination, shard.now)


def unblock(shard: Shard, destination: Destination) -> None:
    """Nothing does any more."""
    since = shard.blocked.pop(destination, None)
    if since is not None:
        _note(shard, destination, since)


def note_lasting(shard: Shard) -> None:
    for destination, since in shard.blocked.items():
        if shard.now - since >= NOTED_MS:
            _note(shard, destination, since)
            shard.blocked[destination] = shard.now


def is_urgent(shard: Shard) -> bool:
    """What no commit has said yet is to have one of its own."""
    return len(shard.untold) >= UNTOLD_MAX or any(shard.now - since >= NOTED_MS for _, since, _ in shard.untold)


def _note(shard: Shard, destination: Destination, since: int) -> None:
    """Of temporary destinations the ledger knows nothing."""
    if since < shard.now and destination.owner is None:
        shard.untold.append((destination.number, since, shard.now))
