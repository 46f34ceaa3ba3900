"""A STOMP client's socket: pumps bytes through the STOMP machine, commands to the host, outputs back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any, cast

from broker_core.engine.commands import Command, Settle, Start, Stop
from broker_core.engine.effects import Confirmed, Delivered, Output
from broker_core.engine.message import VOLATILE
from broker_core.stomp.connection import BodyPart, Connection, Event
from broker_core.stomp.login import Login
from broker_core.stomp.mapping import quoted
from broker_core.store import BodyMissing

from .auth import REFUSED
from .backlog import Backlog
from .intake import Intake
from .large_bodies import OutgoingBodies
from .listening import Node
from .reachable import is_reachable

log = logging.getLogger("surety.stomp")

SEND_BUFFER_LOW = 4
"""Delivering goes on when the send buffer has fallen to a quarter."""
CLOSE_SECONDS = 10.0
"""What is written last must have been read by then; a peer that reads nothing would else keep its connection for ever."""
UNREAD_OCTETS_MAX = 4 << 20
"""Receipts that wait behind a full send buffer. Beyond, the peer is not read from: it would make us keep ever more of them. More than the
receipts of 65,535 ACKs, the largest prefetch, so that a client that reads and acknowledges in turn always gets on."""
COMMAND_EFFORT = 2
"""Microseconds that every command takes."""
RECEIPT_OCTETS = 24
"""A RECEIPT frame without its receipt-id's value."""


class StompPeer(asyncio.Protocol):
    def __init__(self, node: Node) -> None:
        self._node = node
        self._number = node.number_peer()
        self._connection = Connection(
            self._number, node.stomp_limits, node.server_name, node.instance, node.clock.now(), node.stomp_sections, node.to_stomp
        )
        self._transport: asyncio.Transport | None = None
        self._remote = ""
        self._account = ""
        """Its login is right; empty: not known yet."""
        self._timer: asyncio.TimerHandle | None = None
        self._backlog = Backlog(self._parse, self._submit, lambda: not self._intake.busy, lambda: not self._congested, self._after_turn)
        self._intake = Intake(node, self._connection, self._log_in, self._backlog.append, self._worked_off)
        self._outgoing = OutgoingBodies(node.store, self._number)
        self._streaming: asyncio.Task[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
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
        if events:
            kinds = set(map(type, events))
            if self._intake.busy or self._intake.amid_body or Login in kinds or BodyPart in kinds:
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
        self._outgoing.clear()
        self._congested = False
        reason = self._connection.close_reason or (str(exc) if exc else "closed")
        log.debug("Connection %d from %s ended: %s", self._number, self._remote, reason)
        if self._connection.wants_close or not self._backlog:
            self._end()
            return
        # What it asked for before it went is done, but nothing is delivered to it any more.
        self._node.host.submit([Stop(self._number)])
        self._backlog.put_back(self._outgoing.release())

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
        stopped = self._streaming is not None or self._greedy or not self._writable.is_set()
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
        if self._streaming is not None and self._transport is not None:
            commands = self._outgoing.hold(commands)
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
        """A connection with subscriptions is read on, for its ACKs; its sends may wait for disk space up to a limit (R20)."""
        limit = self._node.config.unconfirmed_octets_max
        if octets > limit:
            self._connection.refuse(f"the broker has no disk space and keeps no more than {limit} octets of this connection waiting")

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
        if self._streaming is not None:
            waiting = waiting or self._outgoing.is_full
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

    async def _log_in(self, login: Login) -> list[Event]:
        account, problem = await self._node.accounts.check(login.login, login.passcode, self._remote)
        if account is None:
            self._node.metrics.refused_logins += 1
            told = logging.WARNING if problem == REFUSED else logging.DEBUG  # who is throttled must not fill the log either
            log.log(told, "Login of %r from %s refused: %s", login.login[:80], self._remote, problem)
            self._connection.reject(problem)
            return []
        self._account = account
        self._node.sessions.begin(self, account)  # before anything is waited for: a change of the account, heard now, ends this login
        found = await self._node.accounts.administered(login.lookup) if login.lookup else ""
        if found is None:
            self._connection.reject(f"no administered object is called {quoted(login.lookup)}")
            return []
        problem = await self._node.client_ids.claim(login.client_id, account, self, login.shares_client_id)
        if problem:
            self._connection.reject(problem)
            return []
        self._client_id = login.client_id
        if self._transport is None:  # it went while the identifier was being looked into
            self._node.client_ids.release(login.client_id, self)
            return []
        session = f"{self._node.instance}-{self._node.epoch}-{self._number}"
        events = self._connection.accept(account, session, self._node.clock.now(), self._node.accounts.mapping(account), found)
        self._arm()
        return events

    # -- from the engine ----------------------------------------------------------------------------------------------------------------
    def deliver(self, outputs: list[Output]) -> None:
        self._connection.send(outputs, self._node.clock.now())
        if not self._writable.is_set():
            self._unread += sum(_receipt_octets(output.token) for output in outputs if output.__class__ is Confirmed)
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
        """Write what the machine has to say; behind a body that is being streamed it waits."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        for piece in self._connection.data_to_send():
            if self._streaming is None and piece.__class__ is bytes:
                transport.write(piece)
            else:
                self._outgoing.append(piece)
                if self._streaming is None:
                    self._streaming = asyncio.create_task(self._stream())
                    self._stop_or_start()
        if self._connection.wants_close:
            # At once, before the host says `released`: what the closed machine no longer writes is the engine's to deliver to others.
            self._tell_lost()
            if self._severing is None:
                self._severing = asyncio.get_running_loop().call_later(CLOSE_SECONDS, self.sever)
            if self._streaming is None:
                transport.close()

    def _tell_lost(self) -> None:
        """The engine's PeerLost, once."""
        lost = self._connection.receive_eof(self._node.clock.now())
        for body in self._backlog.drop():
            self._node.host.discard_body(body)
        if lost:
            self._node.host.submit([*self._outgoing.release(), *cast("list[Command]", lost)])

    async def _stream(self) -> None:
        """Large bodies out, chunk by chunk, at the socket's pace, and what waits behind them."""
        try:
            async with aclosing(self._outgoing.chunks()) as chunks:
                async for chunk in chunks:
                    if isinstance(chunk, Settle):
                        self._node.host.submit([chunk])
                        continue
                    await self._writable.wait()
                    if self._transport is None or self._transport.is_closing():
                        return
                    self._transport.write(chunk)
        except asyncio.CancelledError:
            raise
        except BodyMissing as error:  # its destination was deleted meanwhile; its frame has begun and cannot end
            log.warning("Connection %d from %s is closed: %s", self._number, self._remote, error)
            self.sever()
        except Exception as error:  # noqa: BLE001  # as above
            self._node.host.fail(error)
        finally:
            self._streaming = None
            if self._transport is not None:
                self._backlog.put_back(self._outgoing.release())
            self._stop_or_start()
        self._worked_off()

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
        events = self._connection.tick(self._node.clock.now())
        if events:
            self._submit(cast("list[Command]", events))
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
        if self._streaming is not None:  # a probe would stand in the middle of a frame; a body that does not move ends the connection anyway
            return True
        return await is_reachable(self._transport, b"\n")  # an end of line between frames means nothing (STOMP 1.2, "Augmented BNF")

    async def severed(self) -> None:
        self.sever()
        if self._transport is not None:
            await self._lost.wait()


def _receipt_octets(token: Any) -> int:
    receipt = token if isinstance(token, bytes) else token.receipt
    return RECEIPT_OCTETS + len(receipt or b"")
