"""Whether the other end of a TCP connection is still there, asked of the kernel: has it acknowledged what was sent to it, or been heard since?"""

from __future__ import annotations

import asyncio
import errno
import socket
import struct
import time

PROBE_SECONDS = 1.0
"""A round trip over any network worth the name, and a retransmission after a lost packet (RFC 6298: at least 200 ms here)."""
_INFO = struct.Struct("@B23xI24xII")
"""Of Linux's struct tcp_info: tcpi_state, its first octet; behind eight octets and four 32-bit fields tcpi_unacked; behind six more tcpi_last_data_recv
and tcpi_last_ack_recv, the ms since each."""
_ESTABLISHED = 1


_UNTOLD = (errno.ENOPROTOOPT, errno.EOPNOTSUPP)
"""The answers of a kernel that does not know the question."""


async def is_reachable(transport: asyncio.Transport, probe: bytes) -> bool:
    """Send `probe`, octets that mean nothing, and look a while later. True also where the kernel cannot tell.

    A consumer that is being sent much has always something unacknowledged. Alive is therefore also who was heard since the probe left: data, or an
    acknowledgement of whatever.
    """
    began = time.monotonic()
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
    state, unacknowledged, data_ago, ack_ago = _INFO.unpack(info)
    heard = min(data_ago, ack_ago) <= (time.monotonic() - began) * 1000
    return bool(state == _ESTABLISHED and (unacknowledged == 0 or heard))
