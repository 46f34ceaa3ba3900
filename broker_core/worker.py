"""The Celery app that hosts a node: a worker that executes no task, whose bootstep runs the node on an event loop in a thread of its own.

    celery -A broker_core.worker worker -P solo --queues surety-node ...

Celery owns the process (signals, warm shutdown, logging), the thread owns the event loop, and nothing else is shared. A node that fails
ends the process with a code other than 0; whoever supervises it starts another, which recovers from the database.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import resource
import threading
import time
from typing import Any

import uvloop
from celery import bootsteps
from celery.signals import worker_shutting_down

from broker_core.config import BrokerConfig
from broker_core.transport import NODE_QUEUE, create_app

FAILED = 70
"""Exit code of a node that broke (sysexits.h: EX_SOFTWARE)."""
COLLECT_AFTER = 50_000
"""Container objects made and not freed before the collector looks at the young ones."""
JOIN_SECONDS = 2
"""Beyond drain_seconds, for closing sockets and sessions."""
FILES_BESIDE_CONNECTIONS = 256
"""Database sessions, listeners, libraries."""

log = logging.getLogger("surety.node")


class Node(bootsteps.StartStopStep):  # type: ignore[misc]  # celery has no types
    """Starts the node with the worker and stops it at warm shutdown, waiting for the drain."""

    requires = {"celery.worker.components:Pool"}

    def __init__(self, worker: Any, **options: Any) -> None:
        super().__init__(worker, **options)
        self._config = BrokerConfig.from_env()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._deadline: float | None = None
        """When draining must be done, by the monotonic clock; None: nobody has told the node to stop."""
        self._thread = threading.Thread(target=self._run, name="node", daemon=True)

    def start(self, worker: Any) -> None:
        _allow_files(self._config.connections_max + FILES_BESIDE_CONNECTIONS)
        worker_shutting_down.connect(self._begin_drain, weak=False)
        self._thread.start()

    def stop(self, worker: Any) -> None:
        self._begin_drain()
        assert self._deadline is not None
        self._thread.join(max(0.0, self._deadline - time.monotonic()))
        if self._thread.is_alive():
            log.critical("The node did not drain within %d s; recovery will make good what it left.", self._config.drain_seconds)
            _leave()

    terminate = stop

    def _begin_drain(self, **_signal: Any) -> None:
        """Called within the signal's handler, so that draining starts now and not when Celery's loop next looks up."""
        if self._deadline is None:
            self._deadline = time.monotonic() + self._config.drain_seconds + JOIN_SECONDS
        if self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(self._stop.set)
            except RuntimeError:
                log.debug("The node's loop is closed already.")

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                self._loop = runner.get_loop()
                if self._deadline is not None:
                    self._stop.set()
                runner.run(self._serve())
        except BaseException:
            log.critical("The node broke.", exc_info=True)
            _leave()
        if self._deadline is None:
            log.critical("The node returned without being told to stop.")
            _leave()

    async def _serve(self) -> None:
        # Imported here, so that the rooms behind it load in this process only, and after Celery has set up logging.
        from broker_core.server.supervisor import serve

        # Messages form no cycles, and there are many: to look for cycles among them at every 700 allocations cost a tenth of the time.
        gc.freeze()
        gc.set_threshold(COLLECT_AFTER, 50, 100)
        await serve(self._config, self._stop, lambda: log.info("The node holds the lease and serves."))


def _leave() -> None:
    """End the process from any thread, with what was logged on its way out: no handler may delay a node that cannot serve."""
    logging.shutdown()
    os._exit(FAILED)


def _allow_files(wanted: int) -> None:
    """Each connection is a file; raise the soft limit as far as allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    reachable = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < reachable:
        resource.setrlimit(resource.RLIMIT_NOFILE, (reachable, hard))
    if reachable < wanted:
        log.warning("This process may open %d files, fewer than the connections allowed; raise `ulimit -n`.", reachable)


app = create_app(BrokerConfig.from_env(), "surety-node", NODE_QUEUE)
app.steps["worker"].add(Node)
