"""What a client asks for that takes a while, logins and large bodies (R16), one after the other with what came behind them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Generic, Protocol, TypeVar

from broker_core.engine.commands import Command, send_of
from broker_core.engine.message import Message
from broker_core.store import SpaceExhausted

from .large_bodies import IncomingBody
from .listening import Node

SPACE_POLL_SECONDS = 0.2
"""A large body waits for disk space, and looks for it so often."""

EventT = TypeVar("EventT")
LoginT = TypeVar("LoginT")


class Consuming(Protocol):
    """A connection, as its intake sees it."""

    @property
    def subscribed(self) -> bool:
        """What it settles could not be read while something of it waits."""


class Intake(Generic[EventT, LoginT]):
    """Of one connection."""

    def __init__(
        self,
        node: Node,
        connection: Consuming,
        log_in: Callable[[LoginT], Awaitable[list[EventT]]],
        submit: Callable[[list[Command]], None],
        refuse_for_space: Callable[[str], None],
        idle: Callable[[], None],
    ) -> None:
        """`log_in` returns what the client sent behind its login; `refuse_for_space` ends the connection; `idle` is called when everything is worked off."""
        self._node = node
        self._connection = connection
        self._log_in = log_in
        self._submit = submit
        self._refuse_for_space = refuse_for_space
        self._idle = idle
        self._events: deque[EventT] = deque()
        self._bodies: dict[Message | None, IncomingBody] = {}
        """Under way, by their messages; None: of the only message that can be under way, which is not known before its body."""
        self._working: asyncio.Task[None] | None = None
        self.busy = False
        """Whatever comes must wait its turn here."""

    @property
    def amid_body(self) -> bool:
        """Parts of large bodies are here and their Sends are not: those need the bodies' numbers."""
        return bool(self._bodies)

    def take(self, events: Iterable[EventT]) -> None:
        self._events.extend(events)
        if self._working is None:
            self.busy = True
            self._working = asyncio.create_task(self._work_off())
            self._working.add_done_callback(self._ended)

    def cancel(self) -> None:
        """The connection is gone. It stays amid its bodies: nothing that comes behind their parts may pass for a whole message."""
        self._events.clear()
        if self._working is not None:
            self._working.cancel()
        for body in self._bodies.values():
            body.cancel()

    # -- what differs by protocol -------------------------------------------------------------------------------------------------------
    async def _do(self, event: EventT) -> None:
        raise NotImplementedError

    def _key_of(self, message: Message) -> Message | None:
        """Of a large body that is here."""
        return message

    # -- one after the other ------------------------------------------------------------------------------------------------------------
    async def _work_off(self) -> None:
        try:
            while self._events:
                await self._do(self._events.popleft())
        except SpaceExhausted as error:
            if not self._node.host.space_low:
                self._node.host.exhausted(str(error))
            self._events.clear()
            self._refuse_for_space("the broker has no disk space for this message; send it again later")
        finally:
            self._working = None
            self.busy = False
        self._idle()

    def _ended(self, working: asyncio.Task[None]) -> None:
        """Whatever it failed for, the node cannot go on: host.run raises it."""
        if not working.cancelled() and (error := working.exception()) is not None:
            self._node.host.fail(error)

    # -- what events ask for ------------------------------------------------------------------------------------------------------------
    async def _begin(self, login: LoginT) -> None:
        self._events.extendleft(reversed(await self._log_in(login)))

    async def _store_part(self, message: Message | None, octets: bytes) -> None:
        while self._node.host.space_low:
            if self._connection.subscribed:
                raise SpaceExhausted("below the minimum")
            await asyncio.sleep(SPACE_POLL_SECONDS)
        body = self._bodies.get(message)
        if body is None:
            body = self._bodies[message] = IncomingBody(self._node.store, self._node.host.fail, self._node.host.discard_body)
        await body.take(octets)

    async def _apply(self, command: Command) -> None:
        send = send_of(command)
        if send is not None and send.message.body is None:
            key = self._key_of(send.message)
            number = await self._bodies[key].finish()
            del self._bodies[key]
            send.message.keep_apart(number)
        self._submit([command])
