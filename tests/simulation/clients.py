"""What clients do: send, subscribe, settle, hold, stall, leave in good order or in the middle of a frame, and come again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from .audit import DEAD, RELIABLE
from .interests import TOPICS
from .session import DURABLES, SELECTORS, TOPIC, Session

if TYPE_CHECKING:
    from .term import Term
    from .world import World

QUEUES = ("queue/a", "queue/b", "queue/c", "queue/d")
"""d is what operators purge and destroy."""
REQUESTS = "queue/r"
ONCE, BRIEF = "queue/o", "queue/n"
"""Where duplicates are detected: for longer than a history lasts; and for so short a time that names come and go."""
WINDOWS = {ONCE: 86_400_000, TOPIC: 86_400_000, BRIEF: 100}
ADDRESSES = (*QUEUES, REQUESTS, ONCE, BRIEF, DEAD, *DURABLES)
MODES = ("client-individual", "client-individual", "client", "auto")
PRIORITIES = (1, 4, 4, 4, 9)
POISON, STICKY, PLAIN = "p", "s", "m"
"""Marks of messages: refused whenever they come; held for long; neither."""


class Client:
    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.random = world.random(name)
        self.stopping = False
        self._sessions = 0

    async def run(self) -> None:
        while not self.stopping:
            term = self.world.serving()
            if term is None:
                await asyncio.sleep(0.005)
                continue
            session = self._connect(term)
            await self._play(session)
            await self._leave(session)
            await asyncio.sleep(self.random.random() * 0.02)

    def _connect(self, term: Term, account: str = "guest", client_id: str = "") -> Session:
        self._sessions += 1
        world, name = self.world, f"{self.name}-{self._sessions}"
        session = Session(name, term.node, world.auditor, self.random, world.now_ms, world.log, world.looks, account, client_id, world.said)
        term.wires.append(session.wire)
        return session

    async def _play(self, session: Session) -> None:
        """Until the session has had enough, or the broker."""
        random, climate = self.random, self.world.climate
        manner = random.random()
        produces, consumes = manner < climate.producers + climate.both, manner > climate.producers
        steps = random.randrange(10, 120)
        while steps and not session.closed and not self.stopping:
            await asyncio.sleep(random.random() * 0.006)
            if not session.connected:
                continue
            steps -= 1
            if session.transaction is None and random.random() < climate.transactions:
                session.begin(branch=climate.branches > 0 and random.random() < climate.branches)
            if consumes:
                self._consume(session)
            if produces and len(session.receipts) < 20:
                self._produce(session)
            if session.transaction is not None and random.random() < 0.3:
                await self._end(session)
                if session.is_over:
                    return

    async def _end(self, session: Session) -> None:
        """Often nobody hears what became of a COMMIT."""
        random, climate = self.random, self.world.climate
        if random.random() < climate.spoiled:
            session.spoil()
        if session.transaction is not None and session.transaction.xid and random.random() < 0.75:
            await self._prepare(session)
            return
        commit = random.random() < 0.7
        session.end(commit=commit)
        if not commit or random.random() > climate.doubts or self.world.faults.calm:
            return
        await asyncio.sleep(random.random() * 0.012)
        if random.random() < 0.5:
            session.cut(within_a_frame=False)
        elif not session.closed:
            self.world.counts["kills behind a COMMIT"] += 1
            self.world.faults.kill()

    async def _prepare(self, session: Session) -> None:
        """What becomes of it is its manager's affair, and comes later than whatever else this session might send: so the session ends."""
        random, faults = self.random, self.world.faults
        session.prepare(self.world.manager.adopt)
        if random.random() < self.world.climate.doubts and not faults.calm:
            await asyncio.sleep(random.random() * 0.012)
            faults.kill()
        for _ in range(200):
            if session.closed or session.preparing is None:
                break
            await asyncio.sleep(0.005)
        session.is_over = True

    # -- producing ------------------------------------------------------------------------------------------------------------------------
    def _produce(self, session: Session) -> None:
        random, climate = self.random, self.world.climate
        if random.random() < 0.6:
            return
        address = random.choice(climate.sends_to if self.world.founded else QUEUES)
        volatile = self.world.counts["commands"] % 600 < climate.volatile
        level = random.choice((0, 1, 1, 2, 3, 4)) if volatile else random.choice((3, 4, 4))
        priority = random.choice(PRIORITIES)
        for _ in range(random.choice((1, 1, 2, 4, 8))):
            plain = address == TOPIC or address in TOPICS or session.transaction is not None
            mark = PLAIN if plain else random.choices((PLAIN, POISON, STICKY), (100 - climate.refused - climate.held, climate.refused, climate.held))[0]
            large = not plain and random.random() < (climate.large if level >= RELIABLE else 0.25 if address == "queue/d" else 0.06)
            size = 1100 + random.randrange(900) if large else 40 + random.randrange(260)
            delay, expires = (0, 0) if address in TOPICS else (self._delay(), self._expires(mark))
            kept = mark != POISON or size % 3 > 0 or climate.limits.settings.bounds_depth  # what had to make room would be gone unseen
            session.send(address, level, priority, expires, size, mark, random.random() < 0.8, delay=delay, kept=kept)

    def _delay(self) -> int:
        return self.random.choice((3, 20, 60, 60, 150, 400)) if self.random.random() < self.world.climate.delayed else 0

    def _expires(self, mark: str) -> int:
        random = self.random
        if mark != PLAIN or random.random() > self.world.climate.expiring:
            return 0
        return self.world.now_ms() + random.choice((-5, 5, 30, 200, 1000))

    # -- consuming ------------------------------------------------------------------------------------------------------------------------
    def _consume(self, session: Session) -> None:
        random, climate = self.random, self.world.climate
        open_ones = [name for name, subscription in session.subscriptions.items() if subscription.open]
        if len(open_ones) < 1 or (len(open_ones) < 3 and random.random() < 0.05):
            address = random.choice(climate.consumes if self.world.founded else (*QUEUES, DEAD))
            mode = random.choice(MODES)
            durable = random.choice(list(DURABLES)) if address == TOPIC else ""
            exclusive, priority = random.random() < (0.5 if address == "queue/b" else climate.exclusive), random.choice((0, 0, 0, 0, 5, -5))
            selector = random.choice(list(SELECTORS)) if not durable and random.random() < climate.selective else ""
            how = {"exclusive": exclusive, "priority": priority, "selector": selector}
            session.subscribe(address, mode, random.choice(climate.prefetch), durable, **how)
        elif random.random() < climate.leaves:
            session.unsubscribe(random.choice(open_ones))
        if random.random() < climate.looks:
            if session.looks:
                session.look_away(next(iter(session.looks)))
            else:
                session.look(random.choice((*QUEUES, *QUEUES, DEAD)))
        for entry in list(session.inbox):
            if entry in session.inbox and random.random() < 0.6:
                self._settle(session, entry)

    def _settle(self, session: Session, entry: tuple) -> None:
        random = self.random
        subscription, message, headers = entry
        mark = message.uid[0]
        if mark == STICKY and subscription.address != DEAD and random.random() < 0.99:
            return
        accepted = random.random() < (0.95 if subscription.address == DEAD else 0.1 if mark == POISON else 0.93)
        final = not accepted and random.random() < self.world.climate.rejected
        covered = session.covered(subscription, message) if subscription.address == TOPIC else ()
        if any(known.nacks or known.rejected or (final and known.expires) for known in covered):
            accepted = final = True  # it dies once: with several subscriptions nobody could tell which of its deaths came
        session.settle(subscription, message, headers, accepted=accepted, receipt=random.random() < self.world.climate.confirmed, final=final)

    # -- leaving --------------------------------------------------------------------------------------------------------------------------
    async def _leave(self, session: Session) -> None:
        random = self.random
        if session.closed:
            return
        manner = random.random()
        if session.connected and (manner < 1.0 - self.world.climate.cuts or self.stopping):
            session.disconnect()
            for _ in range(1000):
                if session.closed:
                    return
                await asyncio.sleep(0.010)
        session.cut(within_a_frame=random.random() < 0.4)


