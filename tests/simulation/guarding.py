"""Operators who forbid and allow again, in mid-traffic, what clients do with a queue, and who close their connections. What is forbidden is not done from the
command on that forbids it; what was confirmed before is where it was, and comes when it is allowed again."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from broker_core.engine.access import ANYBODY, CONSUME, EVERYTHING, OPERATIONS, PRODUCE, Rule
from broker_core.engine.commands import Attach, Command, Detach, Send, SetAccess
from broker_core.engine.outputs import Confirmed, Delivered, Detached, Output

from .audit import Broken
from .clients import QUEUES
from .turns import ALIASES

if TYPE_CHECKING:
    from .world import World

OPEN = tuple(Rule(EVERYTHING, operation, allow=True, principal=ANYBODY) for operation in OPERATIONS)


class Guard:
    """Of one term: what is forbidden, and that nobody does it."""

    def __init__(self, counts: Counter[str]) -> None:
        self._counts = counts
        self._forbidden: frozenset[tuple[str, str]] = frozenset()
        self._places: dict[int, str] = {}
        """By link."""
        self._closed: set[int] = set()
        """Links that were told so."""
        self._refused: set[tuple[int, object]] = set()
        """Peers and tokens of sends that are forbidden."""

    def sees(self, command: Command) -> None:
        if isinstance(command, SetAccess):
            self._forbidden = frozenset((rule.operation, rule.resource) for rule in command.rules if not rule.allow)
        elif isinstance(command, Attach):
            self._places[command.link] = ALIASES.get(command.address, command.address)
            self._closed.discard(command.link)
        elif isinstance(command, Detach):
            self._places.pop(command.link, None)
        elif isinstance(command, Send) and command.token is not None and (PRODUCE, ALIASES.get(command.address, command.address)) in self._forbidden:
            self._refused.add((command.peer, command.token))

    def check(self, outputs: Iterable[Output]) -> None:
        """After a flush."""
        for output in outputs:
            if isinstance(output, Detached):
                self._counts["consumers closed by a rule"] += (CONSUME, self._places.pop(output.link, "")) in self._forbidden
                self._closed.add(output.link)
            elif isinstance(output, Confirmed) and self._refused and (output.peer, output.token) in self._refused:
                raise Broken(f"a send was confirmed that is forbidden: {output.token}")
            elif isinstance(output, Delivered) and ((CONSUME, self._places.get(output.link, "")) in self._forbidden or output.link in self._closed):
                raise Broken(f"link {output.link} received from where it may not consume, or was told that it is closed")


class Guardian:
    """Forbids one thing at a time."""

    def __init__(self, world: World) -> None:
        self._world, self._random = world, world.random("guardian")
        self.stopping = False

    async def run(self) -> None:
        while not self.stopping:
            await asyncio.sleep(self._random.random() * 0.080)
            if self._random.random() < 0.3:
                self._close_one()
            else:
                operation, address = self._random.choice((CONSUME, CONSUME, PRODUCE)), self._random.choice(QUEUES)
                self._set(Rule(address, operation, allow=False, principal=ANYBODY))
                await asyncio.sleep(self._random.random() * 0.030)
                self._set()
        self._set()

    def _set(self, *rules: Rule) -> None:
        term = self._world.serving()
        if term is not None:
            term.host.submit([SetAccess([*OPEN, *rules], {})])
            self._world.counts["rules set"] += bool(rules)

    def _close_one(self) -> None:
        term = self._world.serving()
        if term is not None and term.engine.shard.peers:
            number = self._random.choice(list(term.engine.shard.peers))
            self._world.database.request("disconnect", "", {"connection": number, "reason": "an operator says so"})
            self._world.counts["connections closed by operators"] += 1
