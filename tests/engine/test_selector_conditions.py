"""What each clause of JMS 3.8.1.1 and 3.8.1.2 says of a message, beginning with the standard's own examples."""

from __future__ import annotations

import math

import pytest

from broker_core.engine.selector import compile_selector

MAX, MIN = (1 << 63) - 1, -(1 << 63)


def truth(text: str, **properties: object) -> bool | None:
    """True, False or None (unknown), from outside: a selector and its negation tell the three apart."""
    yes, no = (compile_selector(each).matches(properties.get) for each in (text, f"NOT ({text})"))
    assert not (yes and no)
    return True if yes else False if no else None


EXAMPLES = [
    ("JMSType = 'car' AND color = 'blue' AND weight > 2500", {"JMSType": "car", "color": "blue", "weight": 2501}, True),
    ("JMSType = 'car' AND color = 'blue' AND weight > 2500", {"JMSType": "car", "color": "blue", "weight": 2500}, False),
    ("age BETWEEN 15 AND 19", {"age": 15}, True),
    ("age BETWEEN 15 AND 19", {"age": 19}, True),
    ("age BETWEEN 15 AND 19", {"age": 20}, False),
    ("age NOT BETWEEN 15 AND 19", {"age": 14}, True),
    ("age NOT BETWEEN 15 AND 19", {"age": 15}, False),
    ("Country IN ('UK', 'US', 'France')", {"Country": "UK"}, True),
    ("Country IN ('UK', 'US', 'France')", {"Country": "Peru"}, False),
    ("Country NOT IN ('UK', 'US', 'France')", {"Country": "UK"}, False),
    ("Country NOT IN ('UK', 'US', 'France')", {"Country": "Peru"}, True),
    ("phone LIKE '12%3'", {"phone": "123"}, True),
    ("phone LIKE '12%3'", {"phone": "12993"}, True),
    ("phone LIKE '12%3'", {"phone": "1234"}, False),
    ("word LIKE 'l_se'", {"word": "lose"}, True),
    ("word LIKE 'l_se'", {"word": "loose"}, False),
    (r"underscored LIKE '\_%' ESCAPE '\'", {"underscored": "_foo"}, True),
    (r"underscored LIKE '\_%' ESCAPE '\'", {"underscored": "bar"}, False),
    ("phone NOT LIKE '12%3'", {"phone": "123"}, False),
    ("phone NOT LIKE '12%3'", {"phone": "1234"}, True),
    ("prop_name IS NULL", {}, True),
    ("prop_name IS NOT NULL", {}, False),
    ("prop_name IS NOT NULL", {"prop_name": ""}, True),
    ("NumberOfOrders > 1", {"NumberOfOrders": "2"}, False),
    ("JMSDeliveryMode = 'PERSISTENT' AND JMSPriority >= 4", {"JMSDeliveryMode": "PERSISTENT", "JMSPriority": 4}, True),
]


@pytest.mark.parametrize(("text", "properties", "expected"), EXAMPLES)
def test_the_examples_of_the_standard_come_out_as_it_says(text: str, properties: dict, expected: bool) -> None:
    assert truth(text, **properties) is expected


# -- three values -------------------------------------------------------------------------------------------------------------------
VALUES = {True: "t = 1", False: "t = 2", None: "absent = 1"}
AND = {
    (True, True): True, (True, False): False, (True, None): None,
    (False, True): False, (False, False): False, (False, None): False,
    (None, True): None, (None, False): False, (None, None): None,
}  # fmt: skip
OR = {
    (True, True): True, (True, False): True, (True, None): True,
    (False, True): True, (False, False): False, (False, None): None,
    (None, True): True, (None, False): None, (None, None): None,
}  # fmt: skip


@pytest.mark.parametrize(("operator", "table"), [("AND", AND), ("OR", OR)])
def test_and_and_or_follow_the_tables_of_three_values(operator: str, table: dict) -> None:
    for (left, right), expected in table.items():
        assert truth(f"{VALUES[left]} {operator} {VALUES[right]}", t=1) is expected, (left, operator, right)


