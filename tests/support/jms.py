"""Apache Qpid JMS, a JMS client that nobody here wrote, from Maven Central: its jars have pinned versions and checksums."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.support import maven
from tests.support.service import REPOSITORY

FOLDER = REPOSITORY / "tests" / "acceptance" / "jms"
JARS = FOLDER / "lib"
SECONDS_MAX = 300


def missing() -> str:
    """Why no JMS client can be tried, as a sentence; empty: one can."""
    for program in ("java", "javac"):
        if shutil.which(program) is None:
            return f"{program} is not installed, so no JMS client is tried (Debian: default-jdk-headless)"
    return "" if maven.is_installed() else maven.NOT_INSTALLED


def compiled(source: Path, classes: Path) -> str:
    """The class path of a program of one file, compiled anew into the folder `classes`; the jars are fetched when they are first used. Raises RuntimeError
    with what the compiler said."""
    maven.fetch(dict(line.split() for line in (FOLDER / "jars.txt").read_text().splitlines()), JARS)
    path = f"{JARS}/*"
    done = subprocess.run(["javac", "-Xlint:all", "-cp", path, "-d", str(classes), str(source)], capture_output=True, text=True, timeout=SECONDS_MAX)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return f"{path}:{classes}"
