"""A STOMP client's socket."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

from broker_core.engine.commands import Command, Settle
from broker_core.engine.outputs import Confirmed, Output
from broker_core.stomp.connection import Connection, Event
from broker_core.stomp.login import Login
from broker_core.stomp.mapping import quoted
from broker_core.store import BodyMissing

from .large_bodies import OutgoingBodies
from .listening import Node
from .reachable import is_reachable
from .socket_peer import SocketPeer
from .stomp_intake import SLOW, StompIntake

log = logging.getLogger("surety.stomp")

RECEIPT_OCTETS = 24
"""A RECEIPT frame without its receipt-id's value."""


class StompPeer(SocketPeer[Connection]):
    SLOW = SLOW
    LOG = log
    PROTOCOL = "stomp"

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self._connection = Connection(
            self._number, node.stomp_limits, node.server_name, node.instance, node.clock.now(), node.stomp_sections, node.to_stomp
        )
        self._intake = StompIntake(node, self._connection, self._log_in, self._backlog.append, self._refuse_for_space, self._worked_off)
        self._outgoing = OutgoingBodies(node.store, self._number)

    async def _log_in(self, login: Login) -> list[Event]:
        account, problem = await self._node.accounts.check(login.login, login.passcode, self._remote)
        if account is None:
            self._refuse_login(login.login, problem)
            return []
        self._begin(account)
        found = await self._node.accounts.administered(login.lookup) if login.lookup else ""
        if found is None:
            self._connection.reject(f"no administered object is called {quoted(login.lookup)}")
            return []
        taken = await self._claim(login.client_id, shared=login.shares_client_id)
        if taken is None:
            return []
        if taken:
            self._connection.reject(taken)
            return []
        events = self._connection.accept(account, self._session, self._node.clock.now(), self._node.accounts.mapping(account), found)
        self._arm()
        return events

    # -- large bodies out ---------------------------------------------------------------------------------------------------------------
    def _behind_bodies(self, commands: Sequence[Command]) -> Sequence[Command]:
        return self._outgoing.hold(commands)

    def _released(self) -> list[Command]:
        return self._outgoing.release()

    def _forget_outgoing(self) -> None:
        self._outgoing.clear()

    @property
    def _is_backed_up(self) -> bool:
        return self._outgoing.is_full

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

    # -- to the client ------------------------------------------------------------------------------------------------------------------
    def _said(self, outputs: list[Output]) -> None:
        if not self._writable.is_set():
            self._unread += sum(_receipt_octets(output.token) for output in outputs if output.__class__ is Confirmed)

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
            self._close_when_read()
            if self._streaming is None:
                transport.close()

    async def is_alive(self) -> bool:
        if self._transport is None:
            return False
        if self._streaming is not None:  # a probe would stand in the middle of a frame; a body that does not move ends the connection anyway
            return True
        return await is_reachable(self._transport, b"\n")  # an end of line between frames means nothing (STOMP 1.2, "Augmented BNF")


def _receipt_octets(token: Any) -> int:
    receipt = token if isinstance(token, bytes) else token.receipt
    return RECEIPT_OCTETS + len(receipt or b"")
