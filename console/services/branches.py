"""Prepared branches of distributed transactions, ended by hand. See `requests.ask` for what these raise."""

from console.permissions import RESOLVE_TRANSACTIONS

from .audit import Actor, require
from .requests import Outcome, ask

VERBS = ("commit", "rollback", "forget")


def check(actor: Actor, verb: str) -> None:
    """Who may not end any does not hear which there are. Raises PermissionDenied."""
    require(actor, RESOLVE_TRANSACTIONS, verb)


def end(actor: Actor, verb: str, branch: int) -> Outcome:
    """`verb`: commit or rollback, whatever the other branches of the transaction come to, or forget that it was ended so. A branch may concern
    any destinations: the right to it is that to all of them."""
    assert verb in VERBS, verb
    return ask(actor, RESOLVE_TRANSACTIONS, verb, "", {"branch": branch})
