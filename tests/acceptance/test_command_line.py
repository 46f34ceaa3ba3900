"""`manage.py mq` as a person types it: processes, exit codes, a service that runs and one whose console does not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

from console.cli import exits
from tests.support.service import REPOSITORY, Service


def typed(service: Service, *words: str, answer: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """What came of it."""
    return subprocess.run(
        [sys.executable, "manage.py", "mq", *words],
        cwd=REPOSITORY, env=service.environment() | environment, input=answer, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def test_the_same_is_done_here_and_from_elsewhere_with_a_token(service: Service, queue: str) -> None:
    address = f"queue/{queue}"
    made = typed(service, "create", "dst", address, "-o", "max_messages=10")
    assert (made.returncode, made.stderr) == (exits.DONE, ""), made
    token = json.loads(typed(service, "create", "token", queue, "--scope", "write", "--json").stdout)["token"]
    far = {"SURETY_URL": f"http://127.0.0.1:{service.http_port}", "SURETY_TOKEN": token, "SURETY_HOME": str(service.folder / "elsewhere")}
    assert typed(service, "send", "msg", address, "--text", "red", **far).returncode == exits.DONE
    assert [each["state"] for each in json.loads(typed(service, "list", "msg", address, "--json").stdout)["items"]] == ["available"]
    assert typed(service, "destroy", "dst", address, "--depth", "1", answer="yes\n", **far).returncode == exits.DONE


def test_here_it_needs_no_console_and_from_elsewhere_it_says_that_there_is_none(mortal: Service) -> None:
    web = mortal.pid("web")
    assert web is not None
    os.kill(web, signal.SIGSTOP)
    try:
        listed = typed(mortal, "list", "dst", "--json")
    finally:
        os.kill(web, signal.SIGCONT)
    assert (listed.returncode, listed.stderr) == (exits.DONE, "")
    assert "queue/mq.sys.dmq" in {each["address"] for each in json.loads(listed.stdout)["items"]}
    nobody = typed(mortal, "list", "dst", SURETY_URL="http://127.0.0.1:9", SURETY_TOKEN="surety_x")
    assert (nobody.returncode, "cannot be reached" in nobody.stderr) == (exits.UNREACHABLE, True)


def test_without_a_database_it_says_what_to_do(tmp_path, service: Service) -> None:
    ran = typed(service, "list", "dst", SURETY_HOME=str(tmp_path))
    assert ran.returncode == exits.UNREACHABLE
    assert ran.stderr == f"No database runs on {tmp_path}: `make run` starts one, or set DATABASE_URL.\n"
