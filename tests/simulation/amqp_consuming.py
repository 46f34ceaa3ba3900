"""What an AMQP session receives, with credit of its own, and what it says of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from broker_core.amqp.performatives import (
    ACCEPTED, COPY, NEVER, RECEIVER, RELEASED, Accepted, Attach, Detach, Disposition, Error, Modified, Outcome, Rejected, Source, Target, TransactionalState,
)  # fmt: skip
from broker_core.amqp.types import Described, ULong

from .amqp_base import Base, Delivery
from .amqp_links import Inward
from .amqp_messages import spoken, whole
from .audit import Known, Subscription
from .interests import Interest
from .looks import Look
from .session import DURABLES, SELECTORS
from .transactions import ACK, NACK, REJECT, RELEASE, Transaction

SELECTOR, NO_LOCAL = 0x0000468C00000004, 0x0000468C00000003
UNLIMITED = 1 << 30


class Consuming(Base):
    """Its consumers and browsers."""

    # -- consuming --------------------------------------------------------------------------------------------------------------------
    def subscribe(
        self, address: str, mode: str, prefetch: int, durable: str = "", then: Callable[[], None] | None = None, *, exclusive: bool = False,
        priority: int = 0, selector: str = "",
    ) -> None:  # fmt: skip
        """`mode` auto: deliveries are settled when they are sent."""
        mode = self._mode(mode)
        number = self._number()
        what = Subscription(f"{self.name}/{number}", address, mode, UNLIMITED, durable, selector, SELECTORS[selector])
        filters = self._filters(f"JMSPriority >= {DURABLES[durable]}" if durable and DURABLES[durable] else selector)
        written_as, capabilities = spoken(self._said(address), self._random)
        how: dict[str, Any] = {"filter": filters}
        name = f"{durable}|{number}" if durable else self._left.pop() if self._left and self._random.random() < 0.5 else f"{self.name}<{number}"
        if durable:
            capabilities = (*capabilities, "shared", "global")
            how |= {"durable": 2, "expiry_policy": NEVER}
        self.subscriptions[number] = what
        self._attach_inward(number, name, what, Source(written_as, capabilities=capabilities, **how), prefetch, priority)

    def join(self, interest: Interest, durable: str, mode: str, prefetch: int, then: Callable[[], None]) -> None:
        """A subscription of an ordinary topic: with a name it is this client's durable one."""
        number, wanted = self._number(), interest.wanted
        mode = self._mode(mode)
        what = Subscription(f"{self.name}/{number}", wanted.address, mode, UNLIMITED, interest=interest)
        self.subscriptions[number] = what
        how: dict[str, Any] = {"filter": self._filters(wanted.selector, no_local=wanted.no_local)}
        if durable:
            how |= {"durable": 2, "expiry_policy": NEVER}
        source = Source(wanted.address.removeprefix("topic/"), capabilities=("topic",), **how)
        self._log(("join", self.name, number, interest.place, wanted.address, wanted.selector, wanted.no_local))
        link = self._attach_inward(number, durable or f"{self.name}<{number}", what, source, prefetch, 0)
        link.then = then

    def _mode(self, mode: str) -> str:
        return "auto" if mode == "auto" else "client-individual"

    def _number(self) -> str:
        self._named += 1
        return str(self._named)

    def _filters(self, selector: str, *, no_local: bool = False) -> dict[str, Any] | None:
        filters: dict[str, Any] = {}
        if selector:
            filters["jms-selector"] = Described(ULong(SELECTOR), selector)
        if no_local:
            filters["no-local"] = Described(ULong(NO_LOCAL), [])
        return filters or None

    def _attach_inward(self, number: str, name: str, what: Subscription | Look, source: Source, window: int, priority: int) -> Inward:
        speech = self.speech
        presettled = what.auto or isinstance(what, Look)
        handle = speech.free_handle()
        link = Inward(handle, name, what, presettled, window, self._now())
        speech.inward[handle] = self._links[number] = link
        attach = Attach(name, handle, RECEIVER, int(what.auto), 0, source, Target("here"))
        attach.properties = {"priority": whole(priority)} if priority else None
        speech.say(attach)
        if self._random.random() < 0.5:  # before it is answered
            speech.grant(link, self._random.randrange(1, window + 1))
        return link

    def tend(self) -> None:
        """Credit for those links that run out of it; now and then less of it, or all of it is to be used up at once."""
        random = self._random
        for link in self._staying():
            if isinstance(link.what, Look):
                if link.what.open and random.random() < 0.3:
                    self.speech.grant(link, random.randrange(1, 8), drain=random.random() < 0.7)
            elif random.random() < 0.04:
                self._auditor.counts["drains"] += 1
                self.speech.grant(link, random.randrange(link.window + 1), drain=True)
                link.asked_at = self._now()
            elif random.random() < 0.03:
                self.speech.grant(link, random.randrange(link.window + 1), echo=True)
            elif (2 * link.left <= link.window and random.random() < 0.7 and link.window > 1) or link.left <= 0:
                self.speech.grant(link, link.window)

    def refill(self) -> None:
        """All the credit that there is to be, at once."""
        for link in self._staying():
            if 2 * link.left <= link.window:
                self.speech.grant(link, link.window)

    def _staying(self) -> Iterator[Inward]:
        """The others go as far as they may."""
        self.speech.open_window()
        for link in list(self._links.values()):
            if link.leaving or link.drains or not link.open:
                continue
            if link.wants_out:
                self._goes_out(link)
            else:
                yield link

    def stays(self, name: str) -> bool:
        """Its client does not mean to leave it."""
        return name in self._links and not self._links[name].wants_out

    @property
    def draining(self) -> list[Inward]:
        return [link for link in self._links.values() if link.drains]

    @property
    def thirsty(self) -> list[str]:
        """Producers' links that have no credit though everything on them is answered."""
        links = [link for link in self.speech.outward.values() if link.open and not link.leaving]
        return [link.name for link in links if link.credit <= 0 and not (link.told or link.silent)]

    def look(self, address: str) -> None:
        """Browse it, up to credit."""
        number = self._number()
        look = self.looks[number] = self._looks.begin(f"{self.name}/{number}", address, self._now())
        self._log(("look", number, address))
        written_as, capabilities = spoken(self._said(address), self._random)
        self._attach_inward(number, f"{self.name}<{number}", look, Source(written_as, capabilities=capabilities, distribution_mode=COPY), 4, 0)

    def look_away(self, name: str) -> None:
        link = self._links[name]
        if link.open and not link.leaving:
            self._detach(name, link, closed=True)

    # -- leaving links ----------------------------------------------------------------------------------------------------------------
    def unsubscribe(self, name: str) -> None:
        """What was not settled is the broker's again, and nobody has looked at it. Where nothing is acknowledged nothing may be on its way."""
        link = self._links[name]
        if link.leaving or not link.open:
            return
        if link.presettled or self._random.random() < 0.5:
            link.wants_out = True
        else:
            self._detach(name, link, closed=False)

    def drain(self, link: Inward) -> None:
        link.asked_at = self._now()
        self.speech.grant(link, max(link.left, 0), drain=True)

    def _goes_out(self, link: Inward) -> None:
        """When nothing is on its way."""
        if link.left > 0:
            self.drain(link)
        elif link.under_way is None:
            name = next(name for name, each in self._links.items() if each is link)
            self._detach(name, link, closed=False)

    def _detach(self, name: str, link: Inward, *, closed: bool, then: Callable[[], None] = lambda: None) -> None:
        what = link.what
        self._log(("detach", what.name, closed))
        if isinstance(what, Subscription):
            self._gives_back(what, on_its_way=link.most > link.count or link.under_way is not None)

        def parted(error: Error | None) -> None:
            self._links.pop(name, None)
            self.looks.pop(name, None)
            self.subscriptions.pop(name, None)
            if error is None:
                self._left += [link.name] if link.name.startswith(self.name) else []
                then()

        self.speech.detach(link.handle, closed=closed, then=parted)

    def _gives_back(self, what: Subscription, *, on_its_way: bool) -> None:
        what.open = False
        self.inbox = [entry for entry in self.inbox if entry[0] is not what]
        self._auditor.releases(what, list(what.outstanding.values()))
        if on_its_way:
            self._auditor.returns_unseen(what)

    def end_subscription(self, durable: str, then: Callable[[], None]) -> None:
        """For good: with the link that consumes from it, or one that looks it up."""
        for name, link in self._links.items():
            if link.name == durable and isinstance(link.what, Subscription) and link.open and not link.leaving:
                self._detach(name, link, closed=True, then=then)
                return
        handle = self.speech.free_handle()
        self.speech.parting[handle] = lambda error: then() if error is None else None
        self.speech.lookup(durable, handle)
        self.speech.say(Detach(handle, True))

    def is_attached(self, name: str) -> bool:
        return any(link.name == name for link in self._links.values())

    # -- settling ---------------------------------------------------------------------------------------------------------------------
    def covered(self, _at: Subscription, message: Known) -> list[Known]:
        return [message]

    def settle(
        self, at: Subscription, message: Known, headers: dict[str, Any], *, accepted: bool, receipt: bool, final: bool = False,
    ) -> None:  # fmt: skip
        """As of a STOMP session: what is refused is so finally or not."""
        if accepted:
            outcome: Outcome = ACCEPTED
        elif final:
            outcome = self._random.choice((Rejected(), Modified(undeliverable_here=True), Modified(True, True)))
        else:
            outcome = Modified(delivery_failed=True)
        within = self.transaction if not (accepted and final) and (accepted or self._random.random() < 0.7) else None
        self.settle_run([(at, message, headers)], outcome, within, receipt=receipt)

    def release(self, entries: list[Delivery], *, receipt: bool) -> None:
        """Nobody has looked at them. Within a transaction it is so when that is committed."""
        within = self.transaction if self._random.random() < 0.3 else None
        outcome = None if within is None and self._random.random() < 0.2 else self._random.choice((RELEASED, Modified()))
        self.settle_run(entries, outcome, within, receipt=receipt and outcome is not None)

    def settle_run(self, entries: list[Delivery], outcome: Outcome | None, within: Transaction | None, *, receipt: bool) -> None:
        """Neighbours in the session, on whatever links, in one Disposition."""
        auditor = self._auditor
        self.inbox = [entry for entry in self.inbox if entry not in entries]
        how = {Accepted: ACK, Rejected: REJECT}.get(type(outcome), NACK if isinstance(outcome, Modified) and outcome.delivery_failed else RELEASE)
        if isinstance(outcome, Modified) and outcome.undeliverable_here:
            how = REJECT
        for at, message, _ in entries:
            if within is not None:
                auditor.transactions.settles(within, at, [message], how)
                if how == RELEASE:
                    auditor.releases(at, [message])
            else:
                {ACK: auditor.acks, NACK: auditor.nacks, REJECT: auditor.rejects, RELEASE: auditor.releases}[how](at, [message])
        numbers = [headers["delivery-id"] for _, _, headers in entries]
        self._log((how, [message.uid for _, message, _ in entries]))
        auditor.counts[f"{how} by AMQP"] += 1
        auditor.counts["outcomes of several"] += len(entries) > 1
        if receipt:
            for (at, message, _), number in zip(entries, numbers, strict=True):
                self.speech.settling[number] = lambda at=at, message=message: self._is_settled(at, message, how, within)  # type: ignore[misc]
        state = TransactionalState(self._txn, outcome) if within is not None else outcome
        self.speech.say(Disposition(RECEIVER, numbers[0], numbers[-1] if len(numbers) > 1 else None, not receipt, state))

    def _is_settled(self, at: Subscription, message: Known, how: str, within: Transaction | None) -> None:
        if within is not None or how == RELEASE:
            return
        if how == REJECT:
            self._auditor.rejection_confirmed(at, [message])
        else:
            self._auditor.settlement_confirmed(at, [message], accepted=how == ACK)
