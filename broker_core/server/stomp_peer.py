"""A STOMP client's socket: pumps bytes through the STOMP machine, commands to the host, outputs back; stores and streams large bodies."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from typing import cast

from broker_core.engine.commands import Command, Send, Start, Stop
from broker_core.engine.effects import Delivered, Output
from broker_core.engine.message import VOLATILE, StoredBody
from broker_core.stomp.login import Login
from broker_core.stomp.connection import BodyPart, Connection, Event
from broker_core.store import SpaceExhausted

from .listening import Node

log = logging.getLogger("surety.stomp")

SEND_BUFFER_LOW = 4
"""Delivering goes on when the send buffer has fallen to a quarter."""
PARTS_WAITING = 2
"""Parts of a large body between socket and store: 2 MiB a connection."""

SPACE_POLL_SECONDS = 0.2
"""A large body waits for disk space, and looks for it so often."""


class StompPeer(asyncio.Protocol):
    def __init__(self, node: Node) -> None:
        self._node = node
        self._number = node.number_peer()
        self._connection = Connection(
            self._number, node.stomp_limits, node.server_name, node.instance, node.clock.now(), node.stomp_sections
        )
        self._transport: asyncio.Transport | None = None
        self._remote = ""
        self._timer: asyncio.TimerHandle | None = None
        self._later: deque[Event] = deque()
        """What must wait for a login or for a large body on its way to the store."""
        self._chain: asyncio.Task[None] | None = None
        self._storing: asyncio.Task[int] | None = None
        self._parts: asyncio.Queue[bytes | None] = asyncio.Queue(PARTS_WAITING)
        self._outgoing: deque[bytes | StoredBody] = deque()
        """What must wait for a large body on its way to the socket."""
        self._streaming: asyncio.Task[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._reading = True
        self._congested = False
        self._held = False

    # -- socket -------------------------------------------------------------------------------------------------------------------------
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        limit = self._node.config.send_buffer_octets_max
        self._transport.set_write_buffer_limits(limit, limit // SEND_BUFFER_LOW)
        name = self._transport.get_extra_info("peername")
        self._remote = name[0] if name else ""
        problem = self._node.admit(self)
        if problem:
            self._connection.refuse(problem)
            self._flush()
            return
        self._node.host.join(self._number, self)
        self._arm()

    def data_received(self, data: bytes) -> None:
        events = self._connection.receive_data(data, self._node.clock.now())
        if events:
            kinds = set(map(type, events))
            if self._chain is not None or Login in kinds or BodyPart in kinds:
                self._later.extend(events)
                self._go_on()
            else:
                self._submit(cast("list[Command]", events))
        self._flush()
        self._regulate()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._node.dismiss(self)
        self._node.host.leave(self._number)
        for task in (self._chain, self._storing, self._streaming):
            if task is not None:
                task.cancel()
        if self._timer is not None:
            self._timer.cancel()
        lost = self._connection.receive_eof(self._node.clock.now())
        if lost:
            self._node.host.submit(cast("list[Command]", lost))
        reason = self._connection.close_reason or (str(exc) if exc else "closed")
        log.debug("Connection %d from %s ended: %s", self._number, self._remote, reason)

    def pause_writing(self) -> None:
        self._writable.clear()
        self._node.host.submit([Stop(self._number)])

    def resume_writing(self) -> None:
        self._writable.set()
        self._node.host.submit([Start(self._number)])

    # -- to the engine ------------------------------------------------------------------------------------------------------------------
    def _submit(self, commands: list[Command]) -> None:
        host = self._node.host
        host.submit(commands)
        held = host.held_octets(self._number)
        if held and self._connection.subscribed:
            self._limit_held(held)
        elif (held or host.congested) and not self._congested:
            self._congested = True
            host.wait_for_flush(self._number, self)

    def _limit_held(self, octets: int) -> None:
        """A connection with subscriptions is read on, for its ACKs; its sends may wait for disk space up to a limit (R20)."""
        limit = self._node.config.unconfirmed_octets_max
        if octets > limit:
            self._connection.refuse(f"the broker has no disk space and keeps no more than {limit} octets of this connection waiting")

    def resume(self) -> None:
        self._congested = False
        self._regulate()

    def _regulate(self) -> None:
        """Read only while what is read can be taken in."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        reading = not (self._held or self._congested or self._connection.wants_pause or self._chain is not None)
        if reading != self._reading:
            self._reading = self._connection.listening = reading
            if reading:
                transport.resume_reading()
            else:
                transport.pause_reading()

    def _go_on(self) -> None:
        if self._chain is None:
            self._chain = asyncio.create_task(self._work_off())

    async def _work_off(self) -> None:
        """Logins and large bodies, one event after the other; reading pauses meanwhile."""
        try:
            while self._later:
                event = self._later.popleft()
                if isinstance(event, Login):
                    await self._log_in(event)
                elif isinstance(event, BodyPart):
                    await self._store_part(event.octets)
                elif isinstance(event, Send) and event.message.body is None:
                    await self._finish_body(event)
                else:
                    self._submit([event])
        except SpaceExhausted as error:
            if not self._node.host.space_low:
                self._node.host.exhausted(str(error))
            self._later.clear()
            self._connection.refuse("the broker has no disk space for this message; send it again later")
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever it is, the node cannot go on: host.run raises it
            self._node.host.fail(error)
        finally:
            self._chain = None
        self._flush()
        self._regulate()

    async def _log_in(self, login: Login) -> None:
        account, problem = await self._node.accounts.check(login.login, login.passcode, self._remote)
        if account is None:
            self._node.metrics.refused_logins += 1
            log.warning("Login of %r from %s refused: %s", login.login, self._remote, problem)
            self._connection.reject(problem)
            return
        session = f"{self._node.instance}-{self._number}"
        self._later.extendleft(reversed(self._connection.accept(account, session, self._node.clock.now())))

    # -- large bodies in ----------------------------------------------------------------------------------------------------------------
    async def _store_part(self, octets: bytes) -> None:
        while self._node.host.space_low:
            if self._connection.subscribed:  # its ACKs could not be read while this waits
                raise SpaceExhausted("below the minimum")
            await asyncio.sleep(SPACE_POLL_SECONDS)
        if self._storing is None:
            self._parts = asyncio.Queue(PARTS_WAITING)
            self._storing = asyncio.create_task(self._node.store.write_body(_until_none(self._parts)))
        put = asyncio.ensure_future(self._parts.put(octets))
        await asyncio.wait({put, self._storing}, return_when=asyncio.FIRST_COMPLETED)
        if not put.done():  # the store gave up
            put.cancel()
            await self._storing

    async def _finish_body(self, send: Send) -> None:
        assert self._storing is not None, "a large body's Send comes after its parts"
        await self._store_part_end()
        body = await self._storing
        self._storing = None
        send.message.body = StoredBody(body, send.message.size - len(send.message.header.octets))
        self._submit([send])

    async def _store_part_end(self) -> None:
        assert self._storing is not None
        put = asyncio.ensure_future(self._parts.put(None))
        await asyncio.wait({put, self._storing}, return_when=asyncio.FIRST_COMPLETED)
        put.cancel()

    # -- from the engine ----------------------------------------------------------------------------------------------------------------
    def deliver(self, outputs: list[Output]) -> None:
        self._connection.send(outputs, self._node.clock.now())
        self._flush()
        for output in outputs:
            if output.__class__ is Delivered:
                for message in output.messages:
                    # Framed: from now on the body of a stored message is only in the store (see engine.subscription).
                    if message.header.lane < VOLATILE and message.body.__class__ is bytes:
                        message.body = None
        self._regulate()

    def _flush(self) -> None:
        """Write what the machine has to say; behind a body that is being streamed it waits."""
        transport = self._transport
        if transport is None:
            return
        for piece in self._connection.data_to_send():
            if self._streaming is None and piece.__class__ is bytes:
                transport.write(piece)
            else:
                self._outgoing.append(piece)
                if self._streaming is None:
                    self._streaming = asyncio.create_task(self._stream())
        if self._connection.wants_close and self._streaming is None:
            transport.close()

    async def _stream(self) -> None:
        """Large bodies out, chunk by chunk, at the socket's pace."""
        try:
            while self._outgoing and self._transport is not None:
                piece = self._outgoing.popleft()
                if isinstance(piece, bytes):
                    self._transport.write(piece)
                    continue
                await self._stream_body(piece)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001  # as above
            self._node.host.fail(error)
        finally:
            self._streaming = None
        self._flush()

    async def _stream_body(self, body: StoredBody) -> None:
        async for chunk in self._node.store.read_body(body.body):
            await self._writable.wait()
            transport = self._transport
            if transport is None:
                return
            transport.write(chunk)

    # -- time ---------------------------------------------------------------------------------------------------------------------------
    def _arm(self) -> None:
        """One timer. The deadline only recedes with traffic, so it is looked at again when it fires."""
        deadline = self._connection.next_deadline()
        now = self._node.clock.now()
        delay = 1.0 if deadline is None else max((deadline - now) / 1000, 0.01)
        self._timer = asyncio.get_running_loop().call_later(min(delay, 60.0), self._tick)

    def _tick(self) -> None:
        events = self._connection.tick(self._node.clock.now())
        if events:
            self._submit(cast("list[Command]", events))
        self._flush()
        if self._transport is not None:
            self._arm()

    def hold(self) -> None:
        self._held = True
        self._regulate()

    def shut(self, sentence: str) -> None:
        """The node stops: say why and close."""
        self._connection.refuse(sentence)
        self._flush()


async def _until_none(parts: asyncio.Queue[bytes | None]) -> AsyncIterator[bytes]:
    while (part := await parts.get()) is not None:
        yield part
