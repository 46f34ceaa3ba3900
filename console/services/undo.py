"""A purge, or a deletion, is undone, or never will be; see `requests.ask` for what these raise. Who may discard so may take it back."""

from console.selectors.undo import Undo

from .audit import Actor
from .operations import RIGHTS
from .requests import Outcome, ask


def undo(actor: Actor, it: Undo) -> Outcome:
    """What it discarded waits again, where it was."""
    return ask(actor, RIGHTS[it.verb], "undo", it.address, {"undo": it.number})


def give_up(actor: Actor, it: Undo) -> Outcome:
    """It cannot be undone any more, and the disk is free of it."""
    return ask(actor, RIGHTS[it.verb], "give_up", it.address, {"undo": it.number})