@pytest.mark.parametrize(("operator", "table"), [("AND", AND), ("OR", OR)])
def test_and_and_or_of_constants_follow_them_too(operator: str, table: dict) -> None:
    constants = {True: "TRUE", False: "FALSE", None: "1 / 0 = 1"}
    for (left, right), expected in table.items():
        assert truth(f"{constants[left]} {operator} {constants[right]}") is expected
        assert truth(f"{VALUES[left]} {operator} {constants[right]}", t=1) is expected


def test_not_of_unknown_is_unknown() -> None:
    assert [truth(f"NOT {VALUES[value]}", t=1) for value in (True, False, None)] == [False, True, None]
    assert [truth(f"NOT NOT {VALUES[value]}", t=1) for value in (True, False, None)] == [True, False, None]


@pytest.mark.parametrize("count", [3, 4, 50])
def test_long_chains_follow_the_same_tables(count: int) -> None:
    for odd, one in VALUES.items():
        for others, each in VALUES.items():
            chain = [each] * (count - 1) + [one]
            assert truth(" AND ".join(chain), t=1) is AND[others, odd]
            assert truth(" OR ".join(chain), t=1) is OR[others, odd]


@pytest.mark.parametrize(
    "text",
    [
        "a = 1", "a <> 1", "a < 1", "a = 'x'", "a <> 'x'", "a = TRUE", "a <> TRUE", "a", "NOT a", "a = b", "b < a", "a + 1 = 2", "2 = 1 * a", "-a = 1",
        "+a = 1", "a BETWEEN 1 AND 2", "1 BETWEEN a AND 2", "1 BETWEEN 0 AND a", "a NOT BETWEEN 1 AND 2", "a IN ('x')", "a IN ('x', 'y')",
        "a NOT IN ('x', 'y')", "a LIKE 'x'", "a LIKE '%'", "a NOT LIKE '_%'", "1 / 0 = 1", "1 / 0 <> b", "a = 9223372036854775807",
    ],
)  # fmt: skip
def test_what_asks_for_a_property_that_is_absent_is_unknown(text: str) -> None:
    assert truth(text, b=1) is None


# -- comparison ---------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("value", "literal", "signs"),
    [
        (3, "3", "= <= >="), (2, "3", "<> < <="), (4, "3", "<> > >="), (3.0, "3", "= <= >="), (3, "3.0", "= <= >="), (2.5, "3", "<> < <="),
        (3, "2.5", "<> > >="), (-1, "-1", "= <= >="), (0.0, "-0.0", "= <= >="), (math.inf, "9E300", "<> > >="), (math.nan, "1", "<>"),
        (MAX, "9223372036854775807", "= <= >="), (MIN, "-9223372036854775808", "= <= >="), (MAX, "9223372036854775806", "<> > >="),
        ("3", "3", ""), ("3", "3.0", ""), (True, "1", ""), (1, "TRUE", ""), (1.0, "TRUE", ""), ("TRUE", "TRUE", ""),
        (3, "'3'", ""), (True, "'TRUE'", ""), ("x", "'x'", "="), ("X", "'x'", "<>"), ("x", "'x '", "<>"), ("", "''", "="),
        (True, "TRUE", "="), (False, "TRUE", "<>"), (False, "false", "="), ("it's", "'it''s'", "="), ("\u00e4", "'a\u0308'", "<>"),
    ],
)  # fmt: skip
def test_a_property_and_a_constant_compare_as_like_types_or_not_at_all(value: object, literal: str, signs: str) -> None:
    only_equality = literal.startswith("'") or literal.upper() in ("TRUE", "FALSE")
    for sign in ("=", "<>") if only_equality else ("=", "<>", "<", "<=", ">", ">="):
        mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(sign, sign)
        expected = sign in signs.split()
        assert truth(f"a {sign} {literal}", a=value) is expected
        assert truth(f"{literal} {mirrored} a", a=value) is expected


