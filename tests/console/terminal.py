"""The command line as a person, or a script, uses it: what is typed, what is answered, how it ends."""

import io
import json
from dataclasses import dataclass
from typing import Any

from console.cli.program import Terminal, main


class _Person(io.TextIOWrapper):
    """Standard input or output; of a terminal if somebody sits there."""

    def __init__(self, typed: str = "", there: bool = False) -> None:
        super().__init__(io.BytesIO(typed.encode()), encoding="utf-8")
        self._there = there

    def isatty(self) -> bool:
        return self._there


@dataclass(frozen=True)
class Ran:
    code: int
    octets: bytes
    said: str
    """On standard error."""

    @property
    def told(self) -> str:
        return self.octets.decode()

    @property
    def document(self) -> Any:
        return json.loads(self.octets)


def mq(*words: str, typed: str = "", there: bool = False) -> Ran:
    """`typed`: what standard input holds; `there`: somebody sits at a terminal."""
    terminal = Terminal(_Person(typed, there), _Person(there=there), _Person(there=there))
    code = main(words, terminal)
    terminal.stdout.flush()
    terminal.stderr.flush()
    return Ran(code, terminal.stdout.buffer.getvalue(), terminal.stderr.buffer.getvalue().decode())
