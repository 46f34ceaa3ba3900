"""Producers that name their messages and, whatever became of their connection, send again what is in doubt: it must be there once."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from .audit import Known
from .clients import BRIEF, MODES, ONCE, PLAIN, POISON, PRIORITIES, Client
from .session import TOPIC

if TYPE_CHECKING:
    from .session import Session
    from .world import World

PENDING_MAX = 10
NAMES_MAX = 150
"""What the broker remembers at the most for one destination."""
NAMES_CERTAIN = 90
"""After so many others nobody sends a message again: more may have come between its acceptance and the repetition."""


class Repeater(Client):
    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self._sent: list[tuple[Known, int]] = []
        """What the last session sent and nobody has confirmed; and how many had been named when it was sent first."""
        self._confirmed: deque[tuple[Known, int]] = deque(maxlen=5)

    async def _play(self, session: Session) -> None:
        random = self.random
        doubtful = self._take_doubtful()
        steps = random.randrange(5, 30)
        while steps and not session.closed and not self.stopping:
            await asyncio.sleep(random.random() * 0.030)
            if not session.connected or len(session.receipts) >= PENDING_MAX:
                continue
            steps -= 1
            self._consume(session)
            if doubtful:
                self._again(session, doubtful.popleft())
                continue
            if session.transaction is None and random.random() < 0.15:
                session.begin()
            self._produce(session)
            if session.transaction is not None and random.random() < 0.4:
                session.end(commit=random.random() < 0.6)
        self._sent += doubtful

    def _consume(self, session: Session) -> None:
        for address in (ONCE, BRIEF):
            if all(known.address != address for known in session.subscriptions.values()) and self.world.detects(address):
                session.subscribe(address, self.random.choice(MODES), self.random.choice((1, 5, 20)))
        for entry in list(session.inbox):
            if entry in session.inbox:
                self._settle(session, entry)

    def _take_doubtful(self) -> deque[tuple[Known, int]]:
        """What has no receipt; what was rolled back is sent anew. It comes before or after what else its session sent."""
        self._confirmed.extend(entry for entry in self._sent if entry[0].confirmed)
        doubtful = deque(entry for entry in self._sent if not entry[0].confirmed)
        self._sent = []
        for message, _ in doubtful:
            message.session = f"{message.uid} again"
            if message.within is not None:
                message.within.sent = []
                message.within = None
        return doubtful

    def _again(self, session: Session, entry: tuple[Known, int]) -> None:
        if self._is_certain(entry):
            session.again(entry[0])
            self._sent.append(entry)

    def _is_certain(self, entry: tuple[Known, int]) -> bool:
        return self.world.named - entry[1] < NAMES_CERTAIN

    def _produce(self, session: Session) -> None:
        random = self.random
        places = [address for address in (ONCE, ONCE, ONCE, BRIEF, BRIEF, TOPIC) if self.world.detects(address)]
        if not places or random.random() < 0.4:
            return
        if self._confirmed and random.random() < 0.2 and self._is_certain(entry := random.choice(self._confirmed)):
            session.again(entry[0])
        address = random.choice(places)
        for _ in range(random.choice((1, 1, 2))):
            level, priority = random.choice((1, 3, 4, 4, 4)), random.choice(PRIORITIES)
            delay = random.choice((5, 40)) if random.random() < 0.1 else 0
            mark = POISON if address == ONCE and session.transaction is None and random.random() < 0.2 else PLAIN
            # In a transaction its receipt comes with the COMMIT.
            message = session.send(address, level, priority, 0, 60 + random.randrange(200), mark, True, delay=delay, named=True)
            self.world.named += 1
            if address != BRIEF:
                self._sent.append((message, self.world.named))
                if session.transaction is None and random.random() < 0.15:
                    session.again(message)
