"""Patterns of topic names. Levels are separated by dots; `*` stands for one level, `**` for one or more (Open MQ's), `>` at the end for any number
(ActiveMQ's: `a.>` matches `a`, too).

Only one part of a pattern is of variable length, so that a name is compared level by level, once, and no pattern costs more than its length.
"""

from __future__ import annotations

from .address import is_valid

WILDCARDS = {"*": 1, "**": 1, ">": 0}
"""The least number of levels that each stands for."""
VARIABLE = ("**", ">")
RESERVED = "mq"
"""The first level of the broker's own topics, which have to be asked for by name."""


def has_wildcards(address: str) -> bool:
    """Whether it can be no destination's: no name has these characters."""
    return "*" in address or ">" in address


class Pattern:
    """Of an address `topic/<pattern>` with which `problem` finds nothing wrong."""

    __slots__ = ("_head", "_least", "_tail", "address")

    def __init__(self, address: str) -> None:
        self.address = address
        levels = address.partition("/")[2].split(".")
        variable = next((place for place, level in enumerate(levels) if level in VARIABLE), None)
        self._head = levels[:variable]
        self._tail = [] if variable is None else levels[variable + 1 :]
        self._least = -1 if variable is None else WILDCARDS[levels[variable]]
        """Levels that the part of variable length has at least; -1: there is none."""

    def matches(self, address: str) -> bool:
        """Whether the topic is one of them."""
        levels = address.partition("/")[2].split(".")
        head, tail = self._head, self._tail
        between = len(levels) - len(head) - len(tail)
        if between != 0 if self._least < 0 else between < self._least:
            return False
        if levels[0] == RESERVED and len(levels) > 1 and head[:1] != [RESERVED]:
            return False
        return _agree(head, levels) and _agree(tail, levels[len(levels) - len(tail) :])


def _agree(wanted: list[str], levels: list[str]) -> bool:
    for want, level in zip(wanted, levels, strict=False):  # noqa: SIM110  # asked of every topic: a generator would cost more than the answer
        if want not in (level, "*"):
            return False
    return True


def problem(address: str) -> str:
    """What is wrong with an address that has wildcards, as a sentence; nothing: it is a pattern of topics."""
    kind, _, name = address.partition("/")
    if kind != "topic":
        return "wildcards are for subscriptions of topics"
    levels = name.split(".")
    if any(has_wildcards(level) and level not in WILDCARDS for level in levels):
        return "a wildcard stands for whole levels, which are separated by dots"
    variable = [level for level in levels if level in VARIABLE]
    if len(variable) > 1:
        return "** or > may stand in a pattern once"
    if ">" in levels[:-1]:
        return "> stands at the end of a pattern; ** may stand before its end"
    if not is_valid(f"{kind}/{'.'.join('x' if level in WILDCARDS else level for level in levels)}"):
        return "its names are not valid"
    return ""
