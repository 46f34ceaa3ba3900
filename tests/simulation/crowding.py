"""What waits beside large bodies, and beside messages that fill memory: who is there gets his, whatever nobody fetches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from .audit import BEST_EFFORT, Broken, Known
from .clients import PLAIN, Client

if TYPE_CHECKING:
    from .session import Session

LARGE = tuple(f"queue/large{number}" for number in range(5))
FULL, BESIDE, NEWS = "queue/full", "queue/beside", "topic/beside"
LARGE_OCTETS = 1900
"""Of one body: with all of them, memory would be full twice."""
SMALL_OCTETS, MORE_OCTETS = 60, 200
MANY = 60
"""Small ones that nobody fetches: what finds no room among them is on disk, and nothing larger finds any."""
EXPRESS, ASSURED = 1, 4
VOLATILE = (BEST_EFFORT, EXPRESS, 2)
PATIENCE = 200
"""Looks, each after 10 ms."""
TOGETHER = 5
"""Sends that are not confirmed yet: the peer has a limit of them."""


class Crowd(Client):
    """Faults are off, and nobody else is there: so all that it sends must come, best effort, too, for which there is room."""

    async def run(self) -> None:
        term = self.world.serving()
        assert term is not None
        session = self._connect(term)
        await self._until(session, lambda: session.connected, "nobody answers")
        large = await self._send(session, *[(address, ASSURED, LARGE_OCTETS) for address in LARGE])
        await self._beside_large_bodies(session)
        filling = await self._send(session, *[(FULL, EXPRESS, SMALL_OCTETS)] * MANY)
        await self._while_memory_is_full(session)
        for address in (FULL, *LARGE):
            session.subscribe(address, "client-individual", 3)
        await self._come(session, [*large, *filling], "when somebody fetches what filled memory")
        self.stopping = True  # in good order: what it has acknowledged must not come back
        await self._leave(session)

    async def _beside_large_bodies(self, session: Session) -> None:
        """Memory has room: large bodies are elsewhere."""
        sent = await self._send(session, *[(BESIDE, level, SMALL_OCTETS) for level in VOLATILE])
        await self._listen(session, BESIDE)
        await self._come(session, sent, "beside large bodies")

    async def _while_memory_is_full(self, session: Session) -> None:
        """One after the other: who waits has nothing before them."""
        await self._listen(session, NEWS)
        for address, level in [*[(BESIDE, level) for level in VOLATILE], *[(NEWS, level) for level in (*VOLATILE, ASSURED)]]:
            await self._come(session, await self._send(session, (address, level, MORE_OCTETS)), "while memory was full")

    # -- steps ----------------------------------------------------------------------------------------------------------------------------
    async def _send(self, session: Session, *what: tuple[str, int, int]) -> list[Known]:
        """Each to this address, of this level and of so many octets; all are confirmed."""
        sent: list[Known] = []
        for address, level, octets in what:
            await self._until(session, lambda: len(session.receipts) < TOGETHER, "sends were not confirmed")
            sent.append(session.send(address, level, 4, 0, octets, PLAIN, receipt=True))
        await self._until(session, lambda: all(message.confirmed for message in sent), "sends were not confirmed")
        return sent

    async def _listen(self, session: Session, address: str) -> None:
        confirmed = asyncio.Event()
        session.subscribe(address, "client-individual", 3, then=confirmed.set)
        await self._until(session, confirmed.is_set, f"the subscription of {address} was not confirmed")

    async def _come(self, session: Session, sent: list[Known], when: str) -> None:
        def came() -> bool:
            for entry in session.inbox:
                session.settle(*entry, accepted=True, receipt=True)
            session.inbox = []
            return all(message.acked for message in sent)

        await self._until(session, came, f"what was sent never came {when}")
        self.world.counts[f"waited for {when}"] += len(sent)

    @staticmethod
    async def _until(session: Session, holds: Callable[[], bool], otherwise: str) -> None:
        for _ in range(PATIENCE):
            if holds():
                return
            if session.closed:
                raise Broken(f"{session.name} was ended: {session.told}")
            await asyncio.sleep(0.010)
        raise Broken(otherwise)
