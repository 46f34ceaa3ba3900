"""What the ledger tells for those who check it: where what died or was moved has come to, and which subscriptions begin and end. Most commits have
nothing of the kind."""

from __future__ import annotations

from broker_core.engine.definitions import DestinationDestroyed, SubscriptionDefined, SubscriptionDestroyed
from broker_core.engine.writes import Commit

DIED, OPERATED = 0, 1
"""Kinds of a trace: a message died; an operator's operation moved or copied it."""

Trace = tuple[int, int, int, int, int, int, int, int]
"""(destination, lane, first, last, kind, destination there, lane there, first position there). To destination 0: nothing is kept; from it: it lay nowhere."""


def traces_of(commit: Commit) -> list[Trace]:
    """Of its copies and of what it says itself, in this order; neighbours together."""
    found: list[Trace] = []
    for copy in commit.copies:
        destination, lane, position = copy.source
        target = copy.target
        _add(found, (destination, lane, position, position, DIED, target.destination, target.header.lane, target.position))
    for destination, lane, first, last, to, to_lane, to_first in commit.traces:
        _add(found, (destination, lane, first, last, DIED, to, to_lane, to_first))
    for bulk in commit.bulk_copies:
        first, last = bulk.positions[0], bulk.positions[-1]
        if last - first + 1 == len(bulk.positions):  # neighbours, as most are
            _add(found, (*bulk.source, first, last, OPERATED, bulk.destination, bulk.lane, bulk.position))
            continue
        for number, position in enumerate(bulk.positions):
            _add(found, (*bulk.source, position, position, OPERATED, bulk.destination, bulk.lane, bulk.position + number))
    return found


def begun(commit: Commit) -> list[tuple[int, int]]:
    """(subscription, destination): perhaps not for the first time. One of a pattern has no messages, its members are told by themselves."""
    return [(one.subscription, one.destination) for one in commit.definitions if isinstance(one, SubscriptionDefined) and one.destination]


def ended(commit: Commit) -> list[tuple[int, int]]:
    """(subscription, 0), or (0, destination): all of its."""
    found: list[tuple[int, int]] = []
    for one in commit.definitions:
        if isinstance(one, SubscriptionDestroyed):
            found.append((one.subscription, 0))
        elif isinstance(one, DestinationDestroyed):
            found.append((0, one.destination))
    return found


def _add(found: list[Trace], trace: Trace) -> None:
    """A range of its own, or the end of the last one."""
    if found:
        destination, lane, first, last, kind, to, to_lane, to_first = found[-1]
        follows = trace[:3] == (destination, lane, last + 1) and trace[4:7] == (kind, to, to_lane)
        if follows and destination and trace[7] == (to_first + last + 1 - first if to else 0):
            found[-1] = (destination, lane, first, trace[3], kind, to, to_lane, to_first)
            return
    found.append(trace)
