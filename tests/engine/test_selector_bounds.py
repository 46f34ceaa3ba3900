"""A selector comes from outside: whatever its text, it is refused or read, within the bounds and in little time and stack."""

from __future__ import annotations

import itertools
import string
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_core.engine.selector import SelectorError, compile_selector
from broker_core.engine.selector.parser import DEPTH_MAX, NODES_MAX, TEXT_OCTETS_MAX

SECONDS = 1.0
"""Of processor time for one text with one match: some tens of times what the worst of these takes, little enough to notice what is not linear."""
VALUES = (None, 0, 1, -3, 2.5, True, False, "", "x", "5", "true", "a" * 200, "\u00e4\n'%_")


def asked(text: str, *, coerce: bool = False) -> bool | None:
    """What the selector says of a message with all sorts of values, None if it is refused; fails if that takes long."""
    values = itertools.cycle(VALUES)
    began, result, column = process_time(), None, 1
    try:
        result = compile_selector(text).matches(lambda _: next(values), coerce=coerce)
    except SelectorError as refused:
        column = refused.column
    assert process_time() - began < SECONDS
    assert 1 <= column <= len(text) + 1
    return result


# -- length, depth, nodes -----------------------------------------------------------------------------------------------------------
def test_a_text_may_be_as_long_as_the_bound_in_octets() -> None:
    fill = TEXT_OCTETS_MAX - len("a = ''")
    assert compile_selector(f"a = '{'x' * fill}'").matches(lambda _: "x" * fill)
    assert compile_selector(f"a = '{chr(0xE4) * (fill // 2)}'").matches(lambda _: chr(0xE4) * (fill // 2))
    for text in (f"a = '{'x' * (fill + 1)}'", f"a = '{chr(0xE4) * (fill // 2 + 1)}'", "a" * 10_000_000, " " * (TEXT_OCTETS_MAX + 1)):
        with pytest.raises(SelectorError, match="column 1: expected a selector of at most 8192 octets"):
            compile_selector(text)


def test_parentheses_go_as_deep_as_the_bound() -> None:
    assert compile_selector("(" * DEPTH_MAX + "a" + ")" * DEPTH_MAX).matches(lambda _: True)
    with pytest.raises(SelectorError, match=f"column {DEPTH_MAX + 1}: expected at most {DEPTH_MAX} parentheses"):
        compile_selector("(" * (DEPTH_MAX + 1) + "a" + ")" * (DEPTH_MAX + 1))


@pytest.mark.parametrize("text", ["(" * 100_000, "(" * 8_000, "(" * 50_000 + "a" + ")" * 50_000, "NOT (" * 1_600, "-(" * 4_000, "a IN (" * 1_300, ")" * 8_000])
def test_parentheses_without_end_are_refused(text: str) -> None:
    with pytest.raises(SelectorError):
        compile_selector(text)


def test_many_parentheses_beside_one_another_are_no_depth() -> None:
    assert asked(" OR ".join(["(a = 1)"] * 200)) is not None


def beneath(frames: int, text: str) -> bool:
    """Compiles and asks under a stack that is in use already."""
    return beneath(frames - 1, text) if frames else compile_selector(text).matches({"a": 1, "b": 2}.get)


@pytest.mark.parametrize(
    ("opening", "innermost"),
    [
        ("(", "a = 1"), ("NOT (", "a = 1"), ("a = 2 OR b = 2 AND NOT (", "a = 1"), ("NOT (a = 2 OR b = 2 AND NOT ", "a = 1"), ("a = 1 AND (", "a = 1"),
        ("1 = 2 OR (", "a = 1"), ("a BETWEEN 1 AND b + (", "3"), ("a < 1 + 2 * -(", "a"), ("- (", "a"), ("a + (", "a"), ("a * b + (", "a"),
    ],
)  # fmt: skip
def test_the_deepest_tree_leaves_room_on_the_stack(opening: str, innermost: str) -> None:
    depth = min(DEPTH_MAX, (NODES_MAX - 10) // (len(opening.split()) + 2))
    prefix = "0 <> " if opening in ("- (", "a + (", "a * b + (") else ""
    if opening.startswith(("a BETWEEN", "a < 1")):
        head, tail = opening.rsplit(" ", 1)[0], "-(" if opening.startswith("a <") else "("
        text = f"{head} {tail * depth}{innermost}{')' * depth}"
    else:
        text = f"{prefix}{opening * depth}{innermost}{')' * depth}"
    assert beneath(300, text) in (True, False)


def test_nodes_are_counted() -> None:
    fitting = (NODES_MAX + 1) // 4  # an identifier, =, a literal, and OR but once
    assert compile_selector(" OR ".join(["a=1"] * fitting)).matches(lambda _: 1)
    with pytest.raises(SelectorError, match=f"expected a selector of at most {NODES_MAX} identifiers, literals and operations"):
        compile_selector(" OR ".join(["a=1"] * (fitting + 1)))


@pytest.mark.parametrize("operator", ["AND", "OR", "+", "-", "*", "/"])
def test_a_chain_of_any_operator_is_flat(operator: str) -> None:
    chain = f" {operator} ".join(["a"] * (NODES_MAX // 2 - 1))
    assert beneath(600, f"{chain} = 1" if operator in "+-*/" else chain) in (True, False)


@pytest.mark.parametrize("text", ["NOT " * 2_000 + "a", "-" * 8_000 + "a = 1", "+-" * 4_000 + "1 = a", "- " * 4_000 + "1 = 1", "a = " + "-" * 8_000 + "1"])
def test_rows_of_signs_and_nots_cost_nothing(text: str) -> None:
    assert beneath(600, text) in (True, False)


def test_a_list_of_in_may_fill_the_text() -> None:
    names = ", ".join(f"'n{number}'" for number in range(900))
    assert compile_selector(f"a IN ({names})").matches(lambda _: "n899")


# -- patterns -----------------------------------------------------------------------------------------------------------------------
LONG = 64 << 10
"""Longer than any header the broker takes."""


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        ("%a" * 3_000 + "%b", "a" * LONG),
        ("a%" * 4_000 + "b", "a" * LONG),
        ("%" * 8_000 + "b", "a" * LONG),
        ("_%" * 4_000 + "b", "a" * LONG),
        ("%_a" * 2_600 + "%b", "a" * LONG),
        ("%" + "a" * 4_000 + "b" + "a" * 4_000 + "%", "a" * LONG),
        ("%" + "_a" * 4_000 + "b%", "a" * LONG),
        ("%" + "a_" * 4_000 + "b%", "a" * LONG),
        ("%" + "_" * 8_000 + "%", "a" * 7_999),
        ("%" + "ab" * 2_000 + "_" + "ab" * 2_000 + "c%", "ab" * (LONG // 2)),
        ("%" + "a" * 90 + "b%", "a" * LONG),
        ("_" * 8_000, "a" * LONG),
        ("%" + "a_b" * 10 + "%" + "b_a" * 10 + "%c", "aabb" * (LONG // 4)),
    ],
)
def test_no_pattern_takes_long(pattern: str, value: str) -> None:
    selector = compile_selector(f"a LIKE '{pattern}'")
    began = process_time()
    assert not selector.matches(lambda _: value)
    assert process_time() - began < SECONDS


# -- fuzz ---------------------------------------------------------------------------------------------------------------------------
WORDS = [
    "a", "b", "JMSPriority", "NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE", "and", "Not", "1", "0", "5.5", "1e3", "0x1F",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1e308", "'x'", "''", "'%_%'", "'!%' ESCAPE '!'", "('a', 'b')", "=", "<>", "<", "<=",
    ">", ">=", "+", "-", "*", "/", "(", ")", ",", "'", '"', ".", "_", "$", "\u00e4", "\x00", "\n", "%", "a = 1", "a IS NULL", "b BETWEEN 1 AND 2",
    "IS NOT NULL",
]  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=200), st.booleans())
def test_any_text_is_read_or_refused(text: str, coerce: bool) -> None:
    asked(text, coerce=coerce)


@settings(max_examples=300, deadline=None)
@given(st.text(string.printable, max_size=100), st.booleans())
def test_any_printable_text_is_read_or_refused(text: str, coerce: bool) -> None:
    asked(text, coerce=coerce)


@settings(max_examples=700, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=25), st.sampled_from(["", " "]), st.booleans())
def test_any_row_of_words_is_read_or_refused(words: list[str], space: str, coerce: bool) -> None:
    asked(space.join(words), coerce=coerce)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), st.integers(1, 4_000), st.sampled_from(["", " "]), st.sampled_from(["", "a", "a = 1", "1", "'"])
)
def test_what_is_repeated_without_end_is_read_or_refused(words: list[str], times: int, space: str, end: str) -> None:
    asked((space.join(words) + space) * times + end)
    asked(((space.join(words) + space) * times)[: TEXT_OCTETS_MAX // 4] + end)
