"""Makes closures of a simplified tree. Nothing is interpreted afterwards, and no text is ever handed to Python to run.

Three values without three-valued operators: a tree is asked either "are you true?" or "are you false?", and NOT turns the question. By SQL-92's
tables AND is true if all operands are, and false if any is; OR the other way round. So only comparisons know of "unknown", AND and OR stop at
the first operand that decides, and every operand is asked at most once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

from . import number
from .arithmetic import EQUALITIES, EXACT_IN_DOUBLE, RELATIONS, Number, Truth, Value, comparison, long, negative, operation
from .like import matcher
from .syntax import And, Arithmetic, Comparison, Condition, Identifier, In, IsNull, Like, Literal, Not, Operand, Or, Signed

Properties: TypeAlias = Callable[[str], Value]
"""Gives a property or header field by its name; None if the message has none."""
Test: TypeAlias = Callable[[Properties], Truth]
"""Of a question: not None and not False means yes. Of a comparison: its value."""
_Reader: TypeAlias = Callable[[Properties], Value]
_Reading: TypeAlias = Callable[[Value], Value]


def compile_condition(condition: Condition, *, coerce: bool) -> Test:
    """Asks whether `condition` (simplified) is true."""
    return _Compiler(coerce).when_true(condition)


def as_number(value: Value) -> Value:
    """A string that is a number, as one; anything else as it is."""
    if isinstance(value, str) and len(value) <= number.PLAIN_CHARACTERS_MAX and (parsed := _plain(value)) is not None:
        return parsed
    return value


_plain = lru_cache(maxsize=1024)(number.plain)
"""A thousand selectors ask the same of a message: read what its property says once."""


def as_boolean(value: Value) -> Value:
    """A string that is a boolean, as one; anything else as it is."""
    if isinstance(value, str) and (parsed := number.boolean(value)) is not None:
        return parsed
    return value


class _Compiler:
    def __init__(self, coerce: bool) -> None:
        self._coerce = coerce

    # -- questions ------------------------------------------------------------------------------------------------------------------
    def when_true(self, condition: Condition) -> Test:
        match condition:
            case And(operands):
                return _all([self.when_true(operand) for operand in operands])
            case Or(operands):
                return _any([self.when_true(operand) for operand in operands])
            case Not(operand):
                return self.when_false(operand)
        return self._value_of(condition)

    def when_false(self, condition: Condition) -> Test:
        match condition:
            case And(operands):
                return _any([self.when_false(operand) for operand in operands])
            case Or(operands):
                return _all([self.when_false(operand) for operand in operands])
            case Not(operand):
                return self.when_true(operand)
        value_of = self._value_of(condition)
        return lambda properties: value_of(properties) is False

    # -- what is true, false or unknown ---------------------------------------------------------------------------------------------
    def _value_of(self, condition: Condition) -> Test:
        match condition:
            case Comparison(sign, Identifier(name), Literal(value)) if value is not None:
                return self._with_constant(sign, name, value)
            case Comparison(sign, left, right):
                return self._with_another(sign, left, right)
            case In(Identifier(name), values):
                return _in(name, frozenset(values))
            case Like(Identifier(name), segments):
                return _like(name, matcher(segments))
            case IsNull(Identifier(name)):
                return lambda properties: properties(name) is None
            case Literal(bool() | None as known):
                return lambda _: known
        raise TypeError(f"{condition} is not simple")

    def _with_constant(self, sign: str, name: str, constant: str | Number | bool) -> Test:
        if isinstance(constant, str):
            return _with_string(sign, name, constant)
        if isinstance(constant, bool) or not abs(constant) < EXACT_IN_DOUBLE:
            read = self._read(name, as_boolean if isinstance(constant, bool) else as_number)
            return _compared(comparison(sign), read, lambda _: constant)
        return _with_number(RELATIONS[sign], name, constant, coerce=self._coerce)

    def _with_another(self, sign: str, left: Operand, right: Operand) -> Test:
        """Where a number must stand, or stands on the other side, strings are read as numbers; of two identifiers each as the other is."""
        numbers = sign not in EQUALITIES or not (isinstance(left, Identifier) and isinstance(right, Identifier))
        if self._coerce and not numbers:
            return _compared(_alike(comparison(sign)), self._operand(left, None), self._operand(right, None))
        reading = as_number if numbers else None
        return _compared(comparison(sign), self._operand(left, reading), self._operand(right, reading))

    # -- operands -------------------------------------------------------------------------------------------------------------------
    def _operand(self, operand: Operand, reading: _Reading | None) -> _Reader:
        """A function that gives the operand's value; an identifier's as it comes, read by `reading` if strings are to be coerced."""
        match operand:
            case Identifier(name):
                return self._read(name, reading)
            case Literal(value):
                return lambda _: value
        return self._number(operand)

    def _read(self, name: str, reading: _Reading | None) -> _Reader:
        if self._coerce and reading is not None:
            return lambda properties: reading(properties(name))
        return lambda properties: properties(name)

    def _number(self, operand: Operand) -> Callable[[Properties], Number | None]:
        """A function that gives the operand's value in arithmetic: a number or NULL."""
        match operand:
            case Signed("-", inner):
                return _negative(self._number(inner))
            case Signed(_, inner):
                return self._number(inner)
            case Arithmetic(first, rest):
                return _calculated(self._number(first), [(operation(sign), self._number(each)) for sign, each in rest])
        return _numeric(self._operand(operand, as_number))


