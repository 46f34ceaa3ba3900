"""Bodies: JSON, bounded before it is read, of texts that the database can keep."""

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from .problems import Problem

OCTETS_MAX = 262_144
"""Four times the largest certificates of a link; nothing else that the API takes comes near."""


class JSONBody(BaseParser):
    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        """Raises Problem, ParseError."""
        body = stream.read(OCTETS_MAX + 1)
        if len(body) > OCTETS_MAX:
            raise Problem("too-large", f"The body may have {OCTETS_MAX} octets.")
        try:
            value = json.loads(body.decode(), parse_constant=_no_number)
        except (ValueError, RecursionError) as error:
            raise ParseError(f"The body is not JSON: {type(error).__name__}.") from error
        _check_texts(value)
        return value


def _no_number(text: str) -> NoReturn:
    raise ValueError(text)


def _check_texts(value: Any) -> None:
    """NUL and halves of surrogate pairs can be written in JSON, and kept nowhere."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            if any(letter == "\x00" or "\ud800" <= letter <= "\udfff" for letter in each):
                raise ParseError("The body has a text with NUL or half of a surrogate pair in it.")
        elif isinstance(each, dict):
            waiting += [*each, *each.values()]
        elif isinstance(each, list):
            waiting += each
