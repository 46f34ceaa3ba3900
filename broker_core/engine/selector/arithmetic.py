"""Values and what may be done with them: Java's long and double, SQL's NULL (JMS 3.8.1.1 and 3.8.1.2).

Exact numbers are Java's long throughout, also those that a producer set as byte, short or int; sums and products wrap around as a long does.
None is NULL. In arithmetic, what is no number counts as NULL; so does an exact division by zero, which Java answers by an exception.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, TypeAlias

from .number import LONG_MAX, LONG_MIN

Value: TypeAlias = str | int | float | bool | None
"""Exactly of these types; subclasses (an IntEnum) are not looked for."""
Number: TypeAlias = int | float
Truth: TypeAlias = bool | None
"""True, False, or None: unknown."""

EXACT_IN_DOUBLE = 1 << 53
"""Whole numbers below it are doubles too: with one of them Python's exact comparison says what Java's promotion to double says."""


def long(value: int) -> int:
    """`value` in the 64 bits of Java's long."""
    return value if LONG_MIN <= value <= LONG_MAX else ((value - LONG_MIN) & ((1 << 64) - 1)) + LONG_MIN


def double(value: Number) -> float:
    """`value` by Java's numeric promotion; what no double reaches is infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def negative(value: Number) -> Number:
    return long(-value) if value.__class__ is int else -value


def _divide_exact(left: int, right: int) -> int | None:
    if right == 0:
        return None
    quotient = abs(left) // abs(right)
    return long(quotient if (left < 0) == (right < 0) else -quotient)


def _divide_double(left: float, right: float) -> float:
    if right != 0.0:
        return left / right
    if left == 0.0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


_EXACT: dict[str, Callable[[int, int], int | None]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide_exact,
}
_DOUBLE: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide_double,
}


def operation(sign: str) -> Callable[[Number, Number], Number | None]:
    """The operation that + - * or / stands for, over two numbers."""
    exact, approximate = _EXACT[sign], _DOUBLE[sign]

    def operate(left: Number, right: Number) -> Number | None:
        if isinstance(left, int) and isinstance(right, int):
            value = exact(left, right)
            return None if value is None else long(value)
        return approximate(double(left), double(right))

    return operate


RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""a < b says the same as b > a."""
EQUALITIES = ("=", "<>")


def comparison(sign: str) -> Callable[[Value, Value], Truth]:
    """How values compare: with NULL unknown; unlike types false, whatever the sign; strings and booleans only by = and <>."""
    relation, equality = RELATIONS[sign], sign in EQUALITIES

    def compare(left: Value, right: Value) -> Truth:
        if left is None or right is None:
            return None
        if isinstance(left, bool | str) or isinstance(right, bool | str):
            return equality and left.__class__ is right.__class__ and relation(left, right)
        if left.__class__ is not right.__class__:
            return relation(double(left), double(right))
        return relation(left, right)

    return compare
