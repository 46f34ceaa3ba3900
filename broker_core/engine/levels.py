"""What a destination makes of the reliability that its producers ask for: its default, its maximum, and whether they have a say (items 117 to 120)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .message import LEVEL_NAMES, STORED, Header, Reliability

if TYPE_CHECKING:
    from .settings import Settings

NONE = "none"
"""As a default: there is none."""
DEFAULTS = (NONE, *LEVEL_NAMES)
AS_DESTINATION = "as-destination"
"""In place of a level: the destination's default; if it has none, what the delivery mode stands for without any mapping."""
ASKED = (*LEVEL_NAMES, AS_DESTINATION)
"""What a producer may ask for."""
BELOW_STORED = LEVEL_NAMES[:STORED]
"""Levels of messages that are lost when the node stops."""


@dataclass(slots=True, frozen=True)
class Levels:
    """Of one destination, as its operator set them."""

    default: Reliability | None
    """Of messages whose producers left it to the destination, and of all if `resets`; at most the maximum."""
    maximum: Reliability
    resets: bool
    """Producers have no say: every message has the default level. Only if there is one."""

    def exceeds(self, header: Header) -> bool:
        """The producer asked for more than the destination gives."""
        return header.stated and not self.resets and header.reliability > self.maximum

    def apply(self, header: Header) -> Header:
        """The header with the level that the message gets. Only if it does not exceed."""
        if header.stated and not self.resets:
            return header
        return header.at(Reliability(min(header.reliability, self.maximum)) if self.default is None else self.default)

    def detail(self, address: str, header: Header) -> str:
        """Why it exceeds, for the producer."""
        return f"{address} takes at most {LEVEL_NAMES[self.maximum]}, the message asks for {LEVEL_NAMES[header.reliability]}"


def levels_of(settings: Settings) -> Levels | None:
    """None: producers have what they ask for."""
    default, maximum = settings.default_reliability, Reliability(LEVEL_NAMES.index(settings.maximum_reliability))
    if default == NONE:
        return None if maximum == Reliability.ASSURED else Levels(None, maximum, False)
    return Levels(Reliability(LEVEL_NAMES.index(default)), maximum, not settings.reliability_override)


def contradiction(settings: Settings) -> str:
    """A sentence that says which settings do not go together, or nothing."""
    default, maximum = settings.default_reliability, settings.maximum_reliability
    if default == NONE:
        return "" if settings.reliability_override else "without reliability_override every message has the default_reliability: name one of the five levels"
    if LEVEL_NAMES.index(default) > LEVEL_NAMES.index(maximum):
        return f"the default_reliability {default} is more than the maximum_reliability {maximum}"
    return ""


def level_warnings(levels: Levels | None) -> list[str]:
    """What may lose messages that their producers believe to be safe (item 118)."""
    given = Reliability.ASSURED if levels is None else levels.maximum if levels.default is None else levels.default
    if levels is None or given >= STORED:
        return []
    which = "persistent messages" if levels.resets else f"persistent messages that are sent {AS_DESTINATION}"
    return [f"{which} get level {LEVEL_NAMES[given]} here: they are lost when the broker stops"]


# -- what producers ask for -----------------------------------------------------------------------------------------------------------
@dataclass(slots=True, frozen=True)
class LevelMapping:
    """What the delivery modes stand for: one of ASKED each, or empty: nothing particular."""

    persistent: str = ""
    nonpersistent: str = ""

    def over(self, other: LevelMapping) -> LevelMapping:
        """This one, and the other where it says nothing: a connection factory's over its account's."""
        return LevelMapping(self.persistent or other.persistent, self.nonpersistent or other.nonpersistent)


UNMAPPED = LevelMapping()


def level_of(named: str | None, persistent: bool | None, mapping: LevelMapping) -> tuple[Reliability, bool, str | None]:
    """Of a message that names a level (one of ASKED) and a delivery mode, or does not: the level, whether it was asked for or left to the destination, and
    the name that consumers are told."""
    name = named or (mapping.persistent if persistent else mapping.nonpersistent)
    if name and name != AS_DESTINATION:
        return Reliability(LEVEL_NAMES.index(name)), True, name
    stated = not name and persistent is not None
    return Reliability.ASSURED if persistent else Reliability.EXPRESS, stated, None
