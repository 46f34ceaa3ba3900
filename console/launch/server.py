"""The database for a command that works beside the service or without it: what runs is used, the embedded server of a stopped service is started meanwhile."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from broker_core.config import BrokerConfig

from .child import die_with_us
from .database import check_database
from .home import take_home, wait_for_leftovers
from .postgres import ENVIRONMENT, EmbeddedPostgres
from .refusal import AlreadyRuns, CannotStart

STARTED_SECONDS_MAX = 300
"""After a crash the server replays its log first."""
STOPPED_SECONDS_MAX = 60
_FAST = signal.SIGINT
"""PostgreSQL's fast shutdown."""


@contextmanager
def database_of(config: BrokerConfig, *, alone: bool) -> Iterator[None]:
    """While it lasts the database can be connected to. `alone`: not beside a service of this home. Raises CannotStart."""
    if not config.embedded:
        check_database(config)
        yield
        return
    if not alone and not (config.home / "postgres").exists():
        raise CannotStart(f"There is no database in {config.home}: set SURETY_HOME, or DATABASE_URL.")
    try:
        lock = take_home(config.home)
    except AlreadyRuns:
        if alone:
            raise
        check_database(config)
        yield
        return
    with lock:
        wait_for_leftovers(config.home)
        with _started(config):
            check_database(config)
            yield


@contextmanager
def _started(config: BrokerConfig) -> Iterator[None]:
    postgres = EmbeddedPostgres(config.home)
    postgres.prepare()
    account = postgres.account
    with (config.home / "log" / "postgres.log").open("ab") as log:
        process = subprocess.Popen(
            postgres.command(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=ENVIRONMENT,
            process_group=0,  # the terminal's Ctrl-C is for us
            preexec_fn=die_with_us(_FAST),  # noqa: PLW1509 - no threads run here
            **({"user": account.user, "group": account.group, "extra_groups": []} if account.switches else {}),  # type: ignore[call-overload]
        )
    try:
        until = time.monotonic() + STARTED_SECONDS_MAX
        while not postgres.is_ready():
            if process.poll() is not None or time.monotonic() > until:
                raise CannotStart(f"PostgreSQL does not start; its reasons are in {config.home / 'log' / 'postgres.log'}.")
            time.sleep(0.05)
        yield
    finally:
        process.send_signal(_FAST)
        try:
            process.wait(STOPPED_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
