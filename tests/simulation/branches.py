"""A transaction manager (X/Open XA): it decides what becomes of branches that clients have prepared, and says so until it knows that it is done, through
connections and nodes that end. Of those whose PREPARE was not answered it knows nothing, and rolls them back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from .audit import Broken
from .clients import Client

if TYPE_CHECKING:
    from .session import Session
    from .transactions import Transaction
    from .world import World

ANSWER_STEPS, ANSWER_SECONDS = 400, 0.005
HANDS = {"COMMIT": "commit", "ABORT": "rollback"}
TOLD = {"COMMIT": "XA_HEURCOM", "ABORT": "XA_HEURRB"}


class Manager(Client):
    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self._pending: list[Transaction] = []
        self._tries: dict[Transaction, int] = {}
        """How often it has said what is to become of it."""
        self._unknown: dict[str, Transaction] = {}
        """Of those that the node did not know, by xid: their PREPARE may be on its way still, on a connection whose client waits no more."""
        self._by_hand: set[str] = set()
        """Of those that an administrator ended, the xids."""

    def adopt(self, transaction: Transaction) -> None:
        self._pending.append(transaction)
        self._tries[transaction] = 0

    async def run(self) -> None:
        while self._pending or not self.stopping:
            await asyncio.sleep(self.random.random() * 0.020)
            self._recover()
            term = self.world.serving()
            if term is not None and self._pending:
                session = self._connect(term)
                await self._play(session)
                await self._leave(session)

    def _recover(self) -> None:
        """What turns up among the prepared ones after all is to be ended after all."""
        if self._unknown:
            for branch in self.world.database.tables.prepared.values():
                if (transaction := self._unknown.pop(branch.xid, None)) is not None:
                    self._pending.append(transaction)
                    self.world.counts["branches recovered"] += 1

    async def _play(self, session: Session) -> None:
        for _ in range(ANSWER_STEPS):
            if session.connected or session.closed:
                break
            await asyncio.sleep(ANSWER_SECONDS)
        while self._pending and session.connected and not session.closed:
            await asyncio.sleep(self.random.random() * 0.060)
            await self._end(session, self.random.choice(self._pending))

    async def _end(self, session: Session, transaction: Transaction) -> None:  # type: ignore[override]
        random, world = self.random, self.world
        if not transaction.ended:
            world.auditor.transactions.ends(transaction, "COMMIT" if random.random() < 0.7 else "ABORT")
            if random.random() < 0.15:
                await self._end_by_hand(transaction)
        answers: list[str] = []
        self._tries[transaction] += 1
        forgets = transaction.xid in self._by_hand and self._tries[transaction] > 1
        session.end_branch(transaction, lambda: answers.append("done"), forget=forgets)
        if not world.faults.calm and random.random() < world.climate.doubts:
            await asyncio.sleep(random.random() * 0.012)
            world.faults.kill()
        for _ in range(ANSWER_STEPS):
            if answers or session.closed:
                break
            await asyncio.sleep(ANSWER_SECONDS)
        if answers and (forgets or transaction.xid not in self._by_hand):
            self._is_over(transaction, known=not forgets)
        elif answers:
            raise Broken(f"{transaction.xid} was ended by hand, and its manager was told that it ended it")
        elif session.told.startswith("XA"):  # else its connection ended for reasons of its own
            self._refused(transaction, session.told)

    def _refused(self, transaction: Transaction, told: str) -> None:
        by_hand = transaction.xid in self._by_hand
        self.world.counts[f"branches refused, {told}"] += 1
        if by_hand and told == TOLD[transaction.ended]:
            return
        if told != "XAER_NOTA" or not (transaction.doomed or self._tries[transaction] > 1):
            raise Broken(f"{transaction.ended} of {transaction.xid} was answered by {told} at try {self._tries[transaction]}")
        self._is_over(transaction, known=transaction.ended == "COMMIT" and not by_hand)
        if transaction.doomed:
            self._unknown[transaction.xid] = transaction

    def _is_over(self, transaction: Transaction, *, known: bool) -> None:
        self._pending.remove(transaction)
        if known:
            self.world.auditor.transactions.ended(transaction, self.world.now_ms())

    async def _end_by_hand(self, transaction: Transaction) -> None:
        """An administrator does it; his request is answered by whichever node comes to it."""
        database = self.world.database
        number = next((branch.branch for branch in database.tables.prepared.values() if branch.xid == transaction.xid), 0)
        request = database.request(HANDS[transaction.ended], "", {"branch": number})
        while (answer := database.answer(request)) is None:
            await asyncio.sleep(ANSWER_SECONDS)
        if not answer[0]:
            raise Broken(f"{transaction.xid}, branch {number}, could not be ended by hand: {answer[1]}")
        self._by_hand.add(transaction.xid)
        self.world.counts["branches ended by hand"] += 1
        self.world.auditor.transactions.ended(transaction, self.world.now_ms())
