"""Lines of the log for messages that died, and for sends that were refused, where that is wanted: of each its identifier, where it was, why, and the trace
that it belongs to; nothing of its contents."""

from __future__ import annotations

import logging

from broker_core.engine.effects import Death, Effects, Turned

log = logging.getLogger("surety.dead")

LINES_PER_SECOND = 20
"""A full log helps nobody: what is more is counted, and its number is one line."""
SHOWN_CHARACTERS = 200
"""Of what a client may have chosen."""


class DeadLog:
    def __init__(self) -> None:
        self._since = 0.0
        self._lines = 0
        self._more = 0

    def write(self, effects: Effects, now: float) -> None:
        """What this flush tells of, which is durable. `now`: seconds of a clock that never goes back."""
        if not (effects.noted or effects.noted_more or self._more):
            return
        if now - self._since >= 1.0:
            self.finish()
            self._since, self._lines = now, 0
        told = effects.noted[: LINES_PER_SECOND - self._lines]
        for each in told:
            line, fields = _death(each) if isinstance(each, Death) else _turned(each)
            fields = {name: _shown(value) for name, value in fields.items() if value}
            trace = f" Trace {each.traceparent}." if each.traceparent else ""
            log.info("%s%s", line, trace, extra={"fields": fields})
        self._lines += len(told)
        self._more += len(effects.noted) - len(told) + effects.noted_more

    def finish(self) -> None:
        """Say how many were not named."""
        if self._more:
            log.info("%d more messages died or were refused; no more than %d are named in a second.", self._more, LINES_PER_SECOND)
            self._more = 0


def _death(it: Death) -> tuple[str, dict[str, str]]:
    became = f"it is in {it.kept_in}" if it.kept_in else "it is discarded"
    fields = {"event": "dead", "message_id": it.message_id, "destination": it.destination, "reason": it.reason, "kept_in": it.kept_in}
    line = f"Message {_shown(it.message_id)} died in {_shown(it.destination)}, {it.reason}: {it.comment}; {became}."
    return line, {**fields, "comment": it.comment, "traceparent": it.traceparent}


def _turned(it: Turned) -> tuple[str, dict[str, str]]:
    fields = {"event": "refused", "destination": it.address, "account": it.account, "reason": it.reason, "detail": it.detail}
    line = f"A message to {_shown(it.address)} of account {_shown(it.account)} is refused, {it.reason}: {_shown(it.detail)}."
    return line, {**fields, "traceparent": it.traceparent}


def _shown(text: str) -> str:
    """Without what could disturb a terminal or a log line."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:SHOWN_CHARACTERS])
