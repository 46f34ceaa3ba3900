"""What the data pipeline needs is fetched when it is asked for the first time: it is ten times as large as everything else."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from broker_core.pipeline.surroundings import REQUIREMENTS, java_missing, packages_missing

from .refusal import CannotStart

REPOSITORY = Path(__file__).resolve().parents[2]


def provide(java_home: str, tell: Callable[[str], None]) -> None:
    """Spark can be had when this returns. Raises CannotStart, with one sentence."""
    if sentence := java_missing(java_home):
        raise CannotStart(sentence)
    if not packages_missing():
        return
    tell("Fetching Apache Spark for the first command of the data pipeline: 400 MB, once.")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(REQUIREMENTS)]
    done = subprocess.run(command, check=False)
    importlib.invalidate_caches()
    if sentence := packages_missing():
        raise CannotStart(f"{sentence} It was tried, and ended with code {done.returncode}.")


def begin_run(log: Path, requested_by: str) -> int:
    """Start a run that nobody waits for, which brings the lake up to date and audits what is new; what it says goes to `log`. The number of its process."""
    return _begin(log, "audit", "--requested-by", requested_by)


def begin_replay(log: Path, number: int, requested_by: str) -> int:
    """The same for a replay that has been asked for. It waits for a run that goes on."""
    return _begin(log, "replay", "--number", str(number), "--waits", "--requested-by", requested_by)


def _begin(log: Path, *arguments: str) -> int:
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as written:
        command = [sys.executable, str(REPOSITORY / "manage.py"), "pipeline", *arguments]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=written, stderr=written, start_new_session=True, cwd=REPOSITORY).pid
