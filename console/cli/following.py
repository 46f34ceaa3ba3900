"""What a command follows to its end after its answer: an operation, a drain, a compaction. How far it is, is told meanwhile."""

import time
from collections.abc import Callable
from typing import Any, TextIO

from . import exits
from .exits import Ended
from .showing import Progress
from .transports import Transport, document_of

POLL_SECONDS = 0.25
UNTOLD_SECONDS_MAX = 3.0
"""The node tells of itself once a second: what it has just begun is told after that."""
OPEN = ("waiting", "running")

Look = Callable[[Progress], dict[str, Any] | None]
"""One look at what goes on: how it ended, or None while it has not."""


class Following:
    """Ctrl-C ends the looking and not what is looked at: every method raises Ended then, too."""

    def __init__(self, transport: Transport, stderr: TextIO) -> None:
        self._transport, self._stderr = transport, stderr

    def operation(self, operation: dict[str, Any]) -> dict[str, Any]:
        """The operation when it is done. Raises Ended: it failed or was cancelled."""
        number, seen = operation["number"], [operation]

        def look(progress: Progress) -> dict[str, Any] | None:
            found = seen.pop() if seen else document_of(self._transport.call("GET", f"operations/{number}"))
            progress.tell(found)
            return None if found["state"] in OPEN else found

        ended = self._until(look, f"`query operation {number}` tells how far it is, `cancel operation {number}` ends it.")
        if ended["state"] != "done":
            sentence = ended["error"] or "what it has done stays done"
            raise Ended(exits.UNFINISHED, f"Operation {number} is {ended['state']} after {ended['done']:,} messages: {sentence}.")
        return ended

    def drain(self) -> dict[str, Any]:
        """The drain that has begun, at its end. Raises Ended: somebody has ended it before."""
        untold = time.monotonic() + UNTOLD_SECONDS_MAX

        def look(progress: Progress) -> dict[str, Any] | None:
            nonlocal untold
            node = self._node()
            drain = node["drain"]
            if drain is None and node["reporting"] and time.monotonic() > untold:
                raise Ended(exits.UNFINISHED, f"The node is {node['state']} by now: somebody has ended the drain.")
            if drain is None:
                return None
            untold = 0
            left = f"{drain['connections']:,} connections, {drain['unsettled']:,} messages, {drain['transactions']:,} transactions are left"
            progress.say(f"{node['state']}: {left}")
            return {"state": node["state"], **drain} if drain["ended"] else None

        return self._until(look, "`query bkr` tells how far it is, `unquiesce bkr` ends it.")

    def compaction(self, request: int) -> dict[str, Any]:
        """The compaction that this request has begun, at its end. Raises Ended: another one or another node has taken its place."""
        untold = time.monotonic() + UNTOLD_SECONDS_MAX

        def look(progress: Progress) -> dict[str, Any] | None:
            nonlocal untold
            node = self._node()
            told = node["compaction"]
            if not node["reporting"]:
                return None
            if told is None or told["request"] != request:
                if told["request"] > request if told is not None else time.monotonic() > untold:
                    raise Ended(exits.UNFINISHED, "It ended before it was done: another one took its place, or another node serves. What was done stays done.")
                return None
            untold = 0
            looked_at = told["compacted"] + told["left"] + told["gone"]
            progress.say(f"{told['compacted']:,} compacted, {looked_at:,} of {told['segments']:,} segments looked at, {told['rows']:,} messages moved")
            return dict(told) if told["ended"] else None

        return self._until(look, "`query bkr` tells how far it is, `compact bkr --percent 0` ends it.")

    def _node(self) -> dict[str, Any]:
        return document_of(self._transport.call("GET", "node"))

    def _until(self, look: Look, how: str) -> dict[str, Any]:
        progress = Progress(self._stderr)
        try:
            while (ended := look(progress)) is None:
                time.sleep(POLL_SECONDS)
        except KeyboardInterrupt:
            raise Ended(exits.STOPPED, f"It goes on: {how}") from None
        finally:
            progress.end()
        return ended
