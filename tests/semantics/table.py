"""The table of docs/behaviours.md: what it says, and what is wrong with it. Nothing that it names is imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
DOCUMENT = REPOSITORY / "docs" / "behaviours.md"
COUNT = 148
AWAITED = {"a cluster"}
PROVEN, OTHERWISE, IN_PART, WAITS = "proven", "otherwise, on purpose", "in part; waits for ", "waits for "
_HEADING = re.compile(r"^## (.+) \((\d+) to (\d+)\)$")
_NAMED = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Item:
    number: int
    group: str
    what: str
    where: tuple[str, ...]
    """`room/module.py::name`, below broker_core/."""
    tests: tuple[str, ...]
    """`tests/room/test_module.py::name`."""
    state: str


@dataclass(frozen=True)
class Group:
    title: str
    first: int
    last: int


def read(text: str) -> tuple[list[Group], list[Item]]:
    groups, found = [], []
    for line in text.splitlines():
        if heading := _HEADING.match(line):
            groups.append(Group(heading[1], int(heading[2]), int(heading[3])))
        elif line.startswith("| ") and line[2].isdigit():
            number, what, where, tests, state = (cell.strip() for cell in line.strip("|").split("|"))
            found.append(Item(int(number), groups[-1].title, what, tuple(_NAMED.findall(where)), tuple(_NAMED.findall(tests)), state))
    return groups, found


def items() -> list[Item]:
    return read(DOCUMENT.read_text("utf-8"))[1]


def named_tests() -> list[str]:
    """Each once, file by file, so that those of one file share what they are run against."""
    return sorted({test for item in items() for test in item.tests})


# -- what may be wrong with it ------------------------------------------------------------------------------------------------------------
def problems(text: str) -> Iterator[str]:
    groups, found = read(text)
    numbers = [item.number for item in found]
    for number in sorted({*numbers, *range(1, COUNT + 1)}):
        if not 1 <= number <= COUNT or numbers.count(number) != 1:
            yield f"item {number} is there {numbers.count(number)} times"
    for group in groups:
        if [item.number for item in found if item.group == group.title] != list(range(group.first, group.last + 1)):
            yield f"{group.title} is not {group.first} to {group.last}, in this order"
    for item in found:
        yield from (f"item {item.number} {problem}" for problem in _problems_of(item))
    for named in sorted(set(_NAMED.findall(text))):
        path, _, name = named.partition("::")
        if path.startswith("tests/") and name and name not in _names(path):
            yield f"{named} is named and is not there"


def _problems_of(item: Item) -> Iterator[str]:
    if not item.what:
        yield "says nothing"
    if item.state in (PROVEN, OTHERWISE) or item.state.startswith(IN_PART):
        if not item.tests:
            yield f"is {item.state!r} by no test"
    elif not item.state.startswith(WAITS) or item.tests:
        yield f"has the state {item.state!r} and {len(item.tests)} tests"
    awaited = item.state.partition(WAITS)[2]
    if item.state not in (PROVEN, OTHERWISE) and awaited not in AWAITED:
        yield f"waits for {awaited!r}, which is none of {', '.join(sorted(AWAITED))}"
    for test in item.tests:
        path, _, name = test.partition("::")
        if not path.startswith("tests/") or not name.startswith("test_") or name not in functions_of(path):
            yield f"names {test}, which is no test"
    for place in item.where:
        path, _, name = place.partition("::")
        if name not in _names(f"broker_core/{path}"):
            yield f"lives in {place}, which is not there"


@cache
def _tree(path: str) -> ast.Module:
    file = REPOSITORY / path
    return ast.parse(file.read_text("utf-8")) if file.is_file() else ast.Module([], [])


@cache
def functions_of(path: str) -> frozenset[str]:
    """Which pytest would collect: those of the module itself."""
    return frozenset(node.name for node in _tree(path).body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@cache
def _names(path: str) -> frozenset[str]:
    """Functions, methods, classes and constants."""
    tree = _tree(path)
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    targets = [target for node in tree.body for target in (node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)])]
    return frozenset(defined | {target.id for target in targets if isinstance(target, ast.Name)})
