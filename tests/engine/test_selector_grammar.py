"""What is a selector and what is none; refusals name the column and what was expected there."""

from __future__ import annotations

import math
import unicodedata

import pytest

from broker_core.engine.selector import SelectorError, compile_selector
from broker_core.engine.selector.identifier import is_part, is_start
from broker_core.engine.selector.parser import parse
from broker_core.engine.selector.syntax import And, Arithmetic, Between, Comparison, Identifier, In, IsNull, Like, Literal, Not, Or, Signed

A, B, C = (Identifier(name) for name in "abc")
ONE, TWO, THREE = (Literal(value) for value in (1, 2, 3))


# -- structure ----------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a", A),
        ("a OR b AND NOT c", Or((A, And((B, Not(C)))))),
        ("a AND b OR c AND a", Or((And((A, B)), And((C, A))))),
        ("(a OR b) AND c", And((Or((A, B)), C))),
        ("NOT a = 1 AND b", And((Not(Comparison("=", A, ONE)), B))),
        ("NOT NOT NOT a", Not(A)),
        ("NOT NOT a", A),
        ("a AND b AND c", And((A, B, C))),
        ("a OR b OR c", Or((A, B, C))),
        ("a + 1 - 2 * b / 3 > -c", Comparison(">", Arithmetic(A, (("+", ONE), ("-", Arithmetic(TWO, (("*", B), ("/", THREE)))))), Signed("-", C))),
        ("-a * 2 = 1", Comparison("=", Arithmetic(Signed("-", A), (("*", TWO),)), ONE)),
        ("(a) = ((1))", Comparison("=", A, ONE)),
        ("a BETWEEN 1 AND 2 AND b", And((Between(A, ONE, TWO, negated=False), B))),
        ("a NOT BETWEEN b + 1 AND 2", Between(A, Arithmetic(B, (("+", ONE),)), TWO, negated=True)),
        ("a IN ('x', 'y') OR b", Or((In(A, ("x", "y"), negated=False), B))),
        ("a NOT IN ('x')", In(A, ("x",), negated=True)),
        ("a LIKE 'x%_y'", Like(A, (("x",), (None, "y")), negated=False)),
        ("a NOT LIKE '!_' ESCAPE '!'", Like(A, (("_",),), negated=True)),
        ("a IS NULL AND b IS NOT NULL", And((IsNull(A, negated=False), IsNull(B, negated=True)))),
    ],
)
def test_a_text_is_read_by_the_precedence_of_its_operators(text: str, tree: object) -> None:
    assert parse(text) == tree


@pytest.mark.parametrize(
    "text",
    [
        "a=1 and b<>2", "a=1 AnD b<>2", "a  =\t1\nAND\r\nb\f<> 2", " a=1 AND b<>2 ", "((a=1)AND(b<>2))", "a=(1)and(b)<>2",
    ],
)  # fmt: skip
def test_case_of_keywords_space_and_parentheses_make_no_difference(text: str) -> None:
    assert parse(text) == And((Comparison("=", A, ONE), Comparison("<>", B, TWO)))


@pytest.mark.parametrize(
    "name",
    [
        "a", "A", "_", "$", "_1", "$x", "JMSXGroupID", "JMS_x", "andy", "nullable", "\u00e4\u00f6", "\u540d\u524d", "a\u0308", "\u20acuro", "x\U0001d7d8",
        "\U00010400", "a\u200db", "\u0131n", "\u017fis", "tr\u00fce",
    ],
)  # fmt: skip
def test_an_identifier_is_one_of_java_and_keeps_its_case(name: str) -> None:
    assert compile_selector(f"{name} = 1").identifiers == {name}


@pytest.mark.parametrize("word", ["NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"])
def test_a_reserved_word_is_no_identifier_in_whatever_case(word: str) -> None:
    for each in (word, word.lower(), word.capitalize()):
        for text in (f"{each} LIKE 'x'", f"{each} IS NULL"):
            with pytest.raises(SelectorError):
                compile_selector(text)


def test_the_characters_of_identifiers_are_those_of_java() -> None:
    starting, continuing = ("Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Sc", "Pc"), ("Nd", "Mn", "Mc", "Cf")
    for character in map(chr, range(0x110000)):
        category = unicodedata.category(character)
        ignorable = category == "Cc" and not "\t" <= character <= "\r" and not "\x1c" <= character <= "\x1f"
        starts = category in starting
        assert bool(is_start(character)) is starts, ascii(character)
        assert bool(is_part(character)) is (starts or category in continuing or ignorable), ascii(character)


