"""The tests that docs/behaviours.md names would notice: in each group of items one fails for a bug that is planted."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from tests.semantics import table
from tests.semantics.planted import PLANTED, Planted
from tests.server.conftest import Run
from tests.simulation.planted.plant import Plant


def named(test: str) -> Callable[..., None]:
    path, _, name = test.partition("::")
    return getattr(importlib.import_module(path.removesuffix(".py").replace("/", ".")), name)


def test_every_group_has_a_planted_bug_whose_test_it_names() -> None:
    groups, items = table.read(table.DOCUMENT.read_text("utf-8"))
    assert {planted.group for planted in PLANTED} == {group.title for group in groups}
    named_in = {group.title: {test for item in items if item.group == group.title for test in item.tests} for group in groups}
    assert [planted.test for planted in PLANTED if planted.test not in named_in[planted.group]] == []


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: f"{planted.group}: {planted.bug.__name__}")
def test_the_named_test_fails_with_the_bug_and_passes_without(planted: Planted, run: Run) -> None:
    test = named(planted.test)
    arguments: dict[str, Any] = dict(planted.arguments)
    if "run" in inspect.signature(test).parameters:
        arguments["run"] = run
    test(**arguments)
    plant = Plant()
    planted.bug(plant)
    try:
        with pytest.raises(AssertionError):
            test(**arguments)
    finally:
        plant.pull()
