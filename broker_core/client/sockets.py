"""Sockets to a broker, plain or TLS, that never block."""

from __future__ import annotations

import socket
import ssl

from .machine import Address
from .machine.attempts import LOGIN_SECONDS

RECEIVE_OCTETS = 1 << 18
HANDSHAKE_SECONDS = LOGIN_SECONDS
"""How long a peer may be silent while TLS is agreed on, if socket_connect_timeout does not say it: one that never speaks it would be waited for for ever."""


class Socket:
    """One connection. Used by one thread at a time: TLS allows no more."""

    def __init__(self, address: Address, connect_timeout: float, context: ssl.SSLContext | None) -> None:
        """Raises OSError."""
        opened = socket.create_connection((address.host, address.port), connect_timeout or None)
        try:
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if address.tls:
                opened.settimeout(connect_timeout or HANDSHAKE_SECONDS)
                opened = (context or ssl.create_default_context()).wrap_socket(opened, server_hostname=address.host)
            opened.setblocking(False)
        except BaseException:
            opened.close()
            raise
        self._socket = opened

    def fileno(self) -> int:
        return self._socket.fileno()

    def receive(self) -> bytes | None:
        """What has come; None: nothing yet; empty: the other side has closed. Raises OSError."""
        try:
            return self._socket.recv(RECEIVE_OCTETS)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return None

    @property
    def has_more(self) -> bool:
        """TLS has decrypted more than was asked for: no readiness would tell."""
        return isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0

    def send(self, data: bytes | memoryview) -> int:
        """How many octets were taken. Raises OSError."""
        try:
            return self._socket.send(data)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return 0

    def close(self) -> None:
        self._socket.close()
