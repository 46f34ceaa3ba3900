"""Whether the other end of a TCP connection is still there, asked of the kernel: has it acknowledged what was sent to it?"""

from __future__ import annotations

import asyncio
import errno
import socket
import struct

PROBE_SECONDS = 1.0
"""A round trip over any network worth the name, and a retransmission after a lost packet (RFC 6298: at least 200 ms here)."""
_INFO = struct.Struct("@B23xI")
"""tcpi_state and tcpi_unacked of Linux's struct tcp_info: its first octet, and what follows eight octets and four 32-bit fields."""
_ESTABLISHED = 1


_UNTOLD = (errno.ENOPROTOOPT, errno.EOPNOTSUPP)
"""The answers of a kernel that does not know the question."""


async def is_reachable(transport: asyncio.Transport, probe: bytes) -> bool:
    """Send `probe`, octets that mean nothing, and look a while later. True also where the kernel cannot tell."""
    transport.write(probe)
    await asyncio.sleep(PROBE_SECONDS)
    sock = transport.get_extra_info("socket")
    if transport.is_closing() or sock is None:
        return False
    if not hasattr(socket, "TCP_INFO"):
        return True
    try:
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO.size)
    except OSError as error:  # otherwise: closed, if the transport has not heard of it yet
        return error.errno in _UNTOLD
    if len(info) < _INFO.size:
        return True
    state, unacknowledged = _INFO.unpack(info)
    return bool(state == _ESTABLISHED and unacknowledged == 0)
