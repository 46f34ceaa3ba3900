"""What a STOMP client asks for that takes a while, logins and large bodies (R16), one after the other with what came behind them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable

from broker_core.engine.commands import Command, Send, send_of
from broker_core.stomp.connection import BodyPart, Connection, Event
from broker_core.stomp.login import Login
from broker_core.store import SpaceExhausted

from .large_bodies import IncomingBody
from .listening import Node

SPACE_POLL_SECONDS = 0.2
"""A large body waits for disk space, and looks for it so often."""


class Intake:
    """Of one connection. `log_in` returns what the client sent behind its login; `idle` is called when everything is worked off."""

    def __init__(
        self,
        node: Node,
        connection: Connection,
        log_in: Callable[[Login], Awaitable[list[Event]]],
        submit: Callable[[list[Command]], None],
        idle: Callable[[], None],
    ) -> None:
        self._node = node
        self._connection = connection
        self._log_in = log_in
        self._submit = submit
        self._idle = idle
        self._events: deque[Event] = deque()
        self._body: IncomingBody | None = None
        self._working: asyncio.Task[None] | None = None
        self.busy = False
        """Whatever comes must wait its turn here."""

    @property
    def amid_body(self) -> bool:
        """Parts of a large body are here and its Send is not: whatever comes next is that, and needs the body's number."""
        return self._body is not None

    def take(self, events: Iterable[Event]) -> None:
        self._events.extend(events)
        if self._working is None:
            self.busy = True
            self._working = asyncio.create_task(self._work_off())
            self._working.add_done_callback(self._ended)

    def cancel(self) -> None:
        """The connection is gone."""
        self._events.clear()
        for work in (self._working, self._body):
            if work is not None:
                work.cancel()

    async def _work_off(self) -> None:
        try:
            while self._events:
                event = self._events.popleft()
                if isinstance(event, Login):
                    self._events.extendleft(reversed(await self._log_in(event)))
                elif isinstance(event, BodyPart):
                    await self._store_part(event.octets)
                elif (send := send_of(event)) is not None and send.message.body is None:
                    await self._finish_body(send)
                    self._submit([event])
                else:
                    self._submit([event])
        except SpaceExhausted as error:
            if not self._node.host.space_low:
                self._node.host.exhausted(str(error))
            self._events.clear()
            self._connection.refuse("the broker has no disk space for this message; send it again later")
        finally:
            self._working = None
            self.busy = False
        self._idle()

    def _ended(self, working: asyncio.Task[None]) -> None:
        """Whatever it failed for, the node cannot go on: host.run raises it."""
        if not working.cancelled() and (error := working.exception()) is not None:
            self._node.host.fail(error)

    async def _store_part(self, octets: bytes) -> None:
        while self._node.host.space_low:
            if self._connection.subscribed:  # its ACKs could not be read while this waits
                raise SpaceExhausted("below the minimum")
            await asyncio.sleep(SPACE_POLL_SECONDS)
        if self._body is None:
            self._body = IncomingBody(self._node.store, self._node.host.fail, self._node.host.discard_body)
        await self._body.take(octets)

    async def _finish_body(self, send: Send) -> None:
        assert self._body is not None, "a large body's Send comes after its parts"
        body = await self._body.finish()
        self._body = None
        send.message.keep_apart(body)
