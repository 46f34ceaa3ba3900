"""A client whose durable subscription an operator makes, purges and ends: from when it was made, and again from when it was purged, everything that it wants
is owed to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .interests import MATCHES, TOPICS, Interest, Wanted
from .subscribers import NAME, Subscriber

if TYPE_CHECKING:
    from .session import Session


class Curated(Subscriber):
    """Asks for one thing at a time. What is asked for of a node that is killed the next one does."""

    _asked: tuple[int, str, Interest | None] | None = None
    """The request that is not answered, what it is, and about which subscription."""

    def _change_durable(self, session: Session) -> None:
        self._hear()
        if self._asked is not None:
            return
        choice, may_act = self.random.random(), self._is_certain and not session.receipts  # no SUBSCRIBE is on its way
        if self._possible == {None}:
            if choice < 0.2:
                self._make()
        elif may_act and choice < 0.15:
            self._purge(session)
        elif may_act and choice < 0.22:
            self._end(session)
        else:
            super()._change_durable(session)

    def _ask(self, what: str, address: str, interest: Interest | None, **arguments: Any) -> None:
        number = self.world.database.request(what, address, arguments)
        self.world.log(("asked", number, what, address))
        self._asked = number, what, interest

    def _make(self) -> None:
        wanted = self._anything()
        wanted = Wanted(self.random.choice([topic for topic in TOPICS if topic in MATCHES]), wanted.selector, wanted.no_local)
        self._durable = self.world.auditor.interests.begins(self.name, wanted, self.client_id, durable=True)
        self._possible = {None, wanted}
        how = {"selector": wanted.selector, "no_local": wanted.no_local}
        self._ask("subscribe", wanted.address, self._durable, name=NAME, client_id=self.client_id, account="guest", **how)

    def _number(self) -> int | None:
        """Of the subscription, which an operator reads off a list."""
        term = self.world.serving()
        found = term.engine.shard.named.get((self.client_id, NAME)) if term is not None else None
        return found.number if found is not None else None

    def _purge(self, session: Session) -> None:
        """What waits for it is over; what comes from then on is not. Of a pattern nothing can be purged."""
        number, interest = self._number(), self._durable
        if number is None or interest is None or interest.wanted.address not in TOPICS:
            return
        interest.is_suspended = True
        self._ask("operate", interest.wanted.address, interest, verb="purge", subscription=number)

    def _end(self, session: Session) -> None:  # type: ignore[override]
        """Its consumer is told, and its connection ends."""
        number = self._number()
        if number is None or self._durable is None:
            return
        self._durable.is_over = True
        self._possible = {*self._possible, None}
        self._ask("unsubscribe", "", self._durable, subscription=number, force=True)

    def _hear(self) -> None:
        if self._asked is None:
            return
        number, what, interest = self._asked
        answer = self.world.database.answer(number)
        if answer is None or interest is None:
            return
        if what == "operate" and answer[0]:
            row = self.world.database.tables.operations.get(number)
            if row is not None and row.ended_at is None:
                return
        self._asked = None
        if what == "operate":
            self.world.counts["durable subscriptions purged by operators"] += answer[0]
            self.world.auditor.interests.goes_on(interest)
        elif what == "subscribe":
            self.world.counts["durable subscriptions made by operators"] += answer[0]
            self._possible = {interest.wanted} if answer[0] else {None}
            if answer[0]:
                self.world.auditor.interests.is_sure(interest)
        elif answer[0]:
            self.world.counts["durable subscriptions ended by operators"] += 1
            self._possible = {None}

    async def _settle_up(self, session: Session) -> None:
        self._hear()
        if self._asked is None:
            await super()._settle_up(session)