# -- literals -----------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0), ("57", 57), ("-957", -957), ("+62", 62), ("57L", 57), ("57l", 57), ("1_000_000", 1_000_000), ("1__0", 10), ("0x1F", 31), ("0XfL", 15),
        ("0xF_F", 255),
        ("0xFFFFFFFF", 0xFFFFFFFF), ("0xFFFFFFFFFFFFFFFF", -1), ("0x8000000000000000", -(1 << 63)), ("017", 15), ("00", 0), ("0_17", 15), ("-010", -8),
        ("01777777777777777777777", -1), ("0b101", 5), ("0B1_0L", 2), ("9223372036854775807", (1 << 63) - 1), ("-9223372036854775808", -(1 << 63)),
        ("7.", 7.0), ("-95.7", -95.7), ("+6.2", 6.2), ("7E3", 7000.0), ("-57.9E2", -5790.0), ("6.2e-3", 0.0062), ("1e+2", 100.0), (".5", 0.5),
        ("5d", 5.0), ("5D", 5.0),
        ("09.5", 9.5), ("09e0", 9.0), ("09f", 9.0), ("1_0.2_5", 10.25), ("0x1p3", 8.0), ("0x.8P1", 1.0), ("0x1.8p-1d", 0.75), ("1.5F", 1.5),
        ("7.1F", 7.099999904632568),
        ("7.1", 7.1), ("7.1D", 7.1), ("0.0", 0.0), ("0e0", 0.0), ("0x0p0", 0.0), ("4.9e-324", 5e-324), ("1.7976931348623157E308", 1.7976931348623157e308),
    ],
)  # fmt: skip
def test_a_number_is_written_as_in_java(text: str, value: float) -> None:
    tree = parse(f"a = {text}")
    assert isinstance(tree, Comparison)
    assert isinstance(tree.right, Literal)
    assert (tree.right.value, type(tree.right.value)) == (value, type(value))


def test_minus_before_an_approximate_zero_is_kept() -> None:
    tree = parse("a = -0.0")
    assert isinstance(tree, Comparison)
    assert isinstance(tree.right, Literal)
    assert math.copysign(1, tree.right.value) == -1


@pytest.mark.parametrize(
    "text",
    [
        "09", "08L", "0x", "0xG", "0b2", "0b", "1_", "1_L", "0x_1", "3a", "3and", "1.2.3", "1e", "1e+", "1e1.5", "2LL", "1.5L", "0x1.8", "5..", "._5",
        ".", "1\u0661",
        "9223372036854775808", "+9223372036854775808", "-(9223372036854775808)", "99999999999999999999", "0x10000000000000000", "02000000000000000000000",
        "1e309", "-1e309", "1e39F", "1e-400", "1e-50F", "0x1p1024", "0x1p-2000", "0x1p99999999999999999999", "1e99999999999999999999",
    ],
)  # fmt: skip
def test_a_number_that_java_does_not_know_or_hold_is_refused(text: str) -> None:
    with pytest.raises(SelectorError):
        parse(f"a = {text}")


def test_a_hexadecimal_digit_e_before_a_sign_is_no_exponent() -> None:
    assert parse("a = 0xE+1") == Comparison("=", A, Arithmetic(Literal(14), (("+", ONE),)))


@pytest.mark.parametrize(
    ("text", "value"),
    [("''", ""), ("'it''s'", "it's"), ("''''", "'"), ("'\"'", '"'), ("'a\nb'", "a\nb"), (r"'\n'", r"\n"), ("'AND'", "AND"), ("'\u540d'", "\u540d")],
)
def test_a_string_holds_whatever_stands_between_its_quotes(text: str, value: str) -> None:
    assert parse(f"a = {text}") == Comparison("=", A, Literal(value))


