"""What clients do that speak AMQP: as those of STOMP, and what only they can: give credit and take it away, release what nobody has looked at, browse by
parts, leave links and come back to them, take their subscriptions from connections that they have forgotten."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from broker_core.amqp.performatives import ACCEPTED

from .amqp_base import Delivery
from .amqp_session import AmqpSession
from .audit import DEAD, Broken, Subscription
from .clients import STICKY, Client, Drainer
from .interests import Interest
from .subscribers import NAME, Subscriber

if TYPE_CHECKING:
    from .term import Term

PATIENCE_MS = 20_000
"""For what the broker owes: the answer to a drain, credit when everything is answered."""
RUN = 4
"""Neighbours that are settled at once, at most."""


class AmqpClient(Client):
    def _connect(self, term: Term, account: str = "guest", client_id: str = "") -> Any:
        self._sessions += 1
        world, name = self.world, f"{self.name}-{self._sessions}"
        session = AmqpSession(name, term.node, world.auditor, self.random, world.now_ms, world.log, world.looks, account, client_id, world.said)
        term.wires.append(session.wire)
        return session

    def _produce(self, session: Any) -> None:
        session.go_on()
        super()._produce(session)

    def _consume(self, session: Any) -> None:
        session.go_on()
        self._settle_runs(session)
        super()._consume(session)
        self._look_after(session)

    def _look_after(self, session: AmqpSession) -> None:
        session.tend()
        late = [link.what.name for link in session.draining if self.world.now_ms() - link.asked_at > PATIENCE_MS]
        if late:
            raise Broken(f"{late} were never drained")

    def _settle_runs(self, session: AmqpSession) -> None:
        """Neighbours of the session whose fate is the same."""
        if self.random.random() < 0.3:
            run: list[Delivery] = []
            for entry in session.inbox:
                if run and (entry[2]["delivery-id"] != run[-1][2]["delivery-id"] + 1 or len(run) == RUN):
                    break
                if self._keeps(entry):
                    break
                run.append(entry)
            if run:
                receipt = self.random.random() < self.world.climate.confirmed
                if self.random.random() < self.world.climate.released:
                    session.release(run, receipt=receipt)
                else:
                    session.settle_run(run, ACCEPTED, session.transaction if self.random.random() < 0.9 else None, receipt=receipt)

    @staticmethod
    def _keeps(entry: Delivery) -> bool:
        """It has a fate of its own."""
        subscription, message, _ = entry
        return message.uid[0] == STICKY and subscription.address != DEAD

    def _settle(self, session: Any, entry: tuple) -> None:
        if not self._keeps(entry) and self.random.random() < self.world.climate.released:
            session.release([entry], receipt=self.random.random() < 0.5)
        else:
            super()._settle(session, entry)

    async def _leave(self, session: Any) -> None:
        """In good order, mostly: where nothing is acknowledged nothing may be on its way."""
        for _ in range(PATIENCE_MS // 10):
            if session.closed or not (session.connected and session.unsure) or self.random.random() < 0.002:
                break
            session.settle_down()
            await asyncio.sleep(0.010)
        if session.closed:
            return
        await self._see_credit(session)
        if not session.closed and session.unsure and session.connected:
            session.cut(within_a_frame=False)
        await super()._leave(session)

    async def _see_credit(self, session: AmqpSession) -> None:
        """Whoever has been answered everything may send again."""
        session.finish_all()
        for _ in range(PATIENCE_MS // 10):
            if session.closed or not session.thirsty:
                return
            await asyncio.sleep(0.010)
        raise Broken(f"{session.thirsty} have no credit, and everything is answered")


class AmqpDrainer(AmqpClient, Drainer):
    """Takes everything, with credit that it has to give again and again."""

    def _refill(self, session: Any) -> None:
        session.refill()


class AmqpSubscriber(AmqpClient, Subscriber):
    """Now and then it forgets a connection, and another one of the same container takes its durable subscription over."""

    def __init__(self, *what: Any) -> None:
        super().__init__(*what)
        self._forgotten: list[AmqpSession] = []

    async def run(self) -> None:
        await super().run()
        self._cut_forgotten()

    def _connect(self, term: Term, account: str = "guest", client_id: str = "") -> Any:
        return AmqpClient._connect(self, term, account, client_id or self.client_id)

    def _cut_forgotten(self) -> None:
        for forgotten in self._forgotten:
            if not forgotten.closed:
                forgotten.cut(within_a_frame=False)

    async def _play(self, session: Any) -> None:
        await Subscriber._play(self, session)

    def _take(self, session: Any, share: float) -> None:
        super()._take(session, share)
        session.refill()

    def _open(self, session: Any, *, durable: bool) -> list[tuple[str, Subscription, Interest]]:
        return [entry for entry in super()._open(session, durable=durable) if session.stays(entry[0])]

    def _change_durable(self, session: Any) -> None:
        """Its link's name is its own until the broker has detached that, too."""
        if self._open(session, durable=True) or not session.is_attached(NAME):
            super()._change_durable(session)

    async def _settle_up(self, session: Any) -> None:
        self._cut_forgotten()
        await super()._settle_up(session)

    async def _leave(self, session: Any) -> None:
        for forgotten in self._forgotten:
            if not forgotten.closed and self.random.random() < 0.5:
                forgotten.cut(within_a_frame=False)
        self._forgotten = [each for each in self._forgotten if not each.closed]
        if not session.closed and session.is_quiet and not self.stopping and self.random.random() < 0.3:
            session.abandon()
            self._forgotten.append(session)
            self.world.counts["connections forgotten"] += 1
            return
        await super()._leave(session)

