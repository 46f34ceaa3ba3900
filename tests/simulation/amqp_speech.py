"""A scripted AMQP client's speech: one connection with one session, links by handle, deliveries by number. It asks nothing that is wrong, so whatever the
broker finds wrong is the broker's mistake."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from broker_core.amqp.frames import AMQP_HEADER, SASL_HEADER, Frame, Reader, frame, sasl_frame
from broker_core.amqp.performatives import (
    SENDER, Attach, Begin, Close, DeliveryState, Detach, Disposition, End, Error, Flow, Open, Performative, SaslCode, SaslInit, SaslMechanisms, SaslOutcome,
    Transfer,
)  # fmt: skip
from broker_core.amqp.refusals import FORCED, RESOURCE_DELETED, RESOURCE_LIMIT, RESOURCE_LOCKED, STOLEN
from broker_core.amqp.sasl import PLAIN
from broker_core.server.listening import Node

from .amqp_links import MODULUS, Inward, Outward
from .audit import Broken
from .wire import NumberedAmqpPeer, Reader as Listener, Wire

FRAME_OCTETS = 512
"""The client's frames, and what it takes itself now and then: large messages come in several."""
OVERHEAD = 100
"""Of a transfer, at most."""
CHANNEL = 3
WINDOWS = (3, 20, 2000)
"""Of its session, in transfers."""
NO_MISTAKES = (FORCED, RESOURCE_LIMIT)
"""Why the broker may end a connection."""
Heard = Callable[[DeliveryState | None], None]


