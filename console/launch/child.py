"""One supervised process: started, logged, started again when it dies, and never left behind by a supervisor that is killed."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from .account import Account

PR_SET_PDEATHSIG = 1
"""prctl(2)."""
BACKOFF_SECONDS, BACKOFF_SECONDS_MAX = 1, 30
STEADY_SECONDS = 3
"""A process that ran this long had started, so it is started again at once: who serves is missed. One that dies on its way up waits longer and longer."""
LINE_OCTETS_MAX = 1 << 16
"""A longer line is cut in pieces; a child cannot make the supervisor hold more."""
LOG_OCTETS, LOG_FILES = 10 << 20, 4
"""50 MiB of log for each role."""
WIDTH = 8
"""Of the longest role's name on the console: postgres."""

_prctl = ctypes.CDLL(None, use_errno=True).prctl


@dataclass(frozen=True, slots=True)
class Role:
    name: str
    command: list[str]
    stop_signal: signal.Signals = signal.SIGTERM
    death_signal: signal.Signals = signal.SIGKILL
    """What the kernel sends it when the supervisor is gone."""
    account: Account | None = None
    """Runs under this account; None: ours."""
    environment: dict[str, str] | None = None
    """None: ours, with the secrets that it may hold."""
    up: str = ""
    """What it says when it serves, so that it had started, however soon it dies. Empty: only time tells."""


class Child:
    """Keeps one role running until stop(). Everything happens in the main thread: PR_SET_PDEATHSIG follows the thread that forked."""

    def __init__(self, role: Role, home: Path) -> None:
        self.role = role
        self.restarts = 0
        self.killed = False
        """True: it did not stop when asked."""
        self._pid_file = home / "run" / f"{role.name}.pid"
        self._log = _role_log(home / "log" / f"{role.name}.log")
        self._process: asyncio.subprocess.Process | None = None
        self._is_up = False
        self._stopping = asyncio.Event()
        self.keeper = asyncio.create_task(self._keep(), name=role.name)
        """Ends only after stop()."""

    def say(self, text: str) -> None:
        self._log.info(text)
        with contextlib.suppress(OSError):  # the terminal is gone; the log has it
            print(f"{self.role.name:{WIDTH}} | {text}", flush=True)

    async def stop(self, kill_at: float) -> None:
        """Ask it to stop, wait until `kill_at` (monotonic clock), then kill it with all of its process group."""
        self._stopping.set()
        process = self._process
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(self.role.stop_signal)
        try:
            await asyncio.wait_for(asyncio.shield(self.keeper), max(0.0, kill_at - time.monotonic()))
        except TimeoutError:
            self.killed = True
            self.say("did not stop in time and is killed")
            assert process is not None
            _kill(process.pid)
            await self.keeper

    async def _keep(self) -> None:
        backoff: float = BACKOFF_SECONDS
        while not self._stopping.is_set():
            began, self._is_up = time.monotonic(), False
            try:
                ending = _ending(await self._run_once())
            except OSError as error:  # no memory, no processes, no space: as with every other end, try again
                ending = f"could not be started ({error})"
            if self._stopping.is_set():
                break
            self.restarts += 1
            if self._is_up or time.monotonic() - began >= STEADY_SECONDS:
                backoff = BACKOFF_SECONDS
                self.say(f"{ending}; starting again at once")
                continue
            self.say(f"{ending}; starting again in {backoff} s")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), backoff)
            backoff = min(2 * backoff, BACKOFF_SECONDS_MAX)

    async def _run_once(self) -> int:
        role = self.role
        switch: dict[str, Any] = {}
        if role.account is not None and role.account.switches:
            switch = {"user": role.account.user, "group": role.account.group, "extra_groups": []}
        # A pipe of our own: asyncio's process with a pipe has not ended, for asyncio, before everybody who inherited the pipe has.
        reading, writing = os.pipe()
        try:
            self._process = process = await asyncio.create_subprocess_exec(
                *role.command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=writing,
                stderr=writing,
                env=role.environment,
                process_group=0,  # the terminal's Ctrl-C is for the supervisor, which stops the others in order
                preexec_fn=die_with_us(role.death_signal),
                **switch,
            )
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        self._write_pid(process.pid)
        if self._stopping.is_set():  # told to stop while it was being started
            process.send_signal(role.stop_signal)
        output = asyncio.create_task(self._copy_output(reading))
        try:
            code = await process.wait()
            # What it left running (PostgreSQL's own children, for a moment) holds the pipe open; do not wait for that.
            await asyncio.wait([output], timeout=1)
            output.cancel()
            return code
        finally:
            self._pid_file.unlink(missing_ok=True)

    def _write_pid(self, pid: int) -> None:
        try:
            self._pid_file.write_text(f"{pid}\n")
        except OSError as error:  # a full disk must not stop what may free it
            self.say(f"runs as process {pid}, but its pid file could not be written ({error})")

    async def _copy_output(self, descriptor: int) -> None:
        stream = asyncio.StreamReader(limit=LINE_OCTETS_MAX)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(descriptor, "rb", 0))
        try:
            while line := await _line(stream):
                text = line.decode("utf-8", "replace").rstrip()
                self.say(text)
                if self.role.up and self.role.up in text:
                    self._is_up = True
        finally:
            transport.close()


async def _line(stream: asyncio.StreamReader) -> bytes:
    """The next line, or as much of it as the limit allows; empty at the end."""
    try:
        return await stream.readuntil(b"\n")
    except asyncio.LimitOverrunError:
        return await stream.read(LINE_OCTETS_MAX)
    except asyncio.IncompleteReadError as end:
        return end.partial


def _kill(pid: int) -> None:
    """SIGKILL for a process, its group and those it started, which may have groups of their own (PostgreSQL's have)."""
    for each in [pid, *_started_by(pid)]:  # listed first: orphans are nobody's children
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _started_by(pid: int) -> list[int]:
    children: list[int] = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile, and has none
        children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [*children, *(grandchild for child in children for grandchild in _started_by(child))]


def _ending(code: int) -> str:
    return f"ended with code {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"


def die_with_us(death_signal: signal.Signals) -> Callable[[], None]:
    """What the child does between fork and exec. Called after the change of account, which would undo it (prctl(2))."""
    supervisor = os.getpid()

    def arrange() -> None:
        _prctl(PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)
        if os.getppid() != supervisor:  # it died before the line above
            os._exit(1)

    return arrange


def _role_log(path: Path) -> logging.Logger:
    handler = RotatingFileHandler(path, maxBytes=LOG_OCTETS, backupCount=LOG_FILES, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(message)s"))
    log = logging.getLogger(f"surety.launch.{path}")
    log.propagate = False
    log.setLevel(logging.INFO)
    log.handlers = [handler]
    return log
