"""Operators who move, reprioritize, have expire and send back what two queues hold, while others send there and consume, and nodes are killed. Wherever a
message is by then, it is there once, and comes to somebody; what was acknowledged comes no more."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any

from broker_core.engine.definitions import UndoEnd
from broker_core.engine.writes import OperationRow, OperationState

from .audit import DEAD, HELD
from .clients import MODES, PLAIN, PRIORITIES, Client

if TYPE_CHECKING:
    from .session import Session
    from .world import World

PENDING_MAX = 10
FILTERS: tuple[dict[str, Any], ...] = ({}, {}, {"selector": "colour = 'red'"}, {"text": "x"}, {"selector": "JMSPriority > 3"})


class Keeper(Client):
    """Sends to either queue and consumes from them, slowly."""

    async def _play(self, session: Session) -> None:
        random = self.random
        steps = random.randrange(10, 60)
        while steps and not session.closed and not self.stopping:
            await asyncio.sleep(random.random() * 0.015)
            if not session.connected:
                continue
            steps -= 1
            if len(session.receipts) < PENDING_MAX and random.random() < 0.5:
                for _ in range(random.choice((1, 2, 6))):
                    level, large = random.choice((1, 3, 4, 4, 4)), random.random() < 0.05
                    size = 1100 + random.randrange(900) if large else 60 + random.randrange(200)
                    session.send(random.choice(HELD), level, random.choice(PRIORITIES), 0, size, PLAIN, random.random() < 0.8)
            self._take(session)

    def _take(self, session: Session) -> None:
        random = self.random
        if not any(subscription.open for subscription in session.subscriptions.values()):
            if random.random() < 0.2:
                session.subscribe(random.choice(HELD), random.choice(MODES), random.choice((1, 3, 10)))
        elif random.random() < 0.1:
            session.unsubscribe(next(name for name, subscription in session.subscriptions.items() if subscription.open))
        for entry in list(session.inbox):
            if entry in session.inbox and random.random() < 0.3:
                session.settle(*entry, accepted=True, receipt=random.random() < 0.7)


class Operators:
    """One operation after the other, sometimes several at a time; some are cancelled."""

    def __init__(self, world: World) -> None:
        self.world, self.random = world, world.random("operators")
        self.stopping = False
        self._asked: dict[int, str] = {}
        """Requests whose operations have not ended, and their verbs."""
        self._epochs: dict[int, int] = {}
        """When they were asked for."""
        self._regrets: dict[int, str] = {}
        """Purges that are to be undone, each in the end, and their addresses."""
        self._undoing: dict[int, int] = {}
        """The request to undo each."""

    async def run(self) -> None:
        while not self.stopping or self._asked:
            await asyncio.sleep(self.random.random() * 0.060)
            self._look()
            if not self.stopping and len(self._asked) < 3:
                self._begin()
            elif self._asked and self.random.random() < 0.05:
                self.world.database.request("cancel", HELD[0], {"operation": self.random.choice(list(self._asked))})
            self._look_at_regrets()
            if self._regrets and self.random.random() < 0.3:
                self._undo(self.random.choice(list(self._regrets)))
        while self._regrets:
            self._look_at_regrets()
            for number in self._regrets:
                self._undo(number)
            await asyncio.sleep(0.020)
        for number, kept in self.world.database.tables.undo.items():  # deletions: else their segments stay
            self.world.database.request("give_up", kept.address, {"undo": number})

    def _begin(self) -> None:
        if self.random.random() < 0.15:
            address = self.random.choice(HELD)
            number = self.world.database.request("purge", address)
            self.world.log(("purge", number, address))
            self.world.auditor.purges(HELD)
            self._regrets[number] = address
            return
        address, arguments = order(self.random)
        number = self.world.database.request("operate", address, arguments)
        self.world.log(("operate", number, address, arguments["verb"]))
        self._asked[number] = arguments["verb"]
        self._epochs[number] = self.world.database.epoch

    def _undo(self, number: int) -> None:
        """Unless it is asked for already."""
        database = self.world.database
        if number in self._undoing or database.answer(number) is None:
            return
        self._undoing[number] = database.request("undo", self._regrets[number], {"undo": number})
        self.world.log(("undo", number))

    def _look_at_regrets(self) -> None:
        database, counts = self.world.database, self.world.counts
        for number, address in list(self._regrets.items()):
            answer, undone = database.answer(number), database.answer(self._undoing.get(number, number))
            if answer is None:
                continue
            if number not in self._undoing:
                self.world.auditor.purges(HELD)
            if "undo" not in answer[1]:
                del self._regrets[number]  # there was nothing that is stored, or no queue
            elif number in self._undoing and undone is not None and not undone[0]:
                assert database.tables.undo_ended.get(number) is UndoEnd.SPACE, (number, address, undone)
                counts["purges that could not be undone for want of space"] += 1
                for held in HELD:
                    self.world.auditor.excuse("it was purged, and there was no space to keep it", address=held)
                del self._regrets[number], self._undoing[number]
            elif number in self._undoing and undone is not None:
                counts["purges undone"] += 1
                counts["messages that came back from a purge"] += undone[1]["restored"]
                del self._regrets[number], self._undoing[number]

    def _look(self) -> None:
        tables, counts = self.world.database.tables, self.world.counts
        for number, verb in list(self._asked.items()):
            answer, row = self.world.database.answer(number), tables.operations.get(number)
            if answer is None or (answer[0] and row is not None and row.ended_at is None):
                continue
            del self._asked[number]
            if not answer[0] or row is None:
                counts["operations refused"] += 1
                continue
            self._count(row, number)
            if verb == "delete":
                for held in HELD:  # nobody knows where they were sent to
                    self.world.auditor.excuse(f"operation {number}: {verb}", address=held)

    def _count(self, row: OperationRow, number: int) -> None:
        counts = self.world.counts
        counts[f"operations {row.state.value}"] += 1
        counts[f"operated: {row.verb}"] += row.done
        counts["operations that skipped something"] += row.skipped > 0
        counts["operations that went on after a crash"] += row.done > 0 and self._epochs[number] != self.world.database.epoch
        assert row.state is not OperationState.FAILED or "gone" in row.error, row


def order(random: Random) -> tuple[str, dict[str, Any]]:
    """Where, and what."""
    verb = random.choice(("move", "move", "move", "reprioritize", "expire", "retry", "retry", "delete" if random.random() < 0.2 else "move"))
    source, target = random.sample(HELD, 2)
    arguments: dict[str, Any] = {"verb": verb, "filter": dict(random.choice(FILTERS))}
    if random.random() < 0.3:
        arguments["limit"] = random.choice((1, 3, 10))
    if random.random() < 0.1:
        arguments["dry_run"] = True
    if verb == "move":
        arguments["destination"] = target
    elif verb == "reprioritize":
        arguments["priority"] = random.choice(PRIORITIES)
    elif verb == "retry":
        arguments["filter"]["origin"] = source
        return DEAD, arguments
    return source, arguments
