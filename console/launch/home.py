"""The folder of an installation: one supervisor at a time, and ports that are free."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from pathlib import Path
from typing import IO

from broker_core.config import BrokerConfig

from .refusal import AlreadyRuns, CannotStart

LEFTOVER_SECONDS_MAX = 20
"""What a killed supervisor left is dying already; PostgreSQL may need a moment to write what it holds."""


def take_home(home: Path) -> IO[str]:
    """Make the folders and lock them for this process; the lock lasts as long as the returned file is open. Raises CannotStart,
    AlreadyRuns."""
    try:
        if not home.exists():
            home.mkdir(parents=True)
            home.chmod(0o711 if os.geteuid() == 0 else 0o700)  # root lets PostgreSQL's account pass through, and nobody read
        for folder in ("run", "log"):
            (home / folder).mkdir(exist_ok=True, mode=0o700)
        lock = (home / "run" / "lock").open("a+", encoding="ascii")
    except OSError as error:
        raise CannotStart(f"{home} cannot be used as SURETY_HOME: {error.strerror}.") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        holder = lock.read().strip()
        lock.close()
        raise AlreadyRuns(f"The service already runs on {home} (process {holder or 'unknown'}).") from None
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n")
    lock.flush()
    return lock


def wait_for_leftovers(home: Path) -> None:
    """Give the processes of a supervisor that was killed time to follow it."""
    deadline = time.monotonic() + LEFTOVER_SECONDS_MAX
    for pid_file in sorted((home / "run").glob("*.pid")):
        while _is_ours(pid_file) and time.monotonic() < deadline:
            time.sleep(0.1)
        pid_file.unlink(missing_ok=True)


def _is_ours(pid_file: Path) -> bool:
    """True if the process of that file lives and was started by an installation like this, not by somebody who got its number since."""
    try:
        command = Path("/proc", str(int(pid_file.read_text())), "cmdline").read_bytes()
    except (OSError, ValueError):
        return False
    return any(word in command for word in (b"postgres", b"broker_core", b"console"))


def check_ports(config: BrokerConfig) -> None:
    """Raises CannotStart naming the first port that another program holds."""
    wanted = {"SURETY_HTTP_PORT": config.http_port, "SURETY_STOMP_PORT": config.stomp_port, "SURETY_AMQP_PORT": config.amqp_port}
    if config.tls:
        wanted |= {"SURETY_STOMP_TLS_PORT": config.stomp_tls_port, "SURETY_AMQP_TLS_PORT": config.amqp_tls_port}
    for variable, port in wanted.items():
        if twins := [other for other, number in wanted.items() if number == port and other != variable]:
            raise CannotStart(f"{variable} and {twins[0]} are both {port}; give each a port of its own.")
        _check_port(config.bind, port, variable)


def _check_port(bind: str, port: int, variable: str) -> None:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(bind, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        reason = "is in use by another program" if error.errno == 98 else f"cannot be opened ({error.strerror})"
        raise CannotStart(f"Port {port} on {bind} {reason}; free it or set {variable} to another.") from error
