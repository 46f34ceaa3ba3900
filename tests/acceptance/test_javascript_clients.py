"""STOMP clients for JavaScript that nobody here wrote, at pinned versions: @stomp/stompjs over TCP and stompit."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.service import Service

Done = subprocess.CompletedProcess[str]

FOLDER = Path(__file__).with_name("javascript")
INSTALL_SECONDS_MAX = 300
SCENARIO_SECONDS_MAX = 60
AT_ONCE = 6


def scenarios(module: str) -> list[str]:
    return re.findall(r"^export async function (\w+)", (FOLDER / module).read_text(), re.MULTILINE)


PLAYED = {"stompjs": [*scenarios("scenarios.mjs"), *scenarios("refusals.mjs")], "stompit": scenarios("scenarios.mjs")}


@pytest.fixture(scope="module")
def packages() -> None:
    """The versions of the lock file, installed beside it if they are not yet."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed, so no client for JavaScript is tried (Debian: nodejs and npm)")
    stamp = FOLDER / "node_modules" / ".lock-hash"
    wanted = hashlib.sha256((FOLDER / "package-lock.json").read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text() != wanted:
        done = subprocess.run(["npm", "ci"], cwd=FOLDER, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=INSTALL_SECONDS_MAX)
        assert done.returncode == 0, done.stdout
        stamp.write_text(wanted)


@pytest.fixture(scope="module")
def playing(packages: None, service: Service) -> Iterator[dict[tuple[str, str], Future[Done]]]:
    """Several at once: most of their time is waiting for what must not come."""

    def play(client: str, scenario: str) -> Done:
        return subprocess.run(
            ["node", "play.mjs", str(service.stomp_port), client, f"{client}.{scenario}", scenario],
            cwd=FOLDER, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SCENARIO_SECONDS_MAX,
        )  # fmt: skip

    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {(client, scenario): pool.submit(play, client, scenario) for client, played in PLAYED.items() for scenario in played}
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize(("client", "scenario"), [(client, scenario) for client, played in PLAYED.items() for scenario in played])
def test_an_application_for_javascript_works(playing: dict[tuple[str, str], Future[Done]], client: str, scenario: str) -> None:
    done = playing[client, scenario].result()
    assert done.returncode == 0, done.stdout


def test_the_lock_file_names_no_host() -> None:
    """Whoever installs from it asks the registry of his own machine."""
    assert "resolved" not in (FOLDER / "package-lock.json").read_text()
