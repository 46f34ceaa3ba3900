"""What an engine gets back of what it gave to a store: rows as it placed them, whatever form the store keeps them in."""

from __future__ import annotations

import pytest

from broker_core.engine import Limits, recover
from broker_core.engine import commands as c
from broker_core.engine.invariants import check
from broker_core.engine.message import VOLATILE, Header, Message, Reliability
from broker_core.engine.outputs import Delivered
from broker_core.store import Store
from tests.store.rows import Rig

NOW = 1_700_000_000_000
LINK = 1
SENT = 40
MEMORY_OCTETS = 200
"""Room for a few of the messages."""


class Term:
    """An engine over a store: what it asks for is done at once, and its invariants are checked after every flush."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.spilled = 0

    async def begin(self) -> None:
        self.engine = recover(await self.store.recover(), Limits(memory_octets=MEMORY_OCTETS), "test")
        self.engine.apply(c.Open(1, "guest", session="one"), NOW)

    async def does(self, *commands: c.Command) -> list[Message]:
        """What is delivered."""
        for command in commands:
            self.engine.apply(command, NOW)
        delivered: list[Message] = []
        reads = True
        while reads:
            effects = self.engine.flush(NOW)
            check(self.engine)
            if effects.commit is not None:
                await self.store.commit(effects.commit)
                self.spilled += len(effects.commit.spilled)
            self.engine.released()
            delivered += [message for output in effects.outputs if isinstance(output, Delivered) for message in output.messages]
            reads = bool(effects.reads)
            for read in effects.reads:
                self.engine.apply(c.PageLoaded(read.read, *await self.store.read(read)), NOW)
        return delivered


def sends(address: str, level: Reliability) -> list[c.Command]:
    """Of two priorities in turn."""
    return [
        c.Send(1, None, address, Message(Header(b"a:b\n", 4 + number % 2, level), b"%d" % number, 20)) for number in range(SENT)
    ]


class EngineContract:
    """A test module derives from it and gives it a `rig`."""

    @pytest.mark.parametrize("level", [Reliability.EXPRESS, Reliability.RELIABLE, Reliability.ASSURED])
    @pytest.mark.parametrize("address", ["topic/t", "temp-queue/one.t"])
    async def test_what_nothing_durable_wants_is_spilled_and_comes_back_as_it_was_placed(self, rig: Rig, address: str, level: Reliability) -> None:
        """R19: a volatile subscription or a temporary queue keeps it in a volatile lane, whatever its sender asked for, and the row tells the latter."""
        term = Term(await rig.open())
        await term.begin()
        await term.does(c.Attach(1, LINK, address, credit=0))
        assert await term.does(*sends(address, level)) == []
        assert term.spilled > SENT // 2
        delivered = await term.does(c.Grant(LINK, SENT))
        assert [message.header.lane for message in delivered] == [VOLATILE + 5] * (SENT // 2) + [VOLATILE + 4] * (SENT // 2)
        assert [int(message.body or b"") for message in delivered] == [*range(1, SENT, 2), *range(0, SENT, 2)]
        assert {(message.header.reliability, message.header.octets) for message in delivered} == {(level, b"a:b\n")}
        assert await term.does(c.Settle(1, LINK, (), SENT)) == []
        assert term.engine.shard.destinations[address].depth == 0

    async def test_a_volatile_subscription_reads_what_is_stored_for_a_durable_one(self, rig: Rig) -> None:
        term = Term(await rig.open())
        await term.begin()
        await term.does(
            c.Open(2, "guest", client_id="me"), c.Attach(2, 2, "topic/t", credit=0, name="d", durable=True), c.Attach(1, LINK, "topic/t", credit=0)
        )
        await term.does(*sends("topic/t", Reliability.ASSURED))
        for link, peer in ((LINK, 1), (2, 2)):
            delivered = await term.does(c.Grant(link, SENT))
            assert [int(message.body or b"") for message in delivered] == [*range(1, SENT, 2), *range(0, SENT, 2)]
            assert all(message.header.lane < VOLATILE for message in delivered)
            await term.does(c.Settle(peer, link, (), SENT))
        assert term.engine.shard.destinations["topic/t"].depth == 0
