"""Prepared branches of distributed transactions, ended by hand. See `requests.ask` for what these raise."""

from console.permissions import DISCARD_MESSAGE

from .audit import Actor
from .requests import Outcome, ask

VERBS = ("commit", "rollback", "forget")


def end(actor: Actor, verb: str, branch: int) -> Outcome:
    """`verb`: commit or rollback, whatever the other branches of the transaction come to, or forget that it was ended so. Who may do it may discard
    messages: either outcome discards some, those it sends or those it acknowledges."""
    assert verb in VERBS, verb
    return ask(actor, DISCARD_MESSAGE, verb, "", {"branch": branch})
