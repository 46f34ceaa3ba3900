"""What the machine below takes away: on a shared host a virtual processor stands still for milliseconds, and nobody inside can do anything about it.

    python -m tests.bench.hypervisor                 how long each processor stands still while it is busy (ten seconds for each)

A process that only looks at the clock, before all others (SCHED_FIFO, for which it must be root), cannot be held up by anything that runs here. Where two
of its looks lie more than a millisecond apart, the processor itself was away.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

SECONDS = 10
LOOKING_SECONDS = 0.8
"""Of each: Linux itself stops what is before all others after 0.95 s (kernel.sched_rt_runtime_us)."""
PAUSE_SECONDS = 0.001
_STOLEN = 8
"""The column of /proc/stat (proc(5)): time spent in other operating systems, in ticks."""


@dataclass(slots=True)
class Stolen:
    """What was taken while the block ran."""

    _before: list[int] = field(default_factory=list)
    _after: list[int] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._before = _ticks()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._after = _ticks()

    def __str__(self) -> str:
        taken = [after - before for before, after in zip(self._before, self._after, strict=True)]
        if not sum(taken) or not self._after[_STOLEN - 1]:  # not once since the machine was started
            return "what the hypervisor takes is unknown"
        return f"the hypervisor took {taken[_STOLEN - 1] / sum(taken[:_STOLEN]):.1%} of the processors' time"


def _ticks() -> list[int]:
    """Of all processors, by state; nothing where there is no such file."""
    told = Path("/proc/stat")
    return [int(ticks) for ticks in told.read_text().partition("\n")[0].split()[1:]] if told.exists() else []


def pauses(seconds: float) -> list[float]:
    """In s, those of this process's processor that are longer than PAUSE_SECONDS."""
    found: list[float] = []
    last = time.monotonic()
    end = last + seconds
    while last < end:
        now = time.monotonic()
        if now - last > PAUSE_SECONDS:
            found.append(now - last)
        last = now
    return found


def look(processor: int) -> None:
    os.sched_setaffinity(0, [processor])
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    found = []
    for _ in range(SECONDS):
        found += pauses(LOOKING_SECONDS)
        time.sleep(1 - LOOKING_SECONDS)
    looked, longest = SECONDS * LOOKING_SECONDS, 1000 * max(found, default=0)
    print(f"processor {processor}: away {len(found)} times in {looked:.0f} s, {sum(found) / looked:.1%} of the time, at most {longest:.1f} ms", flush=True)


def main() -> None:
    if sys.argv[1:]:
        look(int(sys.argv[1]))
        return
    for processor in sorted(os.sched_getaffinity(0)):
        subprocess.run([sys.executable, "-m", "tests.bench.hypervisor", str(processor)], check=True)


if __name__ == "__main__":
    main()
