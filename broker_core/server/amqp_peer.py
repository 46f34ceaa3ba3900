"""An AMQP client's socket: pumps octets through the AMQP machine, commands to the host, outputs back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import cast

from broker_core.amqp.connection import Connection, Event
from broker_core.amqp.frames import EMPTY_FRAME
from broker_core.amqp.opening import Opening, taken
from broker_core.amqp.sasl import Login, Proof
from broker_core.amqp.sender import Outgoing
from broker_core.engine.commands import Command, Start, Stop
from broker_core.engine.effects import Delivered, Output
from broker_core.engine.message import VOLATILE
from broker_core.store import BodyMissing

from .amqp_intake import SLOW, AmqpIntake
from .amqp_login import Authenticator, Challenge, mechanisms, subject_of
from .auth import REFUSED
from .backlog import Backlog
from .listening import Node
from .reachable import is_reachable

log = logging.getLogger("surety.amqp")

SEND_BUFFER_LOW = 4
"""Delivering goes on when the send buffer has fallen to a quarter."""
CLOSE_SECONDS = 10.0
"""What is written last must have been read by then; a peer that reads nothing would else keep its connection for ever."""
UNREAD_OCTETS_MAX = 4 << 20
"""Written behind a full send buffer, deliveries aside: outcomes and credit. Beyond, the peer is not read from: it would make us keep ever more of them."""
COMMAND_EFFORT = 2
"""Microseconds that every command takes."""


class AmqpPeer(asyncio.Protocol):
    def __init__(self, node: Node) -> None:
        self._node = node
        self._number = node.number_peer()
        self._connection: Connection
        self._intake: AmqpIntake
        self._authenticator: Authenticator
        self._transport: asyncio.Transport | None = None
        self._remote = ""
        self._account = ""
        """Its login is right; empty: not known yet."""
        self._timer: asyncio.TimerHandle | None = None
        self._backlog = Backlog(self._parse, self._submit, lambda: not self._intake.busy, lambda: not self._congested, self._after_turn)
        self._streaming: asyncio.Task[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._moved = asyncio.Event()
        """What was supplied of a large body may have left."""
        self._reading = True
        self._congested = False
        self._held = False
        self._greedy = False
        """Too much that was delivered is unsettled (R20)."""
        self._stopped = False
        """The engine was told to deliver nothing."""
        self._unread = 0
        self._severing: asyncio.TimerHandle | None = None
        self._client_id = ""
        self._lost = asyncio.Event()

    # -- socket -------------------------------------------------------------------------------------------------------------------------
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        node, self._transport = self._node, cast(asyncio.Transport, transport)
        limit = node.config.send_buffer_octets_max
        self._transport.set_write_buffer_limits(limit, limit // SEND_BUFFER_LOW)
        name = self._transport.get_extra_info("peername")
        self._remote = name[0] if name else ""
        subject = subject_of(self._transport.get_extra_info("peercert"))
        anonymous = node.config.amqp_anonymous_account
        self._authenticator = Authenticator(node.accounts, self._remote, subject, anonymous)
        offered = mechanisms(subject, anonymous)
        self._connection = Connection(self._number, node.amqp_limits, node.version, node.instance, node.clock.now(), offered, node.to_amqp)
        self._intake = AmqpIntake(node, self._connection, self._log_in, self._backlog.append, self._worked_off)
        problem = node.admit(self)
        if problem:
            self._connection.refuse(problem)
            self._flush()
            return
        node.host.join(self._number, self)
        self._arm()

    def data_received(self, data: bytes) -> None:
        if self._backlog:
            self._backlog.read(data)
        else:
            self._parse(data)
        self._flush()
        self._regulate()

    def _parse(self, data: bytes) -> int:
        """About how long it took, in microseconds."""
        connection = self._connection
        events = connection.receive_data(data, self._node.clock.now())
        effort = connection.effort
        if connection.unfinished:
            self._backlog.parse_more()
        self._moved.set()
        if events:
            if self._intake.busy or self._intake.amid_body or not SLOW.isdisjoint(map(type, events)):
                if self._transport is None:
                    self._backlog.forget_octets()  # nobody waits for a login, and a large body ends with its connection
                else:
                    self._intake.take(events)
            else:
                effort += self._submit(cast("list[Command]", events))
        return effort

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._node.dismiss(self)
        self._node.host.leave(self._number)
        if self._intake.busy:  # what it has not done is given up, and what comes behind it
            self._backlog.forget_octets()
        self._intake.cancel()
        for work in (self._streaming, self._timer, self._severing):
            if work is not None:
                work.cancel()
        self._congested = False
        reason = self._connection.close_reason or (str(exc) if exc else "closed")
        log.debug("Connection %d from %s ended: %s", self._number, self._remote, reason)
        if self._connection.wants_close or not self._backlog:
            self._end()
            return
        # What it asked for before it went is done, but nothing is delivered to it any more.
        self._node.host.submit([Stop(self._number)])
        self._backlog.go_on()

    def _end(self) -> None:
        """Of a connection that is lost, when everything that it asked for is done."""
        self._node.sessions.end(self, self._account)
        self._node.client_ids.release(self._client_id, self)
        self._tell_lost()
        self._lost.set()

    def _after_turn(self) -> None:
        """The backlog has done its part for now."""
        if self._transport is None:
            if self._connection.wants_close or not self._backlog:
                self._end()
            return
        self._flush()
        self._regulate()

    def pause_writing(self) -> None:
        self._writable.clear()
        self._stop_or_start()

    def resume_writing(self) -> None:
        self._writable.set()
        self._unread = 0
        self._stop_or_start()
        self._regulate()

    def _stop_or_start(self) -> None:
        """What the engine delivers while nothing can leave would only wait here, beyond every bound that links have."""
        stopped = self._streaming is not None or self._greedy or self._connection.choked or not self._writable.is_set()
        if stopped != self._stopped and self._transport is not None:
            self._stopped = stopped
            self._node.host.submit([Stop(self._number) if stopped else Start(self._number)])

    # -- to the engine ------------------------------------------------------------------------------------------------------------------
    def _submit(self, commands: Sequence[Command]) -> int:
        """As much as others may wait for; the rest later. About how long it took, in microseconds."""
        if self._backlog.has_commands:
            self._backlog.append(commands)
            return 0
        host = self._node.host
        left = host.submit_slice(commands)
        if left:
            self._backlog.put_back(left)
        held = host.held_octets(self._number)
        if held and self._connection.subscribed:
            self._limit_held(held)
        elif (held or host.congested) and not self._congested and self._transport is not None:
            self._congested = True
            host.wait_for_flush(self._number, self)
        return host.effort + COMMAND_EFFORT * (len(commands) - len(left))

    def _limit_held(self, octets: int) -> None:
        """A connection with consumers is read on, for their outcomes; its sends may wait for disk space up to a limit (R20)."""
        limit = self._node.config.unconfirmed_octets_max
        if octets > limit:
            sentence = f"the broker has no disk space and keeps no more than {limit} octets of this connection waiting"
            self._connection.refuse(sentence, "amqp:resource-limit-exceeded")

    def resume(self) -> None:
        self._congested = False
        self._backlog.go_on()
        self._regulate()

    def _regulate(self) -> None:
        """Read only while what is read can be taken in."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        waiting = bool(self._backlog) or self._held or self._congested or self._intake.busy or self._unread > UNREAD_OCTETS_MAX
        reading = not (waiting or self._connection.wants_pause)
        if reading != self._reading:
            self._reading = self._connection.listening = reading
            if reading:
                transport.resume_reading()
            else:
                transport.pause_reading()

    def _worked_off(self) -> None:
        if self._connection.unfinished:  # what came with the login
            self._backlog.parse_more()
        self._backlog.go_on()
        self._flush()
        self._regulate()

    # -- who it is ----------------------------------------------------------------------------------------------------------------------
    async def _log_in(self, said: Login | Proof | Opening) -> list[Event]:
        if isinstance(said, Opening):
            return await self._open(said)
        answer = await self._authenticator.answer(said)
        if isinstance(answer, Challenge):
            events = self._connection.challenge(answer.octets)
        elif answer.account is None:
            self._node.metrics.refused_logins += 1
            told = logging.WARNING if answer.sentence == REFUSED else logging.DEBUG  # who is throttled must not fill the log either
            log.log(told, "Login of %r from %s refused: %s", answer.login[:80], self._remote, answer.sentence)
            self._connection.reject(answer.sentence)
            events = []
        else:
            self._account = answer.account
            self._node.sessions.begin(self, answer.account)  # before anything is waited for: a change of the account, heard now, ends this login
            events = self._connection.accept(answer.account, self._node.accounts.mapping(answer.account), answer.additional)
        self._arm()
        return events

    async def _open(self, opening: Opening) -> list[Event]:
        """A container-id that is to be alone stands for a client identifier (JMS 6.1.2)."""
        if opening.sole:
            problem = await self._node.client_ids.claim(opening.container_id, self._account, self)
            if problem:
                self._connection.refuse_opening(taken(opening.container_id, problem))
                return []
            self._client_id = opening.container_id
            if self._transport is None:  # it went while the identifier was being looked into
                self._node.client_ids.release(opening.container_id, self)
                return []
        events = self._connection.open(f"{self._node.instance}-{self._node.epoch}-{self._number}", self._node.clock.now())
        self._arm()
        return events

    # -- from the engine ----------------------------------------------------------------------------------------------------------------
    def deliver(self, outputs: list[Output]) -> None:
        self._connection.send(outputs, self._node.clock.now())
        self._moved.set()
        self._flush()
        for output in outputs:
            if output.__class__ is Delivered:
                for message in output.messages:
                    # Framed: from now on the body of a stored message is only in the store. `engine.accounting.let_go`, written out: the hot path.
                    if message.holders > 1:
                        message.holders -= 1
                    elif message.header.lane < VOLATILE and message.body.__class__ is bytes:
                        message.body = None
        self._regulate()

    def _flush(self) -> None:
        """Write what the machine has to say, and see to a large body that is to leave."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        connection = self._connection
        for piece in connection.data_to_send():
            transport.write(piece)
            if not self._writable.is_set():
                self._unread += len(piece)
        if connection.commands:
            commands, connection.commands = connection.commands, []
            self._backlog.put_back(commands)
        if self._streaming is None and connection.wanted_body is not None:
            self._streaming = asyncio.create_task(self._stream())
        self._stop_or_start()
        if connection.wants_close:
            # At once, before the host says `released`: what the closed machine no longer writes is the engine's to deliver to others.
            self._tell_lost()
            if self._severing is None:
                self._severing = asyncio.get_running_loop().call_later(CLOSE_SECONDS, self.sever)
            transport.close()

    def _tell_lost(self) -> None:
        """The engine's PeerLost, once."""
        lost = self._connection.receive_eof(self._node.clock.now())
        for body in self._backlog.drop():
            self._node.host.discard_body(body)
        if lost:
            self._node.host.submit(cast("list[Command]", lost))

    async def _stream(self) -> None:
        """Large bodies out, chunk by chunk, at the pace of the socket and of the peer's session."""
        try:
            while (outgoing := self._connection.wanted_body) is not None:
                await self._send_body(outgoing)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001  # the node cannot go on
            self._node.host.fail(error)
        finally:
            self._streaming = None
        self._flush()
        self._regulate()

    async def _send_body(self, outgoing: Outgoing) -> None:
        assert outgoing.stored is not None
        connection = self._connection
        try:
            async with aclosing(cast("AsyncGenerator[bytes]", self._node.store.read_body(outgoing.stored.body))) as chunks:
                async for chunk in chunks:
                    while not outgoing.is_hungry and not outgoing.is_dropped:
                        self._moved.clear()
                        await self._moved.wait()
                    await self._writable.wait()
                    if outgoing.is_dropped or self._transport is None or self._transport.is_closing():
                        return
                    connection.supply(outgoing, chunk, self._node.clock.now())
                    self._flush()
            if outgoing.is_hungry:
                raise BodyMissing(f"body {outgoing.stored.body} is shorter than it was")
        except BodyMissing as error:  # its destination was deleted meanwhile; the delivery has begun and is aborted
            log.info("A delivery on connection %d to %s is aborted: %s", self._number, self._remote, error)
            connection.abort(outgoing)

    # -- time ---------------------------------------------------------------------------------------------------------------------------
    def _arm(self) -> None:
        """One timer. The deadline only recedes with traffic, so it is looked at again when it fires; but for the login, after which it is another."""
        if self._timer is not None:
            self._timer.cancel()
        deadline = self._connection.next_deadline()
        if deadline is None:
            self._timer = None
            return
        delay = max((deadline - self._node.clock.now()) / 1000, 0.01)
        self._timer = asyncio.get_running_loop().call_later(delay, self._tick)

    def _tick(self) -> None:
        self._connection.tick(self._node.clock.now())
        self._flush()
        if self._transport is not None:
            self._arm()

    def hold(self) -> None:
        self._held = True
        self._regulate()

    def bound_unsettled(self, most: int) -> None:
        unsettled = self._node.host.unsettled(self._number)
        self._greedy = unsettled > most - max(most // 4, 1) if self._greedy else unsettled >= most
        self._stop_or_start()

    def shut(self, sentence: str) -> None:
        """Say why and close: the node stops, or the account may not go on."""
        self._connection.refuse(sentence)
        self._flush()

    def sever(self) -> None:
        """Close at once, whatever the peer has not read."""
        if self._transport is not None:
            self._transport.abort()

    async def is_alive(self) -> bool:
        if self._transport is None:
            return False
        return not self._connection.has_begun or await is_reachable(self._transport, EMPTY_FRAME)

    async def severed(self) -> None:
        self.sever()
        if self._transport is not None:
            await self._lost.wait()
