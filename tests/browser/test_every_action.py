"""Nothing can be done on a page that no test here does: what is new must be clicked, or it says here why not."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

EXCUSED: dict[str, str] = {"replay_create": "it starts Spark, which the tests of the data pipeline do; tests/console/test_pages_reports.py fills its form in"}


def test_everything_that_can_be_done_is_done_by_some_test(routes):
    modules = [import_module(f"tests.browser.{path.stem}") for path in Path(__file__).parent.glob("test_*.py")]
    tests = [value for module in modules for name, value in vars(module).items() if name.startswith("test_")]
    clicked = {name for test in tests for mark in getattr(test, "pytestmark", ()) if mark.name == "clicks" for name in mark.args}
    assert set(routes) - clicked - EXCUSED.keys() == set()
    assert (clicked | EXCUSED.keys()) - set(routes) == set(), "no longer anything that can be done"
