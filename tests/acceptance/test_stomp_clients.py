"""STOMP clients that nobody here wrote: the newest stomp.py and Debian's, each in a process of its own."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.acceptance.programs import Playing, played
from tests.acceptance.secured import Secured
from tests.acceptance.stomp_py import consumers, delays, duplicates, groups, limits, patterns, queues, requests, selectors, topics, transactions
from tests.acceptance.windows import create, open_window
from tests.support.service import REPOSITORY, Service

DEBIAN = Path("/usr/bin/python3")
OF_ITS_OWN_SERVICE = {"over_tls", "refused_until_dead"}


def scenarios(module: ModuleType) -> list[str]:
    functions = [name for name, value in vars(module).items() if inspect.isfunction(value) and value.__module__ == module.__name__]
    return [name for name in functions if not name.startswith("_") and name not in OF_ITS_OWN_SERVICE]


def clients() -> list[tuple[str, str]]:
    """Interpreters that have a stomp.py, with its version."""
    found = []
    for interpreter in (sys.executable, str(DEBIAN)):
        done = subprocess.run(
            [interpreter, "-c", "from importlib.metadata import version; import stomp; print(version('stomp.py'))"], capture_output=True, text=True
        )
        if done.returncode == 0:
            found.append((interpreter, done.stdout.strip()))
    return found


CLIENTS = clients()
MODULES = {"queue": (queues, consumers, selectors, delays, duplicates, groups, limits, requests, transactions), "topic": (topics, patterns)}
"""By what they are given the name of."""
SCENARIOS = [(kind, scenario) for kind, modules in MODULES.items() for module in modules for scenario in scenarios(module)]


def command(interpreter: str, port: int, name: str, scenario: str, *arguments: str) -> list[str]:
    return [interpreter, "-m", "tests.acceptance.stomp_py", str(port), name, scenario, *arguments]


@pytest.fixture(scope="module")
def playing(service: Service) -> Iterator[Playing]:
    commands = {
        f"{version} {scenario}": command(interpreter, service.stomp_port, f"/{kind}/{version}.{scenario}", scenario)
        for interpreter, version in CLIENTS
        for kind, scenario in SCENARIOS
    }
    for _, version in CLIENTS:
        for scenario in scenarios(duplicates):
            open_window(service, f"queue/{version}.{scenario}", 600_000)
        for scenario in scenarios(limits):
            create(service, f"queue/{version}.{scenario}", max_messages=2)
    with played(commands, REPOSITORY) as running:
        yield running


@pytest.mark.parametrize("scenario", [scenario for _, scenario in SCENARIOS])
@pytest.mark.parametrize("version", [pytest.param(version, id=f"stomp.py-{version}") for _, version in CLIENTS])
def test_a_stomp_py_application_works(playing: Playing, version: str, scenario: str) -> None:
    assert playing[f"{version} {scenario}"].result() == ""


def test_the_client_of_debian_is_tried_too() -> None:
    if str(DEBIAN) not in dict(CLIENTS):
        pytest.skip(f"{DEBIAN} has no stomp.py, so only the newest is tried (Debian: python3-stomp)")


def test_tls_and_a_short_way_to_the_dead_message_queue(secured: Secured) -> None:
    port, port_of_tls = secured.service.stomp_port, secured.service.stomp_tls_port
    commands = {}
    for interpreter, version in CLIENTS:
        create(secured.service, f"queue/dead.{version}", redelivery_max=2, redelivery_delay_ms=100)
        commands[f"{version} dead"] = command(interpreter, port, f"/queue/dead.{version}", "refused_until_dead")
        commands[f"{version} tls"] = command(interpreter, port_of_tls, f"/queue/tls.{version}", "over_tls", str(secured.own))
    with played(commands, REPOSITORY) as running:
        assert {name: said.result() for name, said in running.items()} == dict.fromkeys(commands, "")
