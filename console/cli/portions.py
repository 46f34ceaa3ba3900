"""Lines of messages in portions that one call takes."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import IO, Any, TextIO

from console.services.sending import LINES_MAX, LINES_OCTETS_MAX

from . import exits
from .exits import Ended

LINES = "application/x-ndjson"


def portions(name: str, stdin: TextIO) -> Iterator[bytes]:
    """The octets of each; of a file without lines one that is empty. A line that is too long for a call is cut
    and refused by it. Raises ValueError with a sentence."""
    try:
        with nullcontext(getattr(stdin, "buffer", stdin)) if name == "-" else Path(name).open("rb") as file:
            yield from _portions(file)
    except OSError as error:
        raise ValueError(f"{name} cannot be read ({error.strerror})") from error


def _portions(file: IO[Any]) -> Iterator[bytes]:
    size = 0
    kept: list[bytes] = []
    while line := file.readline(LINES_OCTETS_MAX + 1):
        octets = line if isinstance(line, bytes) else line.encode()
        if kept and (len(kept) == LINES_MAX or size + len(octets) > LINES_OCTETS_MAX):
            yield b"".join(kept)
            size, kept = 0, []
        kept.append(octets)
        size += len(octets)
    yield b"".join(kept)


def unfinished(stopped: BaseException, sent: int, line: int) -> Ended:
    """How it ends when the lines before this one were sent, and why no more were: who only repeats it would send those twice."""
    said = f"{sent:,} messages were sent, those before line {line}"
    if isinstance(stopped, KeyboardInterrupt):
        return Ended(exits.STOPPED, f"Stopped: {said}; what came of a call that was under way is not known.")
    if not isinstance(stopped, Ended):
        return Ended(exits.UNFINISHED, f"{said}. --file: {stopped}.")
    sentence = f"{said}; from there on it counts lines anew. {stopped.sentence}"
    return Ended(exits.UNFINISHED, sentence, stopped.problem and {**stopped.problem, "detail": sentence})
