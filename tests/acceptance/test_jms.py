"""Apache Qpid JMS, a JMS client that nobody here wrote, from Maven Central: its jars have pinned versions and checksums."""

from __future__ import annotations

import re
import shutil
import subprocess
import uuid
from pathlib import Path

import pytest

from tests.support import maven
from tests.support.service import Service

FOLDER = Path(__file__).with_name("jms")
JARS = FOLDER / "lib"
CLASSES = FOLDER / "classes"
SECONDS_MAX = 300
SCENARIOS = re.findall(r"^    void (\w+)\(\) throws", (FOLDER / "Scenarios.java").read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def class_path() -> str:
    """The jars, fetched when they are first used, and the scenarios, compiled anew."""
    for program in ("java", "javac"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed, so no JMS client is tried (Debian: default-jdk-headless)")
    if not maven.is_installed():
        pytest.skip(maven.NOT_INSTALLED)
    maven.fetch(dict(line.split() for line in (FOLDER / "jars.txt").read_text().splitlines()), JARS)
    path = f"{JARS}/*"
    done = subprocess.run(
        ["javac", "-Xlint:all", "-cp", path, "-d", str(CLASSES), str(FOLDER / "Scenarios.java")], capture_output=True, text=True, timeout=SECONDS_MAX
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return f"{path}:{CLASSES}"


@pytest.fixture(scope="module")
def played(class_path: str, service: Service) -> dict[str, str]:
    """What went wrong, by scenario."""
    command = ["java", "-cp", class_path, "Scenarios", f"amqp://127.0.0.1:{service.amqp_port}", uuid.uuid4().hex[:8], *SCENARIOS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX)
    lines = [line.partition(" ") for line in done.stdout.splitlines()]
    return {scenario: problem for scenario, _, problem in lines} or {"": done.stderr}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_jms_application_works(played: dict[str, str], scenario: str) -> None:
    assert played.get(scenario, f"it was not played: {played}") == ""


def test_a_transaction_whose_node_is_killed_never_was_and_is_done_again(class_path: str, mortal: Service) -> None:
    """The client reconnects by itself, is told that the transaction was rolled back, and gets the message again, flagged."""
    command = ["java", "-cp", class_path, "Scenarios", f"amqp://127.0.0.1:{mortal.amqp_port}", uuid.uuid4().hex[:8], "killedInATransaction"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as application:
        try:
            assert application.stdin is not None and application.stdout is not None
            while "in the middle" not in (line := application.stdout.readline()):
                assert line, "it ended before"
            mortal.kill("node")
            mortal.await_ready()
            said, _ = application.communicate("\n", timeout=120)
        finally:
            application.kill()
    assert "well" in said.splitlines(), said
