"""A selector: compiled once when a consumer presents it, asked for every message."""

from __future__ import annotations

from dataclasses import dataclass, field

from .arithmetic import Number, Value
from .canonical import TRUE, equality, identifiers, simplify, write
from .compiler import Properties, Test, as_boolean, as_number, compile_condition
from .parser import parse
from .syntax import Condition


@dataclass(frozen=True, slots=True)
class Selector:
    """Selectors are equal, and hash alike, if their canonical forms are the same."""

    text: str = field(compare=False)
    """As presented."""
    canonical: str
    """What the text says, written in one way: selectors that differ in spelling, parentheses, and the order of AND, OR and = only, share it."""
    identifiers: frozenset[str] = field(compare=False)
    """The names that decide; no other is ever asked for."""
    equality: tuple[str, str | Number | bool] | None = field(compare=False)
    """(identifier, constant): the selector is true only of messages whose property has this value among `constants_of` its own. For an index
    over many selectors; what is found by it is still to be asked by `matches`. None if no such comparison is at hand."""
    condition: Condition = field(compare=False, repr=False)
    """The simplified tree, for who evaluates it elsewhere."""
    _tests: list[Test | None] = field(compare=False, repr=False)
    """Where strings are strings, and where they are read. Each is made for the first message that needs it."""

    def matches(self, properties: Properties, *, coerce: bool = False) -> bool:
        """True if the condition is true; not if it is false or unknown. `properties` gives a value by name, None if there is none.

        With `coerce` a property that is a string is read as a number or a boolean where one is compared with it, or where only a number may stand
        (arithmetic, order, BETWEEN), if it is one; otherwise it stays a string, and the comparison of unlike types is false. Two strings are
        compared as strings by = and <>. For messages of STOMP, whose headers have no other type; without it types are those that the producer set.
        """
        test = self._tests[coerce]
        if test is None:
            test = self._tests[coerce] = compile_condition(self.condition, coerce=coerce)
        return bool(test(properties))


def compile_selector(text: str) -> Selector:
    """The selector that `text` is; the empty text matches every message (JMS 3.8.1.1). Raises SelectorError."""
    condition = simplify(parse(text)) if text else TRUE
    return Selector(text, write(condition), identifiers(condition), equality(condition), condition, [None, None])


def constants_of(value: Value, *, coerce: bool = False) -> tuple[Value, ...]:
    """The constants to look up in an index by `Selector.equality`, for a message whose property has this value: all that = finds in it.

    Python's dict takes TRUE for 1: what is looked up may hold a selector too many, never one too few.
    """
    if not coerce or not isinstance(value, str):
        return () if value is None else (value,)
    return (value, *(read for read in (as_number(value), as_boolean(value)) if not isinstance(read, str)))
