"""The table of behaviours is whole: every item once, with a state, and what it names exists."""

from __future__ import annotations

import re

import pytest

from tests.semantics.table import DOCUMENT, problems

TEXT = DOCUMENT.read_text("utf-8")
ROW_14 = next(line for line in TEXT.splitlines() if line.startswith("| 14 |"))


def test_every_item_is_there_once_with_a_state_and_tests_that_exist() -> None:
    assert list(problems(TEXT)) == []


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ("", "item 14 is there 0 times"),
        (f"{ROW_14}\n{ROW_14}", "item 14 is there 2 times"),
        (f"{ROW_14}\n{ROW_14.replace('14', '149', 1)}", "item 149 is there 1 times"),
        (ROW_14.replace("| proven |", "|  |"), "item 14 has the state '' and 2 tests"),
        (ROW_14.replace("| proven |", "| nearly proven |"), "item 14 has the state 'nearly proven' and 2 tests"),
        (ROW_14.replace("| proven |", "| waits for a cluster |"), "item 14 has the state 'waits for a cluster' and 2 tests"),
        (ROW_14.replace("| proven |", "| in part; waits for better days |"), "item 14 waits for 'better days', which is none of"),
        (re.sub(r"`tests[^|]*", "- ", ROW_14), "item 14 is 'proven' by no test"),
        (re.sub(r"`tests[^|]*", "- ", ROW_14).replace("| proven |", "| otherwise, on purpose |"), "item 14 is 'otherwise, on purpose' by no test"),
        (ROW_14.replace("::test_", "::test_not_", 1), "which is no test"),
        (ROW_14.replace("`tests/client/", "`tests/clients/", 1), "which is no test"),
        (ROW_14.replace("::await_confirmed", "::await_nothing"), "item 14 lives in client/session.py::await_nothing, which is not there"),
    ],
)
def test_what_is_wrong_with_a_row_is_said(wrong: str, problem: str) -> None:
    assert wrong != ROW_14
    found = list(problems(TEXT.replace(ROW_14, wrong)))
    assert any(problem in each for each in found), found


def test_a_place_among_the_tests_that_is_not_there_is_said() -> None:
    found = list(problems(TEXT.replace("audit.py::check_end", "audit.py::check_no_end")))
    assert found == ["tests/simulation/audit.py::check_no_end is named and is not there"]
