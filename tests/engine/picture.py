"""What of an engine must be the same after a recovery, however it was written down: all it knows, less what is volatile."""

from __future__ import annotations

from collections.abc import Iterator

from broker_core.engine.branch import Branch
from broker_core.engine.cursor import Cursor
from broker_core.engine.message import STORED, VOLATILE, Message
from tests.engine.rig import Bench


def picture(bench: Bench) -> dict[str, object]:
    """Between a flush and the next command."""
    shard = bench.engine.shard
    shown: dict[str, object] = {}
    for address, destination in shard.destinations.items():
        stored = None if destination.estimated or destination.is_topic else destination.octets - destination.octets_volatile
        subscriptions = {s.number: {c.index: _lane(c) for c in s.order if c.stored} for s in destination.subscriptions if s.durable}
        shown[address] = destination.number, destination.state, destination.settings, stored, subscriptions
    for account, xid in shard.branches.known:
        branch = shard.branches.known[account, xid]
        if branch.number:
            sends = [(send.address, _name(send.message)) for send in branch.sends if send.message.header.reliability >= STORED]
            shown[f"{xid} of {account}"] = branch.state, branch.number, sends, sorted(_settles(branch))
    for number, record in shard.records.known.items():
        held = {place: list(kept) for place, kept in record.kept.items()}
        shown[f"purge {number}"] = record.address, record.at, record.lapses_at, record.messages, record.octets, held
    return shown


def _name(message: Message) -> object:
    return bytes(message.body) if isinstance(message.body, bytes) else message.body


def _settles(branch: Branch) -> Iterator[tuple[int, str, int, int]]:
    for subscription, outcome, messages in branch.settles:
        for message in messages:
            if subscription.durable and message.header.lane < VOLATILE:
                yield subscription.number, outcome.name, message.header.lane, message.position


def _lane(cursor: Cursor) -> object:
    tail = cursor.lane.tail
    unsettled = list(cursor.progress.unsettled(0, tail - 1))
    told = [position for first, last in unsettled for position in range(first, last + 1) if cursor.may_have_left(position)]
    return tail, unsettled, told, dict(cursor.failures)
