"""What sessions of the database have sent within their own transactions (R17) is taken over, a page at a time: read, applied, and gone with the commit
that makes it visible. The next page is read when that commit is durable, so nothing is read twice in a term, and a commit that is lost takes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from broker_core.engine.commands import Command
from broker_core.store import Store

from .host import Host

PAGE_ROWS = 1_000
PAGE_OCTETS = 4 << 20
"""As a page of a lane: the commit that takes them takes some 20 ms."""
POLL_SECONDS = 0.05
"""When nothing was found; 20 queries a second of 0.1 ms."""
REST = 10
"""A look that finds nothing may take long: while some transaction keeps old rows from being vacuumed, as a backup does, it passes all that were taken
meanwhile. So many times as long there is a rest then: a tenth of a core at most, at the price of the delay."""
WAIT_SECONDS = 0.005
"""While the open batch is large enough."""


class Inbox:
    def __init__(self, store: Store, host: Host) -> None:
        self._store, self._host = store, host

    async def run(self) -> None:
        """As long as the term lasts. Raises CommitLost and what else ends it."""
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            found: Sequence[Command] = () if self._host.space_low else await self._store.inbox(PAGE_ROWS, PAGE_OCTETS)
            if found:
                await self._take(found)
            else:
                await asyncio.sleep(max(POLL_SECONDS, REST * (clock() - began)))

    async def _take(self, found: Sequence[Command]) -> None:
        host = self._host
        while found:
            if host.space_low or host.congested:  # R21: what has no room waits where it is
                await asyncio.sleep(WAIT_SECONDS)
                continue
            found = host.submit_slice(found)
            await asyncio.sleep(0)
        await host.flushed()
