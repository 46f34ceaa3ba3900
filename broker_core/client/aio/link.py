"""One socket to a broker, as the event loop serves it."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import Protocol, cast

from broker_core.client.machine import Address

from .waiting import resolve

UNSENT_OCTETS_MAX = 1 << 20
"""Beyond it senders wait until the socket takes more."""
END_SECONDS = 5.0
"""How long the other side may take to hear what was said last."""


class Reader(Protocol):
    """Who is told what comes."""

    def received(self, link: Link, data: bytes) -> None: ...
    def gone(self, link: Link, error: Exception | None) -> None: ...
    def relieved(self) -> None: ...


class Link(asyncio.Protocol):
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._transport: asyncio.Transport
        self._is_paused = False
        self._gone = asyncio.get_running_loop().create_future()
        self.is_congested = False
        """The socket has not taken what was written."""

    async def open(self, address: Address, seconds: float, context: ssl.SSLContext | None) -> None:
        """Raises OSError."""
        loop = asyncio.get_running_loop()
        host = address.host if context is not None else None
        async with asyncio.timeout(seconds or None):
            await loop.create_connection(lambda: self, address.host, address.port, ssl=context, server_hostname=host)

    @property
    def is_gone(self) -> bool:
        return self._gone.done()

    # -- by the loop --------------------------------------------------------------------------------------------------------------------
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(UNSENT_OCTETS_MAX)

    def data_received(self, data: bytes) -> None:
        self._reader.received(self, data)

    def connection_lost(self, exc: Exception | None) -> None:
        resolve(self._gone)
        self._reader.gone(self, exc)

    def pause_writing(self) -> None:
        self.is_congested = True

    def resume_writing(self) -> None:
        self.is_congested = False
        self._reader.relieved()

    # -- by the driver ------------------------------------------------------------------------------------------------------------------
    def write(self, data: bytes) -> None:
        self._transport.write(data)

    def pause(self, wanted: bool) -> None:
        """Read nothing; or go on."""
        if wanted != self._is_paused:
            self._is_paused = wanted
            if wanted:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def abort(self) -> None:
        self._transport.abort()

    async def end(self) -> None:
        """Close it when everything is written, or takes too long."""
        self._transport.close()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(END_SECONDS):
                    await self._gone
        finally:
            self._transport.abort()
