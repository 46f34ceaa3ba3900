"""Compiled selectors against a naive evaluator that walks the tree as written, with three values and the standard's sentences at hand."""

from __future__ import annotations

import ctypes
import math
import re
from fractions import Fraction

from hypothesis import example, given, settings
from hypothesis import strategies as st

from broker_core.engine.selector import compile_selector, constants_of
from broker_core.engine.selector.parser import parse
from broker_core.engine.selector.syntax import And, Arithmetic, Between, Comparison, Identifier, In, IsNull, Like, Literal, Not, Or, Signed

# -- the naive evaluator ------------------------------------------------------------------------------------------------------------
LEVELS = {False: 0, None: 1, True: 2}
TRUTHS = (False, None, True)


def truth(node, properties: dict, coerce: bool) -> bool | None:
    def of(each):
        return LEVELS[truth(each, properties, coerce)]

    match node:
        case And(operands):
            return TRUTHS[min(map(of, operands))]
        case Or(operands):
            return TRUTHS[max(map(of, operands))]
        case Not(operand):
            return TRUTHS[2 - of(operand)]
        case Literal(value):
            return value
        case Identifier():
            return of_comparison("=", node, Literal(True), properties, coerce)
        case Comparison(sign, left, right):
            return of_comparison(sign, left, right, properties, coerce)
        case Between(operand, low, high, False):
            return truth(And((Comparison(">=", operand, low), Comparison("<=", operand, high))), properties, coerce)
        case Between(operand, low, high, True):
            return truth(Or((Comparison("<", operand, low), Comparison(">", operand, high))), properties, coerce)
        case IsNull(Identifier(name), negated):
            return (properties.get(name) is None) is not negated
        case In(identifier, values, negated):
            equal = Or(tuple(Comparison("=", identifier, Literal(value)) for value in values))
            return truth(Not(equal) if negated else equal, properties, coerce)
        case Like(Identifier(name), segments, negated):
            value = properties.get(name)
            return None if value is None else (isinstance(value, str) and is_like(segments, value)) is not negated
    raise AssertionError(node)


def is_like(segments, value: str) -> bool:
    pattern = ".*".join("".join("." if character is None else re.escape(character) for character in segment) for segment in segments)
    return re.fullmatch(pattern, value, re.DOTALL) is not None


def of_comparison(sign: str, left, right, properties: dict, coerce: bool) -> bool | None:
    sides = [value_of(each, properties, coerce) for each in (left, right)]
    if coerce:
        kinds = [kind(side) for side in sides]
        ordered = sign not in ("=", "<>")
        calculated = [isinstance(each, Arithmetic | Signed) for each in (left, right)]
        for own, other in ((0, 1), (1, 0)):
            if isinstance((left, right)[own], Identifier):
                sides[own] = read(sides[own], "number" if ordered or calculated[other] else kinds[other])
    if None in sides:
        return None
    kinds = [kind(side) for side in sides]
    if kinds[0] != kinds[1] or (kinds[0] != "number" and sign not in ("=", "<>")):
        return False
    one, other = map(float, sides) if float in map(type, sides) else sides
    return {"=": one == other, "<>": one != other, **({} if kinds[0] != "number" else order(one, other))}[sign]


def order(one, other) -> dict[str, bool]:
    return {"<": one < other, "<=": one <= other, ">": one > other, ">=": one >= other}


def kind(value: object) -> str:
    return {bool: "boolean", str: "string", int: "number", float: "number", type(None): "null"}[type(value)]


def read(value, wanted: str):
    if not isinstance(value, str):
        return value
    if wanted == "boolean" and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if wanted == "number" and re.fullmatch(r"[+-]?\d+", value, re.ASCII):
        return int(value) if abs(int(value)) < 2**63 else float(value)
    if wanted == "number" and re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", value, re.ASCII | re.IGNORECASE):
        return float(value)
    return value


def value_of(node, properties: dict, coerce: bool):
    match node:
        case Identifier(name):
            return properties.get(name)
        case Literal(value):
            return value
        case Signed(sign, operand):
            number = number_of(operand, properties, coerce)
            return -number if sign == "-" and isinstance(number, float) else apply(sign, 0, number) if isinstance(number, int) else number
        case Arithmetic(first, rest):
            total = number_of(first, properties, coerce)
            for sign, operand in rest:
                total = apply(sign, total, number_of(operand, properties, coerce))
            return total
    raise AssertionError(node)


def number_of(node, properties: dict, coerce: bool):
    value = value_of(node, properties, coerce)
    value = read(value, "number") if coerce else value
    return value if kind(value) == "number" else None


