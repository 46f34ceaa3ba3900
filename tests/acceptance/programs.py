"""Applications with clients that nobody here wrote, each a program that exits with 0 if all went well; several at once."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

AT_ONCE = 6
"""Most of a scenario's time is waiting for what must not come."""
SECONDS_MAX = 150

Playing = Mapping[str, Future[str]]
"""What each said if it failed; empty: all went well."""


def play(command: Sequence[str], folder: Path) -> str:
    """What the program said if it failed."""
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS_MAX)
    return done.stdout or f"ended with {done.returncode}" if done.returncode else ""


@contextmanager
def played(commands: Mapping[str, Sequence[str]], folder: Path) -> Iterator[Playing]:
    """All of them, in this order, so many at once; what has not begun at the end is not begun."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {name: pool.submit(play, command, folder) for name, command in commands.items()}
        pool.shutdown(cancel_futures=True)
