"""Settings by name: an operator sets them for a pattern, and what a client's use creates later takes those of the pattern that says most about its name.

Queues and topics have patterns of their own: `queue/orders.*`, `topic/**`. What exists keeps its settings.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .pattern import VARIABLE, Pattern, has_wildcards, problem
from .settings import Settings
from .shard import Shard

POLICIES_MAX = 1_000
"""A new destination is compared with each: 1 ms."""
KINDS = ("queue", "topic")


class Policy:
    """Of one pattern, with the settings that it names; the others are those of all."""

    __slots__ = ("_pattern", "rank", "settings")

    def __init__(self, address: str, settings: dict[str, Any]) -> None:
        self._pattern = Pattern(address)
        self.settings = settings
        levels = address.partition("/")[2].split(".")
        literal = sum([not has_wildcards(level) for level in levels])
        self.rank = (-literal, any(level in VARIABLE for level in levels), address)
        """The lowest says most: more levels by name, then no part of any length; of equals the first in the alphabet."""

    def matches(self, address: str) -> bool:
        return address.partition("/")[0] == self._pattern.address.partition("/")[0] and self._pattern.matches(address)


def why_not(address: str) -> str:
    """What is wrong with the pattern, as a sentence; empty: nothing."""
    kind, slash, name = address.partition("/")
    if kind not in KINDS or not slash:
        return "a pattern is queue/PATTERN or topic/PATTERN"
    return problem(f"topic/{name}")


def settings_for(shard: Shard, address: str) -> Settings:
    """Of a destination that is created now by a client's use, or to hold dead messages."""
    settings = shard.limits.settings
    shard.effort += len(shard.policies)
    found = min([policy for policy in shard.policies.values() if policy.matches(address)], key=_rank, default=None)
    return settings if found is None else replace(settings, **found.settings)


def _rank(policy: Policy) -> tuple[int, bool, str]:
    return policy.rank
