"""The level of reliability that a SEND asks for: by name, or by its delivery mode and what that stands for (items 112 and 116, R23)."""

from __future__ import annotations

from dataclasses import dataclass

from broker_core.engine.levels import AS_DESTINATION, ASKED
from broker_core.engine.message import LEVEL_NAMES, Reliability

from .sections import Malformed


@dataclass(slots=True, frozen=True)
class LevelMapping:
    """What the delivery modes stand for: one of ASKED each, or empty: nothing particular."""

    persistent: str = ""
    nonpersistent: str = ""

    def over(self, other: LevelMapping) -> LevelMapping:
        """This one, and the other where it says nothing: a connection factory's over its account's."""
        return LevelMapping(self.persistent or other.persistent, self.nonpersistent or other.nonpersistent)


UNMAPPED = LevelMapping()


def read_mapping(headers: dict[str, str]) -> LevelMapping:
    """What CONNECT says. Raises Malformed."""
    found = {}
    for mode in ("persistent", "nonpersistent"):
        name = headers.get(f"{mode}-reliability", "")
        if name and name not in ASKED:
            raise Malformed(f"header {mode}-reliability of CONNECT is none of {', '.join(ASKED)}")
        found[mode] = name
    return LevelMapping(**found)


def level_of(named: str | None, persistent: bool | None, mapping: LevelMapping) -> tuple[Reliability, bool, str | None]:
    """Of a SEND with the given headers `reliability` (one of ASKED) and `persistent`: the level, whether it was asked for or left to the destination,
    and what consumers are told in header `reliability`."""
    name = named or (mapping.persistent if persistent else mapping.nonpersistent)
    if name and name != AS_DESTINATION:
        return Reliability(LEVEL_NAMES.index(name)), True, name
    stated = not name and persistent is not None
    return Reliability.ASSURED if persistent else Reliability.EXPRESS, stated, None
