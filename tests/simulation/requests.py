"""Request and reply: clients that ask and take the replies at a temporary destination of their own, and one that answers whoever asks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from .audit import Broken
from .clients import PLAIN, PRIORITIES, REQUESTS, Client

if TYPE_CHECKING:
    from .session import Session

PENDING_MAX = 10
PATIENCE = 1000
"""Looks for replies that are promised, each after 10 ms."""
HAS_GONE = ("temporary destination gone", "no such destination")
"""What the ERROR would say to a responder whose requester has gone: one requester must not end it."""


class Requester(Client):
    """Sections of its requests repeat and are the same as those of others: only the connection tells where replies go."""

    async def _play(self, session: Session) -> None:
        random = self.random
        replies = random.choice(("temp-queue/replies", "temp-queue/replies", "temp-topic/replies"))
        requests, listening = random.randrange(1, 15), False
        while requests and not session.closed and not self.stopping:
            await asyncio.sleep(random.random() * 0.040)
            if not session.connected:
                continue
            session.replies = session.replies or replies
            if not listening and (replies.startswith("temp-topic/") or random.random() < 0.2):
                listening = await self._listen(session, replies)
            if not session.closed and len(session.receipts) < PENDING_MAX and random.random() < 0.5:
                requests -= 1
                session.send(REQUESTS, random.choice((1, 4, 4)), random.choice(PRIORITIES), 0, 100, PLAIN, random.random() < 0.8, replies)
            self._take(session)
        if session.replies and not session.closed:
            await self._wait(session, listening=listening)

    def _take(self, session: Session) -> None:
        for entry in list(session.inbox):
            session.inbox.remove(entry)
            session.settle(*entry, accepted=True, receipt=self.random.random() < 0.5)

    async def _wait(self, session: Session, *, listening: bool) -> None:
        """For what is promised: with the connection it would be over."""
        address = session.full(session.replies)
        if not listening:
            await self._listen(session, session.replies)
        for _ in range(PATIENCE):
            self._take(session)
            if session.closed or not self.world.auditor.missing(address):
                return
            await asyncio.sleep(0.010)
        raise Broken(f"{self.world.auditor.missing(address)} never came to {address}")

    async def _listen(self, session: Session, replies: str) -> bool:
        """A topic's subscription must be there before anybody answers."""
        confirmed = asyncio.Event()
        session.subscribe(replies, self.random.choice(("auto", "client", "client-individual")), 10, then=confirmed.set)
        while not confirmed.is_set() and not session.closed:
            await asyncio.sleep(0.005)
        return True


class Responder(Client):
    async def _play(self, session: Session) -> None:
        random = self.random
        for _ in range(2000):
            await asyncio.sleep(0.004)
            if session.closed or self.stopping:
                break
            if session.connected and not session.subscriptions:
                session.subscribe(REQUESTS, random.choice(("client", "client-individual")), random.choice((1, 5, 10)))
            if session.transaction is None and random.random() < 0.3 and session.connected:
                session.begin()
            for entry in list(session.inbox):
                if entry in session.inbox and len(session.receipts) < PENDING_MAX and random.random() < 0.7:
                    self._answer(session, entry)
            if session.transaction is not None and random.random() < 0.5:
                session.end(commit=random.random() < 0.8)
        if session.told in HAS_GONE:
            raise Broken(f"{session.name} was ended because a requester had gone: {session.told}")

    def _answer(self, session: Session, entry: tuple) -> None:
        random = self.random
        _, request, headers = entry
        to = headers["reply-to"].removeprefix("/")
        if to != request.replies:
            raise Broken(f"{request.uid} wants its reply at {request.replies}, it came with {to}")
        # Whoever does not take a reply in time has lost it: nothing is promised of one that expires.
        expires = self.world.now_ms() + random.choice((1, 50, 100_000)) if random.random() < 0.1 else 0
        reply = session.send(to, random.choice((0, 1, 2, 3, 4)), random.choice(PRIORITIES), expires, 60 + random.randrange(200), PLAIN, random.random() < 0.7)
        if expires:
            reply.excused = reply.excused or "it may expire"
        session.inbox.remove(entry)
        session.settle(*entry, accepted=True, receipt=random.random() < 0.5)
