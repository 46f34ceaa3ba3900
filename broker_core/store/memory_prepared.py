"""Prepared branches as the memory store keeps them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from broker_core.engine.message import Header, Message, StoredBody
from broker_core.engine.outcome import Outcome
from broker_core.engine.writes import PreparedBranch

from .memory_headers import cleaned


@dataclass(slots=True, frozen=True)
class KeptMessage:
    header: Header
    body: bytes | StoredBody | None
    """None: it is where it was acknowledged."""
    size: int
    sequence: int
    position: int
    accepted_at: int

    def message(self) -> Message:
        header = replace(self.header, twin=None, others=None)
        message = Message(header, self.body, self.size)
        message.sequence, message.position, message.accepted_at, message.destination = self.sequence, self.position, self.accepted_at, 0
        return message


@dataclass(slots=True, frozen=True)
class KeptBranch:
    branch: int
    xid: str
    account: str
    prepared_at: int
    state: int
    octets: int
    sends: list[tuple[str, KeptMessage]]
    settled: list[tuple[int, Outcome, KeptMessage]]

    def ended(self, state: int) -> KeptBranch:
        return replace(self, state=state, sends=[], settled=[])

    def named_bodies(self) -> set[int]:
        return {kept.body.body for _, kept in self.sends if isinstance(kept.body, StoredBody)}

    def recovered(self) -> PreparedBranch:
        sends = [(address, kept.message()) for address, kept in self.sends]
        settled = [(subscription, outcome, kept.message()) for subscription, outcome, kept in self.settled]
        return PreparedBranch(self.branch, self.xid, self.account, self.prepared_at, self.state, self.octets, sends, settled)


def kept_branch(branch: PreparedBranch) -> KeptBranch:
    sends = [(address, _sent(message)) for address, message in branch.sends]
    settled = [(subscription, outcome, _acknowledged(message)) for subscription, outcome, message in branch.settled]
    return KeptBranch(branch.branch, branch.xid, branch.account, branch.prepared_at, branch.state, branch.octets, sends, settled)


def _sent(message: Message) -> KeptMessage:
    header = message.header
    kept = replace(cleaned(header), delay=header.delay, duplicate_id=header.duplicate_id, twin=None, others=None)
    assert message.body is not None, "a message that was sent has its body"
    return KeptMessage(kept, message.body, message.size, 0, 0, message.accepted_at)


def _acknowledged(message: Message) -> KeptMessage:
    kept = replace(cleaned(message.header), duplicate_id="", twin=None, others=None)
    return KeptMessage(kept, None, message.size, message.sequence, message.position, message.accepted_at)
