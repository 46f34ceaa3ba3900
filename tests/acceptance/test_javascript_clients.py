"""Clients for JavaScript that nobody here wrote, at pinned versions: @stomp/stompjs over TCP and stompit, for AMQP rhea."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.programs import Playing, played
from tests.support.service import Service

FOLDER = Path(__file__).with_name("javascript")
INSTALL_SECONDS_MAX = 300


def scenarios(module: str) -> list[str]:
    return re.findall(r"^export async function (\w+)", (FOLDER / module).read_text(), re.MULTILINE)


PLAYED = [
    *(("stompjs", scenario) for scenario in [*scenarios("scenarios.mjs"), *scenarios("refusals.mjs")]),
    *(("stompit", scenario) for scenario in scenarios("scenarios.mjs")),
]


AMQP_PLAYED = scenarios("amqp_scenarios.mjs")


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
def playing(packages: None, service: Service) -> Iterator[Playing]:
    commands = {
        f"{client} {scenario}": ["node", "play.mjs", str(service.stomp_port), client, f"{client}.{scenario}", scenario] for client, scenario in PLAYED
    }
    commands |= {f"rhea {scenario}": ["node", "play_amqp.mjs", str(service.amqp_port), f"rhea.{scenario}", scenario] for scenario in AMQP_PLAYED}
    with played(commands, FOLDER) as running:
        yield running


@pytest.mark.parametrize(("client", "scenario"), PLAYED)
def test_an_application_for_javascript_works(playing: Playing, client: str, scenario: str) -> None:
    assert playing[f"{client} {scenario}"].result() == ""


@pytest.mark.parametrize("scenario", AMQP_PLAYED)
def test_an_amqp_application_for_javascript_works(playing: Playing, scenario: str) -> None:
    assert playing[f"rhea {scenario}"].result() == ""


def test_the_lock_file_names_no_host() -> None:
    """Whoever installs from it asks the registry of his own machine."""
    assert "resolved" not in (FOLDER / "package-lock.json").read_text()
