"""A scripted AMQP client: what it says and hears, every step told to the auditor. To those who play it is like a STOMP session, with more outcomes and with
credit of its own."""

from __future__ import annotations

from typing import Any

from broker_core.amqp.frames import frame
from broker_core.amqp.performatives import (
    Attach, Close, Detach, Disposition, Error, Flow, Transfer,
)  # fmt: skip

from .amqp_consuming import Consuming
from .amqp_producing import Producing
from .amqp_links import Inward, Outward
from .amqp_messages import Received, read
from .amqp_speech import CHANNEL, permits
from .audit import Broken, Subscription
from .looks import Look


class AmqpSession(Producing, Consuming):
    """To those who play it as a STOMP session is."""

    # -- the end ----------------------------------------------------------------------------------------------------------------------
    @property
    def unsure(self) -> list[Inward]:
        """Links without acknowledgements on which something may be on its way."""
        return [link for link in self._links.values() if link.what.auto and not link.leaving and (link.left > 0 or link.drains or link.most > link.count)]

    def settle_down(self) -> None:
        """Links without acknowledgements have no credit any more when they are left."""
        for link in self.unsure:
            link.wants_out = True
        self.tend()

    def disconnect(self) -> None:
        self.finish_all()
        self.inbox = []
        self.is_closing()
        self.wire.say(_close())

    def cut(self, *, within_a_frame: bool) -> None:
        if within_a_frame:
            octets = _close()
            self.wire.say(octets[: self._random.randrange(1, len(octets))])
        self._end()
        self.wire.cut()

    @property
    def is_quiet(self) -> bool:
        """Of what it has said of links nothing is on its way."""
        return self.connected and not self.speech.parting and all(link.open and not link.leaving for link in self._links.values())

    def abandon(self) -> None:
        """Its client forgets it and does not end it: others may steal its links."""
        for name, what in self.subscriptions.items():
            if what.open:
                what.open = False
                self._log(("abandoned", name))
        self.inbox = []
        self.is_closing()

    # -- what the client hears --------------------------------------------------------------------------------------------------------
    def hears(self, octets: bytes) -> None:
        if self.closed:
            return
        for said, payload in self.speech.hear(octets):
            kind = said.__class__
            if kind is Transfer:
                self._transfer(said, payload)
            elif kind is Disposition:
                self.speech.settled(said)
            elif kind is Flow:
                self._flow(said)
            elif kind is Attach:
                self._attached(said)
            else:
                self._detached(said)

    def _attached(self, attach: Attach) -> None:
        link: Any = self.speech.inward.get(attach.handle) or self.speech.outward.get(attach.handle)
        if link is None:
            return  # it was only looked up
        if attach.name != link.name:
            raise Broken(f"link {link.name} was attached as {attach.name}")
        there = attach.source if isinstance(link, Inward) else attach.target
        link.open = there is not None
        if isinstance(link, Inward) and link.open and link.then is not None:
            link.then()

    def _detached(self, detach: Detach) -> None:
        handle, error, speech = detach.handle, detach.error, self.speech
        link: Any = speech.inward.pop(handle, None) or speech.outward.pop(handle, None)
        if isinstance(link, Outward):
            speech.forget(link)
        if (parted := speech.parting.pop(handle, None)) is not None:
            parted(error)
            return
        if error is None:
            raise Broken(f"the broker detached {link.name} and does not say why")
        self._log(("detached", link.name, error.condition, error.description))
        if isinstance(link, Inward):
            if not permits(error):
                raise Broken(f"the broker ended {link.what.name}: {error}")
            self._lost_inward(link)
        else:
            if link is self._coordinator:
                raise Broken(f"the broker ended the link to the transactions: {error}")
            self._lost_outward(link, error)
        speech.say(Detach(handle, True))

    def _lost_inward(self, link: Inward) -> None:
        for name in [name for name, each in self._links.items() if each is link]:
            del self._links[name]
            self.looks.pop(name, None)
            what = self.subscriptions.pop(name, None)
            if what is not None:
                what.open = False
                self.inbox = [entry for entry in self.inbox if entry[0] is not what]

    def _lost_outward(self, link: Outward, error: Error) -> None:
        """Something was refused of which nobody wanted to hear, or the link could not be let in at all. What came behind that was not looked at."""
        if not link.silent and not permits(error):
            raise Broken(f"the broker ended {link.name}, on which all was to be answered: {error}")
        for transaction in self._undecided:
            transaction.sent = [message for message in transaction.sent if self._links_of[message] is not link]
        self._pending.pop(link, None)
        link.rest.clear()

    def _flow(self, flow: Flow) -> None:
        if flow.handle is None:
            return
        link = self.speech.inward.get(flow.handle)
        if link is None:
            self.speech.outward[flow.handle].hears(flow)
            return
        self._log(("flow", link.what.name, flow.delivery_count, flow.link_credit, flow.drain))
        if link.hears(flow):
            self._auditor.counts["drained"] += 1
            if isinstance(link.what, Look) and link.lapsed and link.what.open:
                self._log(("looked", link.what.name, len(link.what.shown)))
                self._looks.ends(link.what, self._now())

    def _transfer(self, transfer: Transfer, payload: bytes) -> None:
        link = self.speech.inward.get(transfer.handle)
        if link is None:
            raise Broken(f"a transfer came for handle {transfer.handle}, which is no link's")
        self.speech.counts_transfer(transfer, begins=link.under_way is None)
        octets = link.takes(transfer, payload)
        if octets is None:
            return
        assert link.under_way is not None or not octets
        number = link.under_way.delivery_id if link.under_way is not None else -1
        link.under_way = None
        if not octets:
            self._auditor.counts["deliveries aborted"] += 1
            self._log(("aborted", link.what.name))
            return
        try:
            came = read(octets)
        except (ValueError, AssertionError) as error:
            raise Broken(f"what came to {link.what.name} cannot be read: {error}") from None
        self._message(link, number or 0, came)

    def _message(self, link: Inward, number: int, came: Received) -> None:
        what, redelivered = link.what, came.count > 0
        self._log(("message", what.name, came.uid, came.count))
        if isinstance(what, Look):
            self._looks.shows(what, came.uid, came.body, came.headers, self._now())
        elif not what.open:
            self._auditor.missed(what, came.uid, came.headers)
        else:
            known = self._auditor.delivered(what, came.uid, came.body, redelivered, came.headers, self._now(), came.count)
            self._auditor.counts["received by AMQP"] += 1
            if not what.auto:
                self.inbox.append((what, known, {**came.headers, "delivery-id": number}))

    def missed(self, octets: bytes) -> None:
        """Written by the broker and never received."""
        for said, payload in self.speech.hear(octets):
            if isinstance(said, Transfer):
                link = self.speech.inward.get(said.handle)
                if link is None or not isinstance(link.what, Subscription) or not link.what.auto:
                    continue
                came = link.takes(said, payload)
                if came is not None:
                    link.under_way = None
                    if came:
                        received = read(came)
                        self._auditor.missed(link.what, received.uid, received.headers)

    def missed_behind_a_body(self) -> None:
        for what in self.subscriptions.values():
            if what.auto:
                self._auditor.excuse("it may have waited for the session's window, without acknowledgements", address=what.address)

    def is_closing(self) -> None:
        self._is_lost = True
        if self.transaction is not None:
            self._auditor.transactions.abandons(self.transaction)
        for what in self.subscriptions.values():
            what.open = False

    def is_cut(self) -> None:
        self._end()

    def _end(self) -> None:
        self.closed = True
        self.inbox = []
        self.is_closing()


def _close() -> bytes:
    return frame(CHANNEL, Close())
