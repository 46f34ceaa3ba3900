"""Lines of the log for messages that died, where that is wanted: of each its identifier, where it was and why it died; nothing of its contents."""

from __future__ import annotations

import logging

from broker_core.engine.effects import Death, Effects

log = logging.getLogger("surety.dead")

LINES_PER_SECOND = 20
"""A full log helps nobody: further deaths are counted, and their number is one line."""
SHOWN_CHARACTERS = 200
"""Of what a client may have chosen."""


class DeadLog:
    def __init__(self) -> None:
        self._since = 0.0
        self._lines = 0
        self._more = 0

    def write(self, effects: Effects, now: float) -> None:
        """What this flush tells of, which is durable. `now`: seconds of a clock that never goes back."""
        if not (effects.deaths or effects.deaths_more or self._more):
            return
        if now - self._since >= 1.0:
            self.finish()
            self._since, self._lines = now, 0
        told = effects.deaths[: LINES_PER_SECOND - self._lines]
        for death in told:
            log.info("%s", _line(death))
        self._lines += len(told)
        self._more += len(effects.deaths) - len(told) + effects.deaths_more

    def finish(self) -> None:
        """Say how many were not named."""
        if self._more:
            log.info("%d more messages died; no more than %d are named in a second.", self._more, LINES_PER_SECOND)
            self._more = 0


def _line(death: Death) -> str:
    became = f"it is in {death.kept_in}" if death.kept_in else "it is discarded"
    return f"Message {_shown(death.message_id)} died in {_shown(death.destination)}, {death.reason}: {death.comment}; {became}."


def _shown(text: str) -> str:
    """Without what could disturb a terminal or a log line."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:SHOWN_CHARACTERS])
