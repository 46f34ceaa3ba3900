"""A wire that can be cut: a TCP relay between a client and a server, on a port of its own."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from typing import Self

PIECE = 1 << 16


class Relay:
    """A context manager. `cut` closes what is open and takes nothing new; `stall` takes everything and passes nothing on; `mend` ends both. `stop_after`
    cuts it when so many octets more have come from the server."""

    def __init__(self, port: int) -> None:
        self.server_port = port
        """May be changed: new connections go there."""
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.connections = 0
        """That were passed on."""
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._server_sides: dict[socket.socket, None] = {}
        self._cut = self._stalled = self._ended = False
        self._left = -1
        self._changed = threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        self._thread.join(10)
        self._listening.close()
        self._close_all()

    # -- faults -----------------------------------------------------------------------------------------------------------------------
    def cut(self) -> None:
        with self._changed:
            self._cut = True
            self._close_all()

    def stall(self) -> None:
        self._stalled = True

    def stop_after(self, octets: int) -> None:
        with self._changed:
            self._left = octets

    def mend(self) -> None:
        with self._changed:
            self._cut = self._stalled = False
            self._left = -1

    @property
    def is_cut(self) -> bool:
        return self._cut

    # -- the thread ---------------------------------------------------------------------------------------------------------------------
    def _run(self) -> None:
        while not self._ended:
            with self._changed:
                sockets = [self._listening, *([] if self._stalled else self._pairs)]
            with contextlib.suppress(OSError, ValueError):  # one was closed meanwhile
                readable = select.select(sockets, [], [], 0.02)[0]
                with self._changed:
                    for each in readable:
                        self._accept() if each is self._listening else self._pass_on(each)

    def _accept(self) -> None:
        client = self._listening.accept()[0]
        if self._cut:
            client.close()
            return
        try:
            server = socket.create_connection(("127.0.0.1", self.server_port), 5)
        except OSError:
            client.close()
            return
        self.connections += 1
        self._server_sides[server] = None
        self._pairs |= {client: server, server: client}

    def _pass_on(self, each: socket.socket) -> None:
        other = self._pairs.get(each)
        if other is None:
            return
        try:
            octets = each.recv(PIECE)
            if self._left >= 0 and each in self._server_sides:
                octets = octets[: self._left]
                self._left -= len(octets)
            if octets:
                other.sendall(octets)
        except OSError:
            octets = b""
        if not octets:
            self._close(each, other)
        if self._left == 0:
            self._cut, self._left = True, -1
            self._close_all()

    def _close(self, *sockets: socket.socket) -> None:
        for each in sockets:
            self._pairs.pop(each, None)
            self._server_sides.pop(each, None)
            each.close()

    def _close_all(self) -> None:
        self._close(*self._pairs)
