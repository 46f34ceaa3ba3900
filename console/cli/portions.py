"""Lines of messages in portions that one call takes."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import IO, Any, TextIO

from console.services.sending import LINES_MAX, LINES_OCTETS_MAX

LINES = "application/x-ndjson"


def portions(name: str, stdin: TextIO) -> Iterator[tuple[int, bytes]]:
    """The number of each portion's first line, and its octets; of a file without lines one that is empty. A line that is too long for a call is cut
    and refused by it. Raises ValueError with a sentence."""
    try:
        with nullcontext(getattr(stdin, "buffer", stdin)) if name == "-" else Path(name).open("rb") as file:
            yield from _portions(file)
    except OSError as error:
        raise ValueError(f"{name} cannot be read ({error.strerror})") from error


def _portions(file: IO[Any]) -> Iterator[tuple[int, bytes]]:
    first, number, size = 1, 0, 0
    kept: list[bytes] = []
    while line := file.readline(LINES_OCTETS_MAX + 1):
        octets = line if isinstance(line, bytes) else line.encode()
        number += 1
        if kept and (len(kept) == LINES_MAX or size + len(octets) > LINES_OCTETS_MAX):
            yield first, b"".join(kept)
            first, size, kept = number, 0, []
        kept.append(octets)
        size += len(octets)
    yield first, b"".join(kept)
