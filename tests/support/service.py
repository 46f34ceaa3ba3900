"""A whole service as a person starts it: `manage.py run` in a home and on ports of its own, killed and stopped by role."""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg

REPOSITORY = Path(__file__).resolve().parents[2]
READY_SECONDS_MAX = 90
"""A first start creates the database cluster and its tables beside whatever else the machine does; it takes about 10 s alone."""
STOP_SECONDS_MAX = 20
"""What the service promises for SIGTERM."""
LOG_TAIL_OCTETS = 6000


class NotServing(AssertionError):
    """The service did not do in time what it must; the message holds the end of its logs."""


def free_ports(count: int) -> list[int]:
    """Ports free at this moment, all different."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def is_running(pid: int) -> bool:
    """False for a process that is gone or only waits to be reaped."""
    try:
        status = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(b")")[2].split()[0] not in (b"Z", b"X")


def await_true(condition, seconds: float, sentence: str, pause: float = 0.05) -> float:
    """Wait until `condition()`; the seconds it took. Raises NotServing with `sentence` when the time is over."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > seconds:
            raise NotServing(f"{sentence} (waited {seconds:.0f} s)")
        time.sleep(pause)
    return time.monotonic() - began


class Service:
    """A context manager: entered, it is ready; left, it is stopped and its folder removed. On an exception its logs are printed.

    `command` is a manage.py command; a second node of the same service is `service.standby()`.
    """

    def __init__(
        self, *, home: Path | None = None, environment: dict[str, str] | None = None, command: str = "run", wait: bool = True
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="surety-"))
        self.folder.chmod(0o755)  # PostgreSQL runs as another user when the tests run as root
        self.home = home or self.folder / "home"
        self.stomp_port, self.http_port, self.amqp_port, self.stomp_tls_port, self.amqp_tls_port = free_ports(5)
        self.command = command
        self.log = self.folder / f"{command}.log"
        self.process: subprocess.Popen[bytes] | None = None
        self._wait = wait
        self._pids: set[int] = set()
        self._environment = environment or {}

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self._end(sys.exc_info()[0])
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end(kind)

    def _end(self, kind: type[BaseException] | None) -> None:
        if kind is not None:
            print(self.evidence(), file=sys.stderr)
        try:
            self.stop(patient=kind is None)
        finally:
            self._end_what_is_left()
            shutil.rmtree(self.folder, ignore_errors=True)

    # -- starting and stopping ------------------------------------------------------------------------------------------------------
    def environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("SURETY_") and name != "DATABASE_URL"}
        return (
            inherited
            | {
                "SURETY_HOME": str(self.home),
                "SURETY_STOMP_PORT": str(self.stomp_port),
                "SURETY_HTTP_PORT": str(self.http_port),
                "SURETY_AMQP_PORT": str(self.amqp_port),
                "SURETY_STOMP_TLS_PORT": str(self.stomp_tls_port),
                "SURETY_AMQP_TLS_PORT": str(self.amqp_tls_port),
                "SURETY_ADMIN_USER": "operator",
                "SURETY_ADMIN_PASSWORD": "of-the-acceptance-tests",
                "PYTHONUNBUFFERED": "1",
            }
            | self._environment
        )

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", self.command],
                cwd=REPOSITORY,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        if self._wait:
            self.await_ready()

    def stop(self, *, patient: bool = True) -> int:
        """SIGTERM, and the exit status. Raises NotServing if it takes longer than promised; then everything is killed."""
        process = self.process
        if process is None:
            return 0
        self._remember_pids()
        for pid in self._pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        process.send_signal(signal.SIGTERM)
        try:
            return process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            if patient:
                raise NotServing(f"SIGTERM did not end the service within {STOP_SECONDS_MAX} s\n{self.evidence()}") from None
            return -signal.SIGKILL
        finally:
            self.process = None

    def standby(self) -> Service:
        """One more node of this service, on a STOMP port of its own, started but not waited for (it is not ready: it stands by)."""
        return Service(home=self.home, environment=self._environment, command="node", wait=False)

    def _end_what_is_left(self) -> None:
        """Kill what outlived its supervisor: only processes whose pid files this service wrote."""
        for pid in self._pids:
            if is_running(pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    # -- roles ----------------------------------------------------------------------------------------------------------------------
    def pid(self, role: str) -> int | None:
        """The pid of a role if it runs now."""
        try:
            pid = int((self.home / "run" / f"{role}.pid").read_text().split()[0])
        except (FileNotFoundError, IndexError, ValueError):
            return None
        if not is_running(pid):
            return None
        if self.command == "run":  # the roles of a standby's home are another service's to end
            self._pids.add(pid)
        return pid

    def _remember_pids(self) -> None:
        for file in (self.home / "run").glob("*.pid"):
            self.pid(file.stem)

    def await_pid(self, role: str, seconds: float = READY_SECONDS_MAX) -> int:
        await_true(lambda: self.pid(role) is not None, seconds, f"no {role} is running")
        pid = self.pid(role)
        return pid if pid is not None else self.await_pid(role, seconds)

    def signal(self, role: str, number: signal.Signals) -> int:
        """Send a signal to the role's process, waiting for one to exist; its pid. After SIGKILL it is gone when this returns."""
        while True:
            pid = self.await_pid(role)
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue
            if number == signal.SIGKILL:
                await_true(lambda pid=pid: not is_running(pid), 10, f"{role} {pid} outlives SIGKILL", pause=0.001)
            return pid

    def kill(self, role: str) -> int:
        return self.signal(role, signal.SIGKILL)

    def kill_and_await_another(self, role: str) -> None:
        """What readiness says just after a kill may still be of the one that was killed."""
        before = self.kill(role)
        await_true(lambda: self.pid(role) not in (None, before), READY_SECONDS_MAX, f"{role} is not started again")
        self.await_ready()

    # -- health ---------------------------------------------------------------------------------------------------------------------
    def get(self, path: str, timeout: float = 5) -> tuple[int, str]:
        """Status and body of a GET; status 0 when nobody answers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=timeout)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            return 0, repr(error)
        finally:
            connection.close()

    def is_ready(self) -> bool:
        return self.get("/health/ready")[0] == 200

    def await_ready(self, seconds: float = READY_SECONDS_MAX) -> float:
        """Wait until the service says that it is ready; the seconds it took."""

        def ready() -> bool:
            if self.process is not None and self.process.poll() is not None:
                raise NotServing(f"`manage.py {self.command}` ended with status {self.process.returncode}\n{self.evidence()}")
            return self.is_ready()

        try:
            return await_true(ready, seconds, "the service is not ready")
        except NotServing as error:
            raise NotServing(f"{error}: {self.get('/health/ready')}\n{self.evidence()}") from None

    def resident_octets(self, role: str = "node", *, peak: bool = False) -> int:
        """Resident memory of the role's process now, or the most it ever had."""
        wanted = "VmHWM:" if peak else "VmRSS:"
        for line in Path(f"/proc/{self.await_pid(role)}/status").read_text().splitlines():
            if line.startswith(wanted):
                return int(line.split()[1]) * 1024
        raise NotServing(f"{role} has no {wanted}")

    # -- the database ---------------------------------------------------------------------------------------------------------------
    def dsn(self, *, superuser: bool = False) -> str:
        """Where the service keeps its messages: DATABASE_URL if it was given one, else the embedded server's database.

        The server tells in its lock file where it listens: line 4 the port, line 5 the socket's folder.
        """
        given = self._environment.get("DATABASE_URL")
        if given:
            return given
        lines = Path(f"/proc/{self.await_pid('postgres')}/cwd/postmaster.pid").read_text().splitlines()
        return f"host={lines[4]} port={lines[3]} user={'postgres' if superuser else 'surety'} dbname=surety"

    @contextlib.contextmanager
    def database(self) -> Iterator[psycopg.Connection]:
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            yield connection

    # -- evidence -------------------------------------------------------------------------------------------------------------------
    def evidence(self) -> str:
        """The end of every log of this service."""
        logs = [self.log, *sorted(self.home.rglob("*.log"))] if self.home.exists() else [self.log]
        return "\n".join(f"---- {log} ----\n{_tail(log)}" for log in logs if log.exists())


def _tail(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - LOG_TAIL_OCTETS))
        return file.read().decode(errors="replace")
