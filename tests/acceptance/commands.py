"""`manage.py` commands of a service, as an operator gives them."""

from __future__ import annotations

import subprocess
import sys

from tests.support.service import REPOSITORY, Service

COMMAND_SECONDS_MAX = 120


def manage(service: Service, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(command, cwd=REPOSITORY, env=service.environment(), capture_output=True, text=True, timeout=COMMAND_SECONDS_MAX)


def done(service: Service, *arguments: str) -> str:
    """What it says when it succeeds, as it must."""
    ended = manage(service, *arguments)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def refused(service: Service, *arguments: str) -> str:
    """What it complains of, as it must."""
    ended = manage(service, *arguments)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    return ended.stderr
