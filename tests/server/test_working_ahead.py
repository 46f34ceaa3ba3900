"""The node takes an operation's steps while the database works: neither waits for the other."""

from __future__ import annotations

import asyncio

from broker_core.engine import Limits
from broker_core.engine.commands import Control
from broker_core.engine.operating import COSTS, LOOK
from broker_core.engine.operation import DELETE
from broker_core.engine.settings import Settings

from .conftest import Run
from .rig import Broker, turns

HELD = "queue/q"
TWO = Limits(operation_effort=2 * (LOOK + COSTS[DELETE]), settings=Settings())


async def asked(broker: Broker, **how: bool) -> asyncio.Event:
    """To delete six messages; it begins when what is returned is set, and its page can be read."""
    client = await broker.client()
    for number in range(6):
        client.send(b"m", str(number))
    await turns()
    read = broker.store.shut("read")
    broker.host.submit([Control(broker.database.request("operate"), "operate", HELD, {"verb": DELETE, **how})])
    await turns()
    return read


def test_the_next_step_of_an_operation_is_taken_while_the_commit_of_the_last_is_on_its_way(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start(TWO)
        read = await asked(broker)
        commit = broker.store.shut("commit")
        read.set()
        await turns()
        queue = broker.engine.shard.destinations[HELD]
        assert queue.depth == 6 - 2 - 2, "one step that is being committed, and one ahead"
        commit.set()
        await turns()
        assert queue.depth == 0
        await broker.end()

    run(story())


def test_a_node_that_stops_does_nothing_more_than_it_will_commit(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start(TWO)
        read = await asked(broker)
        read.set()
        broker.host.stop()
        await broker.running
        durable = broker.store.commits[-1].operations[-1]
        assert durable.done == 6 - broker.engine.shard.destinations[HELD].depth
        await broker.end()

    run(story())


def test_an_operation_that_commits_nothing_leaves_turns_to_others(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start(Limits(operation_effort=LOOK, settings=Settings()))
        read = await asked(broker, dry_run=True)
        (counting,) = broker.engine.shard.operations.known.values()
        read.set()
        while not counting.looked_at:
            await asyncio.sleep(0)
        assert counting.looked_at < 6, "others have had a turn before it was done"
        while not counting.is_over:
            await asyncio.sleep(0.001)
        await broker.end()

    run(story())
