"""Simplifies a tree, and writes it in the one way in which all selectors that say the same after that are written.

What is known when the selector is presented is decided here: arithmetic and comparisons of literals, TRUE and FALSE under AND and OR. Many
conditions become others that mean the same for every value, unlike types and NULL included: fewer kinds to evaluate, more selectors shared.
"""

from __future__ import annotations

from .arithmetic import EXACT_IN_DOUBLE, MIRRORED, Number, comparison, negative, operation
from .like import plain
from .syntax import And, Arithmetic, Between, Comparison, Condition, Identifier, In, IsNull, Like, Literal, Node, Not, Operand, Or, Segment, Signed

TRUE, FALSE, UNKNOWN = Literal(True), Literal(False), Literal(None)


# -- simplify -----------------------------------------------------------------------------------------------------------------------
def simplify(node: Condition) -> Condition:
    """The same condition by fewer means: of Comparison (a literal on the right), In, Like, IsNull (none negated), Not, And, Or, Literal."""
    match node:
        case And(operands):
            return _join(And, [simplify(operand) for operand in operands], neutral=TRUE, decisive=FALSE)
        case Or(operands):
            return _join(Or, [simplify(operand) for operand in operands], neutral=FALSE, decisive=TRUE)
        case Not(operand):
            return _negate(simplify(operand), negated=True)
        case Identifier():
            return Comparison("=", node, TRUE)
        case Comparison(sign, left, right):
            return _compare(sign, _value(left), _value(right))
        case Between(operand, low, high, negated):
            value, signs = _value(operand), ("<", ">") if negated else (">=", "<=")
            sides = [_compare(signs[0], value, _value(low)), _compare(signs[1], value, _value(high))]
            return _join(Or, sides, neutral=FALSE, decisive=TRUE) if negated else _join(And, sides, neutral=TRUE, decisive=FALSE)
        case In(identifier, values, negated):
            names = tuple(sorted(set(values)))
            return _negate(In(identifier, names, False) if len(names) > 1 else Comparison("=", identifier, Literal(names[0])), negated=negated)
        case Like(identifier, segments, negated):
            text = plain(segments[0]) if len(segments) == 1 else None
            return _negate(Like(identifier, segments, False) if text is None else Comparison("=", identifier, Literal(text)), negated=negated)
        case IsNull(identifier, negated):
            return _negate(IsNull(identifier, False), negated=negated)
    return node


def _negate(condition: Condition, *, negated: bool) -> Condition:
    if not negated:
        return condition
    match condition:
        case Literal(value):
            return UNKNOWN if value is None else FALSE if value else TRUE
        case Not(operand):
            return operand
    return Not(condition)


def _join(kind: type[And | Or], conditions: list[Condition], neutral: Literal, decisive: Literal) -> Condition:
    found: dict[str, Condition] = {}
    for condition in conditions:
        if isinstance(condition, And | Or) and type(condition) is kind:
            found.update(zip(condition.texts, condition.operands, strict=True))
        elif condition != neutral:
            found[write(condition)] = condition
    operands = list(found.values())
    if decisive in operands:
        return decisive
    if not operands:
        return neutral
    return operands[0] if len(operands) == 1 else kind(tuple(operands), tuple(found))


def _compare(sign: str, left: Operand, right: Operand) -> Condition:
    if isinstance(left, Literal) and isinstance(right, Literal):
        return Literal(comparison(sign)(left.value, right.value))
    if UNKNOWN in (left, right):
        return UNKNOWN
    return Comparison(MIRRORED[sign], right, left) if isinstance(left, Literal) else Comparison(sign, left, right)


def _value(node: Operand) -> Operand:
    match node:
        case Signed(sign, operand):
            return _sign(sign, _value(operand))
        case Arithmetic(first, rest):
            operands = [(sign, _value(operand)) for sign, operand in rest]
            return _calculate(_value(first), operands)
    return node


def _sign(sign: str, operand: Operand) -> Operand:
    match operand:
        case Literal(int() | float() as value):
            return Literal(negative(value) if sign == "-" else value)
        case Literal():
            return operand
        case Arithmetic() if sign == "+":
            return operand
    return Signed(sign, operand)


