"""What operators do to the node itself, and not to what it holds: quiesce it, drain it, hand over to one that stands by, pause its listeners.

All of it is answered like any other request, with a commit of the engine; all but paused listeners ends with the term.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from broker_core.engine.commands import Control
from broker_core.engine.refusal import Declined, Refusal
from broker_core.store import ControlRequest

from .host import Host
from .listening import Node, Peer

log = logging.getLogger("surety.node")

VERBS = frozenset(("quiesce", "unquiesce", "drain", "take_over", "pause_listener", "resume_listener"))
"""Engine verbs that are done here and only answered there."""
LOOK_SECONDS = 0.1
"""While it drains, connections are looked at so often."""
DRAINED = "the broker is drained by an operator: connect again later"


class Operators(Protocol):
    """The database's tables of what operators see."""

    async def pause_listener(self, listener: str) -> None: ...
    async def resume_listener(self, listener: str) -> None: ...
    async def stands_by(self, node: str) -> bool: ...


@dataclass(slots=True)
class Drain:
    """Instants in ms."""

    since: int
    until: int
    """Whoever is left then is cut off."""
    ended: int | None = None
    cut_off: int = 0
    """Connections that held something, or had something open, at the end."""
    connections: int = 0
    unsettled: int = 0
    transactions: int = 0


