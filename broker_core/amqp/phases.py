"""Where a connection stands."""

from __future__ import annotations

from enum import Enum


class Phase(Enum):
    GREETING = "waiting for a protocol header"
    LOGGING_IN = "waiting for sasl-init"
    CHECKING = "waiting for the verdict on the login"
    PROVING = "waiting for sasl-response"
    LOGGED_IN = "waiting for AMQP's protocol header"
    GREETED = "waiting for open"
    OPENING = "waiting for the verdict on open"
    OPEN = "open"
    LEAVING = "close seen, not answered yet"
    CLOSED = "closed or to be closed"


OPEN = Phase.OPEN
WAITING = (Phase.CHECKING, Phase.OPENING)
"""For the listener."""
OVER = (Phase.LEAVING, Phase.CLOSED)
"""What the peer says means nothing any more."""
BEFORE_OPEN = (Phase.GREETING, Phase.LOGGING_IN, Phase.CHECKING, Phase.PROVING, Phase.LOGGED_IN, Phase.GREETED, Phase.OPENING)
