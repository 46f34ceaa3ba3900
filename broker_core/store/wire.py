"""One libpq connection driven in the simple query protocol: several statements, COPY data among them, in one implicit transaction and two round trips.

psycopg's own cursors cost four round trips for the same (BEGIN, COPY, INSERT, COMMIT) and a reader registered and removed for each. Here the reader stays
registered; results are looked at only when libpq has a whole one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import psycopg
from psycopg.pq import ExecStatus

if TYPE_CHECKING:
    from psycopg.pq.abc import PGconn, PGresult

SQLSTATE = 67
"""PG_DIAG_SQLSTATE, "C": the field of an error that holds its SQLSTATE."""


def _unasked() -> None:
    return None


class WireBroken(Exception):
    """The connection is gone, or was left in the middle of a statement: it is not known what became of what it carried."""


class StatementFailed(Exception):
    """The server refused a statement; the transaction is rolled back, the connection as good as before."""

    def __init__(self, sqlstate: str, message: str) -> None:
        super().__init__(f"{sqlstate}: {message}")
        self.sqlstate = sqlstate


class Wire:
    """Owns the socket of `pgconn` until `detach`; one caller at a time."""

    def __init__(self, pgconn: PGconn) -> None:
        self._pgconn = pgconn
        self._loop = asyncio.get_running_loop()
        self._socket = pgconn.socket
        self._waiting: asyncio.Future[None] | None = None
        self._writing = False
        self._running = False
        self.broken: str | None = None
        """Why the connection is of no use any more."""
        pgconn.nonblocking = 1
        self._loop.add_reader(self._socket, self._readable)

    def is_idle(self) -> bool:
        """True if statements can be run."""
        return self.broken is None and not self._running

    def detach(self, why: str = "closed") -> None:
        """Leave the socket alone for good; the connection's owner closes it."""
        if self.broken is None:
            self.broken = why
            self._loop.remove_reader(self._socket)
            if self._writing:
                self._loop.remove_writer(self._socket)
            self._awake()

    async def run(self, statements: bytes, copies: Sequence[Iterator[bytes]] = (), sent: Callable[[], None] = _unasked) -> list[PGresult]:
        """Run the statements; the n-th COPY FROM STDIN takes the n-th of `copies`. Results of all. Raises WireBroken, StatementFailed.

        `sent` is called once everything is handed to the server and only its answer is awaited.
        """
        if self.broken is not None:
            raise WireBroken(self.broken)
        assert not self._running, "a second caller on one wire"
        self._running = True
        try:
            results = await self._run(statements, copies, sent)
        except psycopg.OperationalError as error:
            self.detach(str(error).strip())
            raise WireBroken(self.broken) from error
        except BaseException:
            self.detach("left in the middle of a statement")  # cancelled, or a bug in a copy's iterator
            raise
        finally:
            self._running = False
        for result in results:
            if result.status == ExecStatus.FATAL_ERROR:
                raise StatementFailed((result.error_field(SQLSTATE) or b"").decode(), (result.error_message or b"").decode("utf-8", "replace").strip())
        return results

    async def _run(self, statements: bytes, copies: Sequence[Iterator[bytes]], sent: Callable[[], None]) -> list[PGresult]:
        pgconn, streams, waiting = self._pgconn, iter(copies), len(copies)
        results: list[PGresult] = []
        pgconn.send_query(statements)
        self._flush()
        if not waiting:
            sent()
        while True:
            if pgconn.is_busy():
                await self._result_arrived()
            result = pgconn.get_result()
            if result is None:
                return results
            results.append(result)
            if result.status == ExecStatus.COPY_IN:
                for piece in next(streams):
                    self._put(pgconn.put_copy_data(piece))
                    # The server works on this piece while the next is packed; no more waits in memory than a piece and the socket's buffer.
                    if self._flush():
                        await self._flushed()
                self._put(pgconn.put_copy_end())
                self._flush()
                waiting -= 1
                if not waiting:
                    sent()

    @staticmethod
    def _put(queued: int) -> None:
        if queued != 1:
            raise psycopg.OperationalError("libpq has no memory for what is to be sent")

    async def _result_arrived(self) -> None:
        while self._pgconn.is_busy():
            await self._wake()

    async def _flushed(self) -> None:
        while self._writing:
            await self._wake()

    async def _wake(self) -> None:
        """Wait until a callback has something to tell."""
        self._waiting = self._loop.create_future()
        await self._waiting
        self._waiting = None
        if self.broken is not None:
            raise WireBroken(self.broken)

    def _awake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def _readable(self) -> None:
        try:
            self._pgconn.consume_input()
            # uvloop tells of a reset once and then never again, and the server's last words may lie before it: look behind them at once.
            self._pgconn.consume_input()
        except psycopg.OperationalError as error:
            self.detach(str(error).strip())
            return
        if not self._pgconn.is_busy():
            self._awake()

    def _flush(self) -> bool:
        """Send what can be sent without waiting; True if something is left, which goes when the socket takes it."""
        if self._pgconn.flush() and not self._writing:
            self._writing = True
            self._loop.add_writer(self._socket, self._writable)
        return self._writing

    def _writable(self) -> None:
        try:
            if self._pgconn.flush():
                return
        except psycopg.OperationalError as error:
            self.detach(str(error).strip())
            return
        self._writing = False
        self._loop.remove_writer(self._socket)
        self._awake()
