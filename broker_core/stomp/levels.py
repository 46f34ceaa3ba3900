"""What a STOMP client says its delivery modes stand for (items 112 and 116, R23)."""

from __future__ import annotations

from broker_core.engine.levels import ASKED, LevelMapping

from .sections import Malformed


def read_mapping(headers: dict[str, str]) -> LevelMapping:
    """What CONNECT says. Raises Malformed."""
    found = {}
    for mode in ("persistent", "nonpersistent"):
        name = headers.get(f"{mode}-reliability", "")
        if name and name not in ASKED:
            raise Malformed(f"header {mode}-reliability of CONNECT is none of {', '.join(ASKED)}")
        found[mode] = name
    return LevelMapping(**found)
