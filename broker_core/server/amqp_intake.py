"""What an AMQP client asks for that takes a while, logins and large bodies (R16), one after the other with what came behind them. Of large bodies several
may be under way: their parts come in turns, each on a link of its own."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable

from broker_core.amqp.connection import Connection, Event
from broker_core.amqp.opening import Opening
from broker_core.amqp.receiver import BodyDropped, BodyPart
from broker_core.amqp.sasl import Login, Proof
from broker_core.engine.commands import Command, Send, send_of
from broker_core.engine.message import Message
from broker_core.store import SpaceExhausted

from .intake import SPACE_POLL_SECONDS
from .large_bodies import IncomingBody
from .listening import Node

SLOW = frozenset((Login, Proof, Opening, BodyPart, BodyDropped))
"""Events that are none for the engine."""


class AmqpIntake:
    """Of one connection. `log_in` returns what the client sent behind its login or its open; `idle` is called when everything is worked off."""

    def __init__(
        self,
        node: Node,
        connection: Connection,
        log_in: Callable[[Login | Proof | Opening], Awaitable[list[Event]]],
        submit: Callable[[list[Command]], None],
        idle: Callable[[], None],
    ) -> None:
        self._node = node
        self._connection = connection
        self._log_in = log_in
        self._submit = submit
        self._idle = idle
        self._events: deque[Event] = deque()
        self._bodies: dict[Message, IncomingBody] = {}
        self._working: asyncio.Task[None] | None = None
        self.busy = False
        """Whatever comes must wait its turn here."""

    @property
    def amid_body(self) -> bool:
        """Parts of large bodies are here and their Sends are not."""
        return bool(self._bodies)

    def take(self, events: Iterable[Event]) -> None:
        self._events.extend(events)
        if self._working is None:
            self.busy = True
            self._working = asyncio.create_task(self._work_off())
            self._working.add_done_callback(self._ended)

    def cancel(self) -> None:
        """The connection is gone."""
        self._events.clear()
        if self._working is not None:
            self._working.cancel()
        for body in self._bodies.values():
            body.cancel()
        self._bodies.clear()

    async def _work_off(self) -> None:
        try:
            while self._events:
                event = self._events.popleft()
                if isinstance(event, Login | Proof | Opening):
                    self._events.extendleft(reversed(await self._log_in(event)))
                elif isinstance(event, BodyPart):
                    await self._store_part(event)
                elif isinstance(event, BodyDropped):
                    self._drop(event)
                else:
                    if (send := send_of(event)) is not None and send.message.body is None:
                        await self._finish_body(send)
                    self._submit([event])
        except SpaceExhausted as error:
            if not self._node.host.space_low:
                self._node.host.exhausted(str(error))
            self._events.clear()
            self._connection.refuse("the broker has no disk space for this message; send it again later", "amqp:resource-limit-exceeded")
        finally:
            self._working = None
            self.busy = False
        self._idle()

    def _ended(self, working: asyncio.Task[None]) -> None:
        """Whatever it failed for, the node cannot go on: host.run raises it."""
        if not working.cancelled() and (error := working.exception()) is not None:
            self._node.host.fail(error)

    async def _store_part(self, part: BodyPart) -> None:
        while self._node.host.space_low:
            if self._connection.subscribed:  # its outcomes could not be read while this waits
                raise SpaceExhausted("below the minimum")
            await asyncio.sleep(SPACE_POLL_SECONDS)
        message = part.of.message
        assert message is not None, "a large body belongs to a message"
        body = self._bodies.get(message)
        if body is None:
            body = self._bodies[message] = IncomingBody(self._node.store, self._node.host.fail, self._node.host.discard_body)
        await body.take(part.octets)

    def _drop(self, dropped: BodyDropped) -> None:
        message = dropped.of.message
        body = self._bodies.pop(message, None) if message is not None else None
        if body is not None:
            body.cancel()

    async def _finish_body(self, send: Send) -> None:
        body = self._bodies[send.message]
        number = await body.finish()
        del self._bodies[send.message]
        send.message.keep_apart(number)
