"""What a scan for selective consumers (R8) need not read: a SQL condition that is true of every row that a filter may let through.

The engine asks the filter again, so the condition may let too much pass, never too little. It looks into header sections as STOMP senders write
them, `name:value` lines; rows of other encodings, and what is compared in ways that are not told here, pass. Where a line's characters would be
escaped it is not looked into either. Two million rows take a second or three of PostgreSQL's time so, and none of the node's.

A selector is asked two questions, as in the engine's compiler: may it be true, may it be false? None for an answer is "it may".
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from broker_core.engine.dead import ORIGIN, REASON
from broker_core.engine.message import STORED, Encoding
from broker_core.engine.message_filter import MessageFilter, escaped_as_stomp
from broker_core.engine.message_group import GROUP_ID
from broker_core.engine.selector import Selector
from broker_core.engine.selector.syntax import And, Comparison, Condition, Identifier, In, IsNull, Like, Literal, Not, Or
from broker_core.engine.subscription import Filter

TESTS_MAX = 12
"""Of one condition: each costs some 0.1 to 0.6 us a row. What is beyond lets everything pass."""
FIELDS = {"JMSCorrelationID": "correlation-id", "JMSType": "type"}
"""Fields that STOMP senders write as headers."""
NUMBERS = {"JMSPriority": "priority::float8", "JMSTimestamp": "accepted_at::float8"}
MODE = f"CASE WHEN reliability >= {int(STORED)} THEN 'PERSISTENT' ELSE 'NON_PERSISTENT' END"
LINES = "('\\x0a'::bytea || headers || '\\x0a'::bytea)"
_SPECIAL = frozenset("\\:\r\n\0")
_EXACT = 1 << 53

Constant = str | bytes | int | float


@dataclass
class Sieve:
    """`condition` is over a message table's columns and those that `columns` adds, with `constants` for its parameters."""

    condition: str = "true"
    columns: str = ""
    constants: dict[str, Constant] = field(default_factory=dict)


def sieve(wanted: Filter) -> Sieve:
    made = _Maker()
    conditions = []
    if wanted.selector is not None:
        conditions.append(made.of_selector(wanted.selector))
    if wanted.sender:
        conditions.append(f"client_id IS DISTINCT FROM {made.constant(wanted.sender, 'text')}")
    columns = "".join(f", {value} AS {column}" for value, column in made.values.items())
    return Sieve(" AND ".join(conditions) or "true", columns, made.constants)


def sift(wanted: MessageFilter, now: int) -> Sieve:
    """The same of what operators look for. `now`: instant in ms, from which ages count."""
    made = _Maker()
    conditions = [made.of_selector(wanted.selector)] if wanted.selector is not None else []
    if wanted.age_min_ms is not None:
        conditions.append(f"accepted_at <= {made.constant(now - wanted.age_min_ms, 'int8')}")
    if wanted.age_max_ms is not None:
        conditions.append(f"accepted_at >= {made.constant(now - wanted.age_max_ms, 'int8')}")
    if wanted.accepted_from is not None:
        conditions.append(f"accepted_at >= {made.constant(wanted.accepted_from, 'int8')}")
    if wanted.accepted_to is not None:
        conditions.append(f"accepted_at < {made.constant(wanted.accepted_to, 'int8')}")
    for name, value in ((REASON, wanted.reason), (ORIGIN, wanted.origin)):
        if value:  # as dead.py writes it
            texts = [json.dumps(text, ensure_ascii=False) for text in (name, value)]
            conditions += [f"position({made.constant(text, 'text')} IN annotations) > 0" for text in texts]
    if wanted.message_id:
        conditions.append(made.is_named(wanted.message_id))
    if wanted.group:
        conditions.append(f"(encoding <> {int(Encoding.STOMP)} OR {made.has_line(GROUP_ID, wanted.group) or 'true'})")
    if wanted.text:
        conditions.append(made.says(wanted.text))
    if wanted.json_path is not None:
        conditions.append(made.has_names([step for step in wanted.json_path.steps if isinstance(step, str)], wanted.json_value))
    columns = "".join(f", {value} AS {column}" for value, column in made.values.items())
    return Sieve(" AND ".join(conditions) or "true", columns, made.constants)


