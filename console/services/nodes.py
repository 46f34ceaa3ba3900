"""What is done to the node itself: quiesce and drain it, have another take over, close and open its listeners, compact what it stores. For administrators."""

from dataclasses import dataclass

from console.permissions import MANAGE_NODE
from console.selectors.database import segment_octets
from console.selectors.node import node_status

from .audit import Actor, require
from .looking import look
from .requests import Outcome, ask

COMPACT_PERCENT = 50
"""Unless somebody says otherwise: what is left is as much as what goes."""


@dataclass(slots=True, frozen=True)
class Compactable:
    """What a compaction would do now: segments, but for rows and octets."""

    percent: int
    segments: int
    """Closed."""
    looked_at: int
    """The first of them, if to look at all were long work."""
    compactable: int
    rows: int
    """In those that would be compacted, settled or not."""
    unsettled: int
    """Of these; they would be moved."""
    octets: int
    """That those take on disk."""


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


def compact(actor: Actor, percent: int) -> Outcome:
    """Segments that are closed now are compacted, one after the other, if at most `percent` of their rows are unsettled; how far that is: `node_status`. In
    place of one that is going on; 0: nothing more is. Raises PermissionDenied, control.InvalidRequest."""
    return ask(actor, MANAGE_NODE, "compact", "", {"percent": percent})


def compactable(actor: Actor, percent: int) -> Compactable:
    """What that would do now. Raises PermissionDenied, control.InvalidRequest, NodeSilent, Declined."""
    require(actor, MANAGE_NODE, "compact", reads=True)
    found = look(actor.name, "compactable", "", {"percent": percent})
    numbers = found["numbers"]
    return Compactable(percent, found["segments"], found["looked_at"], len(numbers), found["rows"], found["unsettled"], segment_octets(numbers))


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