def apply(sign: str, left, right):
    if left is None or right is None:
        return None
    if isinstance(left, int) and isinstance(right, int):
        if sign == "/":
            return None if right == 0 else ctypes.c_int64(math.trunc(Fraction(left, right))).value
        return ctypes.c_int64({"+": left + right, "-": left - right, "*": left * right}[sign]).value
    left, right = float(left), float(right)
    if sign == "/" and right == 0:
        same = math.copysign(1, left) == math.copysign(1, right)
        return math.nan if left == 0 or math.isnan(left) else math.inf if same else -math.inf
    return left / right if sign == "/" else {"+": left + right, "-": left - right, "*": left * right}[sign]


# -- trees and their texts ----------------------------------------------------------------------------------------------------------
NAMES = st.sampled_from("abcd")
IDENTIFIERS = NAMES.map(Identifier)
STRINGS = st.sampled_from(["", "x", "xy", "it's", "5", "true", "-0.5", "%", "_a\\", "\u00e4"])
EXACT = st.one_of(st.integers(-3, 6), st.sampled_from([2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 2**32]))
APPROXIMATE = st.sampled_from([0.0, -0.0, 0.5, -0.5, 1.0, 5.0, 2.5, 2.0**53, -(2.0**63), 1e308, 5e-324])
NUMBERS = st.one_of(EXACT, APPROXIMATE)
ODD = st.sampled_from([math.inf, -math.inf, math.nan, "TRUE", "False", "+5", "5.", "5e0", "1e400", "9" * 19, " 5", "0x5"])
VALUES = st.one_of(st.none(), NUMBERS, st.booleans(), STRINGS, ODD)
MESSAGES = st.dictionaries(NAMES, VALUES)


def arithmetic(children):
    return st.one_of(
        st.builds(Signed, st.sampled_from("+-"), children),
        *(st.builds(Arithmetic, children, st.lists(st.tuples(st.sampled_from(signs), children), min_size=1, max_size=3).map(tuple)) for signs in ("+-", "*/")),
    )


OPERANDS = st.recursive(st.one_of(IDENTIFIERS, NUMBERS.map(Literal)), arithmetic, max_leaves=5)
CONSTANTS = st.one_of(STRINGS, st.booleans()).map(Literal)
ANY = st.one_of(OPERANDS, IDENTIFIERS, CONSTANTS)
SEGMENTS = st.lists(st.lists(st.one_of(st.none(), st.sampled_from("x%_'\\")), max_size=3).map(tuple), min_size=1, max_size=4)
PATTERNS = SEGMENTS.map(lambda found: (found[0], *filter(None, found[1:-1]), *found[1:][-1:]))
LEAVES = st.one_of(
    IDENTIFIERS,
    st.booleans().map(Literal),
    st.builds(Comparison, st.sampled_from(["=", "<>"]), ANY, ANY),
    st.builds(Comparison, st.sampled_from(["=", "<>"]), IDENTIFIERS, ANY),
    st.builds(Comparison, st.sampled_from(["<", "<=", ">", ">="]), OPERANDS, OPERANDS),
    st.builds(Between, OPERANDS, OPERANDS, OPERANDS, st.booleans()),
    st.builds(In, IDENTIFIERS, st.lists(STRINGS, min_size=1, max_size=4).map(tuple), st.booleans()),
    st.builds(Like, IDENTIFIERS, PATTERNS, st.booleans()),
    st.builds(IsNull, IDENTIFIERS, st.booleans()),
)


def conditions(children):
    several = st.lists(children, min_size=2, max_size=4).map(tuple)
    return st.one_of(st.builds(Not, children), st.builds(And, several), st.builds(Or, several))


TREES = st.recursive(LEAVES, conditions, max_leaves=10)


def written(node) -> str:
    match node:
        case Identifier(name):
            return name
        case Literal(str() as value):
            return "'" + value.replace("'", "''") + "'"
        case Literal(value):
            return str(value)
        case Signed(sign, operand):
            return f"{sign}({written(operand)})"
        case Arithmetic(first, rest):
            return inner(first) + "".join(f" {sign} {inner(operand)}" for sign, operand in rest)
        case Comparison(sign, left, right):
            return f"{written(left)} {sign} {written(right)}"
        case Between(operand, low, high, negated):
            return f"{written(operand)}{' not' * negated} Between {written(low)} AND {written(high)}"
        case In(identifier, values, negated):
            return f"{identifier.name}{' NOT' * negated} in ({','.join(written(Literal(value)) for value in values)})"
        case Like(identifier, segments, negated):
            text = "%".join("".join("_" if each is None else f"!{each}" if each in "%_" else each for each in segment) for segment in segments)
            return f"{identifier.name}{' NOT' * negated} LIKE {written(Literal(text))} escape '!'"
        case IsNull(identifier, negated):
            return f"{identifier.name}\tIS{' NOT' * negated} NULL"
        case Not(operand):
            return f"NOT {inner(operand)}"
        case And(operands):
            return " And ".join(map(inner, operands))
        case Or(operands):
            return " oR ".join(map(inner, operands))
    raise AssertionError(node)


