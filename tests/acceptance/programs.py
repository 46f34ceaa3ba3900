"""Applications with clients that nobody here wrote, each a program that exits with 0 if all went well; several at once."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tests.support.service import Service

AT_ONCE = 6
"""Most of a scenario's time is waiting for what must not come."""
SECONDS_MAX = 150

Playing = Mapping[str, Future[str]]
"""What each said if it failed; empty: all went well."""


def play(command: Sequence[str], folder: Path) -> str:
    """What the program said if it failed."""
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS_MAX)
    return done.stdout or f"ended with {done.returncode}" if done.returncode else ""


def kill_in_the_middle(command: Sequence[str], mortal: Service, folder: Path) -> str:
    """The node is killed when the program says that it is in the middle of something; it reads a line when there is one again. What it said then."""
    with subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as application:
        try:
            assert application.stdin is not None and application.stdout is not None
            before = ""
            while "in the middle" not in (line := application.stdout.readline()):
                assert line, f"it ended before: {before}"
                before += line
            mortal.kill_and_await_another("node")
            return application.communicate("\n", timeout=SECONDS_MAX)[0]
        finally:
            application.kill()


@contextmanager
def played(commands: Mapping[str, Sequence[str]], folder: Path) -> Iterator[Playing]:
    """All of them, in this order, so many at once; what has not begun at the end is not begun."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {name: pool.submit(play, command, folder) for name, command in commands.items()}
        pool.shutdown(cancel_futures=True)
