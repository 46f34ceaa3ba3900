"""What the two Celery apps share: messages travel through two tables of the broker's own database, so there is nothing else to run.

`python -m broker_core.transport` creates those tables before several processes try to at the same moment.
"""

from __future__ import annotations

import functools
import logging
import os
import select
import warnings
from collections.abc import Sequence
from queue import Empty
from typing import Any

from celery import Celery
from celery.signals import after_setup_logger, worker_shutting_down
from celery.platforms import SecurityWarning
from kombu.transport import TRANSPORT_ALIASES
from kombu.transport import sqlalchemy as database
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from broker_core.config import BrokerConfig
from broker_core.logs import speak_json

NODE_QUEUE = "surety-node"
"""Nothing is ever sent here: a node's worker must not take tasks from the queue of another."""
TASKS_QUEUE = "surety-tasks"
"""Where scheduled tasks wait for the tasks worker."""
POLL_SECONDS = 1.0
"""A worker asks the database for messages this often."""


class Transport(database.Transport):  # type: ignore[misc]  # kombu has no types
    """Kombu's database transport calls itself connected before it has asked the database anything, so a worker whose database is down
    would connect, fail and connect again without a pause. This one asks, and Celery waits longer after every failure."""

    connection_errors = (SQLAlchemyError,)

    def establish_connection(self) -> Any:
        connection = super().establish_connection()
        with self._avail_channels[-1].session as session:
            session.execute(text("SELECT 1"))
        return connection

    def drain_events(self, connection: Any, timeout: float | None = None, **_options: Any) -> None:
        """One look; without a message it waits, for a second at most and no longer than until the process is told to stop. Raises TimeoutError."""
        try:
            self.cycle.get(self._deliver, timeout=timeout)
        except Empty:
            select.select([_told_to_stop()], [], [], min(timeout or POLL_SECONDS, POLL_SECONDS))
            raise TimeoutError from None


@functools.cache
def _told_to_stop() -> int:
    """A file that can be read from once Celery's handler of the signal has run. A pipe: it may be written to in the midst of everything."""
    reader, writer = os.pipe()
    worker_shutting_down.connect(lambda **_signal: os.write(writer, b"!"), weak=False)
    return reader


TRANSPORT_ALIASES["surety"] = "broker_core.transport:Transport"


def transport_url(config: BrokerConfig) -> str:
    scheme, _, rest = config.database_url.partition("://")
    assert scheme in ("postgresql", "postgres"), scheme
    return f"surety+postgresql+psycopg://{rest}"


def _speak_json(logger: logging.Logger, **_signal: Any) -> None:
    speak_json(logger.handlers)


def create_app(config: BrokerConfig, name: str, queue: str, fixups: Sequence[str] = ()) -> Celery:
    """An app on that queue. Celery's own fixups would load Django wherever DJANGO_SETTINGS_MODULE is set; only who names one gets it."""
    # Celery warns root because pickled tasks would run as root. These apps accept JSON only (Celery's default) and one queue each.
    warnings.filterwarnings("ignore", category=SecurityWarning)
    if config.log_json:
        after_setup_logger.connect(_speak_json)
    app = Celery(name, broker=transport_url(config), backend=None, fixups=list(fixups))
    app.conf.update(
        task_default_queue=queue,
        task_ignore_result=True,
        accept_content=["json"],
        worker_enable_remote_control=False,  # needs fanout, which the database transport does not have
        worker_send_task_events=False,
        worker_prefetch_multiplier=1,
        worker_cancel_long_running_tasks_on_connection_loss=True,  # concerns late acknowledgement, which no task here uses
        broker_connection_retry=True,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,  # the database may need minutes to replay its log
        broker_transport_options={"pool_pre_ping": True, "pool_size": 1, "max_overflow": 1},
        timezone="UTC",
    )
    return app


def declare_queues(config: BrokerConfig) -> None:
    with create_app(config, "surety", NODE_QUEUE).connection_for_write() as connection:
        for queue in (NODE_QUEUE, TASKS_QUEUE):
            connection.SimpleQueue(queue).close()


if __name__ == "__main__":
    declare_queues(BrokerConfig.from_env())
