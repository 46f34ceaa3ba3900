"""Keeps the links to other brokers, while this node serves: of each one carrier out, if destinations are forwarded over it, and one in, if it takes messages.

The carrier is a client of both brokers. Of this one it is by a pair of sockets within the process, with a peer at their end that needs no password and is known
to the engine as the forwarder; so windows, large bodies and back-pressure are those of any client. Only the holder of the lease has links.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from broker_core.engine.levels import LevelMapping
from broker_core.foreign.carrier import Carrier
from broker_core.foreign.definition import SURETY, ForeignLink
from broker_core.foreign.end import CONNECT_MS_MAX, Access
from broker_core.foreign.retrying import STEADY_MS, BackOff
from broker_core.stomp.connection import Event
from broker_core.stomp.login import Login

from .line import Line, LineEnd
from .listening import Node
from .stomp_peer import StompPeer

log = logging.getLogger("surety.foreign")

LOOK_SECONDS = 0.5
"""Links and the destinations that are forwarded are looked at so often."""
ACCOUNT = "mq.sys.foreign"
HERE = "this broker"
CAUTIOUS_FOR = 100
"""Messages that went well one by one: the one that did not is not among those that come next."""


class Direction(Enum):
    OUT = "out"
    IN = "in"


class ForwarderPeer(StompPeer):
    """The node's end of the pair. Nobody else can reach it, so it asks for no password."""

    def __init__(self, node: Node, mapping: LevelMapping) -> None:
        super().__init__(node)
        self._connection.forwards = True
        self._mapping = mapping

    @property
    def is_client(self) -> bool:
        return False

    async def _log_in(self, login: Login) -> list[Event]:
        events = self._connection.accept(ACCOUNT, self._session, self._node.clock.now(), self._mapping)
        self._arm()
        return events


@dataclass(slots=True)
class State:
    """Of one link in one direction, as operators read it."""

    link: str
    direction: Direction
    state: str = "connecting"
    """connecting, connected, retrying."""
    since: int = 0
    """Instant in ms since the epoch."""
    error: str = ""
    """What ended the last connection. Without secrets."""
    addresses: int = 0
    messages: int = 0
    """Carried since the node took the lease."""
    retries: int = 0

    def as_dict(self) -> dict[str, Any]:
        return {
            "link": self.link, "direction": self.direction.value, "state": self.state, "since": self.since, "error": self.error,
            "addresses": self.addresses, "messages": self.messages, "retries": self.retries,
        }  # fmt: skip


class _Keeper:
    """Of one link and direction: connects, carries, and connects again."""

    def __init__(self, node: Node, link: ForeignLink, direction: Direction, routes: Mapping[str, str], state: State) -> None:
        self.link, self.direction, self.routes, self.state = link, direction, routes, state
        self._node = node
        self._back_off = BackOff()
        self._cautious = False
        self.task = asyncio.create_task(self._keep(), name=f"foreign link {link.name} {direction.value}")

    def is_for(self, link: ForeignLink, routes: Mapping[str, str]) -> bool:
        return self.link == link and self.routes == routes

    async def _keep(self) -> None:
        name, state = self.link.name, self.state
        state.addresses = len(self.routes)
        while True:
            before = state.messages
            began = self._node.clock.now()
            sentence = self.link.redacted(await self._carry())
            if state.messages > before or (state.state == "connected" and self._node.clock.now() - state.since > STEADY_MS):
                self._back_off.succeeded()
            wait = self._back_off.failed(random.random())  # noqa: S311  # it is to be different, not secret
            told = logging.WARNING if sentence != state.error or state.state == "connected" else logging.DEBUG
            log.log(told, "Link %s (%s) is down: %s. Again in %.1f s, and so on.", name, self.direction.value, sentence, wait / 1000)
            state.since = state.since if state.state == "retrying" else max(self._node.clock.now(), began)
            state.state, state.error = "retrying", sentence
            state.retries += 1
            await asyncio.sleep(wait / 1000)

    async def _carry(self) -> str:
        """One connection from begin to end. Why it ended."""
        link, out = self.link, self.direction is Direction.OUT
        far = Access(f"{link.host}:{link.port}", link.login, link.passcode, link.virtual_host, link.heart_beat_ms, link.kind)
        here = Access(HERE, kind=SURETY)
        source, target = (here, far) if out else (far, here)
        cautious = self._cautious
        counted, now = self.state.messages, self._node.clock.now
        carrier = Carrier(self.routes, source, target, now(), cautious=cautious, redacted=link.redacted)
        line = Line(carrier, now, lambda carrier: self._note(carrier, counted))
        near_socket, far_socket = (line.source, line.target) if out else (line.target, line.source)
        try:
            await asyncio.wait_for(self._connect(link, far_socket), CONNECT_MS_MAX / 1000)
            await self._join(near_socket)
            await line.run()
        except TimeoutError:
            return f"{far.broker}: no connection within {CONNECT_MS_MAX // 1000} s"
        except (OSError, ValueError) as error:  # of the network and of TLS; of a host's name, or certificates, that cannot be one
            return f"{far.broker}: {error.__class__.__name__}: {error}"
        finally:
            line.close()
            self._cautious = carrier.nameless or (cautious and not carrier.refused and carrier.carried < CAUTIOUS_FOR)
        return carrier.ended

    def _note(self, carrier: Carrier, counted: int) -> None:
        state = self.state
        state.messages = counted + carrier.carried
        if carrier.is_open and not carrier.ended and state.state != "connected":
            state.state, state.since = "connected", self._node.clock.now()
            log.info("Link %s (%s) is up: %s:%d", self.link.name, self.direction.value, self.link.host, self.link.port)

    @staticmethod
    async def _connect(link: ForeignLink, far: LineEnd) -> None:
        context = None
        if link.tls:
            context = ssl.create_default_context(cadata=link.certificates or None)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: far, link.host, link.port, ssl=context, server_hostname=link.host if link.tls else None)

    async def _join(self, near: LineEnd) -> None:
        """A connection of this broker's own."""
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        mapping = LevelMapping(self.link.persistent_reliability, self.link.nonpersistent_reliability)
        await loop.create_unix_connection(lambda: ForwarderPeer(self._node, mapping), sock=theirs)
        await loop.create_unix_connection(lambda: near, sock=ours)


