"""Large bodies of one connection (R16): into the store part by part, out of it chunk by chunk, neither ever whole in memory."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence

from broker_core.engine.commands import Begin, BeginBranch, Command, End, EndBranch, Send, Settle, Transacted
from broker_core.stomp.outbox import Piece
from broker_core.store import SpaceExhausted, Store

PARTS_WAITING = 2
"""Parts of a large body between socket and store: 2 MiB a connection."""
HELD_MAX = 65_536
"""Commands that wait for a body to leave. Beyond, the peer is not read from. As many as the largest prefetch, so that a client that
acknowledges everything it was sent before it reads on always gets on."""


HELD_OCTETS_MAX = 4 << 20
"""Of the receipts that they ask for, each as long as a header line may be, 16 KiB; and of sends behind a transaction's end that waits."""


class IncomingBody:
    """One body on its way to the store. `failed` is told what the store gave up for, but for want of space: nobody may be waiting then.
    `unwanted` is told the number of a body that was stored when its connection was gone."""

    def __init__(self, store: Store, failed: Callable[[BaseException], None], unwanted: Callable[[int], None]) -> None:
        self._failed = failed
        self._unwanted = unwanted
        self._ended = False
        self._cancelled = False
        self._parts: asyncio.Queue[bytes | None] = asyncio.Queue(PARTS_WAITING)
        self._moved = asyncio.Event()
        self._storing = asyncio.create_task(store.write_body(self._chunks()))
        self._storing.add_done_callback(self._stored)

    async def take(self, octets: bytes) -> None:
        """Hand the next part to the store, as soon as it has room for it. Raises what the store gave up for."""
        await self._put(octets)

    async def finish(self) -> int:
        """That was the last part; the body's number. Raises what the store gave up for."""
        await self._put(None)
        self._ended = True
        return await asyncio.shield(self._storing)

    def cancel(self) -> None:
        """Nobody will send it. The store keeps nothing of it; one whose last part it has may be kept already, so it finishes and is discarded."""
        self._cancelled = True
        if not self._ended:
            self._storing.cancel()
        elif self._storing.done():
            self._discard(self._storing)

    async def _put(self, part: bytes | None) -> None:
        while self._parts.full() and not self._storing.done():
            self._moved.clear()
            await self._moved.wait()
        if self._storing.done():
            await self._storing
        self._parts.put_nowait(part)

    async def _chunks(self) -> AsyncIterator[bytes]:
        while (part := await self._parts.get()) is not None:
            self._moved.set()
            yield part

    def _stored(self, storing: asyncio.Task[int]) -> None:
        self._moved.set()
        error = None if storing.cancelled() else storing.exception()
        if error is not None and not isinstance(error, SpaceExhausted):
            self._failed(error)
        if self._cancelled:
            self._discard(storing)

    def _discard(self, storing: asyncio.Task[int]) -> None:
        if not storing.cancelled() and storing.exception() is None:
            self._unwanted(storing.result())


class OutgoingBodies:
    """What waits for a body on its way to the socket: the frames behind it, and what the client asks for meanwhile.

    A body lives in the store as long as its message is not settled. So an ACK, a NACK or an UNSUBSCRIBE that comes before the body has left
    takes effect when it has: else the store could drop the body in the middle of the frame, which then could not end.
    """

    def __init__(self, store: Store, peer: int) -> None:
        self._store = store
        self._peer = peer
        self._pieces: deque[Piece] = deque()
        self._held: list[Command] = []
        self._octets = 0
        """Of the receipts that they ask for, and of the sends among them."""
        self._ending = False
        """A transaction's end is among them: what comes after it must not overtake what it places."""

    def __len__(self) -> int:
        return len(self._pieces)

    @property
    def is_full(self) -> bool:
        """The client asks for ever more before it reads."""
        return len(self._held) > HELD_MAX or self._octets > HELD_OCTETS_MAX

    def append(self, piece: Piece) -> None:
        self._pieces.append(piece)

    def hold(self, commands: Sequence[Command]) -> list[Command]:
        """Keep what may concern deliveries until `release`; returns the rest: sends, and what a transaction takes down of them."""
        rest: list[Command] = []
        for command in commands:
            work = command.work if isinstance(command, Transacted) else command
            if isinstance(work, Send | Begin | BeginBranch) and not self._ending:
                rest.append(command)
                continue
            self._ending = self._ending or isinstance(command, End | EndBranch)
            self._octets += len(getattr(getattr(command, "token", None), "receipt", None) or b"")
            self._octets += work.message.size if isinstance(work, Send) else 0
            self._held.append(command)
        return rest

    def release(self) -> list[Command]:
        """All that was held, in order."""
        held, self._held, self._octets, self._ending = self._held, [], 0, False
        return held

    def clear(self) -> None:
        """The socket is gone."""
        self._pieces.clear()

    async def chunks(self) -> AsyncGenerator[bytes | Settle, None]:
        """All that waits, in order, also what is appended meanwhile; behind a body the Settle that is due for it, if any. Raises BodyMissing."""
        while self._pieces:
            piece = self._pieces.popleft()
            if isinstance(piece, bytes):
                yield piece
                continue
            async for chunk in self._store.read_body(piece.stored.body):
                yield chunk
            if piece.presettled is not None:
                link, tag = piece.presettled
                yield Settle(self._peer, link, [tag])
