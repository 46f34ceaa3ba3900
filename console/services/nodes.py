"""What is done to the node itself: quiesce and drain it, have another take over, close and open its listeners. For administrators."""

from console.permissions import MANAGE_NODE
from console.selectors.node import node_status

from .audit import Actor
from .requests import Outcome, ask


def quiesce(actor: Actor) -> Outcome:
    """No new connections; those that are there go on. Until `unquiesce`, or the end of the node's term. Raises PermissionDenied."""
    return _ask(actor, "quiesce")


def unquiesce(actor: Actor) -> Outcome:
    """Ends a drain, too. Raises PermissionDenied."""
    return _ask(actor, "unquiesce")


def drain(actor: Actor, seconds: int) -> Outcome:
    """Quiesce, deliver nothing more, close each connection when it holds nothing and has nothing open, and after so many seconds those that are left.
    Raises PermissionDenied, control.InvalidRequest."""
    return _ask(actor, "drain", seconds=seconds)


def take_over(actor: Actor, node: str) -> Outcome:
    """The node that serves closes its connections in order and stands by; `node`, which stands by, serves. Raises PermissionDenied,
    control.InvalidRequest."""
    return _ask(actor, "take_over", node=node)


def pause_listener(actor: Actor, listener: str) -> Outcome:
    """Its port is closed, on whichever node serves, until `resume_listener`; who has come by it stays. Raises PermissionDenied, control.InvalidRequest."""
    return _ask(actor, "pause_listener", listener=listener)


def resume_listener(actor: Actor, listener: str) -> Outcome:
    """Raises PermissionDenied, control.InvalidRequest."""
    return _ask(actor, "resume_listener", listener=listener)


def _ask(actor: Actor, verb: str, **arguments: object) -> Outcome:
    """Of the node that serves now, in this term and no later one. Where none ever has, the first one refuses."""
    return ask(actor, MANAGE_NODE, verb, "", {"epoch": max(node_status().epoch, 1), **arguments})