@pytest.mark.parametrize(
    ("left", "right", "signs"),
    [
        (1, 1.0, "= <= >="), (2, 1, "<> > >="), (1, 2.5, "<> < <="), ("x", "x", "="), ("a", "b", "<>"), (True, True, "="), (True, False, "<>"),
        (True, 1, ""), (0, False, ""), ("1", 1, ""), ("TRUE", True, ""), (math.nan, math.nan, "<>"), (math.inf, math.inf, "= <= >="),
        (2**53 + 1, 2.0**53, "= <= >="), (2**53 + 1, 2**53, "<> > >="), (10**400, math.inf, "= <= >="), (-(10**400), 0.5, "<> < <="),
    ],
)  # fmt: skip
def test_two_properties_compare_as_like_types_or_not_at_all(left: object, right: object, signs: str) -> None:
    for sign in ("=", "<>", "<", "<=", ">", ">="):
        assert truth(f"a {sign} b", a=left, b=right) is (sign in signs.split())


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("a = 9007199254740992.0", 2**53 + 1, True), ("a = 9007199254740993", 2.0**53, True), ("a > 9007199254740992D", 2**53 + 1, False),
        ("a = 9007199254740993", 2**53, False),
    ],
)  # fmt: skip
def test_a_long_beside_a_double_is_promoted_to_a_double_as_in_java(text: str, value: object, expected: bool) -> None:
    assert truth(text, a=value) is expected


@pytest.mark.parametrize(("value", "expected"), [(True, True), (False, False), (None, None), ("true", False), (1, False)])
def test_an_identifier_alone_asks_whether_it_is_true(value: object, expected: bool | None) -> None:
    assert truth("a", a=value) is expected
    assert truth("(a)", a=value) is expected
    assert truth("a AND TRUE", a=value) is expected
    assert truth("NOT a", a=value) is (None if expected is None else not expected)