class Founder(Client):
    """Makes the durable subscriptions; nothing is sent to their topic before."""

    async def run(self) -> None:
        while not self.stopping and not self.world.founded:
            term = self.world.serving()
            if term is not None:
                session = self._connect(term)
                await self._found(session)
                await self._leave(session)
            await asyncio.sleep(0.010)

    async def _found(self, session: Session) -> None:
        while not session.connected and not session.closed:
            await asyncio.sleep(0.005)
        if session.closed:
            return
        for name in DURABLES:
            session.subscribe(TOPIC, "client", 1, name, then=lambda name=name: self.world.found(name))
        for _ in range(400):
            if session.closed or self.world.founded:
                return
            await asyncio.sleep(0.010)


class Stranger(Client):
    """Another account, which lays hands on the durable subscriptions: it must get nothing but an ERROR."""

    async def run(self) -> None:
        while not self.stopping:
            await asyncio.sleep(self.random.random() * 0.300)
            term = self.world.serving()
            if term is not None and self.world.founded:
                session = self._connect(term, "eve")
                await self._play(session)
                await self._leave(session)

    async def _play(self, session: Session) -> None:
        while not session.connected and not session.closed:
            await asyncio.sleep(0.005)
        if session.closed:
            return
        name = self.random.choice(list(DURABLES))
        if self.random.random() < 0.5:
            session.subscribe(TOPIC, "client", 1, name, then=lambda: self._succeeded(f"consumed from {name}"))
        else:
            session.end_subscription(name, lambda: self._succeeded(f"ended {name}"))
        for _ in range(400):
            if session.closed:
                return
            await asyncio.sleep(0.005)

    def _succeeded(self, what: str) -> None:
        self.world.strangers.append(what)


class Drainer(Client):
    """Takes what it wants from one queue, or everything from a durable subscription, and acknowledges it."""

    def __init__(self, world: World, name: str, place: str, selector: str = "") -> None:
        super().__init__(world, name)
        self._selector = selector
        self._durable = place if place in DURABLES else ""
        self._address = TOPIC if self._durable else place

    async def _play(self, session: Session) -> None:
        subscribed = False
        while not session.closed and not self.stopping:
            await asyncio.sleep(0.010)
            if session.connected and not subscribed:
                session.subscribe(self._address, "client-individual", 20, self._durable, selector=self._selector)
                subscribed = True
            for entry in list(session.inbox):
                session.inbox.remove(entry)
                session.settle(*entry, accepted=True, receipt=True)
            self._refill(session)

    def _refill(self, session: Session) -> None:
        """Acknowledging is all that it takes to get more."""
