"""Operations on many messages: begun, cancelled. The node does them step by step; see `requests.ask` for what these raise."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from broker_core.viewing.page import Key, key_text
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
DONE, SKIPPED, FAILED, GONE, LEFT, WAITING = RESULTS = ("done", "skipped", "failed", "gone", "left", "waiting")


@dataclass(slots=True, frozen=True)
class Result:
    """What became of one message."""

    key: str
    result: str
    why: str = ""


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


def results(actor: Actor, it: Operation) -> list[Result] | None:
    """Of each message that it names, in that order; of one that names none: the first that failed. Empty: there is none, or what became of them was not
    kept. None: he may not see what is there."""
    if not may(actor, BROWSE_HEADERS, it.address):
        return None
    told: dict[Key, Result] = {}
    for result, why, places in it.told:
        for lane, position in places:
            told[lane, position] = Result(key_text((lane, position)), result, why)
    named: list[Key] = [(lane, position) for lane, position in it.arguments.get("messages") or ()]
    if it.dry_run or not named:
        return [] if it.dry_run else list(told.values())
    if not told and (it.done or it.skipped or it.failed):  # of an earlier version, which only counted: unknown, and not gone
        return []
    others = _of_others(it)
    return [told.get(key) or Result(key_text(key), *others) for key in dict.fromkeys(named)]


def _of_others(it: Operation) -> tuple[str, str]:
    """Of those that it names and has not met."""
    if it.ended_at is None:
        return WAITING, ""
    if it.state != "done":
        return LEFT, f"the operation was {it.state} before"
    if "filter" in it.arguments or "limit" in it.arguments:
        return LEFT, "it was gone, or the filter or the limit leaves it out"
    return GONE, "it was not there any more"


def cancel(actor: Actor, it: Operation) -> Outcome:
    """What it has done stays done."""
    return ask(actor, RIGHTS[it.verb], "cancel", it.address, {"operation": it.number})
