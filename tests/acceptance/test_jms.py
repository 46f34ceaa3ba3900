"""Apache Qpid JMS against the whole service: what a JMS application does, as `jms/Scenarios.java` has it."""

from __future__ import annotations

import re
import subprocess
import uuid

import pytest

from tests.acceptance.programs import kill_in_the_middle
from tests.support.jms import FOLDER, SECONDS_MAX
from tests.support.service import Service

SOURCE = FOLDER / "Scenarios.java"
SCENARIOS = re.findall(r"^    void (\w+)\(\) throws", SOURCE.read_text(), re.MULTILINE)


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
    said = kill_in_the_middle(command, mortal, FOLDER)
    assert "well" in said.splitlines(), said
