"""Large bodies (R16): written chunk by chunk before their message enters a batch, streamed at delivery, gone with the last row that names them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, LiteralString

from psycopg import AsyncConnection, AsyncCursor

from . import BodyMissing
from .queries import QUERIES
from .sharing import uninterrupted

CHUNK_OCTETS = 1024 * 1024
"""One row of body_chunk: what a delivery holds in memory at a time."""


async def remove_bodies(connection: AsyncConnection[Any], shard: int, bodies: Sequence[int | None]) -> None:
    """Delete bodies that nobody names."""
    numbers = [body for body in bodies if body is not None]
    if numbers:
        await connection.execute(QUERIES["bodies_remove"], {"shard": shard, "bodies": numbers})


class Bodies:
    """Bodies of a shard on one connection; several may be written and read at once, a chunk of each in turn."""

    def __init__(self, connection: AsyncConnection[Any], shard: int, epoch: int) -> None:
        self._connection, self._shard, self._epoch = connection, shard, epoch

    async def write(self, chunks: AsyncIterator[bytes]) -> int:
        """Keep a body; its number. If its sender gives up on the way nothing stays. Raises psycopg.Error and whatever `chunks` raises.

        The chunks need no flush of their own: they are before the commit that names them in the write-ahead log, whose flush covers them.
        """
        numbering = asyncio.ensure_future(self._number())
        try:
            body = await asyncio.shield(numbering)
            size = count = 0
            async for octets in _rechunked(chunks):
                await self._execute(QUERIES["body_chunk_add"], {"shard": self._shard, "body": body, "chunk": count, "octets": octets})
                size, count = size + len(octets), count + 1
            await self._execute(QUERIES["body_finish"], {"shard": self._shard, "body": body, "size": size})
        except BaseException:
            await uninterrupted(self._give_up(numbering))
            raise
        return body

    async def _give_up(self, numbering: asyncio.Future[int]) -> None:
        """Nothing stays of the body whose number is known, or will be: its row may be on its way into the database still."""
        (body,) = await asyncio.gather(numbering, return_exceptions=True)
        if isinstance(body, int) and not self._connection.broken:
            await remove_bodies(self._connection, self._shard, [body])

    async def read(self, body: int) -> AsyncIterator[bytes]:
        """The body's chunks, in order. Raises BodyMissing, psycopg.Error."""
        keys = {"shard": self._shard, "body": body}
        found = await (await self._execute(QUERIES["body_size"], keys)).fetchone()
        if found is None or found[0] is None:
            raise BodyMissing(f"body {body} of shard {self._shard} is not there")
        left, count = found[0], 0
        while left:
            row = await (await self._execute(QUERIES["body_chunk"], {**keys, "chunk": count}, binary=True)).fetchone()
            if row is None:
                raise BodyMissing(f"chunk {count} of body {body} of shard {self._shard} is not there")
            yield row[0]
            left, count = left - len(row[0]), count + 1

    async def remove(self, bodies: Sequence[int]) -> None:
        """Delete bodies that no commit named."""
        await uninterrupted(remove_bodies(self._connection, self._shard, bodies))

    async def sweep(self) -> None:
        """Delete what older epochs wrote and no commit named. Only before the first commit of this epoch."""
        keys = {"shard": self._shard, "epoch": self._epoch}
        while rows := await (await self._execute(QUERIES["bodies_orphaned"], keys)).fetchall():
            await self.remove([body for (body,) in rows])

    async def _execute(self, query: LiteralString, keys: dict[str, Any], *, binary: bool = False) -> AsyncCursor[Any]:
        return await uninterrupted(self._connection.execute(query, keys, binary=binary))

    async def _number(self) -> int:
        row = await (await self._execute(QUERIES["body_add"], {"shard": self._shard, "epoch": self._epoch})).fetchone()
        assert row is not None
        return int(row[0])


async def _rechunked(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same octets, CHUNK_OCTETS at a time."""
    held = bytearray()
    async for octets in chunks:
        held += octets
        while len(held) >= CHUNK_OCTETS:
            yield bytes(held[:CHUNK_OCTETS])
            del held[:CHUNK_OCTETS]
    if held:
        yield bytes(held)
