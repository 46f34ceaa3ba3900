"""Reads a selector's tokens into its tree (JMS 3.8.1.1), by recursive descent, one method a level of precedence.

Recursion follows parentheses only, through all eight levels: DEPTH_MAX * 8 = 512 of the 1,000 frames Python allows. Rows of NOT, of signs and
of operands of one level are read by loops. What a level returns is an operand (it has a value) or a condition (it is true, false or unknown);
an identifier is either, a string or a number is no condition, and a condition is never compared, as in SQL-92.
"""

from __future__ import annotations

from .arithmetic import EQUALITIES, RELATIONS, Number, long, negative
from .error import SelectorError, extract
from .lexer import Kind, Token, tokens
from .like import segments
from .number import LONG_MAX
from .syntax import And, Arithmetic, Between, Comparison, Condition, Identifier, In, IsNull, Like, Literal, Node, Not, Operand, Or, Signed

TEXT_OCTETS_MAX = 8 << 10
"""UTF-8. A STOMP header line is of this order, and ActiveMQ's users rarely pass 1 KiB."""
DEPTH_MAX = 64
"""Parentheses within parentheses."""
NODES_MAX = 1000
"""Identifiers, literals (those of IN lists apart, which cost nothing) and operations: about 250 comparisons, 0.05 ms a message
(0.5 ms if all of it is arithmetic over headers that are strings)."""


