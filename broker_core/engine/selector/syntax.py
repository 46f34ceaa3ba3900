"""The tree of a selector, as written; alike trees are equal. Long chains of one level are one flat node: depth is that of parentheses only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from .arithmetic import Number


@dataclass(frozen=True, slots=True)
class Identifier:
    """A property or header field; as a condition it means `name = TRUE`."""

    name: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. None is written by nobody: it is what 1 / 0 comes to, and as a condition unknown."""

    value: str | Number | bool | None


@dataclass(frozen=True, slots=True)
class Signed:
    """A row of signs before an operand, reduced to one. Plus is not nothing: it demands a number."""

    sign: str
    operand: Operand


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Operands of one precedence, from left to right: + and -, or * and /."""

    first: Operand
    rest: tuple[tuple[str, Operand], ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    sign: str
    left: Operand
    right: Operand


@dataclass(frozen=True, slots=True)
class Between:
    """NOT BETWEEN is `< low OR > high` (3.8.1.1), which for unlike types is false, as BETWEEN is."""

    operand: Operand
    low: Operand
    high: Operand
    negated: bool


@dataclass(frozen=True, slots=True)
class In:
    """NOT IN is NOT (IN) (3.8.1.1)."""

    identifier: Identifier
    values: tuple[str, ...]
    negated: bool


Segment: TypeAlias = tuple[str | None, ...]
"""Characters that must stand in a row; None is any one character, `_`."""


@dataclass(frozen=True, slots=True)
class Like:
    """The pattern cut at its %; NOT LIKE is NOT (LIKE)."""

    identifier: Identifier
    segments: tuple[Segment, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class IsNull:
    identifier: Identifier
    negated: bool


@dataclass(frozen=True, slots=True)
class Not:
    operand: Condition


@dataclass(frozen=True, slots=True)
class And:
    operands: tuple[Condition, ...]
    texts: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """The operands in canonical form, of a simplified tree: kept, so that the work of writing does not grow with the depth."""


@dataclass(frozen=True, slots=True)
class Or:
    operands: tuple[Condition, ...]
    texts: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """As of And."""


Operand: TypeAlias = Identifier | Literal | Signed | Arithmetic
"""What has a value."""
Condition: TypeAlias = Comparison | Between | In | Like | IsNull | Not | And | Or | Identifier | Literal
"""What is true, false or unknown; of literals TRUE, FALSE and None."""
Node: TypeAlias = Operand | Condition