class Forwarding:
    """All links of the node. `links` asks the database for them."""

    def __init__(self, node: Node, links: Callable[[], Awaitable[Sequence[ForeignLink]]]) -> None:
        self._node = node
        self._links = links
        self._keepers: dict[tuple[str, Direction], _Keeper] = {}
        self._states: dict[tuple[str, Direction], State] = {}
        self._closed = False
        self._unknown: frozenset[str] = frozenset()

    async def run(self) -> None:
        """As long as the term lasts. Raises what its carriers cannot go on for, and what the database does."""
        try:
            while not self._closed:
                await self._follow(await self._links())
                for keeper in self._keepers.values():
                    if keeper.task.done():
                        keeper.task.result()
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            await self.close()
        await asyncio.Event().wait()

    async def close(self) -> None:
        """What is on its way is waited for a little; nothing more is taken."""
        self._closed = True
        keepers, self._keepers = list(self._keepers.values()), {}
        await self._end(keepers)

    @staticmethod
    async def _end(keepers: Sequence[_Keeper]) -> None:
        for keeper in keepers:
            keeper.task.cancel()
        await asyncio.gather(*(keeper.task for keeper in keepers), return_exceptions=True)

    async def _follow(self, links: Sequence[ForeignLink]) -> None:
        """Carriers for what there is now; one of which anything changed begins anew."""
        known = {link.name: link for link in links}
        wanted: dict[tuple[str, Direction], tuple[ForeignLink, dict[str, str]]] = {}
        unknown: dict[str, None] = {}
        for address, (name, far) in self._node.host.foreign_routes().items():
            if name in known:
                wanted.setdefault((name, Direction.OUT), (known[name], {}))[1][f"/{address}"] = far
            else:
                unknown[name] = None
        for link in links:
            if link.takes:
                wanted[link.name, Direction.IN] = link, {far: f"/{address}" for far, address in link.takes.items()}
        for name in unknown:
            if name not in self._unknown:
                log.warning("Queues are to be forwarded over link %s, which nobody has defined: their messages wait", name)
        self._unknown = frozenset(unknown)
        over = [key for key, keeper in self._keepers.items() if key not in wanted or not keeper.is_for(*wanted[key])]
        await self._end([self._keepers.pop(key) for key in over])
        for key in [key for key in self._states if key not in wanted]:
            del self._states[key]
        if self._closed:
            return
        for key, (link, routes) in wanted.items():
            if key not in self._keepers:
                state = self._states.setdefault(key, State(link.name, key[1]))
                state.state, state.since = "connecting", self._node.clock.now()
                self._keepers[key] = _Keeper(self._node, link, key[1], routes, state)

    def metrics(self) -> dict[str, Any]:
        """For node_status.metrics."""
        states = list(self._states.values())
        return {
            "foreign_links": len(states),
            "foreign_links_connected": sum(state.state == "connected" for state in states),
            "foreign_messages_forwarded_total": self._total(Direction.OUT),
            "foreign_messages_taken_total": self._total(Direction.IN),
            "foreign_queues_without_link": len(self._unknown),
            "foreign": [state.as_dict() for state in states],
        }

    def _total(self, direction: Direction) -> int:
        return sum(keeper.state.messages for key, keeper in self._keepers.items() if key[1] is direction)