# -- BETWEEN, IN, LIKE --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "properties", "expected"),
    [
        ("a BETWEEN 1 AND 3", {"a": 2.5}, True), ("a BETWEEN 3 AND 1", {"a": 2}, False), ("a NOT BETWEEN 3 AND 1", {"a": 2}, True),
        ("a BETWEEN b AND c", {"a": 1, "b": 0, "c": 2.0}, True), ("2 BETWEEN a AND b", {"a": 1, "b": 3}, True),
        ("a + 1 BETWEEN b * 2 AND 10 / 2", {"a": 3, "b": 2}, True), ("a BETWEEN 1 AND b", {"a": 0}, False), ("a BETWEEN 1 AND b", {"a": 2}, None),
        ("a NOT BETWEEN 1 AND b", {"a": 0}, True), ("a NOT BETWEEN 1 AND b", {"a": 2}, None),
        ("a BETWEEN 1 AND 3", {"a": "2"}, False), ("a NOT BETWEEN 1 AND 3", {"a": "2"}, False), ("a NOT BETWEEN 1 AND 3", {"a": True}, False),
        ("a BETWEEN 1 AND 3 AND b = 1", {"a": 2, "b": 1}, True), ("NOT a BETWEEN 1 AND 3", {"a": "2"}, True), ("2 BETWEEN 1 AND 3", {}, True),
        ("a BETWEEN 1 AND 3 OR b BETWEEN 1 AND 3", {"a": 9, "b": 3}, True),
    ],
)  # fmt: skip
def test_between_is_a_pair_of_comparisons(text: str, properties: dict, expected: bool | None) -> None:
    assert truth(text, **properties) is expected


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("a IN ('x')", "x", True), ("a IN ('x')", "y", False), ("a IN ('x', 'x')", "x", True), ("a IN ('', 'it''s')", "it's", True),
        ("a IN ('1', '2')", 1, False), ("a NOT IN ('1', '2')", 1, True), ("a IN ('TRUE', 'x')", True, False), ("NOT a IN ('x', 'y')", "z", True),
    ],
)  # fmt: skip
def test_in_is_a_row_of_comparisons_by_equal(text: str, value: object, expected: bool) -> None:
    assert truth(text, a=value) is expected


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("''", [""], ["x"]),
        ("'x'", ["x"], ["", "xx", "X"]),
        ("'%'", ["", "x", "\n"], []),
        ("'%%'", ["", "x"], []),
        ("'x%'", ["x", "xy", "x\ny"], ["", "yx"]),
        ("'%x'", ["x", "yx"], ["", "xy"]),
        ("'%x%'", ["x", "axb"], ["", "y"]),
        ("'a%b'", ["ab", "a%b", "aab", "abb"], ["a", "b", "ba", "aba"]),
        ("'ab%ba'", ["abba", "abxba"], ["aba", "ab"]),
        ("'%a%b%'", ["ab", "xaxbx"], ["ba", "a"]),
        ("'%ab%ab%'", ["abab", "ab-ab"], ["ab", "aba"]),
        ("'%ab%b'", ["abb", "ab-b"], ["ab", "b"]),
        ("'%a_%b'", ["axb", "abb"], ["ab", "b"]),
        ("'_'", ["x", "\n", "\U0001f600"], ["", "xx"]),
        ("'__%'", ["ab", "abc"], ["", "a"]),
        ("'%__'", ["ab", "abc"], ["", "a"]),
        ("'%__%'", ["ab", "abc"], ["", "a"]),
        ("'a_c%e_g'", ["abcefg", "abcdefg"], ["abceg", "abc", "abcefgh"]),
        ("'%a_c%'", ["abc", "aabcc", "xaacac"], ["ac", "ab", "xacac"]),
        ("'%a_c%a_c%'", ["abcabc", "abc-axc"], ["abc", "abcac"]),
        ("'x%_b_%y'", ["xabcy", "xx.b.y"], ["xby", "xaby"]),
        ("'.*'", [".*"], ["", "a", "ab"]),
        ("'[a]%$'", ["[a]$"], ["a$"]),
        (r"'\%'", ["\\", "\\x"], ["%", ""]),
        (r"'\%' ESCAPE '\'", ["%"], ["\\", "\\%", "x"]),
        (r"'\_\_%' ESCAPE '\'", ["__", "__x"], ["ab"]),
        (r"'a\\_' ESCAPE '\'", ["a\\b"], ["a_", "a\\_b"]),
        ("'10!%' ESCAPE '!'", ["10%"], ["100", "10!%"]),
        ("'%%' ESCAPE '%'", ["%"], ["", "%%", "x"]),
        ("'''_' ESCAPE ''''", ["_"], ["'x", "x"]),
        ("'%!%%' ESCAPE '!'", ["%", "a%b"], ["", "ab"]),
    ],
)
def test_like_matches_percent_with_anything_and_underscore_with_one_character(pattern: str, matching: list, others: list) -> None:
    for value in matching:
        assert truth(f"a LIKE {pattern}", a=value) is True, value
        assert truth(f"a NOT LIKE {pattern}", a=value) is False, value
    for value in others:
        assert truth(f"a LIKE {pattern}", a=value) is False, value
        assert truth(f"a NOT LIKE {pattern}", a=value) is True, value


@pytest.mark.parametrize("pattern", ["'1'", "'%'", "'_'", "'1%'", "'%_'", "'T%'"])
def test_like_is_false_of_what_is_no_string(pattern: str) -> None:
    for value in (1, 1.0, True):
        assert truth(f"a LIKE {pattern}", a=value) is False
        assert truth(f"a NOT LIKE {pattern}", a=value) is True


