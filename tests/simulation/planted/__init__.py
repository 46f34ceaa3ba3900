"""Bugs that the simulator must find: each is one function of the product made wrong, as an honest mistake would."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.simulation import term
from . import (
    access,
    aliases,
    amqp,
    branches,
    browsers,
    consumers,
    delays,
    durability,
    full,
    inbox,
    managing,
    memory,
    names,
    operations,
    redelivery,
    selectors,
    storage,
    subscriptions,
    temporaries,
    topics,
    transacting,
    undoing,
)
from .plant import Bug, Plant

__all__ = ["BUGS", "Bug", "planted"]

BUGS: tuple[Bug, ...] = (
    *durability.BUGS,
    *storage.BUGS,
    *redelivery.BUGS,
    *topics.BUGS,
    *subscriptions.BUGS,
    *consumers.BUGS,
    *selectors.BUGS,
    *browsers.BUGS,
    *temporaries.BUGS,
    *transacting.BUGS,
    *branches.BUGS,
    *delays.BUGS,
    *names.BUGS,
    *inbox.BUGS,
    *full.BUGS,
    *memory.BUGS,
    *aliases.BUGS,
    *operations.BUGS,
    *undoing.BUGS,
    *amqp.BUGS,
    *access.BUGS,
    *managing.BUGS,
)


@contextmanager
def planted(bug: Bug, *, blind: bool) -> Iterator[None]:
    """With the bug. `blind`: the invariants are not looked at, so that only what clients see can tell."""
    plant = Plant()
    bug(plant)
    if blind:
        plant.put(term, "check", lambda _engine: None)
    try:
        yield
    finally:
        plant.pull()