def parse(text: str) -> Condition:
    """The tree of `text`. Raises SelectorError if it is no selector or beyond the bounds above."""
    if len(text) > TEXT_OCTETS_MAX or len(text.encode("utf-8", "surrogatepass")) > TEXT_OCTETS_MAX:
        raise SelectorError(1, f"expected a selector of at most {TEXT_OCTETS_MAX} octets")
    return _Parser(text).selector()


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = tokens(text)
        self._next = 0
        self._depth = 0
        self._nodes = 0

    # -- tokens ---------------------------------------------------------------------------------------------------------------------
    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._token
        self._next += 1
        return token

    def _at(self, kind: Kind, *texts: str) -> bool:
        token = self._token
        return token.kind is kind and (not texts or token.text in texts)

    def _accept(self, kind: Kind, *texts: str) -> bool:
        if self._at(kind, *texts):
            self._next += 1
            return True
        return False

    def _demand(self, kind: Kind, text: str = "", why: str = "") -> Token:
        if not self._at(kind, *([text] if text else [])):
            raise self._unexpected((text or kind.value) + why)
        return self._take()

    def _unexpected(self, expected: str) -> SelectorError:
        token = self._token
        found = token.kind.value if token.kind is Kind.END else f"{token.kind.value} {extract(token.text)}"
        return SelectorError(token.column, f"expected {expected}, found {found}")

    def _count(self, column: int) -> None:
        self._nodes += 1
        if self._nodes > NODES_MAX:
            raise SelectorError(column, f"expected a selector of at most {NODES_MAX} identifiers, literals and operations")

    # -- conditions -----------------------------------------------------------------------------------------------------------------
    def selector(self) -> Condition:
        condition = _condition(self._or(), self._tokens[0])
        if not self._at(Kind.END):
            raise self._unexpected("AND, OR or the end of the selector")
        return condition

    def _or(self) -> Node:
        start = self._token
        first = self._and()
        if not self._at(Kind.KEYWORD, "OR"):
            return first
        operands = [_condition(first, start)]
        while self._at(Kind.KEYWORD, "OR"):
            self._count(self._take().column)
            start = self._token
            operands.append(_condition(self._and(), start))
        return Or(tuple(operands))

    def _and(self) -> Node:
        start = self._token
        first = self._not()
        if not self._at(Kind.KEYWORD, "AND"):
            return first
        operands = [_condition(first, start)]
        while self._at(Kind.KEYWORD, "AND"):
            self._count(self._take().column)
            start = self._token
            operands.append(_condition(self._not(), start))
        return And(tuple(operands))

    def _not(self) -> Node:
        nots = 0
        while self._accept(Kind.KEYWORD, "NOT"):
            nots += 1
        start = self._token
        node = self._predicate()
        if not nots:
            return node
        self._count(start.column)
        condition = _condition(node, start)
        return Not(condition) if nots % 2 else condition

    def _predicate(self) -> Node:
        start = self._token
        left = self._sum()
        if self._at(Kind.SIGN, *RELATIONS):
            return self._comparison(left, start)
        negated = self._accept(Kind.KEYWORD, "NOT")
        if self._at(Kind.KEYWORD, "BETWEEN"):
            return self._between(left, start, negated)
        if self._at(Kind.KEYWORD, "IN", "LIKE"):
            self._count(self._token.column)
            return self._in(left, start, negated) if self._take().text == "IN" else self._like(left, start, negated)
        if negated:
            raise self._unexpected("BETWEEN, IN or LIKE behind NOT")
        if self._accept(Kind.KEYWORD, "IS"):
            self._count(start.column)
            negated = self._accept(Kind.KEYWORD, "NOT")
            self._demand(Kind.KEYWORD, "NULL", " behind IS" if not negated else "")
            return IsNull(_identifier(left, start, "IS"), negated)
        return left

    def _comparison(self, left: Node, start: Token) -> Comparison:
        sign = self._take()
        self._count(sign.column)
        following = self._token
        operands = _operand(left, start), _operand(self._sum(), following)
        if self._at(Kind.SIGN, *RELATIONS):
            raise self._unexpected("AND, OR or the end of the comparison, as comparisons do not follow one another")
        for operand, token in zip(operands, (start, following), strict=True):
            if sign.text not in EQUALITIES and isinstance(operand, Literal) and isinstance(operand.value, str | bool):
                raise SelectorError(token.column, f"expected a number beside {sign.text}: strings and booleans compare by = and <> only")
        return Comparison(sign.text, *operands)

    def _between(self, left: Node, start: Token, negated: bool) -> Between:
        self._count(self._take().column)
        operand, token = _number(left, start), self._token
        low = _number(self._sum(), token)
        self._demand(Kind.KEYWORD, "AND", " between the bounds of BETWEEN")
        token = self._token
        return Between(operand, low, _number(self._sum(), token), negated)

    def _in(self, left: Node, start: Token, negated: bool) -> In:
        identifier = _identifier(left, start, "IN")
        self._demand(Kind.SIGN, "(", " behind IN")
        values = [self._demand(Kind.STRING, why=" in the list of IN").text]
        while self._accept(Kind.SIGN, ","):
            values.append(self._demand(Kind.STRING, why=" in the list of IN").text)
        self._demand(Kind.SIGN, ")", " or , in the list of IN")
        return In(identifier, tuple(values), negated)

    def _like(self, left: Node, start: Token, negated: bool) -> Like:
        identifier = _identifier(left, start, "LIKE")
        pattern = self._demand(Kind.STRING, why=" as the pattern of LIKE")
        escape: str | None = None
        if self._accept(Kind.KEYWORD, "ESCAPE"):
            token = self._demand(Kind.STRING, why=" of one character behind ESCAPE")
            escape = token.text
            if len(escape) != 1:
                raise SelectorError(token.column, f"expected a string of one character behind ESCAPE, found {extract(escape)}")
        return Like(identifier, segments(pattern.text, escape, pattern.column), negated)

    # -- operands -------------------------------------------------------------------------------------------------------------------
    def _sum(self) -> Node:
        start = self._token
        first = self._product()
        if not self._at(Kind.SIGN, "+", "-"):
            return first
        operand, rest = _number(first, start), list[tuple[str, Operand]]()
        while self._at(Kind.SIGN, "+", "-"):
            sign, start = self._take(), self._token
            self._count(sign.column)
            rest.append((sign.text, _number(self._product(), start)))
        return Arithmetic(operand, tuple(rest))

    def _product(self) -> Node:
        start = self._token
        first = self._signed()
        if not self._at(Kind.SIGN, "*", "/"):
            return first
        operand, rest = _number(first, start), list[tuple[str, Operand]]()
        while self._at(Kind.SIGN, "*", "/"):
            sign, start = self._take(), self._token
            self._count(sign.column)
            rest.append((sign.text, _number(self._signed(), start)))
        return Arithmetic(operand, tuple(rest))

    def _signed(self) -> Node:
        first = self._next
        while self._accept(Kind.SIGN, "+", "-"):
            pass
        signs = [token.text for token in self._tokens[first : self._next]]
        if self._at(Kind.NUMBER):
            return Literal(self._literal(signs))
        start = self._token
        node = self._primary()
        if not signs:
            return node
        self._count(start.column)
        return Signed("-" if signs.count("-") % 2 else "+", _number(node, start))

    def _literal(self, signs: list[str]) -> Number:
        token = self._take()
        self._count(token.column)
        if token.value == LONG_MAX + 1 and isinstance(token.value, int) and signs[-1:] != ["-"]:
            raise SelectorError(token.column, f"expected a number in the range of Java's long, found {extract(token.text)}")
        value: Number = token.value
        for sign in reversed(signs):
            value = negative(value) if sign == "-" else value
        return long(value) if isinstance(value, int) else value

    def _primary(self) -> Node:
        token = self._token
        if self._accept(Kind.SIGN, "("):
            self._depth += 1
            if self._depth > DEPTH_MAX:
                raise SelectorError(token.column, f"expected at most {DEPTH_MAX} parentheses within one another")
            node = self._or()
            self._demand(Kind.SIGN, ")", ", AND or OR" if not isinstance(node, Operand) else " or an operator")
            self._depth -= 1
            return node
        self._count(token.column)
        if self._accept(Kind.IDENTIFIER):
            return Identifier(token.text)
        if self._accept(Kind.STRING):
            return Literal(token.text)
        if self._accept(Kind.KEYWORD, "TRUE", "FALSE"):
            return Literal(token.text == "TRUE")
        if self._at(Kind.KEYWORD, "NULL"):
            raise self._unexpected("an identifier or a literal (NULL is asked for by IS NULL)")
        raise self._unexpected("an identifier, a literal or (")


# -- what may stand where -----------------------------------------------------------------------------------------------------------
def _condition(node: Node, start: Token) -> Condition:
    if isinstance(node, Signed | Arithmetic) or (isinstance(node, Literal) and not isinstance(node.value, bool)):
        raise SelectorError(start.column, "expected a condition, which a string or a number alone is not")
    return node


def _operand(node: Node, start: Token) -> Operand:
    if not isinstance(node, Operand):
        raise SelectorError(start.column, "expected an identifier, a literal or arithmetic in a comparison, found a condition")
    return node


def _number(node: Node, start: Token) -> Operand:
    if not isinstance(node, Operand) or (isinstance(node, Literal) and isinstance(node.value, str | bool)):
        raise SelectorError(start.column, "expected a number or an identifier")
    return node


def _identifier(node: Node, start: Token, keyword: str) -> Identifier:
    if not isinstance(node, Identifier):
        raise SelectorError(start.column, f"expected an identifier before {keyword}")
    return node
