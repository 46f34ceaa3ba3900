"""The client's ends of AMQP's links: credit, counts and deliveries under way, and what the broker may not do with them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from broker_core.amqp.performatives import Flow, Transfer

from .audit import Broken, Subscription
from .looks import Look

MODULUS = 1 << 32


@dataclass(eq=False)
class Inward:
    """A link on which the broker sends."""

    handle: int
    name: str
    what: Subscription | Look
    presettled: bool
    window: int
    """Credit that its client gives at a time."""
    asked_at: int = 0
    open: bool = False
    """The broker has attached it, too."""
    wants_out: bool = False
    """Its client will detach it when nothing is on its way any more."""
    leaving: bool = False
    """Its client has detached it."""
    then: Callable[[], None] | None = None
    """To be called when it is attached."""
    count: int = 0
    """The delivery-count: what has come or has lapsed."""
    limit: int = 0
    """That it may reach, as the client said last."""
    most: int = 0
    """The highest that the broker may still go by: until it says that the link is drained, deliveries may be on their way that an earlier one allowed."""
    echoes: deque[int] = field(default_factory=deque)
    """Those of which the client wants to hear that they were heard."""
    drains: bool = False
    """The broker was asked to use up the credit, and has not answered."""
    lapsed: int = 0
    """Credit that the last drain came to."""
    under_way: Transfer | None = None
    pieces: list[bytes] = field(default_factory=list)

    def flow(self, credit: int, *, drain: bool = False, echo: bool = False) -> dict[str, Any]:
        """What a Flow says of it."""
        self.limit = self.count + credit
        self.most = max(self.most, self.limit)
        self.echoes += [self.limit] if echo else []
        self.drains = drain
        return {"handle": self.handle, "delivery_count": self.count % MODULUS, "link_credit": credit, "drain": drain, "echo": echo}

    @property
    def left(self) -> int:
        """Of its credit."""
        return self.limit - self.count

    def takes(self, transfer: Transfer, payload: bytes) -> bytes | None:
        """The message, when all of it is here; empty if it was aborted."""
        if self.under_way is None:
            if transfer.delivery_id is None or transfer.delivery_tag is None:
                raise Broken(f"a delivery on {self.what.name} begins without its identifier or its tag")
            if transfer.settled is not self.presettled and bool(transfer.settled) is not self.presettled:
                raise Broken(f"a delivery on {self.what.name} is settled: {transfer.settled}, and the link is {self.presettled}")
            self.count += 1
            if self.count > self.most:
                raise Broken(f"delivery {self.count} came to {self.what.name}, which had credit for {self.most}")
            self.under_way, self.pieces = transfer, []
        if transfer.aborted:
            self.under_way, self.pieces = None, []
            return b""
        self.pieces.append(payload)
        if transfer.more:
            return None
        octets, self.pieces = b"".join(self.pieces), []
        return octets

    def hears(self, flow: Flow) -> bool:
        """What the broker says of it; whether it is drained."""
        count, credit = flow.delivery_count, flow.link_credit
        if count is None or credit is None:
            raise Broken(f"a flow of {self.what.name} does not tell its credit")
        if flow.drain:
            if not self.drains:
                raise Broken(f"{self.what.name} is drained and was not asked to be")
            if credit or count != max(self.limit, self.count):  # what was on its way came all the same
                raise Broken(f"{self.what.name} is drained at {count} with credit {credit}, its limit is {self.limit}")
            self.lapsed, self.count, self.limit, self.drains = count - self.count, count, count, False
            self.most = count
            return True
        if not self.echoes:
            raise Broken(f"{self.what.name} was told its credit, and had not asked")
        limit = self.echoes.popleft()
        if count + credit != max(limit, count) or count < self.count:
            raise Broken(f"{self.what.name} is said to have {credit} behind {count}; it has had {self.count}, its limit was {limit}")
        return False


@dataclass(eq=False)
class Outward:
    """A link on which the client sends."""

    handle: int
    name: str
    address: str
    """Empty: each message says where it goes."""
    second: bool
    """The client settles when it has heard the outcome."""
    open: bool = False
    leaving: bool = False
    count: int = 0
    limit: int = 0
    told: int = 0
    """Deliveries that were not answered yet."""
    silent: int = 0
    """Deliveries that were sent settled: of those nobody hears."""
    rest: deque[bytes] = field(default_factory=deque)
    """Frames of a delivery that has begun to leave."""

    @property
    def credit(self) -> int:
        return self.limit - self.count if self.open and not self.leaving else 0

    def hears(self, flow: Flow) -> None:
        count, credit = flow.delivery_count, flow.link_credit
        if count is None or credit is None:
            raise Broken(f"a flow of the producer's link {self.name} does not tell its credit")
        if count > self.count:
            raise Broken(f"the broker has counted {count} deliveries on {self.name}, {self.count} were sent")
        self.limit = count + credit