class Managing:
    """Of one term."""

    def __init__(self, node: Node, host: Host, operators: Operators, name: str, epoch: int) -> None:
        self._node, self._host, self._operators = node, host, operators
        self._name, self._epoch = name, epoch
        self._since = 0
        """Quiesced, in ms."""
        self._drain: Drain | None = None
        self._draining: asyncio.Task[None] | None = None
        self.successor = asyncio.Event()
        """The term is to end, for the node of this name to begin its own."""
        self.successor_name = ""

    # -- what is told -----------------------------------------------------------------------------------------------------------------------
    @property
    def state(self) -> str:
        """serving, quiesced, draining, drained, or handing over."""
        if self.successor.is_set():
            return "handing over"
        if self._drain is not None:
            return "draining" if self._drain.ended is None else "drained"
        return "quiesced" if self._node.quiesced else "serving"

    def about(self) -> dict[str, Any]:
        """For operators, once a second."""
        told: dict[str, Any] = {"state": self.state}
        if self._node.quiesced:
            told["state_since"] = self._since
        if drain := self._drain:
            told["drain"] = {
                "since": drain.since, "until": drain.until, "ended": drain.ended, "cut_off": drain.cut_off, "connections": drain.connections,
                "unsettled": drain.unsettled, "transactions": drain.transactions,
            }  # fmt: skip
        if compaction := self._host.compaction():
            told["compaction"] = compaction
        return told

    # -- what is asked ----------------------------------------------------------------------------------------------------------------------
    async def do(self, request: ControlRequest) -> None:
        """Do it, and have it answered. What is refused is answered, too."""
        try:
            told = await self._do(request)
        except Declined as no:
            told = {"declined": [no.refusal.name, no.detail]}
        self._host.submit([Control(request.request, request.verb, request.address, {"told": told})])
        if request.verb == "take_over" and "declined" not in told:
            await self._host.flushed()
            self.successor.set()

    async def _do(self, request: ControlRequest) -> dict[str, Any]:
        """Raises Declined."""
        given = request.arguments if isinstance(request.arguments, dict) else {}
        if request.deadline and self._node.clock.now() > request.deadline:
            raise Declined(Refusal.REQUEST_EXPIRED)
        if given.get("epoch") != self._epoch:
            raise Declined(Refusal.ANOTHER_TERM, f"it was epoch {given.get('epoch')}, now it is {self._epoch}")
        if self.successor_name:
            raise Declined(Refusal.ANOTHER_TERM, f"it is handing over to {self.successor_name}")
        match request.verb:
            case "quiesce":
                self._quiesce()
            case "unquiesce":
                await self._unquiesce()
            case "drain":
                await self._begin_drain(given.get("seconds"))
            case "take_over":
                await self._hand_over(given.get("node"))
            case "pause_listener":
                await self._pause_listener(given.get("listener"))
            case "resume_listener":
                await self._resume_listener(given.get("listener"))
        return {"node": self._name, **self.about(), "listeners": self._node.listeners}

    def _quiesce(self) -> None:
        if not self._node.quiesced:
            self._node.quiesced, self._since = True, self._node.clock.now()
            log.info("Quiesced by an operator: no new connections, those that are there go on")

    async def _unquiesce(self) -> None:
        await self._stop_drain()
        if self._node.quiesced:
            self._node.quiesced = False
            log.info("No longer quiesced")
        for peer in self._node.clients:
            peer.starve(False)
            peer.hold(False)

    async def _hand_over(self, to: object) -> None:
        if not isinstance(to, str) or not await self._operators.stands_by(to):
            raise Declined(Refusal.NO_SUCH_NODE, f"{to} does not stand by")
        await self._stop_drain()
        self.successor_name = to
        log.info("Handing over to %s, as an operator asked", to)

    def _known(self, listener: object) -> str:
        if not isinstance(listener, str) or listener not in self._node.listeners:
            raise Declined(Refusal.NO_SUCH_LISTENER, f"the listeners are {', '.join(self._node.listeners)}")
        return listener

    async def _pause_listener(self, listener: object) -> None:
        name = self._known(listener)
        await self._operators.pause_listener(name)
        self._node.pause_listener(name)

    async def _resume_listener(self, listener: object) -> None:
        name = self._known(listener)
        try:
            await self._node.resume_listener(name)
        except (OSError, ValueError) as error:  # the port is another's by now; the certificate is none
            raise Declined(Refusal.NO_SUCH_LISTENER, f"{name} cannot be opened, and stays paused: {error}") from error
        await self._operators.resume_listener(name)

    # -- draining -----------------------------------------------------------------------------------------------------------------------------
    async def _begin_drain(self, seconds: object) -> None:
        if type(seconds) is not int or seconds < 0:
            raise Declined(Refusal.INVALID_SETTING, "seconds is a whole number")
        await self._stop_drain()
        self._quiesce()
        now = self._node.clock.now()
        drain = self._drain = Drain(now, now + seconds * 1000)
        self._count(drain, self._node.clients)
        self._draining = asyncio.create_task(self._run(drain), name="drain")
        self._draining.add_done_callback(self._ended)
        log.info("Draining %d connections within %d s", drain.connections, seconds)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._host.fail(error)

    async def _stop_drain(self) -> None:
        if self._draining is not None:
            self._draining.cancel()
            await asyncio.gather(self._draining, return_exceptions=True)
        self._draining = self._drain = None

    async def close(self) -> None:
        """The term is over."""
        await self._stop_drain()

    async def _run(self, drain: Drain) -> None:
        """Nobody is given anything more. Who holds nothing is told to go, when what he has said is durable and answered."""
        node, host = self._node, self._host
        for peer in node.clients:
            if host.knows(peer.number):
                peer.starve(True)
            else:
                peer.shut(DRAINED)  # it has not logged in
        while any(True for _ in node.clients) and node.clock.now() < drain.until:
            idle = [peer for peer in node.clients if not self._holds(peer)]
            for peer in idle:
                peer.hold()
            await host.flushed()
            for peer in idle:
                if self._holds(peer):  # of what had been read already
                    peer.hold(False)
                else:
                    peer.shut(DRAINED)
            self._count(drain, node.clients)
            await asyncio.sleep(LOOK_SECONDS)
        left = list(node.clients)
        drain.cut_off = sum(map(self._holds, left))
        for peer in left:
            peer.hold()
        await host.flushed()
        for peer in left:
            peer.shut(DRAINED)
        while any(True for _ in node.clients):  # who does not read is closed by his own timer
            await asyncio.sleep(LOOK_SECONDS)
        self._count(drain, ())
        drain.ended = node.clock.now()
        log.info("Drained: %d connections were cut off", drain.cut_off)

    def _holds(self, peer: Peer) -> bool:
        host, number = self._host, peer.number
        return peer.is_busy or bool(host.unsettled(number) or host.open_transactions(number)) or host.waits_for_room(number)

    def _count(self, drain: Drain, peers: Iterable[Peer]) -> None:
        numbers = [peer.number for peer in peers]
        drain.connections = len(numbers)
        drain.unsettled = sum(map(self._host.unsettled, numbers))
        drain.transactions = sum(map(self._host.open_transactions, numbers))