# -- refusals -----------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "column", "sentence"),
    [
        (" ", 2, "expected an identifier, a literal or (, found the end of the selector"),
        ("a = ", 5, "expected an identifier, a literal or (, found the end of the selector"),
        ("= 1", 1, "expected an identifier, a literal or (, found a sign '='"),
        ("a b", 3, "expected AND, OR or the end of the selector, found an identifier 'b'"),
        ("a = 1 2", 7, "expected AND, OR or the end of the selector, found a number '2'"),
        ("a = 1)", 6, "expected AND, OR or the end of the selector, found a sign ')'"),
        ("(a = 1", 7, "expected ), AND or OR, found the end of the selector"),
        ("(a + 1 = 2", 11, "expected ), AND or OR"),
        ("(a + 1 2", 8, "expected ) or an operator, found a number '2'"),
        ("a AND", 6, "expected an identifier, a literal or ("),
        ("a AND OR b", 7, "expected an identifier, a literal or (, found a keyword 'OR'"),
        ("a = 'x", 5, "expected a closing quote for the string that begins with"),
        ("a = 'x''", 5, "expected a closing quote"),
        ('a = "x"', 5, "strings stand in single quotes"),
        ("a == 1", 4, "expected an identifier, a literal or (, found a sign '='"),
        ("a != 1", 3, "unequal is <>"),
        ("a % 2 = 1", 3, "there is no remainder"),
        ("a = 1; b", 6, "a selector is one condition"),
        ("a.b = 1", 2, "expected an identifier, a literal or a sign, found '.'"),
        ("a = 1 /* b */", 8, "expected an identifier, a literal or (, found a sign '*'"),
        ("a = 1 # b", 7, "found '#'"),
        ("a\u00a0= 1", 2, "expected an identifier, a literal or a sign, found '\\xa0'"),
        ("a = 1\x0b", 6, "found '\\x0b'"),
        ("a = \ud800", 5, "found '\\ud800'"),
        ("a = NULL", 5, "NULL is asked for by IS NULL"),
        ("a IS TRUE", 6, "expected NULL behind IS, found a keyword 'TRUE'"),
        ("a IS NOT 1", 10, "expected NULL, found a number '1'"),
        ("a < b < c", 7, "comparisons do not follow one another"),
        ("a = NOT b", 5, "expected an identifier, a literal or (, found a keyword 'NOT'"),
        ("(a > 1) = TRUE", 1, "expected an identifier, a literal or arithmetic in a comparison, found a condition"),
        ("a = (b = c)", 5, "expected an identifier, a literal or arithmetic in a comparison, found a condition"),
        ("a > 'x'", 5, "expected a number beside >: strings and booleans compare by = and <> only"),
        ("'x' <= a", 1, "expected a number beside <="),
        ("a < TRUE", 5, "expected a number beside <"),
        ("'x'", 1, "expected a condition, which a string or a number alone is not"),
        ("a = 1 AND 5", 11, "expected a condition"),
        ("a = 1 OR b + 1", 10, "expected a condition"),
        ("NOT -a", 5, "expected a condition"),
        ("(5) AND a", 1, "expected a condition"),
        ("-'x' = a", 2, "expected a number or an identifier"),
        ("a + 'x' = 1", 5, "expected a number or an identifier"),
        ("TRUE * 2 = a", 1, "expected a number or an identifier"),
        ("a + (b = 1) = 1", 5, "expected a number or an identifier"),
        ("a BETWEEN 'a' AND 'b'", 11, "expected a number or an identifier"),
        ("a BETWEEN 1 AND 'b'", 17, "expected a number or an identifier"),
        ("'x' BETWEEN 1 AND 2", 1, "expected a number or an identifier"),
        ("a BETWEEN 1, 2", 12, "expected AND between the bounds of BETWEEN, found a sign ','"),
        ("a BETWEEN 1", 12, "expected AND between the bounds of BETWEEN"),
        ("a NOT = 1", 7, "expected BETWEEN, IN or LIKE behind NOT, found a sign '='"),
        ("a NOT NULL", 7, "expected BETWEEN, IN or LIKE behind NOT"),
        ("a IN 'x'", 6, "expected ( behind IN"),
        ("a IN ()", 7, "expected a string in the list of IN, found a sign ')'"),
        ("a IN ('x',)", 11, "expected a string in the list of IN"),
        ("a IN ('x' 'y')", 11, "expected ) or , in the list of IN, found a string 'y'"),
        ("a IN (1, 2)", 7, "expected a string in the list of IN, found a number '1'"),
        ("a IN (b)", 7, "expected a string in the list of IN, found an identifier 'b'"),
        ("'x' IN ('x')", 1, "expected an identifier before IN"),
        ("a + 1 IN ('x')", 1, "expected an identifier before IN"),
        ("5 IS NULL", 1, "expected an identifier before IS"),
        ("a = 1 AND (b = 1) IS NULL", 11, "expected an identifier before IS"),
        ("'x' LIKE 'x'", 1, "expected an identifier before LIKE"),
        ("a LIKE b", 8, "expected a string as the pattern of LIKE"),
        ("a LIKE 5", 8, "expected a string as the pattern of LIKE"),
        ("a LIKE 'x' ESCAPE", 18, "expected a string of one character behind ESCAPE, found the end"),
        ("a LIKE 'x' ESCAPE ''", 19, "expected a string of one character behind ESCAPE, found ''"),
        ("a LIKE 'x' ESCAPE '!!'", 19, "expected a string of one character behind ESCAPE, found '!!'"),
        ("a LIKE 'x!' ESCAPE '!'", 8, "expected %, _ or the escape character itself behind every escape character"),
        ("a LIKE '!x' ESCAPE '!'", 8, "expected %, _ or the escape character itself"),
        ("a = 09", 5, "expected octal digits, 0 to 7, behind a leading 0, found '09'"),
        ("a = 3and", 5, "expected a number as Java writes it"),
        ("a = 9223372036854775808", 5, "expected a number in the range of Java's long"),
        ("a = 1e309", 5, "expected a number in the range of Java's double"),
        ("a = 1e39f", 5, "expected a number in the range of Java's float"),
    ],
)
def test_a_refusal_names_the_column_and_what_was_expected(text: str, column: int, sentence: str) -> None:
    with pytest.raises(SelectorError) as refused:
        compile_selector(text)
    assert (refused.value.column, sentence in refused.value.sentence) == (column, True), str(refused.value)
    assert str(refused.value) == f"column {column}: {refused.value.sentence}"


def test_a_refusal_quotes_little_and_nothing_that_could_break_a_line() -> None:
    for text in ("a = '" + "x\r\n" * 1000, "a " + "b" * 5000, "a = 1" + "\x00z" * 2000, "a = 1 \x85"):
        with pytest.raises(SelectorError) as refused:
            compile_selector(text)
        assert str(refused.value).isprintable()
        assert len(str(refused.value)) < 250
