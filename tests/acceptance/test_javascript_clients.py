"""Clients for JavaScript that nobody here wrote, at pinned versions: @stomp/stompjs over TCP and stompit, for AMQP rhea."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.programs import Playing, kill_in_the_middle, played
from tests.support.service import Service

FOLDER = Path(__file__).with_name("javascript")
INSTALL_SECONDS_MAX = 300


def scenarios(module: str) -> list[str]:
    return re.findall(r"^export async function (\w+)", (FOLDER / module).read_text(), re.MULTILINE)


PLAYED = [
    *(("stompjs", scenario) for scenario in [*scenarios("scenarios.mjs"), *scenarios("refusals.mjs")]),
    *(("stompit", scenario) for scenario in scenarios("scenarios.mjs")),
]


ALONE = "is_killed_in_a_transaction"
AMQP_PLAYED = [scenario for scenario in [*scenarios("amqp_scenarios.mjs"), *scenarios("amqp_transactions.mjs")] if scenario != ALONE]


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
    with played(commands, FOLDER) as running:
        yield running


@pytest.mark.parametrize(("client", "scenario"), PLAYED)
def test_an_application_for_javascript_works(playing: Playing, client: str, scenario: str) -> None:
    assert playing[f"{client} {scenario}"].result() == ""


@pytest.fixture(scope="module")
def amqp_played(packages: None, service: Service) -> dict[str, str]:
    """What went wrong, by scenario."""
    command = ["node", "play_amqp.mjs", str(service.amqp_port), uuid.uuid4().hex[:8], *AMQP_PLAYED]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=INSTALL_SECONDS_MAX)
    lines = [line.partition(" ") for line in done.stdout.splitlines()]
    return {scenario: problem for scenario, _, problem in lines} or {"": done.stderr}


@pytest.mark.parametrize("scenario", AMQP_PLAYED)
def test_an_amqp_application_for_javascript_works(amqp_played: dict[str, str], scenario: str) -> None:
    assert amqp_played.get(scenario, f"it was not played: {amqp_played}") == ""


def test_an_amqp_application_whose_node_is_killed_in_a_transaction_does_it_again(packages: None, mortal: Service) -> None:
    """It reconnects by itself; of the transaction nothing is left, and what it had taken comes again, flagged."""
    command = ["node", "play_amqp.mjs", str(mortal.amqp_port), uuid.uuid4().hex[:8], ALONE]
    said = kill_in_the_middle(command, mortal, FOLDER)
    assert "well" in said.splitlines(), said


def test_the_lock_file_names_no_host() -> None:
    """Whoever installs from it asks the registry of his own machine."""
    assert "resolved" not in (FOLDER / "package-lock.json").read_text()
