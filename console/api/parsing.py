"""Bodies: JSON, bounded before it is read, of texts that the database can keep."""

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from console.services.definition_text import OCTETS_MAX as DEFINITIONS_OCTETS_MAX
from console.services.sending import LINES_MAX, LINES_OCTETS_MAX

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
            value = json.loads(body.decode(), parse_constant=_no_number, object_pairs_hook=members_once)
        except (ValueError, RecursionError) as error:
            raise ParseError(f"The body is not JSON: {type(error).__name__}.") from error
        check_texts(value)
        return value


YAML = "application/yaml"


class Yaml(BaseParser):
    """The text, which its service reads."""

    media_type = YAML

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> str:
        """Raises Problem, ParseError."""
        body = stream.read(DEFINITIONS_OCTETS_MAX + 1)
        if len(body) > DEFINITIONS_OCTETS_MAX:
            raise Problem("too-large", f"The document may have {DEFINITIONS_OCTETS_MAX} octets: send it in parts, a kind or more in each.")
        try:
            return str(body.decode())
        except UnicodeDecodeError as error:
            raise ParseError("The document is not UTF-8.") from error


class Lines(BaseParser):
    """Lines of JSON, which are read one by one."""

    media_type = "application/x-ndjson"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> list[str]:
        """Raises Problem, ParseError."""
        body = stream.read(LINES_OCTETS_MAX + 1)
        if len(body) > LINES_OCTETS_MAX:
            raise Problem("too-large", f"The body may have {LINES_OCTETS_MAX} octets: send the lines in several calls.")
        try:
            lines = body.decode().split("\n")
        except UnicodeDecodeError as error:
            raise ParseError("The body is not UTF-8.") from error
        if len(lines) > LINES_MAX + 1:
            raise Problem("too-large", f"The body may have {LINES_MAX} lines: send them in several calls.")
        check_texts(lines)
        return lines


def _no_number(text: str) -> NoReturn:
    raise ValueError(text)


def members_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of two members of one name nobody knows which is meant. Raises ParseError."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ParseError("Two members of an object have the same name.")
    return found


def check_texts(value: Any) -> None:
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
