"""What became of each message that was picked for an operation, found by looking where it was."""

from __future__ import annotations

from broker_core.viewing.page import key_text
from console.permissions import BROWSE_HEADERS, may
from console.selectors.operations import Operation
from console.services import browsing
from console.services.audit import Actor
from console.services.looking import Declined, NodeSilent, TableGone, TooSlow

from .messages import STATES

ITEMS_MAX = 60
LEAVES = frozenset(("move", "retry", "delete", "expire", "reprioritize"))
"""What they are done with is not where it was."""


def item_results(actor: Actor, it: Operation) -> list[tuple[str, str, str]]:
    """Key, tone and words of each. Empty: it runs, or picked none or too many, or they stay where they are."""
    picked = it.arguments.get("messages") or []
    if it.ended_at is None or it.dry_run or not 0 < len(picked) <= ITEMS_MAX or it.verb not in LEAVES or not may(actor, BROWSE_HEADERS, it.address):
        return []
    keys = [(lane, position) for lane, position in picked]
    try:
        found = browsing.still_there(actor, it.address, keys, it.arguments.get("subscription"))
    except (NodeSilent, Declined, TooSlow, TableGone):
        return [(key_text(key), "", "unknown, as no node tells") for key in keys]
    # Of one that was left alone then and has gone since, nobody knows what became of it.
    gone = ("good", "left here") if it.done == len(picked) else ("", "no longer here")
    return [
        (key_text(key), *gone) if seen is None else (key_text(key), "warn", f"still here, {STATES[seen.state]}")
        for key, seen in zip(keys, found, strict=True)
    ]
