"""Which selectors are the same, what they need to know of a message, and by what a dispatcher may index them."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import FrozenInstanceError

import pytest

from broker_core.engine.selector import compile_selector, constants_of


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("  A  =  'x' ", "A = 'x'"), ("'x' = A", "A = 'x'"), ("((a)) = (1)", "a = 1"), ("a = 0x10", "a = 16"), ("a = 1_0L", "a = 10"), ("3 < a", "a > 3"),
        ("a = 7.", "a = 7.0"), ("a = 2 * (3 + 4)", "a = 14"), ("b = a", "a = b"), ("b >= a", "a <= b"), ("a", "a = TRUE"), ("NOT NOT a", "a = TRUE"),
        ("NOT (NOT (a = 1))", "a = 1"), ("NOT TRUE", "FALSE"), ("b = 1 and a = 1", "(a = 1 AND b = 1)"),
        ("(a = 1 OR b = 1) OR c = 1", "(a = 1 OR b = 1 OR c = 1)"),
        ("a = 1 AND a = 1", "a = 1"), ("a = 1 AND a = TRUE", "(a = 1 AND a = TRUE)"), ("a = 1 AND 1 = 1", "a = 1"), ("a = 1 OR 1 = 2", "a = 1"),
        ("a = 1 AND 1 = 2", "FALSE"), ("a = 1 OR 1 = 1", "TRUE"), ("a BETWEEN 1 AND 2", "(a <= 2 AND a >= 1)"), ("a NOT BETWEEN 1 AND 2", "(a < 1 OR a > 2)"),
        ("a IN ('y', 'x', 'y')", "a IN ('x', 'y')"), ("a NOT IN ('y', 'x')", "NOT a IN ('x', 'y')"), ("a IN ('x')", "a = 'x'"), ("a LIKE 'x'", "a = 'x'"),
        ("a NOT LIKE 'x!%' ESCAPE '!'", "NOT a = 'x%'"), ("a LIKE 'x%%!%' ESCAPE '!'", r"a LIKE 'x%\%' ESCAPE '\'"), ("a IS NOT NULL", "NOT a IS NULL"),
        ("a = 'it''s'", "a = 'it''s'"), ("- - a = 1", "(+ a) = 1"), ("+(a + 1) = 1", "(a + 1) = 1"), ("a > -5", "a > -5"), ("a = 1 / 0", "(1 / 0) = 0"),
        ("a = -(1 / 0)", "(1 / 0) = 0"), ("a = 1 / 0 OR b > 0 / 0", "(1 / 0) = 0"),
        ("a < 1.0 / 0", "a < (1.0 / 0.0)"), ("", "TRUE"),
    ],
)  # fmt: skip
def test_a_selector_has_one_canonical_form(text: str, canonical: str) -> None:
    selector = compile_selector(text)
    assert (selector.text, selector.canonical) == (text, canonical)
    assert compile_selector(canonical) == selector


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a = 1", "a = 1.0"), ("a = 1", "a = TRUE"), ("a = 1", "a = '1'"), ("a = 1", "A = 1"), ("a <> 1", "NOT a = 1"), ("a > 1", "NOT a <= 1"),
        ("a NOT BETWEEN 1 AND 2", "NOT a BETWEEN 1 AND 2"), ("a = +b", "a = b"), ("a - b = 1", "b - a = 1"), ("a = 0.0", "a = -0.0"),
        ("a LIKE '_'", r"a LIKE '\_' ESCAPE '\'"), ("a IN ('x,y')", "a IN ('x', 'y')"), ("a LIKE 'x%'", "a LIKE 'x_'"),
    ],
)  # fmt: skip
def test_what_says_something_else_is_not_the_same(one: str, other: str) -> None:
    assert compile_selector(one) != compile_selector(other)


def test_the_reading_of_strings_belongs_to_the_message() -> None:
    selector = compile_selector("a = 1")
    assert [selector.matches({"a": "1"}.get, coerce=coerce) for coerce in (False, True, False)] == [False, True, False]


def test_a_selector_does_not_change_and_serves_as_a_key() -> None:
    selector = compile_selector("a = 1")
    with pytest.raises(FrozenInstanceError):
        selector.text = "b = 1"
    assert {selector: 1}[compile_selector("1 = a")] == 1


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a = b + 1 AND c LIKE 'x' OR NOT d IS NULL", {"a", "b", "c", "d"}), ("-a BETWEEN b AND (c * 2)", {"a", "b", "c"}),
        ("e IN ('a', 'b') AND f", {"e", "f"}),
        ("a = 1 OR TRUE", set()), ("1 = 1", set()), ("JMSPriority > 4 AND JMSXGroupID = 'g'", {"JMSPriority", "JMSXGroupID"}),
    ],
)  # fmt: skip
def test_a_selector_names_what_it_reads(text: str, names: set[str]) -> None:
    assert compile_selector(text).identifiers == names


@pytest.mark.parametrize(
    ("text", "equality"),
    [
        ("a = 'x'", ("a", "x")), ("'x' = a", ("a", "x")), ("a = 3", ("a", 3)), ("a", ("a", True)), ("a = 2.5", ("a", 2.5)), ("a IN ('x')", ("a", "x")),
        ("b > 3 AND a = 'x' AND c", ("a", "x")), ("(b > 3 AND (a = 'x'))", ("a", "x")), ("a = 1 AND b = 'x'", ("b", "x")), ("c AND b = 2", ("b", 2)),
        ("b = 'x' AND a = 'y'", ("a", "y")), ("a = 'x' OR b = 'y'", None), ("NOT a = 'x'", None), ("a <> 'x'", None), ("a > 3", None), ("a = b", None),
        ("a + 0 = 3", None), ("a = 9007199254740993", None), ("a = 9007199254740992", None), ("a = 0.0 / 0.0", None), ("a = 1.0 / 0.0", None),
        ("a IS NULL", None),
        ("", None), ("a = 1 AND FALSE", None), ("a NOT IN ('x')", None), ("a LIKE 'x%' AND (b = 'y' OR c = 'z')", None),
    ],
)  # fmt: skip
def test_a_comparison_by_equal_that_decides_can_be_indexed(text: str, equality: tuple | None) -> None:
    found = compile_selector(text).equality
    assert (found, type(found and found[1])) == (equality, type(equality and equality[1]))


@pytest.mark.parametrize(
    ("value", "strict", "coerced"),
    [
        (None, (), ()), ("x", ("x",), ("x",)), ("5", ("5",), ("5", 5)), ("5.0", ("5.0",), ("5.0", 5.0)), ("TRUE", ("TRUE",), ("TRUE", True)), (5, (5,), (5,)),
        (True, (True,), (True,)), ("", ("",), ("",)),
    ],
)  # fmt: skip
def test_a_value_is_looked_up_as_all_that_it_may_equal(value: object, strict: tuple, coerced: tuple) -> None:
    assert constants_of(value) == strict
    assert constants_of(value, coerce=True) == coerced


def test_an_index_of_a_thousand_selectors_finds_those_that_match() -> None:
    selectors = [compile_selector(f"region = 'r{number}' AND weight > {number % 7}") for number in range(500)]
    selectors += [compile_selector(f"number = {number}") for number in range(500)]
    index = defaultdict(list)
    for selector in selectors:
        index[selector.equality].append(selector)
    for message in ({"region": "r12", "weight": "6", "number": "17.0"}, {"region": "r13", "weight": "1"}, {"number": "x"}, {"number": math.nan}):
        keys = [(name, constant) for name, value in message.items() for constant in constants_of(value, coerce=True)]
        found = [selector for key in keys for selector in index.get(key, []) if selector.matches(message.get, coerce=True)]
        assert found == [selector for selector in selectors if selector.matches(message.get, coerce=True)]