def _calculate(first: Operand, rest: list[tuple[str, Operand]]) -> Operand:
    operands = [first, *(operand for _, operand in rest)]
    if UNKNOWN in operands:
        return UNKNOWN
    if not all(isinstance(operand, Literal) for operand in operands):
        return Arithmetic(first, tuple(rest))
    value: Number | None = _number(first)
    for sign, operand in rest:
        value = None if value is None else operation(sign)(value, _number(operand))
    return Literal(value)


def _number(operand: Operand) -> Number:
    if not isinstance(operand, Literal) or not isinstance(operand.value, int | float):
        raise TypeError(f"{operand} is no number")  # the parser lets none pass
    return operand.value


# -- write --------------------------------------------------------------------------------------------------------------------------
def write(node: Node) -> str:
    """The text of a simplified tree; a selector itself, and the same for all trees that differ in the order of AND, OR, = and <> only."""
    match node:
        case And(_, texts):
            return f"({' AND '.join(sorted(texts))})"
        case Or(_, texts):
            return f"({' OR '.join(sorted(texts))})"
        case Not(operand):
            return f"NOT {write(operand)}"
        case Comparison(sign, left, right):
            return _write_comparison(sign, write(left), write(right), fixed=isinstance(right, Literal))
        case In(identifier, values):
            return f"{identifier.name} IN ({', '.join(map(_quote, values))})"
        case Like(identifier, segments):
            return f"{identifier.name} LIKE {_write_pattern(segments)}"
        case IsNull(identifier):
            return f"{identifier.name} IS NULL"
        case Identifier(name):
            return name
        case Signed(sign, operand):
            return f"({sign} {write(operand)})"
        case Arithmetic(first, rest):
            return f"({write(first)}{''.join(f' {sign} {write(operand)}' for sign, operand in rest)})"
        case Literal(value):
            return _write_literal(value)
    raise TypeError(f"{node} is not simple")


def _write_comparison(sign: str, left: str, right: str, *, fixed: bool) -> str:
    return f"{left} {sign} {right}" if fixed or left <= right else f"{right} {MIRRORED[sign]} {left}"


def _write_literal(value: str | Number | bool | None) -> str:
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if value is None:
        return "(1 / 0) = 0"
    return {"inf": "(1.0 / 0.0)", "-inf": "(-1.0 / 0.0)", "nan": "(0.0 / 0.0)"}.get(repr(value), repr(value))


def _write_pattern(segments: tuple[Segment, ...]) -> str:
    characters = {character for segment in segments for character in segment}
    escapes = "\\%_" if not characters.isdisjoint("%_") else ""
    text = "%".join("".join("_" if each is None else f"\\{each}" if each in escapes else each for each in segment) for segment in segments)
    return _quote(text) + (" ESCAPE '\\'" if escapes else "")


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


# -- read off -----------------------------------------------------------------------------------------------------------------------
def equality(condition: Condition) -> tuple[str, str | Number | bool] | None:
    """(identifier, constant) of a comparison by = without which the condition is never true; strings first, as they tell most apart."""
    found: list[tuple[tuple[int, str, str], tuple[str, str | Number | bool]]] = []
    for each in condition.operands if isinstance(condition, And) else (condition,):
        match each:
            case Comparison("=", Identifier(name), Literal(str() | int() | float() as value)) if _is_hashed_alike(value):
                rank = 0 if isinstance(value, str) else 2 if isinstance(value, bool) else 1
                found.append(((rank, name, _write_literal(value)), (name, value)))
    return min(found)[1] if found else None


def _is_hashed_alike(value: str | Number | bool) -> bool:
    """Beyond 2**53 a long equals a double by promotion that Python tells from it; NaN equals nothing."""
    return isinstance(value, str) or abs(value) < EXACT_IN_DOUBLE


def identifiers(node: Node) -> frozenset[str]:
    """All names that the tree reads."""
    match node:
        case Identifier(name):
            return frozenset((name,))
        case Signed(_, operand) | Not(operand):
            return identifiers(operand)
        case And(operands) | Or(operands):
            return frozenset().union(*map(identifiers, operands))
        case Arithmetic(first, rest):
            return identifiers(first).union(*(identifiers(operand) for _, operand in rest))
        case Comparison(_, left, right):
            return identifiers(left) | identifiers(right)
        case In(identifier) | Like(identifier) | IsNull(identifier):
            return frozenset((identifier.name,))
    return frozenset()
