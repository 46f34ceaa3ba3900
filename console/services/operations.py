"""Operations on many messages: begun, cancelled. The node does them step by step; see `requests.ask` for what these raise."""

from collections.abc import Mapping
from typing import Any

from console.permissions import BROWSE_BODIES, BROWSE_HEADERS, DELETE, MOVE, PURGE, SEND
from console.selectors.operations import Operation

from .audit import Actor, require
from .requests import Outcome, ask

RIGHTS = {"copy": MOVE, "move": MOVE, "retry": MOVE, "reprioritize": MOVE, "delete": DELETE, "expire": DELETE, "purge": PURGE}
"""What each verb needs of the destination whose messages it is about."""
OF_BODIES = frozenset(("text", "json_path", "json_value"))
"""Conditions that tell what is in bodies: counting what they find does so, too."""


def begin(actor: Actor, address: str, arguments: Mapping[str, Any]) -> Outcome:
    """`arguments`: see broker_core.engine.operation. What goes elsewhere needs the right to send there; a retry without `origin` may send anywhere."""
    verb, conditions = arguments["verb"], arguments.get("filter") or {}
    right = RIGHTS[verb]
    require(actor, right, verb, address)
    if conditions:
        require(actor, BROWSE_BODIES if OF_BODIES & conditions.keys() else BROWSE_HEADERS, verb, address)
    if "destination" in arguments:
        require(actor, SEND, verb, address, over=arguments["destination"])
    if verb == "retry":
        require(actor, SEND, verb, address, over=conditions.get("origin", ""))
    return ask(actor, right, "operate", address, arguments)


def cancel(actor: Actor, it: Operation) -> Outcome:
    """What it has done stays done."""
    return ask(actor, RIGHTS[it.verb], "cancel", it.address, {"operation": it.number})
