"""RabbitMQ from Debian's package as a peer: a node of its own in a temporary folder, on loopback, ended by pid. Optional."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self

from tests.support.service import free_ports, is_running

SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
EPMD = "epmd"
START_SECONDS_MAX = 90
STOP_SECONDS_MAX = 30
NOT_INSTALLED = "RabbitMQ is not installed, so ours runs alone: apt-get install rabbitmq-server for the comparison."

QUORUM = "x-queue-type:quorum|durable:true|auto-delete:false"
"""Headers that make a STOMP destination a quorum queue: RabbitMQ's replicated, always written queue, the peer of assured messages."""


def is_installed() -> bool:
    return SERVER.exists() and shutil.which(EPMD) is not None


def version() -> str:
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "rabbitmq-server"], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.partition("-")[0]


class RabbitMQ:
    """A context manager: entered, it speaks STOMP on `stomp_port`, AMQP on `amqp_port`."""

    name, kind = "RabbitMQ", "rabbitmq"

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="surety-peer-"))
        self.stomp_port, self.amqp_port, distribution, epmd = free_ports(4)
        self._epmd_port, self._processes, self._beam = epmd, [], 0
        (self.folder / "enabled_plugins").write_text("[rabbitmq_stomp,rabbitmq_amqp1_0].\n")
        (self.folder / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{self.amqp_port}\nstomp.listeners.tcp.1 = 127.0.0.1:{self.stomp_port}\ndisk_free_limit.absolute = 100MB\n"
        )
        (self.folder / ".erlang.cookie").write_text(secrets.token_hex(16))
        (self.folder / ".erlang.cookie").chmod(0o400)
        self._environment = os.environ | {
            "HOME": str(self.folder),
            "ERL_EPMD_PORT": str(epmd), "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"surety-peer-{os.getpid()}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1", "RABBITMQ_NODE_PORT": str(self.amqp_port), "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_CONF_ENV_FILE": str(self.folder / "none"), "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq.conf"),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "mnesia"), "RABBITMQ_LOG_BASE": str(self.folder / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "enabled_plugins"), "RABBITMQ_PID_FILE": str(self.folder / "pid"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }  # fmt: skip

    def __enter__(self) -> Self:
        try:
            # Our own port mapper in the foreground: else the node leaves one behind as a daemon.
            self._start([EPMD, "-port", str(self._epmd_port), "-address", "127.0.0.1"])
            self._server = self._start([str(SERVER)])
            self._await_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._processes):
            self._end(process)
        shutil.rmtree(self.folder, ignore_errors=True)

    def restart(self) -> None:
        """As planned: durable queues keep what is persistent."""
        self._end(self._server)
        self._processes.remove(self._server)
        self._server = self._start([str(SERVER)])
        self._await_ready()

    @staticmethod
    def _end(process: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        with (self.folder / "output").open("ab") as output:
            process = subprocess.Popen(
                command,
                env=self._environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def _await_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.stomp_port), 1):
                return
            ended = self._server.poll() is not None
            if ended or time.monotonic() > deadline:
                raise RuntimeError(f"RabbitMQ did not start: {(self.folder / 'output').read_text()[-3000:]}")
            time.sleep(0.2)

    def evidence(self) -> str:
        """The ends of its logs."""
        logs = [self.folder / "output", *sorted((self.folder / "log").glob("*.log"))]
        return "\n".join(f"---- {log} ----\n{log.read_text(errors='replace')[-3000:]}" for log in logs if log.exists())

    def resident_octets(self) -> int:
        """Resident memory of the Erlang machine."""
        for status in Path("/proc").glob("[0-9]*/status"):
            with contextlib.suppress(OSError):
                text = status.read_text()
                session = os.getsid(int(status.parent.name)) == self._server.pid
                if session and text.startswith("Name:\tbeam.smp") and is_running(int(status.parent.name)):
                    return int(text.partition("VmRSS:")[2].split()[0]) * 1024
        raise RuntimeError("no Erlang machine is running")
