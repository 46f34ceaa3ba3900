"""TLS listening sockets. A connection counts from the moment at which it is accepted, not from the end of its handshake: else strangers who
never finish theirs would hold sockets and memory beyond every bound."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from functools import partial

log = logging.getLogger("surety.listener")

ACCEPT_RETRY_SECONDS = 1.0
"""When a connection cannot be accepted, as the process has no file descriptor left, it is tried again after so long."""


class TlsListener:
    """Accepts, shakes hands, and hands the connection to the protocol that `factory` makes. `begins` and `ends` are told of each handshake;
    if `begins` says no, the connection is closed at once: without TLS there is no way to say why."""

    def __init__(
        self,
        context: ssl.SSLContext,
        seconds: float,
        factory: Callable[[], asyncio.Protocol],
        begins: Callable[[asyncio.Protocol], bool],
        ends: Callable[[asyncio.Protocol], None],
        fails: Callable[[BaseException], None],
    ) -> None:
        """`seconds`: what a handshake may take. `fails`: hears why nobody is accepted any more, a bug."""
        self._context = context
        self._seconds = seconds
        self._factory = factory
        self._begins = begins
        self._ends = ends
        self._fails = fails
        self._sockets: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []
        self._handshakes: set[asyncio.Task[None]] = set()

    async def listen(self, host: str, port: int, backlog: int) -> None:
        """On every address of `host`. Raises OSError if the port is taken."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        try:
            for family, _, _, _, address in dict.fromkeys(found):
                self._sockets.append(_listening(family, address, backlog))
        except OSError:
            self.close()
            raise
        self._accepting = [loop.create_task(self._accept(each)) for each in self._sockets]
        for task in self._accepting:
            task.add_done_callback(self._stopped)

    def renew(self, context: ssl.SSLContext) -> None:
        """For handshakes from now on; who is connected stays."""
        self._context = context

    def is_serving(self) -> bool:
        return bool(self._accepting) and not any(task.done() for task in self._accepting)

    def close(self) -> None:
        """Accept no more; handshakes under way are given up."""
        for task in (*self._accepting, *self._handshakes):
            task.cancel()
        for each in self._sockets:
            each.close()
        self._accepting, self._sockets = [], []

    def _stopped(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fails(error)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listening)
            except OSError as error:
                log.error("A connection cannot be accepted: %s", error)
                await asyncio.sleep(ACCEPT_RETRY_SECONDS)
                continue
            try:
                protocol = self._factory()
                is_welcome = self._begins(protocol)
            except Exception:
                connection.close()
                raise
            if not is_welcome:
                connection.close()
                continue
            task = loop.create_task(self._shake_hands(connection, protocol))
            self._handshakes.add(task)
            task.add_done_callback(partial(self._ended, connection, protocol))

    async def _shake_hands(self, connection: socket.socket, protocol: asyncio.Protocol) -> None:
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: protocol, connection, ssl=self._context, ssl_handshake_timeout=self._seconds
        )

    def _ended(self, connection: socket.socket, protocol: asyncio.Protocol, task: asyncio.Task[None]) -> None:
        """Not within the task: one that is given up before its first step never comes to its `finally`."""
        self._handshakes.discard(task)
        error = None if task.cancelled() else task.exception()
        if task.cancelled() or error is not None:
            connection.close()
        if isinstance(error, OSError):  # ssl.SSLError and a timeout are OSErrors as well
            log.debug("A TLS handshake failed: %s", error)
        elif error is not None:
            log.error("A TLS handshake failed by a bug.", exc_info=error)
        self._ends(protocol)


def _listening(family: int, address: tuple[object, ...], backlog: int) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
        made.listen(backlog)
        made.setblocking(False)
    except OSError:
        made.close()
        raise
    return made
