"""Operations on many messages: begun, cancelled. The node does them step by step; see `requests.ask` for what these raise."""

import time
from collections.abc import Mapping
from typing import Any

from console.permissions import BROWSE_BODIES, BROWSE_HEADERS, DELETE, MOVE, PURGE, SEND, may
from console.selectors import operations
from console.selectors.operations import Operation

from .audit import Actor, require
from .requests import Outcome, ask

RIGHTS = {"copy": MOVE, "move": MOVE, "retry": MOVE, "reprioritize": MOVE, "delete": DELETE, "expire": DELETE, "purge": PURGE}
"""What each verb needs of the destination whose messages it is about."""
OF_BODIES = frozenset(("text", "json_path", "json_value"))
"""Conditions that tell what is in bodies: counting what they find does so, too."""

POLL_SECONDS = 0.03


def begin(actor: Actor, address: str, arguments: Mapping[str, Any]) -> Outcome:
    """`arguments`: see broker_core.engine.operation. What goes elsewhere needs the right to send there; a retry without `origin` may send anywhere."""
    verb, conditions = arguments["verb"], arguments.get("filter") or {}
    right = RIGHTS[verb]
    require(actor, right, verb, address)
    if conditions:
        require(actor, BROWSE_BODIES if OF_BODIES & conditions.keys() else BROWSE_HEADERS, verb, address)
    if "destination" in arguments:
        require(actor, SEND, verb, address, over=arguments["destination"])
        for looks in (BROWSE_HEADERS, BROWSE_BODIES):
            if may(actor, looks, arguments["destination"]):  # else he reads there what he may not read where it is
                require(actor, looks, verb, address)
    if verb == "retry":
        require(actor, SEND, verb, address, over=conditions.get("origin", ""))
    return ask(actor, right, "operate", address, arguments)


def awaited(number: int, seconds: float = 1.5) -> Operation | None:
    """The operation when it has ended, or as it is after so many seconds; None: there is none."""
    ends = time.monotonic() + seconds
    while True:
        it = operations.by_number(number)
        if it is None or it.ended_at is not None or time.monotonic() >= ends:
            return it
        time.sleep(POLL_SECONDS)


def cancel(actor: Actor, it: Operation) -> Outcome:
    """What it has done stays done."""
    return ask(actor, RIGHTS[it.verb], "cancel", it.address, {"operation": it.number})
