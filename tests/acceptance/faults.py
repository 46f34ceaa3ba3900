"""What the kill loop does to the service: a seeded list of faults, each applied to really running processes."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tests.support.service import Service

HASTE = 0.25
"""Part of the faults that come while the service still recovers from the one before."""
CALM_SECONDS = (0.2, 3.0)
HASTE_SECONDS = (0.0, 1.0)


class Kind(Enum):
    NODE = "SIGKILL node"
    POSTMASTER = "SIGKILL postmaster"
    BACKEND = "SIGKILL a PostgreSQL backend"
    STOP = "SIGSTOP node"


@dataclass(slots=True, frozen=True)
class Fault:
    kind: Kind
    pause: float
    """Seconds to wait before it."""
    hasty: bool
    """True: the pause begins at once, not when messages are confirmed again."""
    seconds: float = 0.0
    """How long a stopped node stays stopped."""
    pick: float = 0.0
    """Which backend, as a part of the list."""


def plan(seed: int, *, node: int, database: int, stops: int, stop_seconds: float) -> list[Fault]:
    """The faults of a seed, in random order."""
    chance = random.Random(seed)
    kinds = [Kind.NODE] * node + [Kind.STOP] * stops
    kinds += [Kind.POSTMASTER if number % 2 else Kind.BACKEND for number in range(database)]
    chance.shuffle(kinds)
    faults = []
    for kind in kinds:
        hasty = chance.random() < HASTE
        pause = chance.uniform(*(HASTE_SECONDS if hasty else CALM_SECONDS))
        faults.append(Fault(kind, pause, hasty, stop_seconds if kind is Kind.STOP else 0.0, chance.random()))
    return faults


def apply(fault: Fault, service: Service) -> int:
    """Do it; the pid it was done to."""
    if fault.kind is Kind.NODE:
        return service.kill("node")
    if fault.kind is Kind.POSTMASTER:
        return service.kill("postgres")
    if fault.kind is Kind.BACKEND:
        return _kill_backend(service, fault.pick)
    pid = service.signal("node", signal.SIGSTOP)
    time.sleep(fault.seconds)
    with contextlib.suppress(ProcessLookupError):  # the supervisor may have ended a node that did not answer
        os.kill(pid, signal.SIGCONT)
    return pid


def _kill_backend(service: Service, pick: float) -> int:
    """Any child of the postmaster: a session, the WAL writer, the checkpointer. PostgreSQL then restarts all of them."""
    while True:
        postmaster = service.await_pid("postgres")
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
            if children:
                pid = int(children[int(pick * len(children))])
                os.kill(pid, signal.SIGKILL)
                return pid
        time.sleep(0.05)
