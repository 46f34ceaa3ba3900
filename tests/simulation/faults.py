"""What goes wrong, and what operators ask meanwhile. Everything is chosen by the seed."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING

from broker_core.engine.settings import FLOW_CONTROL, REMOVE_LOW_PRIORITY, REMOVE_OLDEST, UNLIMITED
from broker_core.store.memory_tables import Fault

from .audit import ASSURED
from .clients import QUEUES

if TYPE_CHECKING:
    from .world import World

ONE_IN = {Fault.LOST: 500, Fault.KEPT: 500, Fault.CRASH: 700, Fault.FULL: 400}
"""Commits, checkpoints and the like between two faults of a kind."""
HAVE_PATIENCE = frozenset(
    ("commit", "checkpoint", "drop_segment", "freeze_segment", "compact_segment", "sweep_retained", "discard_scheduled", "trim_duplicates")
)
"""What the host tries again when there is no room; a read needs none."""

MESSAGES = (1, 3, 6, 12, UNLIMITED)
BEHAVIORS = (FLOW_CONTROL, FLOW_CONTROL, REMOVE_OLDEST, REMOVE_LOW_PRIORITY)
"""What operators change limits to."""


class Faults:
    def __init__(self, world: World, random: Random) -> None:
        self.world, self._random = world, random
        self.calm = False
        self._requests: list[tuple[int, str, str]] = []

    # -- the store's --------------------------------------------------------------------------------------------------------------------
    def choose(self, method: str) -> Fault:
        if self.calm or method in ("recover", "control_requests", "trim_ledger", "read_body", "discard_bodies"):
            return Fault.NONE
        random = self._random
        if method == "read" and random.randrange(12) == 0:
            return Fault.CUT
        if method == "drop_segment" and random.randrange(6) == 0:
            return Fault.LOCKED
        likelier = self.world.climate.faults
        fault = next((fault for fault, one_in in ONE_IN.items() if random.randrange(one_in) < likelier), Fault.NONE)
        if fault is Fault.FULL and method not in HAVE_PATIENCE:
            return Fault.NONE
        if fault is Fault.CRASH:
            self.world.auditor.excuse("the database crashed before it was on disk", below=ASSURED)
        if fault is not Fault.NONE:
            self.world.counts[f"fault {fault.name} {method}"] += 1
            self.world.log(("fault", fault.name, method))
        return fault

    # -- kills and requests ---------------------------------------------------------------------------------------------------------------
    async def run(self) -> None:
        random, climate = self._random, self.world.climate
        while True:
            await asyncio.sleep(random.random() * 0.080)
            self._collect()
            choice = random.random()
            if random.random() < climate.kills:
                self.kill()
            elif random.random() < climate.purges:
                self._ask("purge", "queue/d")
            elif climate.changes and random.random() < climate.changes:
                limits = {"max_messages": random.choice(MESSAGES), "limit_behavior": random.choice(BEHAVIORS)}
                self._ask("update", random.choice(QUEUES), **limits)
            elif choice < 0.45:
                self._ask("expire")
            elif choice < 0.48:
                self._ask("destroy", "queue/d")
            elif choice < 0.52:
                self._ask("pause", random.choice(QUEUES), direction=random.choice(("CONSUMERS", "PRODUCERS", "ALL")))
            elif choice < 0.75:
                self._ask("resume", random.choice(QUEUES))
            elif choice < 0.78:
                self._ask("reap")

    def kill(self) -> None:
        term = self.world.serving()
        if term is not None:
            self.world.counts["kills"] += 1
            self.world.log("kill")
            term.kill()

    def _ask(self, verb: str, address: str = "", **arguments: object) -> None:
        number = self.world.database.request(verb, address, arguments)
        self.world.log(("ask", number, verb, address))
        if verb in ("purge", "destroy"):
            self._requests.append((number, verb, address))

    def _collect(self) -> None:
        """What an operator threw away is not lost."""
        waiting = []
        for number, verb, address in self._requests:
            if self.world.database.answer(number) is None:
                waiting.append((number, verb, address))
            else:
                self.world.auditor.excuse(f"request {number}: {verb}", address=address)
        self._requests = waiting

    async def stop(self) -> None:
        """From now on nothing goes wrong, and nothing is paused."""
        self.calm = True
        term = self.world.term
        if term is not None:
            term.store.calm = True
        for address in QUEUES:
            self._ask("resume", address)
        while self._requests:
            self._collect()
            await asyncio.sleep(0.050)
