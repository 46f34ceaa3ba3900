"""A client's socket, whatever it speaks: pumps octets through the machine of its protocol, commands to the host, outputs back."""

from __future__ import annotations

import asyncio
import logging
from typing import ClassVar, cast

from broker_core.engine.commands import Command, Stop
from broker_core.engine.message import VOLATILE
from broker_core.engine.outputs import Confirmed, Delivered, Detached, Output, Refused
from broker_core.engine.producers import Producers
from broker_core.engine.refusal import Refusal

from .auth import REFUSED
from .flow import FlowControl, MachineT
from .listening import Node

SEND_BUFFER_LOW = 4
"""Delivering goes on when the send buffer has fallen to a quarter."""
CLOSE_SECONDS = 10.0
"""What is written last must have been read by then; a peer that reads nothing would else keep its connection for ever."""
LEAVING_SECONDS = 60.0
"""The last word of a peer that has shut its end down is answered by then, or it is taken for gone."""


class SocketPeer(FlowControl[MachineT]):
    """Of one connection. Its machine and its intake are there at the latest when `_greet` returns."""

    SLOW: ClassVar[frozenset[type]]
    """Events that are the intake's, and whatever comes behind them."""
    LOG: ClassVar[logging.Logger]
    PROTOCOL: ClassVar[str]

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self._remote = ""
        self._account = ""
        """Its login is right; empty: not known yet."""
        self._client_id = ""
        self._timer: asyncio.TimerHandle | None = None
        self._severing: asyncio.TimerHandle | None = None
        self._leaving: asyncio.TimerHandle | None = None
        self._lost = asyncio.Event()

    # -- what differs by protocol -------------------------------------------------------------------------------------------------------
    def _greet(self) -> None:
        """The transport is known."""

    def _flush(self) -> None:
        """Write what the machine has to say."""
        raise NotImplementedError

    async def is_alive(self) -> bool:
        """There is somebody at the other end."""
        raise NotImplementedError

    def _said(self, outputs: list[Output]) -> None:
        """The machine has them, and nothing is written yet."""

    def _released(self) -> list[Command]:
        """Commands that waited behind bodies."""
        return []

    def _forget_outgoing(self) -> None:
        """The connection is lost."""

    # -- socket -------------------------------------------------------------------------------------------------------------------------
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        limit = self._node.config.send_buffer_octets_max
        self._transport.set_write_buffer_limits(limit, limit // SEND_BUFFER_LOW)
        name = self._transport.get_extra_info("peername")
        self._remote = name[0] if name else ""
        self._greet()
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
            if self._intake.busy or self._intake.amid_body or not self.SLOW.isdisjoint(map(type, events)):
                if self._transport is None:
                    self._backlog.forget_octets()  # nobody waits for a login, and a large body ends with its connection
                else:
                    self._intake.take(events)
            else:
                effort += self._submit(cast("list[Command]", events))
        return effort

    def eof_received(self) -> bool:
        """Clients shut their end down behind their last word, and wait for the answer, which may take a commit. TLS knows no half of a connection. Who has gone
        altogether looks the same: if what he sent waits for room, nobody else would say so."""
        stays = self._connection.is_leaving and self._transport is not None and self._transport.get_extra_info("ssl_object") is None
        if stays and self._leaving is None:
            self._leaving = asyncio.get_running_loop().call_later(LEAVING_SECONDS, self.sever)
        return stays

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._node.dismiss(self)
        self._node.host.leave(self._number)
        if self._intake.busy:  # what it has not done is given up, and what comes behind it
            self._backlog.forget_octets()
        self._intake.cancel()
        for work in (self._streaming, self._timer, self._severing, self._leaving):
            if work is not None:
                work.cancel()
        self._forget_outgoing()
        self._congested = False
        reason = self._connection.close_reason or (str(exc) if exc else "closed")
        self.LOG.debug("Connection %d from %s ended: %s", self._number, self._remote, reason)
        if self._connection.wants_close or not self._backlog:
            self._end()
            return
        # What it asked for before it went is done, but nothing is delivered to it any more.
        self._node.host.submit([Stop(self._number)])
        self._backlog.put_back(self._released())

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

    def _worked_off(self) -> None:
        if self._connection.unfinished:  # what came with the login
            self._backlog.parse_more()
        self._backlog.go_on()
        self._flush()
        self._regulate()

    # -- who it is ----------------------------------------------------------------------------------------------------------------------
    @property
    def _session(self) -> str:
        """Its name, used once."""
        return f"{self._node.instance}-{self._node.epoch}-{self._number}"

    def _refuse_login(self, login: str, sentence: str) -> None:
        self._node.metrics.refused_logins += 1
        self._node.refused_logins.login(login, self._remote, sentence, asyncio.get_running_loop().time())
        told = logging.WARNING if sentence == REFUSED else logging.DEBUG  # who is throttled must not fill the log either
        self.LOG.log(told, "Login of %r from %s refused: %s", login[:80], self._remote, sentence)
        self._connection.reject(sentence)

    def _begin(self, account: str) -> None:
        """Its login is right. To be called before anything is waited for: a change of the account, heard now, ends this login."""
        self._account = account
        self._node.sessions.begin(self, account, self._node.accounts.shown(account))

    async def _claim(self, client_id: str, *, shared: bool = False) -> str | None:
        """A sentence if it is another's; None: the connection went while that was being looked into."""
        problem = await self._node.client_ids.claim(client_id, self._account, self, shared)
        if problem:
            return problem
        self._client_id = client_id
        if self._transport is None:
            self._node.client_ids.release(client_id, self)
            return None
        return ""

    # -- from the engine ----------------------------------------------------------------------------------------------------------------
    def deliver(self, outputs: list[Output]) -> None:
        self._connection.send(outputs, self._node.clock.now())
        self._said(outputs)
        self._flush()
        for output in outputs:
            if output.__class__ is Confirmed:  # most that are no deliveries
                continue
            if output.__class__ is Delivered:
                for message in output.messages:
                    # Framed: from now on the body of a stored message is only in the store. `engine.accounting.let_go`, written out: the hot path.
                    if message.holders > 1:
                        message.holders -= 1
                    elif message.header.lane < VOLATILE and message.body.__class__ is bytes:
                        message.body = None
            elif (output.__class__ is Refused or output.__class__ is Detached) and output.refusal is Refusal.ACCESS_DENIED:
                self._note_denied(output.detail)
        self._regulate()

    def _note_denied(self, detail: str) -> None:
        """A rule of access refused it. Without particulars it is the end of a transaction, of which a part was noted."""
        if detail:
            self._node.refused_uses.use(self._account, self._remote, detail, asyncio.get_running_loop().time())

    def _close_when_read(self) -> None:
        """The machine has said its last."""
        # At once, before the host says `released`: what the closed machine no longer writes is the engine's to deliver to others.
        self._tell_lost()
        if self._severing is None:
            self._severing = asyncio.get_running_loop().call_later(CLOSE_SECONDS, self.sever)

    def _tell_lost(self) -> None:
        """The engine's PeerLost, once."""
        lost = self._connection.receive_eof(self._node.clock.now())
        for body in self._backlog.drop():
            self._node.host.discard_body(body)
        if lost:
            self._node.host.submit([*self._released(), *cast("list[Command]", lost)])

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

    # -- from the node ------------------------------------------------------------------------------------------------------------------
    @property
    def origin(self) -> tuple[str, str]:
        return self._remote, self.PROTOCOL

    @property
    def producers(self) -> Producers:
        return self._connection.producers

    @property
    def is_held_up(self) -> bool:
        return not self._reading

    def shut(self, sentence: str) -> None:
        """Say why and close: the node stops, or the account may not go on."""
        self._connection.refuse(sentence)
        self._flush()

    def sever(self) -> None:
        """Close at once, whatever the peer has not read."""
        if self._transport is not None:
            self._transport.abort()

    async def severed(self) -> None:
        self.sever()
        if self._transport is not None:
            await self._lost.wait()