def inner(node) -> str:
    return written(node) if isinstance(node, Identifier | Literal) else f"({written(node)})"


# -- properties ---------------------------------------------------------------------------------------------------------------------
@settings(max_examples=200, deadline=None)
@given(TREES)
def test_what_is_written_is_read_again(tree) -> None:
    assert repr(parse(written(tree))) == repr(tree)


@settings(max_examples=500, deadline=None)
@given(TREES, MESSAGES, st.booleans())
@example(Comparison("=", Identifier("a"), Literal(1)), {"a": True}, False)
@example(Comparison("=", Identifier("a"), Literal(True)), {"a": 1}, False)
@example(Comparison("=", Identifier("a"), Literal(2**53 + 1)), {"a": 2.0**53}, False)
@example(Comparison(">", Identifier("a"), Identifier("b")), {"a": "10", "b": "9"}, True)
@example(Comparison("=", Identifier("a"), Identifier("b")), {"a": "5.0", "b": 5}, True)
def test_a_selector_matches_what_is_true_of_a_message_and_its_negation_what_is_false(tree, message: dict, coerce: bool) -> None:
    expected = truth(tree, message, coerce)
    assert compile_selector(written(tree)).matches(message.get, coerce=coerce) is (expected is True)
    assert compile_selector(written(Not(tree))).matches(message.get, coerce=coerce) is (expected is False)


@settings(max_examples=300, deadline=None)
@given(TREES, MESSAGES, st.booleans())
@example(Or((Identifier("a"), Identifier("a"))), {}, False)
@example(Or((And((Identifier("a"), Identifier("b"))), And((Identifier("b"), Identifier("a"))))), {}, False)
def test_the_canonical_form_is_a_selector_that_says_the_same(tree, message: dict, coerce: bool) -> None:
    selector = compile_selector(written(tree))
    again = compile_selector(selector.canonical)
    assert again == selector
    assert (again.canonical, again.identifiers, again.equality) == (selector.canonical, selector.identifiers, selector.equality)
    assert again.matches(message.get, coerce=coerce) is selector.matches(message.get, coerce=coerce)


@settings(max_examples=200, deadline=None)
@given(TREES, MESSAGES, st.booleans())
def test_only_the_identifiers_named_are_asked_for(tree, message: dict, coerce: bool) -> None:
    selector = compile_selector(written(tree))
    asked: set[str] = set()
    selector.matches(lambda name: asked.add(name) or message.get(name), coerce=coerce)
    assert asked <= selector.identifiers <= set("abcd")


@settings(max_examples=300, deadline=None)
@given(IDENTIFIERS, st.one_of(NUMBERS, STRINGS, st.booleans()), st.lists(LEAVES, max_size=2), MESSAGES, VALUES, st.booleans())
def test_an_index_by_equality_misses_no_message(identifier, constant, others, message: dict, value, coerce: bool) -> None:
    selector = compile_selector(" AND ".join(map(inner, [*others, Comparison("=", identifier, Literal(constant))])))
    message[identifier.name] = value
    if selector.equality is not None:
        name, indexed = selector.equality
        found = {indexed: selector}
        looked_up = [found.get(each) for each in constants_of(message.get(name), coerce=coerce)]
        assert selector in looked_up or not selector.matches(message.get, coerce=coerce)


@settings(max_examples=300, deadline=None)
@given(st.lists(LEAVES, min_size=2, max_size=5), st.sampled_from([And, Or]), st.randoms(use_true_random=False))
def test_selectors_that_differ_in_order_only_are_equal(leaves, joined, random) -> None:
    shuffled = random.sample(leaves, len(leaves))
    one, other = (compile_selector(written(joined(tuple(each)))) for each in (leaves, shuffled))
    assert one == other
    assert len({one, other}) == 1
    assert (one.identifiers, one.equality) == (other.identifiers, other.equality)
