"""A carrier between two brokers and its two sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from broker_core.foreign.carrier import Carrier
from broker_core.foreign.end import End

WRITE_OCTETS = 256 << 10
"""Of what one broker has not taken yet. Beyond, the other one is not read from."""
FINISH_SECONDS = 2.0
"""At a planned end: what is on its way is waited for so long, and comes a second time if its receipt does not."""
FINISH_POLL_SECONDS = 0.02
TICK_SECONDS = 0.01
"""Deadlines are not looked at more often."""


class LineEnd(asyncio.Protocol):
    """One of a carrier's two connections."""

    def __init__(self, line: Line, end: End) -> None:
        self._line = line
        self.end = end
        self.transport: asyncio.Transport | None = None
        self.full = False
        self.reading = True

    @property
    def is_open(self) -> bool:
        return self.transport is not None and not self.transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(WRITE_OCTETS)
        self._line.go_on()

    def data_received(self, data: bytes) -> None:
        self._line.received(self.end, data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self._line.lost(self.end, str(exc) if exc else "")

    def pause_writing(self) -> None:
        self.full = True
        self._line.regulate()

    def resume_writing(self) -> None:
        self.full = False
        self._line.regulate()

    def write(self, octets: bytes) -> None:
        assert self.transport is not None
        self.transport.write(octets)

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def read(self, *, on: bool) -> None:
        transport = self.transport
        if transport is None or transport.is_closing() or on == self.reading:
            return
        self.reading = on
        if on:
            transport.resume_reading()
        else:
            transport.pause_reading()


class Line:
    """A carrier and its two sockets, from the first octet to the end."""

    def __init__(self, carrier: Carrier, now: Callable[[], int], told: Callable[[Carrier], None]) -> None:
        """`told`: something happened."""
        self.carrier = carrier
        self.source, self.target = LineEnd(self, carrier.source), LineEnd(self, carrier.target)
        self._now = now
        self._told = told
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._finishing = False
        self._timer: asyncio.TimerHandle | None = None

    async def run(self) -> None:
        """Until it ends; `carrier.ended` says why. Both sockets are connected."""
        try:
            await self._over
        except asyncio.CancelledError:
            await self._finish()
            raise

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.source.close()
        self.target.close()

    async def _finish(self) -> None:
        """Take nothing more, and wait a little for what is on its way."""
        self._finishing = True
        self.regulate()
        clock = asyncio.get_running_loop().time
        deadline = clock() + FINISH_SECONDS
        while not self.carrier.ended and self.carrier.on_their_way and clock() < deadline:
            await asyncio.sleep(FINISH_POLL_SECONDS)

    def received(self, end: End, data: bytes) -> None:
        self.carrier.received(end, data, self._now())
        self.go_on()

    def lost(self, end: End, reason: str) -> None:
        self.carrier.lost(end, reason)
        self.go_on()

    def regulate(self) -> None:
        """Read from the source while the target takes what comes, and from the target while the source takes its acknowledgements."""
        pauses = self.carrier.wants_pause or (self._finishing and not self.carrier.amid_message)
        self.source.read(on=not (self.target.full or pauses))
        self.target.read(on=not self.source.full)
        for each in (self.source, self.target):
            each.end.idle = not each.reading

    def go_on(self) -> None:
        carrier, now = self.carrier, self._now()
        for each in (self.source, self.target):
            if each.is_open and (octets := each.end.take(now)):
                each.write(octets)
        self._told(carrier)
        self.regulate()
        self._arm()
        if carrier.ended and not self._over.done():
            self._over.set_result(None)

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline = self.carrier.next_deadline()
        if deadline is not None and not self.carrier.ended:
            self._timer = asyncio.get_running_loop().call_later(max((deadline - self._now()) / 1000, TICK_SECONDS), self._tick)

    def _tick(self) -> None:
        self.carrier.tick(self._now())
        self.go_on()
