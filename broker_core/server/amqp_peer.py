"""An AMQP client's socket."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import cast

from broker_core.amqp.connection import Connection, Event
from broker_core.amqp.frames import EMPTY_FRAME
from broker_core.amqp.opening import Opening, taken
from broker_core.amqp.sasl import Login, Proof
from broker_core.amqp.sender import Outgoing
from broker_core.engine.outputs import Output
from broker_core.store import BodyMissing

from .amqp_intake import SLOW, AmqpIntake
from .amqp_login import Authenticator, Challenge, mechanisms, subject_of
from .listening import Node
from .reachable import is_reachable
from .socket_peer import SocketPeer

log = logging.getLogger("surety.amqp")


class AmqpPeer(SocketPeer[Connection]):
    SLOW = SLOW
    LOG = log
    PROTOCOL = "amqp"

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self._authenticator: Authenticator
        self._moved = asyncio.Event()
        """What was supplied of a large body may have left."""

    def _greet(self) -> None:
        node = self._node
        assert self._transport is not None
        subject = subject_of(self._transport.get_extra_info("peercert"))
        anonymous = node.config.amqp_anonymous_account
        self._authenticator = Authenticator(node.accounts, self._remote, subject, anonymous)
        offered = mechanisms(subject, anonymous)
        self._connection = Connection(self._number, node.amqp_limits, node.version, node.instance, node.clock.now(), offered, node.to_amqp)
        self._intake = AmqpIntake(node, self._connection, self._log_in, self._backlog.append, self._refuse_for_space, self._worked_off)

    def _parse(self, data: bytes) -> int:
        self._moved.set()
        return super()._parse(data)

    def _refuse_for_space(self, sentence: str) -> None:
        self._connection.refuse(sentence, "amqp:resource-limit-exceeded")

    # -- who it is ----------------------------------------------------------------------------------------------------------------------
    async def _log_in(self, said: Login | Proof | Opening) -> list[Event]:
        if isinstance(said, Opening):
            return await self._open(said)
        answer = await self._authenticator.answer(said)
        if isinstance(answer, Challenge):
            events = self._connection.challenge(answer.octets)
        elif answer.account is None:
            self._refuse_login(answer.login, answer.sentence)
            events = []
        else:
            self._begin(answer.account)
            if most := self._node.accounts.sessions_max(answer.account):
                limits = self._connection.limits
                self._connection.limits = replace(limits, channels_max=min(limits.channels_max, most))
            events = self._connection.accept(answer.account, self._node.accounts.mapping(answer.account), answer.additional)
        self._arm()
        return events

    async def _open(self, opening: Opening) -> list[Event]:
        """A container-id that is to be alone stands for a client identifier (JMS 6.1.2)."""
        if opening.sole:
            problem = await self._claim(opening.container_id)
            if problem is None:
                return []
            if problem:
                self._connection.refuse_opening(taken(opening.container_id, problem))
                return []
        events = self._connection.open(self._session, self._node.clock.now())
        self._arm()
        return events

    # -- large bodies out ---------------------------------------------------------------------------------------------------------------
    @property
    def _is_choked(self) -> bool:
        return self._streaming is not None or self._connection.choked

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

    # -- to the client ------------------------------------------------------------------------------------------------------------------
    def _said(self, outputs: list[Output]) -> None:
        self._moved.set()

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
            self._close_when_read()
            transport.close()

    @property
    def _wants_pause(self) -> bool:
        """What waits in a full destination withholds its link's credit, and the rest of the connection goes on (R20); far beyond that it is refused."""
        connection = self._connection
        return connection.wants_pause and not (connection.has_begun and self._node.host.waits_for_room(self._number))

    async def is_alive(self) -> bool:
        if self._transport is None:
            return False
        return not self._connection.has_begun or await is_reachable(self._transport, EMPTY_FRAME)
