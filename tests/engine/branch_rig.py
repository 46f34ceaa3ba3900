"""What a transaction manager says of branches, and what applications do within them."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core.engine import commands as c
from broker_core.engine.branch import State
from broker_core.engine.commands import Verb
from broker_core.engine.message import Encoding, Header, Message, StoredBody
from broker_core.engine.outcome import Outcome
from broker_core.engine.outputs import Confirmed, Output, Refused
from broker_core.engine.refusal import Refusal
from tests.engine.rig import ASSURED, QUEUE, Bench

XID, YID = "1.aa.01", "1.aa.02"
OTHER = "queue/other"
OK = "done"


class BranchBench(Bench):
    """Peer 2 is another connection of the same account, peer 3 one of another account."""

    def start(self) -> None:
        super().start()
        self.apply(c.Open(2, "guest"), c.Open(3, "stranger"))

    def begin(self, xid: str = XID, *, peer: int = 1, name: str = "tx", again: State | None = None, timeout: int = 0) -> Refusal | str:
        return self.told(c.BeginBranch(peer, name.encode(), xid, again, timeout, OK))

    def say(self, verb: Verb, xid: str = XID, *, peer: int = 1) -> Refusal | str:
        return self.told(c.EndBranch(peer, xid, verb, OK))

    def told(self, command: c.Command) -> Refusal | str:
        """The answer; what else comes with it is in `outputs`."""
        self.apply(command)
        outputs = self.flush()
        (answer,) = [output for output in outputs if isinstance(output, Confirmed | Refused) and output.token == OK]
        return answer.refusal if isinstance(answer, Refused) else OK

    def put(self, *bodies: str, address: str = QUEUE, name: str = "tx", level: Any = ASSURED, peer: int = 1, large: int = 0, **how: Any) -> list[Output]:
        for body in bodies:
            header = Header(b"", how.get("priority", 4), level, 0, Encoding.STOMP, delay=how.get("delay", 0), duplicate_id=how.get("duplicate_id", ""))
            message = Message(header, StoredBody(large, 500_000) if large else body.encode(), 10)
            self.apply(c.Transacted(peer, name.encode(), c.Send(peer, None, address, message)))
        return self.flush()

    def take(self, *tags: int, link: int = 1, peer: int = 1, name: str = "tx", outcome: Outcome = Outcome.ACCEPTED) -> list[Output]:
        self.apply(c.Transacted(peer, name.encode(), c.Settle(peer, link, list(tags), 0, outcome)))
        return self.flush()

    def prepared(self, *bodies: str, tags: tuple[int, ...] = (), xid: str = XID, **how: Any) -> Refusal | str:
        """A branch of these sends and acknowledgements, prepared."""
        self.begin(xid)
        self.put(*bodies, **how)
        if tags:
            self.take(*tags)
        return self.say(Verb.PREPARE, xid)

    def lose(self, peer: int = 1) -> list[str]:
        self.apply(c.PeerLost(peer))
        return self.bodies(self.flush())

    def state(self, xid: str = XID, account: str = "guest") -> State | None:
        branch = self.engine.shard.branches.known.get((account, xid))
        return branch.state if branch is not None else None

    def rows(self) -> list[tuple[str, int, int, int]]:
        """What the database tells operators: xid, state, sends, acknowledgements."""
        kept = self.database.tables.prepared.values()
        return [(branch.xid, branch.state, len(branch.sends), len(branch.settled)) for branch in kept]

    def number(self, xid: str = XID) -> int:
        return self.engine.shard.branches.known["guest", xid].number

    def destination_exists(self, address: str) -> bool:
        return address in self.engine.shard.destinations


RESTARTS = pytest.mark.parametrize("restarts", [0, 1, 2], ids=["at once", "after a restart", "after two"])


def prepared(restarts: int = 0, **limits: object) -> BranchBench:
    """Of four messages the second is acknowledged in a branch that sends one elsewhere; the first is acknowledged besides, the others are there."""
    b = BranchBench(**limits)
    b.send("p", "q", "r", "s")
    b.attach(credit=3)
    assert b.prepared("a", tags=(2,), address=OTHER) == OK
    b.settle(1)
    for _ in range(restarts):
        b.flush(report=True)
        b.start()
    return b


def held(b: BranchBench, address: str = QUEUE) -> list[int]:
    return list(b.cursor(address=address).reserved)