# -- closures over questions --------------------------------------------------------------------------------------------------------
def _all(tests: list[Test]) -> Test:
    if len(tests) == 2:
        first, second = tests
        return lambda properties: first(properties) and second(properties)

    def every(properties: Properties) -> bool:
        for test in tests:  # noqa: SIM110 - a generator costs more than most tests
            if not test(properties):
                return False
        return True

    return every


def _any(tests: list[Test]) -> Test:
    if len(tests) == 2:
        first, second = tests
        return lambda properties: first(properties) or second(properties)

    def some(properties: Properties) -> bool:
        for test in tests:  # noqa: SIM110 - as above
            if test(properties):
                return True
        return False

    return some


# -- closures over values -----------------------------------------------------------------------------------------------------------
def _with_string(sign: str, name: str, constant: str) -> Test:
    def equal(properties: Properties) -> Truth:
        value = properties(name)
        return None if value is None else value == constant

    def unequal(properties: Properties) -> Truth:
        value = properties(name)
        return None if value is None else value.__class__ is str and value != constant

    return equal if sign == "=" else unequal


def _with_number(relation: Callable[[Value, Value], bool], name: str, constant: Number, *, coerce: bool) -> Test:
    """Only for constants below EXACT_IN_DOUBLE, where Python compares as Java does. The test that is asked most: the reading is not a call of its own."""

    def compare(properties: Properties) -> Truth:
        value = properties(name)
        if coerce and value.__class__ is str:
            value = as_number(value)
        if value.__class__ is int or value.__class__ is float:
            return relation(value, constant)
        return None if value is None else False

    return compare


def _compared(compare: Callable[[Value, Value], Truth], left: _Reader, right: _Reader) -> Test:
    return lambda properties: compare(left(properties), right(properties))


def _alike(compare: Callable[[Value, Value], Truth]) -> Callable[[Value, Value], Truth]:
    def read_and_compare(left: Value, right: Value) -> Truth:
        if isinstance(left, str) and not isinstance(right, str):
            left = as_boolean(left) if isinstance(right, bool) else as_number(left)
        elif isinstance(right, str) and not isinstance(left, str):
            right = as_boolean(right) if isinstance(left, bool) else as_number(right)
        return compare(left, right)

    return read_and_compare


def _in(name: str, values: frozenset[str]) -> Test:
    def contained(properties: Properties) -> Truth:
        value = properties(name)
        return None if value is None else value in values  # numbers and booleans hash to no string's equal

    return contained


def _like(name: str, matches: Callable[[str], bool]) -> Test:
    def like(properties: Properties) -> Truth:
        value = properties(name)
        if isinstance(value, str):
            return matches(value)
        return None if value is None else False

    return like


def _numeric(read: _Reader) -> Callable[[Properties], Number | None]:
    def numeric(properties: Properties) -> Number | None:
        value = read(properties)
        if isinstance(value, float):
            return value
        return long(value) if isinstance(value, int) and not isinstance(value, bool) else None

    return numeric


def _negative(inner: Callable[[Properties], Number | None]) -> Callable[[Properties], Number | None]:
    def negated(properties: Properties) -> Number | None:
        value = inner(properties)
        return None if value is None else negative(value)

    return negated


_Step: TypeAlias = tuple[Callable[[Number, Number], Number | None], Callable[[Properties], Number | None]]


def _calculated(first: Callable[[Properties], Number | None], steps: list[_Step]) -> Callable[[Properties], Number | None]:
    def calculate(properties: Properties) -> Number | None:
        value = first(properties)
        for operate, operand in steps:
            following = operand(properties)
            if value is None or following is None:
                return None
            value = operate(value, following)
        return value

    return calculate
