"""Aliases: names that stand for other destinations, with a say of their own about reliability, or none (item 120).

A name is looked up here only when no destination has it, so nobody else pays. Sends and consumers go to the target as soon as they come; what an alias
means later concerns later ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .address import is_reserved, is_temporary, is_topic, is_valid
from .commands import Attach, Browse, Control, Send
from .definitions import AliasDefined
from .destination import Destination
from .levels import Levels
from .message import LEVEL_NAMES, Reliability
from .refusal import Declined, Refusal
from .shard import Shard

CHAIN_MAX = 8
"""Aliases of aliases."""
INHERIT = "inherit"
"""The alias has no say: the target has."""
CHOICES = (INHERIT, *LEVEL_NAMES)


@dataclass(slots=True, frozen=True)
class Alias:
    """What an operator sets."""

    target: str
    """An address, of a destination that need not be there, or of another alias."""
    default_reliability: str = INHERIT
    """The level of messages whose producers leave it to the destination."""
    maximum_reliability: str = INHERIT
    reliability_override: bool = True
    """False: every message sent through it gets its default level."""

    @property
    def levels(self) -> Levels | None:
        """None: it has no say."""
        if self.default_reliability == self.maximum_reliability == INHERIT:
            return None
        default = None if self.default_reliability == INHERIT else _level(self.default_reliability)
        maximum = Reliability.ASSURED if self.maximum_reliability == INHERIT else _level(self.maximum_reliability)
        return Levels(default, maximum, default is not None and not self.reliability_override)

    def definition(self, address: str) -> AliasDefined:
        return AliasDefined(address, self.target, self.default_reliability, self.maximum_reliability, self.reliability_override)


def _level(name: str) -> Reliability:
    return Reliability(LEVEL_NAMES.index(name))


def problem(values: Mapping[str, Any]) -> str:
    """A sentence that says what is wrong with what an operator sets, or nothing."""
    for name, value in values.items():
        if name == "target":
            if not (isinstance(value, str) and is_valid(value)) or is_temporary(value) or is_reserved(value):
                return "target must be the address of a queue or topic, queue/<name> or topic/<name>, which is not the broker's own"
        elif name in ("default_reliability", "maximum_reliability"):
            if value not in CHOICES:
                return f"{name} must be one of {', '.join(CHOICES)}"
        elif name != "reliability_override":
            return f"{name} is not an alias's; it has target, default_reliability, maximum_reliability, reliability_override"
        elif not isinstance(value, bool):
            return "reliability_override must be true or false"
    return ""


def why_not_alias(shard: Shard, address: str, alias: Alias) -> str:
    """A sentence that says why the address may not stand for that; empty: it may."""
    if is_topic(address) != is_topic(alias.target):
        return "an alias of a queue is a queue's name, that of a topic a topic's"
    levels = alias.levels
    if levels is not None and levels.default is not None and levels.default > levels.maximum:
        return f"the default_reliability {alias.default_reliability} is more than the maximum_reliability {alias.maximum_reliability}"
    if not alias.reliability_override and (levels is None or levels.default is None):
        return "without reliability_override every message has the default_reliability: name one of the five levels"
    aliases = {**shard.aliases, address: alias}
    for name in aliases:
        chain = [name]
        while chain[-1] in aliases:
            chain.append(aliases[chain[-1]].target)
            if chain[-1] in chain[:-1]:
                return f"{address} would stand for itself, in a circle: {' -> '.join(chain)}"
            if len(chain) > CHAIN_MAX + 1:
                return f"{name} would stand for others further than {CHAIN_MAX} times"
    return ""


def target_of(shard: Shard, address: str) -> str:
    """Of an alias, or of none."""
    while address in shard.aliases:
        address = shard.aliases[address].target
    return address


def stands_for(shard: Shard, address: str) -> str:
    return f"{address} is an alias of {shard.aliases[address].target}"


def find(shard: Shard, command: Control) -> Destination:
    """What a request names. Raises Declined: nothing, or an alias, which is none itself."""
    destination = shard.destinations.get(command.address)
    if destination is None:
        alias = command.address in shard.aliases
        raise Declined(Refusal.NO_SUCH_DESTINATION, stands_for(shard, command.address) if alias else command.address)
    return destination


def redirect(shard: Shard, send: Send) -> tuple[Refusal | None, str]:
    """The send goes to the alias's target from now on, with the level that the alias gives it. Else why not, and the particulars."""
    while (alias := shard.aliases.get(send.address)) is not None:
        levels = alias.levels
        if levels is not None:
            header = send.message.header
            if levels.exceeds(header):
                return Refusal.RELIABILITY_EXCEEDED, levels.detail(send.address, header)
            if levels.default is not None:
                send.message.header = levels.apply(header)
        send.address = alias.target
    return None, ""


def follow(shard: Shard, command: Attach | Browse) -> None:
    """The consumer consumes from the target."""
    if command.address in shard.aliases:
        command.address = target_of(shard, command.address)