class Speech:
    """Numbers and windows; what is said and heard on links is `AmqpSession`'s. `listener` has the wire's other end."""

    def __init__(
        self, node: Node, listener: Listener, random: Random, container: str, account: str, log: Callable[[object], None]
    ) -> None:  # fmt: skip
        self._random, self._log = random, log
        self.connected = False
        self.told = ""
        """Why the broker ended it."""
        self.inward: dict[int, Inward] = {}
        self.outward: dict[int, Outward] = {}
        self.answers: dict[int, tuple[Outward, Heard]] = {}
        """Of deliveries that the broker has not answered, by number."""
        self.settling: dict[int, Callable[[], None]] = {}
        """Of outcomes that the client has told and wants to hear of, by the delivery's number."""
        self.parting: dict[int, Callable[[Error | None], None]] = {}
        """Of links that the client has detached, by handle."""
        self._window = random.choice(WINDOWS)
        self._came = self._came_max = 0
        """Transfers; and how many may come."""
        self._delivery = random.choice((0, 7, MODULUS - 3))
        self._came_last = -1
        self._reader = Reader(1 << 20)
        self._reader._greeted = True
        self.wire = Wire(node, listener, random, NumberedAmqpPeer)
        most = random.choice((FRAME_OCTETS, 1200, 1 << 20))
        login = sasl_frame(SaslInit(PLAIN, f"\0{account}\0{account}".encode()))
        opening = Open(container, "/", most, 100)
        self._came_max = self._window
        begin = Begin(None, self._delivery, self._window, 2000, 60_000)
        self.wire.say(b"".join((SASL_HEADER, login, AMQP_HEADER, frame(0, opening), frame(CHANNEL, begin))))

    def say(self, performative: Performative, payload: bytes = b"") -> None:
        self.wire.say(frame(CHANNEL, performative, payload))

    @property
    def has_room(self) -> bool:
        """Its window is never used up."""
        return self._window == WINDOWS[-1]

    @property
    def number(self) -> int:
        """Of the next delivery."""
        return self._delivery % MODULUS

    def free_handle(self) -> int:
        return next(handle for handle in range(60_000) if handle not in self.inward and handle not in self.outward and handle not in self.parting)

    # -- links ----------------------------------------------------------------------------------------------------------------------
    def grant(self, link: Inward, credit: int, *, drain: bool = False, echo: bool = False) -> None:
        self._log(("grant", link.what.name, link.count, credit, drain, echo))
        self._came_max = self._came + self._window
        self.say(Flow(self._came % MODULUS, self._window, self._delivery % MODULUS, 2000, **link.flow(credit, drain=drain, echo=echo)))

    def detach(self, handle: int, *, closed: bool, then: Callable[[Error | None], None] = lambda _error: None) -> None:
        """`then` hears what was wrong with it."""
        if (link := self.outward.get(handle)) is not None:
            self.finish(link)
            link.leaving = True
        else:
            self.inward[handle].leaving = True
        self.parting[handle] = then
        self.say(Detach(handle, closed))

    def forget(self, link: Outward) -> None:
        """The broker says nothing more of what was sent on it."""
        for number in [number for number, (of, _) in self.answers.items() if of is link]:
            del self.answers[number]

    # -- sending --------------------------------------------------------------------------------------------------------------------
    def deliver(self, link: Outward, octets: bytes, state: DeliveryState | None, heard: Heard | None) -> None:
        """In one transfer or in several, of which some may be left for later. `heard`: of its outcome; None: it is settled."""
        assert link.credit > 0 and not link.rest, "there is credit, and the last delivery has left"
        number = self.number
        self._delivery += 1
        link.count += 1
        cuts = list(_cut(octets, self._random))
        tag = number.to_bytes(4, "big")
        first = Transfer(link.handle, number, tag, 0, heard is None, len(cuts) > 1, state=state)
        if heard is not None:
            self.answers[number] = link, heard
            link.told += 1
        else:
            link.silent += 1
        self.say(first, cuts[0])
        for place, cut in enumerate(cuts[1:], 2):
            link.rest.append(frame(CHANNEL, Transfer(link.handle, more=place < len(cuts)), cut))
        if self._random.random() < 0.5:
            self.finish(link)

    def finish(self, link: Outward) -> None:
        """What has begun to leave leaves as a whole."""
        while link.rest:
            self.wire.say(link.rest.popleft())

    def go_on(self) -> None:
        """A frame of each delivery that has begun."""
        for link in self.outward.values():
            if link.rest:
                self.wire.say(link.rest.popleft())

    def abort(self, link: Outward) -> None:
        """What has begun to leave does not come."""
        link.rest.clear()
        self.say(Transfer(link.handle, aborted=True))

    # -- hearing --------------------------------------------------------------------------------------------------------------------
    def hear(self, octets: bytes) -> Iterator[tuple[Any, bytes]]:
        """Performatives that concern links, with their payloads."""
        for each in self._reader.receive(octets):
            if isinstance(each, Frame):
                said = each.performative
                if isinstance(said, Open):
                    self.connected = True
                elif isinstance(said, Close):
                    self._closed(said)
                elif isinstance(said, End):
                    raise Broken(f"the broker ended a session: {said.error}")
                elif isinstance(said, SaslOutcome):
                    if said.code not in (SaslCode.OK, SaslCode.SYS_TEMP):
                        raise Broken("the broker refused a login that is right")
                elif not isinstance(said, Begin | SaslMechanisms):
                    yield said, each.payload

    def _closed(self, close: Close) -> None:
        if close.error is not None:
            self.told = close.error.description or close.error.condition
            if close.error.condition not in NO_MISTAKES:
                raise Broken(f"the broker closed a connection: {close.error}")

    def counts_transfer(self, transfer: Transfer, *, begins: bool) -> None:
        """Of the session. `begins`: it is a delivery's first."""
        self._came += 1
        if self._came > self._came_max:
            raise Broken(f"transfer {self._came} came, the session's window was {self._came_max}")
        if begins and transfer.delivery_id is not None:
            if transfer.delivery_id <= self._came_last:
                raise Broken(f"delivery {transfer.delivery_id} came after {self._came_last}")
            self._came_last = transfer.delivery_id

    def open_window(self) -> None:
        """When half of it is used up."""
        if 2 * (self._came_max - self._came) <= self._window:
            self._came_max = self._came + self._window
            self.say(Flow(self._came % MODULUS, self._window, self._delivery % MODULUS, 2000))

    def settled(self, disposition: Disposition) -> None:
        """What the broker says of deliveries; each is told once."""
        last = disposition.first if disposition.last is None else disposition.last
        for number in range(disposition.first, disposition.first + (last - disposition.first) % MODULUS + 1):
            if disposition.role is SENDER:
                if number not in self.settling:
                    raise Broken(f"the broker settled delivery {number}, of which nobody wanted to hear, or a second time")
                self.settling.pop(number)()
            else:
                answered = self.answers.pop(number % MODULUS, None)
                if answered is None:
                    raise Broken(f"the outcome {disposition.state} of delivery {number} was told, which was settled already, or was never sent")
                answered[1](disposition.state)

    def lookup(self, name: str, handle: int) -> None:
        """Attach to whatever durable subscription has this name."""
        self.say(Attach(name, handle, True, source=None))


def permits(error: Error) -> bool:
    """The broker may end a link for this reason: it is no mistake of the client's."""
    return error.condition in (STOLEN, RESOURCE_DELETED, RESOURCE_LOCKED, RESOURCE_LIMIT)


def _cut(octets: bytes, random: Random) -> Iterator[bytes]:
    """Payloads of transfers."""
    most = FRAME_OCTETS - OVERHEAD if random.random() < 0.3 else random.choice((60, 200))
    for start in range(0, len(octets), most):
        yield octets[start : start + most]
