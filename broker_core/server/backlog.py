"""What was read from one connection and is still to be done. Mostly nothing is here: a read is parsed and applied at once. But 256 KiB may ask for
many seconds of work, so the rest of what takes longer than others may wait is done slice by slice, with the loop running in between."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from broker_core.engine.commands import Command, send_of
from broker_core.engine.message import StoredBody

TURN_EFFORT = 20_000
"""Of one turn of the loop, about, in microseconds, and of one step more."""


class Backlog:
    """Commands first, then the octets behind them. Whoever owns it reads nothing meanwhile."""

    __slots__ = ("_after", "_apply", "_commands", "_may_apply", "_may_parse", "_parse", "_pieces", "_scheduled")

    def __init__(
        self,
        parse: Callable[[bytes], int],
        apply: Callable[[Sequence[Command]], int],
        may_parse: Callable[[], bool],
        may_apply: Callable[[], bool],
        after: Callable[[], None],
    ) -> None:
        """`parse` and `apply` return what they took, in microseconds; what is left they bring back here, to come first. Whoever answers no to
        may_parse or may_apply calls `go_on` when it is over. `after` is called when a turn later than that of the read has done its part."""
        self._parse = parse
        self._apply = apply
        self._may_parse = may_parse
        self._may_apply = may_apply
        self._after = after
        self._commands: list[Command] = []
        self._pieces: deque[bytes] = deque()
        self._scheduled = False

    def __bool__(self) -> bool:
        return bool(self._commands or self._pieces)

    @property
    def has_commands(self) -> bool:
        """Others of the same connection come behind them."""
        return bool(self._commands)

    # -- what comes -----------------------------------------------------------------------------------------------------------------------
    def read(self, octets: bytes) -> None:
        self._pieces.append(octets)
        self.go_on()

    def append(self, commands: Sequence[Command]) -> None:
        self._commands += commands
        self.go_on()

    def put_back(self, commands: Sequence[Command]) -> None:
        """They come before all others."""
        self._commands = [*commands, *self._commands]
        self.go_on()

    def parse_more(self) -> None:
        """The parser has kept frames for later."""
        self._pieces.appendleft(b"")
        self.go_on()

    # -- what is done -----------------------------------------------------------------------------------------------------------------------
    def go_on(self) -> None:
        """In the next turn of the loop, if nothing is against it."""
        if not self._scheduled and self._is_free():
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _is_free(self) -> bool:
        return bool(self._commands or (self._pieces and self._may_parse())) and self._may_apply()

    def _turn(self) -> None:
        self._scheduled = False
        spent = 0
        while spent < TURN_EFFORT and self._is_free():
            if self._commands:
                commands, self._commands = self._commands, []
                spent += self._apply(commands)
            else:
                spent += self._parse(self._pieces.popleft())
        self.go_on()
        self._after()

    # -- the end --------------------------------------------------------------------------------------------------------------------------
    def forget_octets(self) -> None:
        """What they come behind is not done either."""
        self._pieces.clear()

    def drop(self) -> list[int]:
        """Nothing of it is done. Returns the large bodies that nobody will send."""
        sends = [send for command in self._commands if (send := send_of(command)) is not None]
        self._commands = []
        self._pieces.clear()
        return [send.message.body.body for send in sends if isinstance(send.message.body, StoredBody)]
