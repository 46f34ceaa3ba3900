"""The tree keeps the rules: imports point inward, pure rooms are pure, names say what things are."""

from __future__ import annotations

import pytest

from tests.tidy import rules


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_the_tree_keeps_the_rule(rule: rules.Rule) -> None:
    assert [broken for source in rules.sources() for broken in rule(source)] == []


def test_every_room_has_its_rule_of_imports() -> None:
    rooms = {source.room for source in rules.sources() if not source.path.endswith("broker_core/__init__.py")}
    assert rooms <= set(rules.INWARD), rooms - set(rules.INWARD)


def test_nothing_begs_to_be_kept_in_step_by_hand() -> None:
    begging = ("keep in sync", "don't forget to", "XXX", "FIXME", "TODO")
    found = [
        f"{path.relative_to(rules.REPOSITORY)} says {words}"
        for top in rules.CODE
        for path in sorted((rules.REPOSITORY / top).rglob("*.py"))
        for words in begging
        if words in path.read_text("utf-8")
    ]
    assert found == []


def test_the_service_is_never_started_without_asserts() -> None:
    launching = [rules.REPOSITORY / "Makefile", *(rules.REPOSITORY / "console" / "launch").glob("*.py")]
    assert [str(path) for path in launching if any(flag in path.read_text("utf-8") for flag in (' "-O"', " -O ", "PYTHONOPTIMIZE"))] == []