class _Maker:
    def __init__(self) -> None:
        self.constants: dict[str, Constant] = {}
        self.values: dict[str, str] = {}
        """Expressions that are worked out once a row, and their names."""
        self._tests = 0

    def constant(self, value: Constant, kind: str) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return f"%({name})s::{kind}"

    # -- what operators look for ------------------------------------------------------------------------------------------------------
    def of_selector(self, selector: Selector) -> str:
        test = self.may_be_true(selector.condition)
        return f"(encoding <> {int(Encoding.STOMP)} OR {self._is_added(selector)} OR {test})" if test is not None else "true"

    def _is_added(self, selector: Selector) -> str:
        """The broker has added one of the properties that are asked for, whatever the sender said. It may be called with hyphens."""
        names = {written for name in selector.identifiers for written in (name, name.replace("_", "-"))}
        if len(names) > TESTS_MAX:
            return "annotations IS NOT NULL"
        written = [self.constant(f"{json.dumps(name, ensure_ascii=False)}:", "text") for name in sorted(names)]
        return " OR ".join([f"position({each} IN annotations) > 0" for each in written]) or "false"

    def is_named(self, message_id: str) -> str:
        return self._equals("JMSMessageID", message_id) or "true"

    def has_line(self, name: str, value: str) -> str | None:
        return self._equals(name, value)

    def says(self, text: str) -> str:
        """In octets, as they were sent; of what the broker added as a text."""
        octets = self.constant(text.encode(), "bytea")
        tests = [f"position({octets} IN headers) > 0", f"position({octets} IN body) > 0", f"position({self.constant(text, 'text')} IN annotations) > 0"]
        if (escaped := escaped_as_stomp(text)) != text:
            tests.append(f"position({self.constant(escaped.encode(), 'bytea')} IN headers) > 0")
        return f"({' OR '.join(tests)})"

    def has_names(self, names: list[str], value: object) -> str:
        """In a body of JSON, unless it is written with escapes. Bodies of AMQP are converted before they are looked into."""
        told = [text for text in (*names[-1:], value) if isinstance(text, str) and text and text.isprintable() and set(text).isdisjoint('"\\/')]
        tests = [f"position({self.constant(text.encode(), 'bytea')} IN body) > 0" for text in told]
        return f"(encoding <> {int(Encoding.STOMP)} OR {' AND '.join(tests) or 'true'} OR position('\\x5c75'::bytea IN body) > 0)"

    # -- questions --------------------------------------------------------------------------------------------------------------------
    def may_be_true(self, condition: Condition) -> str | None:
        match condition:
            case And(operands):
                return _all([self.may_be_true(operand) for operand in operands])
            case Or(operands):
                return _any([self.may_be_true(operand) for operand in operands])
            case Not(operand):
                return self.may_be_false(operand)
        self._tests += 1
        return self._test(condition) if self._tests <= TESTS_MAX else None

    def may_be_false(self, condition: Condition) -> str | None:
        match condition:
            case And(operands):
                return _any([self.may_be_false(operand) for operand in operands])
            case Or(operands):
                return _all([self.may_be_false(operand) for operand in operands])
            case Not(operand):
                return self.may_be_true(operand)
        self._tests += 1
        return self._test_of_opposite(condition) if self._tests <= TESTS_MAX else None

    def _test(self, condition: Condition) -> str | None:
        match condition:
            case Comparison("=", Identifier(name), Literal(str() as text)):
                return self._equals(name, text)
            case Comparison("<>", Identifier(name), Literal(str() as text)):
                return self._differs(name, text)
            case Comparison(sign, Identifier(name), Literal(int() | float() as number)) if not isinstance(number, bool):
                return self._compares(name, sign, number)
            case Comparison(_, Identifier(name), Literal(_)):
                return self._is_there(name)
            case In(Identifier(name), values) if len(values) <= TESTS_MAX:
                self._tests += len(values) - 1
                return _any([self._equals(name, text) for text in values])
            case In(Identifier(name)):
                return self._is_there(name)
            case Like(Identifier(name), segments):
                return self._is_like(name, ["".join(character or "" for character in s) if None not in s else "" for s in segments], segments)
            case IsNull(Identifier(name)):
                there = self._is_there(name)
                return f"NOT {there}" if there else None
            case Literal(value):
                return None if value else "false"
        return None

    def _test_of_opposite(self, condition: Condition) -> str | None:
        """Unknown is not false: the property must be there."""
        match condition:
            case Comparison("=", Identifier(name), Literal(str() as text)):
                return self._differs(name, text)
            case Comparison(_, Identifier(name), Literal(_)) | In(Identifier(name)) | Like(Identifier(name)):
                return self._is_there(name)
            case IsNull(Identifier(name)):
                return self._is_there(name)
            case Literal(value):
                return "false" if value is not False else None
        return None

    # -- tests ------------------------------------------------------------------------------------------------------------------------
    def _equals(self, name: str, text: str) -> str | None:
        if name == "JMSDeliveryMode":
            return f"{MODE} = {self.constant(text, 'text')}"
        if name == "JMSMessageID":  # derived from the sequence if its sender gave none
            last = text.rpartition("-")[2]
            given = f"message_id = {self.constant(text, 'text')}"
            return f"({given} OR sequence = {self.constant(int(last), 'int8')})" if last.isascii() and last.isdigit() and len(last) <= 18 else given
        line = _line(name, text)
        return f"position({self.constant(line, 'bytea')} IN {LINES}) > 0" if line else None

    def _differs(self, name: str, text: str) -> str | None:
        there, equal = self._is_there(name), self._equals(name, text)
        return f"({there} AND NOT {equal})" if there and equal else there

    def _is_there(self, name: str) -> str | None:
        start = _start(name)
        return f"position({self.constant(start, 'bytea')} IN {LINES}) > 0" if start else None

    def _value(self, name: str) -> str | None:
        """The value as its octets are; empty, too, if the property is not there."""
        start = _start(name)
        if start is None or not name.isascii():
            return None
        value = f"split_part(split_part(E'\\n' || encode(headers, 'escape'), {self.constant(start.decode(), 'text')}, 2), E'\\n', 1)"
        return self.values.setdefault(value, f"v{len(self.values)}")

    def _compares(self, name: str, sign: str, number: float) -> str | None:
        if not abs(number) < _EXACT:
            return None
        if name in NUMBERS:
            return f"{NUMBERS[name]} {sign} {self.constant(float(number), 'float8')}"
        value = self._value(name)
        if value is None:
            return None
        constant = self.constant(float(number), "float8")
        return f"CASE WHEN pg_input_is_valid({value}, 'float8') THEN {value}::float8 {sign} {constant} ELSE {value} <> '' END"

    def _is_like(self, name: str, texts: list[str], segments: tuple[object, ...]) -> str | None:
        """Only what stands in the pattern letter by letter is looked for; `_` may be more than one octet."""
        value = self._value(name) if all(text.isascii() and _SPECIAL.isdisjoint(text) for text in texts) else None
        if value is None:
            return self._is_there(name)
        escaped = [text.replace("%", "\\%").replace("_", "\\_") for text in texts]
        pattern = "%".join(escaped) if len(segments) > 1 else "%"
        return f"{value} LIKE {self.constant(pattern, 'text')}"


def _start(name: str) -> bytes | None:
    if name in NUMBERS or name in ("JMSDeliveryMode", "JMSMessageID") or not _SPECIAL.isdisjoint(name):
        return None
    return f"\n{FIELDS.get(name, name)}:".encode()


def _line(name: str, text: str) -> bytes | None:
    start = _start(name)
    return start + text.encode() + b"\n" if start and _SPECIAL.isdisjoint(text) else None


def _all(tests: list[str | None]) -> str | None:
    known = [test for test in tests if test is not None]
    return f"({' AND '.join(known)})" if known else None


def _any(tests: list[str | None]) -> str | None:
    known = [test for test in tests if test is not None]
    return f"({' OR '.join(known)})" if known and len(known) == len(tests) else None