# -- arithmetic ---------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("1 + 2 * 3 = 7", {}), ("(1 + 2) * 3 = 9", {}), ("a + 2 * 3 = 7", {"a": 1}), ("10 - 4 - 3 = 3", {}), ("a - 4 - 3 = 3", {"a": 10}),
        ("24 / 4 / 2 = 3", {}), ("a / 4 * 2 = 12", {"a": 24}), ("-a + 5 = 2", {"a": 3}), ("- - a = 3", {"a": 3}), ("-+-a = 3", {"a": 3}), ("5--3 = 8", {}),
        ("a - -3 = 8", {"a": 5}), ("-(a + 1) = -4", {"a": 3}), ("2 * -a = -6", {"a": 3}), ("+a = 3.0", {"a": 3.0}),
        ("7 / 2 = 3", {}), ("-7 / 2 = -3", {}), ("a / 2 = -3", {"a": -7}), ("7 / a = -3", {"a": -2}), ("a / b = 3", {"a": -7, "b": -2}),
        ("7 / 2.0 = 3.5", {}), ("a / 2 = 3.5", {"a": 7.0}), ("a * 2 = 7", {"a": 3.5}), ("1 + a = 1.5", {"a": 0.5}), ("-a = 2.5", {"a": -2.5}),
        ("a + 1 = -9223372036854775808", {"a": MAX}), ("a - 1 = 9223372036854775807", {"a": MIN}), ("-a = a", {"a": MIN}), ("a / -1 = a", {"a": MIN}),
        ("a * a = 1", {"a": MAX}), ("9223372036854775807 + 1 < 0", {}), ("- -9223372036854775808 < 0", {}), ("a + 1.0 > 9E18", {"a": MAX}),
        ("+a = -1", {"a": 2**64 - 1}), ("a > 9223372036854775807", {"a": 2**64 - 1}),
        ("a / 0.0 > 1E308", {"a": 1}), ("a / 0 > 1E308", {"a": 1.0}), ("a / 0.0 < -1E308", {"a": -1}), ("a / -0.0 < -1E308", {"a": 1}),
        ("1.0 / 0.0 = a", {"a": math.inf}), ("a * 10 = b", {"a": 1e308, "b": math.inf}), ("0.0 / 0.0 <> 0.0 / 0.0", {}), ("a / 0 <> a / 0", {"a": 0.0}),
        ("a - a <> 0", {"a": math.inf}), ("NOT (a / 0.0 = 0)", {"a": 0}), ("NOT (a / 0.0 > 0)", {"a": math.nan}),
    ],
)  # fmt: skip
def test_arithmetic_is_javas(text: str, properties: dict) -> None:
    assert truth(text, **properties) is True


@pytest.mark.parametrize("text", ["a / 0 = 0", "a / b = 0", "1 / 0 = 0", "1 / 0 <> 0", "1 - 1 / 0 > 0", "5 / (a - 5) > 0", "-(1 / 0) = 1", "+(1 / 0) = 1"])
def test_a_long_divided_by_zero_is_unknown(text: str) -> None:
    assert truth(text, a=5, b=0) is None


@pytest.mark.parametrize("value", ["3", "", True])
@pytest.mark.parametrize("text", ["a + 1 = 4", "-a = -3", "+a = 3", "a * 1 <> 0", "1 / a < 9", "a - 1 BETWEEN 0 AND 9"])
def test_arithmetic_over_what_is_no_number_is_unknown(text: str, value: object) -> None:
    assert truth(text, a=value) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 = 1", True), ("1 = 2", False), ("'a' = 'a'", True), ("'a' <> 'a'", False), ("'1' = 1", False), ("TRUE = 1", False), ("TRUE", True),
        ("NOT TRUE", False), ("TRUE <> FALSE", True), ("a = 1 OR TRUE", True), ("a = 1 AND FALSE", False), ("1 = 1.0", True), ("-1 < 1", True),
    ],
)  # fmt: skip
def test_constants_are_compared_too(text: str, expected: bool) -> None:
    assert truth(text) is expected


def test_the_empty_selector_matches_everything() -> None:
    assert compile_selector("").matches({}.get)
    assert compile_selector("").identifiers == frozenset()
