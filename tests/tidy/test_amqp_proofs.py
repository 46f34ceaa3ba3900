"""The tables of docs/amqp-proofs.md are whole: every client has a test in every line, every point of the reference has one, and what is named exists."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.semantics.table import REPOSITORY, functions_of

DOCUMENT = REPOSITORY / "docs" / "amqp-proofs.md"
TEXT = DOCUMENT.read_text("utf-8")
ACCEPTANCE = "tests/acceptance/"
SHORT = {
    "P": ACCEPTANCE + "test_amqp_proton.py", "PS": ACCEPTANCE + "test_amqp_proton_subscriptions.py", "PT": ACCEPTANCE + "test_amqp_proton_transactions.py",
    "R": ACCEPTANCE + "javascript/amqp_scenarios.mjs", "RT": ACCEPTANCE + "javascript/amqp_transactions.mjs", "J": ACCEPTANCE + "jms/Scenarios.java",
    "T": ACCEPTANCE + "test_amqp_tls.py",
}  # fmt: skip
CLIENTS = {"python-qpid-proton": ("P", "PS", "PT", "T"), "rhea": ("R", "RT", "T"), "Qpid JMS": ("J", "T")}
MATRIX = (
    "queues", "topics", "durable subscriptions", "shared subscriptions", "shared subscriptions, durable", "shared subscriptions, global", "unsubscribe",
    "selectors", "browsers", "temporary destinations, request and reply", "acknowledgement: accepted, rejected, released, modified",
    "acknowledgement: none, or settled when sent", "credit and drain", "local transactions, rollback, redelivery", "priorities",
    "expiry to the dead message queue", "delayed delivery", "large messages", "client id conflicts", "authentication failure",
    "SIGKILL of the node in mid-transaction", "TLS, and EXTERNAL with a client's certificate",
)  # fmt: skip
POINTS = 55
SCENARIOS = {".mjs": re.compile(r"^export async function (\w+)", re.MULTILINE), ".java": re.compile(r"^    (?:static )?void (\w+)\(.*\) throws", re.MULTILINE)}
_NAMED = re.compile(r"`([^`]+)`")


def rows(text: str, title: str) -> list[list[str]]:
    """The cells of the table under this heading, without its head."""
    lines = text.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0].splitlines()
    table = [line for line in lines if line.startswith("| ")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))] for line in table[1:]]


def exists(named: str) -> bool:
    short, _, name = named.partition("::")
    path = SHORT.get(short, short)
    for suffix, scenario in SCENARIOS.items():
        if path.endswith(suffix):
            return name in scenario.findall((REPOSITORY / path).read_text("utf-8"))
    return name.startswith("test_") and name in functions_of(path)


def problems(text: str) -> Iterator[str]:
    matrix = rows(text, "What clients do")
    if tuple(row[0] for row in matrix) != MATRIX:
        yield f"the lines are not {', '.join(MATRIX)}"
    for what, *cells in matrix:
        for (client, files), cell in zip(CLIENTS.items(), cells, strict=True):
            tests = _NAMED.findall(cell)
            if not tests or any(test.partition("::")[0] not in files for test in tests):
                yield f"{what!r} is not proven by {client}"
    points = rows(text, "What a JMS client demands")
    if len(points) != POINTS:
        yield f"there are {len(points)} points, not {POINTS}"
    for what, tests in points:
        if "::" not in tests:
            yield f"{what!r} is proven by nothing"
    for named in sorted(set(_NAMED.findall(text))):
        if "::" in named and not exists(named):
            yield f"{named} is named and is not there"


def test_every_cell_and_every_point_names_tests_that_exist() -> None:
    assert list(problems(TEXT)) == []


@pytest.mark.parametrize(
    ("right", "wrong", "problem"),
    [
        ("`R::the_highest_priority_comes_first`", "-", "'priorities' is not proven by rhea"),
        ("`J::priorities`", "`R::the_highest_priority_comes_first`", "'priorities' is not proven by Qpid JMS"),
        ("`J::priorities`", "`J::prioritys`", "J::prioritys is named and is not there"),
        ("`P::test_the_highest_priority_comes_first`", "`P::receive`", "P::receive is named and is not there"),
        ("| priorities |", "| priority |", "the lines are not"),
        ("| groups and their sequence |", "", "not 55"),
        ("`tests/amqp/test_amqp_handles.py::test_a_link_may_have_the_handle_of_one_whose_detach_is_not_answered`", "-", "is proven by nothing"),
    ],
)
def test_what_is_wrong_is_said(right: str, wrong: str, problem: str) -> None:
    assert right in TEXT
    found = list(problems(TEXT.replace(right, wrong)))
    assert any(problem in each for each in found), found
