"""Operators who look after the node in mid-traffic: they quiesce it, drain it and let clients in again, have it compact, hand over to another node, and take
back from consumers what these hold. Nobody comes in meanwhile who may not, nobody is given anything who is to go, and no message is lost by it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from broker_core.engine.commands import Command, Control, Open
from broker_core.engine.outputs import Delivered, Output
from broker_core.server.managing import Managing

from .audit import Broken
from .clients import QUEUES

if TYPE_CHECKING:
    from broker_core.engine.shard import Shard
    from broker_core.server.listening import Node

    from .world import World

GRACE_MS = 5
"""From the request on until the node has told its engine to deliver nothing more."""
LOOKS = 3_000
"""For an answer, each after 5 ms."""


class OtherNodes:
    """The tables that tell of nodes: one always stands by, and nobody pauses listeners."""

    async def stands_by(self, _node: str) -> bool:
        return True

    async def pause_listener(self, _listener: str) -> None: ...
    async def resume_listener(self, _listener: str) -> None: ...


class Watch:
    """Of one term."""

    def __init__(self, managing: Managing, node: Node, counts: Counter[str], released: Callable[[str], None]) -> None:
        self._managing, self._node, self._counts, self._released = managing, node, counts, released
        self._here: set[int] | None = None
        """Connections that there were when the node was quiesced; None: it is not."""

    def sees(self, shard: Shard, command: Command) -> None:
        if not self._node.quiesced:
            self._here = None
        elif self._here is None:
            self._here = {peer.number for peer in self._node.clients}
        if isinstance(command, Open) and self._here is not None and command.peer not in self._here:
            raise Broken(f"connection {command.peer} was let in, and the node is {self._managing.state}")
        if isinstance(command, Control) and command.verb == "release":
            link = shard.links.get(command.arguments["consumer"])
            if link is not None and link.unsettled:
                self._counts["messages taken back by operators"] += len(link.unsettled)
                self._released(link.subscription.destination.address)

    def check(self, outputs: Iterable[Output]) -> None:
        """After a flush."""
        told = self._managing.about()
        if "drain" not in told or self._node.clock.now() - told["drain"]["since"] <= GRACE_MS:
            return
        if any(isinstance(output, Delivered) for output in outputs):
            raise Broken(f"something was delivered by a node that is {told['state']}")


class Steward:
    """Does one thing after the other, and waits for each answer: what no node has done is asked of the next, which declines."""

    def __init__(self, world: World) -> None:
        self._world, self._random = world, world.random("steward")
        self.stopping = False

    async def run(self) -> None:
        random = self._random
        while not self.stopping:
            await asyncio.sleep(random.random() * 0.060)
            choice = random.random()
            if choice < 0.65:
                await self._take_back()
            elif choice < 0.7:
                await self._ask("compact", percent=random.choice((50, 100)))
            elif choice < 0.82:
                await self._quiesce()
            elif choice < 0.92:
                await self._drain()
            else:
                await self._hand_over()
        await self._ask("unquiesce")

    async def _ask(self, verb: str, **arguments: Any) -> tuple[bool, dict[str, Any]]:
        database = self._world.database
        number = database.request(verb, "", {"epoch": database.epoch, **arguments})
        self._world.log(("asked", number, verb))
        for _ in range(LOOKS):
            if (answer := database.answer(number)) is not None:
                return answer
            await asyncio.sleep(0.005)
        raise Broken(f"nobody has answered {verb}")

    async def _take_back(self) -> None:
        """What a consumer of a queue holds."""
        term = self._world.serving()
        if term is None:
            return
        links = [link for link in term.engine.shard.links.values() if link.unsettled and link.subscription.destination.address in QUEUES]
        if links:
            database, link = self._world.database, self._random.choice(links)
            number = database.request("release", "", {"consumer": link.number})
            self._world.log(("asked", number, "release", link.number))
            while database.answer(number) is None:
                await asyncio.sleep(0.005)

    async def _quiesce(self) -> None:
        done, _ = await self._ask("quiesce")
        self._world.counts["nodes quiesced"] += done
        await asyncio.sleep(self._random.random() * 0.100)
        await self._ask("unquiesce")

    async def _drain(self) -> None:
        """Clients come again and again, and find it closed."""
        done, _ = await self._ask("drain", seconds=self._random.choice((0, 1)))
        term = self._world.serving()
        if not done or term is None:
            return
        while term is self._world.serving() and term.managing.about().get("drain", {}).get("ended") is None:
            await asyncio.sleep(0.010)
        if term is self._world.serving():
            self._world.counts["nodes drained"] += 1
            left = [peer.number for peer in term.node.clients if term.host.knows(peer.number)]
            if left:
                raise Broken(f"the node is drained, and connections {left} are there still")
        await self._ask("unquiesce")

    async def _hand_over(self) -> None:
        before = self._world.term
        done, told = await self._ask("take_over", node="another")
        for _ in range(LOOKS):
            if self._world.term is not before and self._world.serving() is not None:
                break
            await asyncio.sleep(0.005)
        if done:
            self._world.counts["nodes taken over"] += 1
        elif before is not None and before.handed_over:
            raise Broken(f"the node has handed over, and the operator was told {told}")
