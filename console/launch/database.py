"""Whether there is a database to work with, asked before anything is started: whoever typed the command gets a sentence, not a trace."""

from __future__ import annotations

from django.db import Error, connection

from broker_core.config import BrokerConfig

from .postgres import SOCKET_NAME
from .refusal import CannotStart

POSTGRES_LEAST = 16
"""The first version with pg_input_is_valid, which selective consumers need."""
HINT = "Is the server running"
"""With these words libpq begins a second sentence, which asks what ours tells."""


def check_database(config: BrokerConfig) -> None:
    """Connect once, for at most the three seconds of the settings' connect_timeout for each address, and look at the server's version. Raises
    CannotStart."""
    if config.embedded and not (config.sockets / SOCKET_NAME).exists():
        raise CannotStart(f"No database runs on {config.home}: `make run` starts one, or set DATABASE_URL.")
    probe = connection.copy()
    probe.settings_dict["OPTIONS"].pop("pool", None)  # a pool would try again, and say only that it gave up
    where = f"The database of {config.home}" if config.embedded else "The database that DATABASE_URL names"
    try:
        probe.ensure_connection()
    except Error as error:
        raise CannotStart(f"{where} cannot be used ({_reason(error)}): start it, or correct the setting, and try again.") from error
    version = probe.connection.info.server_version // 10_000
    probe.close()
    if version < POSTGRES_LEAST:
        raise CannotStart(f"{where} is on a server of PostgreSQL {version}: upgrade it to {POSTGRES_LEAST} or later, or name another one, and try again.")


def _reason(error: Error) -> str:
    lines = [line.strip() for line in str(error).splitlines()]
    return " ".join(line for line in lines if line and not line.startswith(HINT)).removeprefix("connection failed: ").rstrip(".")
