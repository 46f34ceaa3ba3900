"""Messages as lines of JSON: what an export writes, and an import reads."""

import json

from rest_framework.exceptions import ParseError

from console.services import sending

from . import message_bodies
from .parsing import check_texts, members_once

TOLD = frozenset(("key", "message_id", "accepted_at", "added", "left_out"))
"""Members of an exported line that nobody can send."""


def read_lines(lines: list[str]) -> list[tuple[int, sending.Outgoing]]:
    """Raises InvalidLines."""
    read, errors = [], []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line, object_pairs_hook=members_once)
            if not isinstance(value, dict):
                raise ValueError("a line is an object of JSON")  # noqa: TRY004 - as what else is wrong with it
            given = message_bodies.MessageBody(data={name: each for name, each in value.items() if name not in TOLD})
            if "left_out" in value:
                raise ValueError("it was exported without its body")
            if given.is_valid():
                read.append((number, message_bodies.outgoing_of(dict(given.validated_data))))
                continue
            field, wrong = next(iter(given.errors.items()))
            errors.append((number, f"{field}: {wrong[0] if isinstance(wrong, list) else wrong}"))
        except (ValueError, RecursionError, ParseError) as error:
            errors.append((number, str(error) if "JSON" not in type(error).__name__ else "it is no JSON"))
        if len(errors) >= sending.ERRORS_MAX:
            break
    if errors:
        raise sending.InvalidLines(errors)
    return read


def read_file(octets: bytes) -> list[tuple[int, sending.Outgoing]]:
    """The same of a file. Raises ValueError, InvalidLines."""
    try:
        lines = octets.decode().split("\n")
        check_texts(lines)
    except (UnicodeDecodeError, ParseError) as error:
        raise ValueError("The file is not UTF-8, or has characters in it that nothing can keep.") from error
    if len(lines) > sending.LINES_MAX + 1:
        raise ValueError(f"A file may have {sending.LINES_MAX:,} lines: bring them in by several.")
    return read_lines(lines)
