"""Settings by name: what destinations that clients create from now on begin with, by pattern. See `requests.ask` for what these raise."""

from collections.abc import Mapping
from typing import Any

from console.permissions import MANAGE_DESTINATION

from .audit import Actor
from .requests import Outcome, ask


def put(actor: Actor, pattern: str, settings: Mapping[str, Any]) -> Outcome:
    """Make the policy of a pattern, or replace what it has."""
    return ask(actor, MANAGE_DESTINATION, "set_policy", pattern, settings)


def drop(actor: Actor, pattern: str) -> Outcome:
    """What exists keeps its settings."""
    return ask(actor, MANAGE_DESTINATION, "drop_policy", pattern)
