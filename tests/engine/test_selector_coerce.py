"""Selectors over properties that can only be strings, as STOMP's headers are: read as what they are compared with, if they are that."""

from __future__ import annotations

import pytest

from broker_core.engine.selector import compile_selector
from broker_core.engine.selector.number import boolean, plain


def truth(text: str, **properties: object) -> bool | None:
    yes, no = (compile_selector(each).matches(properties.get, coerce=True) for each in (text, f"NOT ({text})"))
    return True if yes else False if no else None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0), ("5", 5), ("-5", -5), ("+5", 5), ("007", 7), ("9223372036854775807", (1 << 63) - 1), ("-9223372036854775808", -(1 << 63)),
        ("9223372036854775808", 2.0**63), ("1.5", 1.5), ("-.5", -0.5), ("5.", 5.0), ("6e3", 6000.0), ("6E-3", 0.006), ("1e400", float("inf")),
    ],
)  # fmt: skip
def test_plain_decimal_numbers_are_numbers(text: str, value: float) -> None:
    assert (plain(text), type(plain(text))) == (value, type(value))


@pytest.mark.parametrize(
    "text",
    ["", " ", " 5", "5 ", "5\n", "0x1F", "5L", "5d", "1_000", "1,5", "--5", "+", ".", "e5", "1e", "inf", "nan", "Infinity", "\u0665", "\u00b2", "true",
    "9" * 65],
)  # fmt: skip
def test_nothing_else_is_a_number(text: str) -> None:
    assert plain(text) is None


def test_true_and_false_are_booleans_in_whatever_case() -> None:
    assert [boolean(text) for text in ("true", "TRUE", "False", "yes", "1", "", " true", "true\n")] == [True, True, False, None, None, None, None, None]


@pytest.mark.parametrize(
    ("text", "properties", "expected"),
    [
        ("a = 5", {"a": "5"}, True), ("a = 5", {"a": "5.0"}, True), ("a = 5", {"a": "05"}, True), ("a <> 5", {"a": "6"}, True), ("a > 5", {"a": "10"}, True),
        ("a > 5", {"a": "5"}, False), ("5 < a", {"a": "10"}, True), ("a = 5", {"a": "x"}, False), ("a <> 5", {"a": "x"}, False), ("a > 5", {"a": ""}, False),
        ("a = 5", {"a": "true"}, False), ("a = 5", {}, None), ("a = 5", {"a": 5}, True), ("a = 5", {"a": True}, False), ("a = 2.5", {"a": "2.5"}, True),
        ("a = 9007199254740993", {"a": "9007199254740993"}, True), ("a = 9007199254740993", {"a": "9007199254740992"}, False),
        ("a BETWEEN 1 AND 5", {"a": "3"}, True), ("a BETWEEN 1 AND 5", {"a": "x"}, False), ("a NOT BETWEEN 1 AND 5", {"a": "x"}, False),
        ("3 BETWEEN a AND b", {"a": "1", "b": "5"}, True), ("a BETWEEN b AND 9", {"a": "5", "b": "10"}, False),
        ("a + 1 = 6", {"a": "5"}, True), ("a * b = 7.5", {"a": "5", "b": "1.5"}, True), ("-a = -5", {"a": "5"}, True), ("a / 2 = 2", {"a": "5"}, True),
        ("a + 1 = 6", {"a": "x"}, None), ("a = b + 1", {"a": "6", "b": "5"}, True), ("a + 1 = b", {"a": "5", "b": "6"}, True),
        ("a = b + 1", {"a": "x", "b": "5"}, False),
        ("a = TRUE", {"a": "true"}, True), ("a = TRUE", {"a": "False"}, False), ("a <> TRUE", {"a": "false"}, True), ("a = TRUE", {"a": "1"}, False),
        ("a = TRUE", {"a": True}, True), ("a", {"a": "TRUE"}, True), ("NOT a", {"a": "false"}, True), ("NOT a", {}, None),
        ("a AND b > 1", {"a": "true", "b": "2"}, True),
        ("a = '5'", {"a": "5"}, True), ("a = '5'", {"a": "5.0"}, False), ("a = '5'", {"a": 5}, False), ("a = 'true'", {"a": "true"}, True),
        ("a = 'true'", {"a": True}, False), ("a IN ('5', 'x')", {"a": "5"}, True), ("a LIKE '5%'", {"a": "5.0"}, True), ("a IS NULL", {"a": ""}, False),
        ("a = b", {"a": "5", "b": "5.0"}, False), ("a = b", {"a": "5", "b": "5"}, True), ("a = b", {"a": "5.0", "b": 5}, True),
        ("a = b", {"a": 5, "b": "5.0"}, True),
        ("a = b", {"a": "true", "b": True}, True), ("a = b", {"a": True, "b": "FALSE"}, False), ("a <> b", {"a": "x", "b": 5}, False),
        ("a = b", {"a": "5"}, None),
        ("a < b", {"a": "9", "b": "10"}, True), ("a < b", {"a": "x", "b": "y"}, False), ("JMSPriority > a", {"JMSPriority": 5, "a": "4"}, True),
    ],
)  # fmt: skip
def test_a_string_is_read_as_what_it_is_compared_with(text: str, properties: dict, expected: bool | None) -> None:
    assert truth(text, **properties) is expected


@pytest.mark.parametrize("text", ["a = 5", "a > 4", "a BETWEEN 1 AND 9", "a + 1 = 6", "-a < 0", "a = TRUE", "a", "a < b", "a = b"])
def test_without_coercion_a_string_is_a_string(text: str) -> None:
    for value in ("5", "true"):
        assert not compile_selector(text).matches({"a": value, "b": 5}.get)
