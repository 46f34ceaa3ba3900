"""Clients with an identifier, who publish to ordinary topics and subscribe to them in every way: volatile and durable, by patterns, with selectors,
without what they sent themselves; who redefine their durable subscriptions and end them while messages flow."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from .audit import Broken, Subscription
from .clients import MODES, PLAIN, PRIORITIES, Client
from .interests import MATCHES, NEW, SELECTORS, TOPICS, Interest, Wanted

if TYPE_CHECKING:
    from .session import Session
    from .term import Term
    from .world import World

NAME = "own"
"""All of them call their durable subscription so: it is each client's own."""
COMMANDS_PER_TOPIC = 60
"""Of all clients, from one new topic to the next."""
PATIENCE = 1000
"""Looks for what is owed, each after 10 ms."""


class Subscriber(Client):
    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self.client_id = f"the client {name}"
        self._durable: Interest | None = None
        """The durable subscription as it was asked for last."""
        self._possible: set[Wanted | None] = {None}
        """As what there may be one; None: there may be none."""

    async def run(self) -> None:
        await super().run()
        while self._possible != {None}:
            term = self.world.serving()
            if term is not None:
                session = self._connect(term)
                await self._settle_up(session)
                await self._leave(session)
            await asyncio.sleep(0.010)

    def _connect(self, term: Term, account: str = "guest", client_id: str = "") -> Session:
        return super()._connect(term, account, client_id or self.client_id)

    async def _connected(self, session: Session) -> None:
        while not session.connected and not session.closed:
            await asyncio.sleep(0.005)

    # -- while messages flow --------------------------------------------------------------------------------------------------------------
    async def _play(self, session: Session) -> None:
        random = self.random
        await self._connected(session)
        steps = random.randrange(10, 80)
        while steps and not session.closed and not self.stopping:
            await asyncio.sleep(random.random() * 0.006)
            steps -= 1
            self._take(session, 0.6)
            self._change_durable(session)
            self._change_volatile(session)
            if random.random() < 0.3 and len(session.receipts) < 20:
                session.send(self._topic(), random.choice((0, 1, 2, 3, 4, 4)), random.choice(PRIORITIES), 0, 60, PLAIN, random.random() < 0.8)
            if random.random() < 0.03:
                await self._wait(session)
        if random.random() < 0.6:
            await self._wait(session)

    def _topic(self) -> str:
        """Now and then one that nobody knows."""
        new = NEW[min(self.world.counts["commands"] // COMMANDS_PER_TOPIC, len(NEW) - 1)]
        return new if self.random.random() < 0.25 else self.random.choice(TOPICS)

    def _take(self, session: Session, share: float) -> None:
        for entry in list(session.inbox):
            if entry in session.inbox and self.random.random() < share:
                session.settle(*entry, accepted=True, receipt=self.random.random() < 0.5)

    def _open(self, session: Session, *, durable: bool) -> list[tuple[str, Subscription, Interest]]:
        found = [(name, s, s.interest) for name, s in session.subscriptions.items() if s.open and s.interest is not None]
        return [entry for entry in found if entry[2].durable == durable]

    def _join(self, session: Session, interest: Interest, name: str = "") -> None:
        def is_sure() -> None:
            self.world.auditor.interests.is_sure(interest)
            if interest is self._durable:
                self._possible = {interest.wanted}

        session.join(interest, name, self.random.choice(MODES), self.random.choice(self.world.climate.prefetch), is_sure)

    def _anything(self) -> Wanted:
        random = self.random
        return Wanted(random.choice(list(MATCHES)), random.choice(list(SELECTORS)), random.random() < 0.3)

    def _change_volatile(self, session: Session) -> None:
        random = self.random
        opened = self._open(session, durable=False)
        if len(opened) < 2 and random.random() < 0.08:
            wanted = self._anything()
            self.world.counts["volatile subscriptions"] += 1
            self.world.counts["subscriptions of patterns"] += wanted.address not in TOPICS
            self._join(session, self._begins(session, wanted, durable=False))
        elif opened and random.random() < 0.03:
            name, _, interest = random.choice(opened)
            interest.is_over = True
            session.unsubscribe(name)

    def _begins(self, session: Session, wanted: Wanted, *, durable: bool) -> Interest:
        return self.world.auditor.interests.begins(session.name, wanted, self.client_id, durable=durable)

    # -- the durable one ------------------------------------------------------------------------------------------------------------------
    def _change_durable(self, session: Session) -> None:
        random = self.random
        for name, _, _ in self._open(session, durable=True):
            if random.random() < 0.06:
                session.unsubscribe(name)
            return
        choice = random.random()
        if choice < 0.10:
            self._come_again(session)
        elif choice < 0.14:
            self._begin_anew(session)
        elif choice < 0.17 and self._is_certain:
            self._end(session)

    @property
    def _is_certain(self) -> bool:
        """It is there, as it was asked for last."""
        return self._durable is not None and self._possible == {self._durable.wanted}

    def _come_again(self, session: Session) -> None:
        if self._is_certain and self._durable is not None:
            self.world.counts["durable subscriptions taken up again"] += 1
            self._join(session, self._durable, NAME)
        else:
            self._begin_anew(session)

    def _begin_anew(self, session: Session) -> None:
        """As something that it certainly is not; often as what it was before it ended."""
        before = self._durable.wanted if self._durable is not None else self._anything()
        otherwise = self._anything()
        wanted = self.random.choice((before, Wanted(before.address, otherwise.selector, before.no_local), otherwise))
        while wanted in self._possible:
            wanted = self._anything()
        if self._durable is not None:
            self._durable.is_over = True
        self.world.counts["durable subscriptions redefined"] += self._is_certain
        self._durable = self._begins(session, wanted, durable=True)
        self._possible = {*self._possible, wanted}
        self._join(session, self._durable, NAME)

    def _end(self, session: Session) -> None:  # type: ignore[override]
        assert self._durable is not None
        self._durable.is_over = True
        over = self._possible
        self._possible = {*over, None}

        def ended() -> None:
            """What was asked for meanwhile may be there."""
            self.world.counts["durable subscriptions ended"] += 1
            self._possible = {*(self._possible - over), None}

        session.end_subscription(NAME, ended)

    # -- what is owed ---------------------------------------------------------------------------------------------------------------------
    async def _wait(self, session: Session) -> None:
        """For what is owed now to the subscriptions that are open here."""
        interests = self.world.auditor.interests
        opened = [interest for durable in (False, True) for _, _, interest in self._open(session, durable=durable)]
        owed = [(interest, message) for interest in opened for message in interests.owed(interest)]
        self.world.counts["messages that were owed and came"] += len(owed)
        for _ in range(PATIENCE):
            self._take(session, 1.0)
            owed = [(interest, m) for interest, m in owed if interest.place not in m.acked and not m.excused]
            if session.closed or not owed:
                return
            await asyncio.sleep(0.010)
        raise Broken(f"{[m.uid for _, m in owed]} never came to {owed[0][0].place}, which is {owed[0][0].wanted}")

    async def _settle_up(self, session: Session) -> None:
        """Everything that is owed comes, then the durable subscription ends. One of which nobody knows what it is becomes another first."""
        await self._connected(session)
        if session.closed:
            return
        if not self._is_certain:
            self._begin_anew(session)
        else:
            self._come_again(session)
        for _ in range(PATIENCE):
            await asyncio.sleep(0.010)
            if session.closed or (self._is_certain and not session.receipts):
                break
        await self._wait(session)
        if not session.closed:
            self._end(session)
        for _ in range(PATIENCE):
            if session.closed or self._possible == {None}:
                return
            await asyncio.sleep(0.010)
