"""A purge, or a deletion, is undone, or never will be; see `requests.ask` for what these raise. Who may discard so may take it back."""

from console.selectors.undo import Undo

from .audit import Actor, require
from .destinations import Preview
from .operations import RIGHTS
from .requests import Outcome, ask


def undo(actor: Actor, it: Undo) -> Outcome:
    """What it discarded waits again, where it was."""
    return ask(actor, RIGHTS[it.verb], "undo", it.address, {"undo": it.number})


def preview_give_up(actor: Actor, it: Undo) -> Preview:
    """Raises PermissionDenied."""
    require(actor, RIGHTS[it.verb], "give_up", it.address, reads=True)
    lost = 0 if it.ended_how else it.messages
    return Preview(it.address, lost, lost, 0, 0)


def give_up(actor: Actor, it: Undo) -> Outcome:
    """It cannot be undone any more, and the disk is free of it."""
    return ask(actor, RIGHTS[it.verb], "give_up", it.address, {"undo": it.number})
