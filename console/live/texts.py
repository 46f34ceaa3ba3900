"""The words of what changes on pages, for the page as it is sent and for what it is told later, so that both say the same."""

from __future__ import annotations

from typing import Any

from console.quantities import STATES, UNKNOWN, count, milliseconds, octets, rate
from console.rates import Rate
from console.selectors.destinations import Destination
from console.selectors.node import NodeStatus
from console.selectors.operations import Operation


def of_service(status: NodeStatus) -> dict[str, str | None]:
    """`state`: good, warn or bad, which is no text but a colour."""
    state = "bad" if not status.alive else "good" if status.reporting else "warn"
    return {"state": state, "node": status.holder if status.alive and status.holder else "no node"}


def of_destination(it: Destination, at: Rate | None) -> dict[str, str | None]:
    told = {
        "depth": count(it.depth),
        "scheduled": f"+{count(it.scheduled)}" if it.scheduled else "",
        "unsettled": count(it.unsettled),
        "unsettled_oldest": "none" if it.unsettled == 0 else milliseconds(it.oldest_unsettled_ms),
        "consumers": count(it.consumers),
        "in": rate(at.accepted if at else None),
        "out": rate(at.settled if at else None),
        "oldest": "none" if it.depth == 0 else milliseconds(it.oldest_ms),
        "size": octets(it.octets),
        "dead": count(it.dead_total),
        "expired": count(it.expired_total),
        "redelivered": count(it.redelivered_total),
        "state": STATES.get(it.state, f"state {it.state}"),
        "tone": "running" if it.state == 0 else "paused",
    }
    return plain(told)


def of_overview(sums: dict[str, Any] | None, status: NodeStatus, at: Rate | None, in_doubt: int) -> dict[str, str | None]:
    """`in_doubt`: prepared branches, which the database knows without a node."""
    sums = sums or {}
    told = {
        "destinations": count(sums.get("destinations")),
        "depth": count(sums.get("depth")),
        "size": octets(sums.get("octets")),
        "unsettled": count(sums.get("unsettled")),
        "unsettled_oldest": "none" if sums.get("unsettled") == 0 else milliseconds(sums.get("oldest_unsettled_ms")),
        "in_doubt": count(in_doubt),
        "scheduled": count(sums.get("scheduled")),
        "oldest": "none" if sums.get("depth") == 0 else milliseconds(sums.get("oldest_ms")),
        "consumers": count(sums.get("consumers")),
        "connections": count(status.connections),
        "in": rate(at.accepted if at else None),
        "out": rate(at.settled if at else None),
        "dead": count(sums.get("dead_total")),
    }
    return plain(told)


def of_operation(it: Operation) -> dict[str, str | None]:
    """`share`: of its progress bar, a number; `state` changes when the rest of its page does."""
    told = {
        "state": it.state,
        "done": count(it.done),
        "progress": count(it.done) if it.total is None else f"{count(it.done)} of {count(it.total)}",
        "share": str(it.done),
        "counted": count(it.looked_at) if it.total is None else f"{count(it.looked_at)} of {count(it.total)}",
        "looked_at": count(it.looked_at),
        "looked_share": str(it.looked_at),
        "skipped": count(it.skipped),
        "failed": count(it.failed),
    }
    return plain(told)


def plain(told: dict[str, str]) -> dict[str, str | None]:
    """Unknown is None, which the page shows in its own way."""
    return {name: None if value == UNKNOWN else value for name, value in told.items()}
