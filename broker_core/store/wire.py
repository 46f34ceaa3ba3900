"""One libpq connection: several statements in one implicit transaction, in the simple query protocol with COPY data among them (a round trip for each
COPY and one for all else), or as calls of prepared statements in a pipeline (one round trip, and nothing is parsed again).

psycopg's own cursors cost four round trips for the same (BEGIN, COPY, INSERT, COMMIT) and a reader registered and removed for each. Here the reader stays
registered; results are looked at only when libpq has a whole one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import psycopg
from psycopg.pq import ExecStatus

if TYPE_CHECKING:
    from psycopg.pq.abc import PGconn, PGresult

SQLSTATE = 67
"""PG_DIAG_SQLSTATE, "C": the field of an error that holds its SQLSTATE."""
PREPARED_MAX = 64
"""Statements kept prepared, at some 10 KiB of the server's memory each. Past it all are forgotten: those of tables that are full and gone, mostly."""

Answer = TypeVar("Answer")


def _unasked() -> None:
    return None


class WireBroken(Exception):
    """The connection is gone, or was left in the middle of a statement: it is not known what became of what it carried."""


class StatementFailed(Exception):
    """The server refused a statement; the transaction is rolled back, the connection as good as before."""

    def __init__(self, sqlstate: str, message: str) -> None:
        super().__init__(f"{sqlstate}: {message}")
        self.sqlstate = sqlstate


def _check(result: PGresult) -> None:
    if result.status == ExecStatus.FATAL_ERROR:
        raise StatementFailed((result.error_field(SQLSTATE) or b"").decode(), (result.error_message or b"").decode("utf-8", "replace").strip())


class Call(NamedTuple):
    """A statement with parameters $1, $2, ...; it is prepared when it is first called."""

    statement: bytes
    parameters: Sequence[bytes | None]
    binary: bool = False
    """The form of all parameters."""


class Wire:
    """Owns the socket of `pgconn` until `detach`; one caller at a time."""

    def __init__(self, pgconn: PGconn) -> None:
        self._pgconn = pgconn
        self._loop = asyncio.get_running_loop()
        self._socket = pgconn.socket
        self._waiting: asyncio.Future[None] | None = None
        self._writing = False
        self._running = False
        self._prepared: dict[bytes, bytes] = {}
        """The names of statements that the server knows."""
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
        results = await self._exclusively(lambda: self._run(statements, copies, sent))
        for result in results:
            _check(result)
        return results

    async def call(self, calls: Sequence[Call], sent: Callable[[], None] = _unasked) -> None:
        """The same for calls. What they return is of no interest."""
        failed = await self._exclusively(lambda: self._call(calls, sent))
        if failed is not None:
            _check(failed)

    async def _exclusively(self, work: Callable[[], Awaitable[Answer]]) -> Answer:
        if self.broken is not None:
            raise WireBroken(self.broken)
        assert not self._running, "a second caller on one wire"
        self._running = True
        try:
            return await work()
        except psycopg.OperationalError as error:
            self.detach(str(error).strip())
            raise WireBroken(self.broken) from error
        except BaseException:
            self.detach("left in the middle of a statement")  # cancelled, or a bug in a copy's iterator
            raise
        finally:
            self._running = False

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

    async def _call(self, calls: Sequence[Call], sent: Callable[[], None]) -> PGresult | None:
        """Returns the refusal of the first call that was refused: the server skips what comes behind it."""
        pgconn = self._pgconn
        pgconn.enter_pipeline_mode()
        if len(self._prepared) > PREPARED_MAX:
            self._prepared.clear()
        if not self._prepared:
            pgconn.send_query_params(b"DEALLOCATE ALL", None)
        for statement, parameters, binary in calls:
            name = self._prepared.get(statement)
            if name is None:
                name = self._prepared[statement] = b"s%d" % len(self._prepared)
                pgconn.send_prepare(name, statement)
            pgconn.send_query_prepared(name, parameters, [int(binary)] * len(parameters))
        pgconn.pipeline_sync()
        self._flush()
        sent()
        refused = None
        while True:
            if pgconn.is_busy():
                await self._result_arrived()
            result = pgconn.get_result()
            if result is None:  # behind the results of each call
                continue
            if result.status == ExecStatus.PIPELINE_SYNC:
                break
            if result.status == ExecStatus.FATAL_ERROR:
                refused = refused or result
        pgconn.exit_pipeline_mode()
        if refused is not None:
            self._prepared.clear()  # some of them may have been skipped
        return refused

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
