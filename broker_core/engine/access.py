"""Which account may produce to, consume from, browse and create which destination: rules that operators make, with the precedence that Open MQ's have.

Of the rules about an operation that match the destination, those with the most particular resource that say anything of the account decide; among these,
those that name the account, then those of every account, then those that name a group of its own, then those of every group. Of equals that contradict
each other the refusal counts, and what no rule allows is refused. A decision is made once for an account, an operation and a destination, and kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .address import is_temporary
from .pattern import RESERVED, VARIABLE, Pattern, has_wildcards
from .policy import why_not

if TYPE_CHECKING:
    from .shard import Shard

PRODUCE, CONSUME, BROWSE, CREATE = OPERATIONS = ("produce", "consume", "browse", "create")
EVERYTHING = ">"
"""The resource that is every destination, the broker's own among them."""
ANYBODY = "*"
RULES_MAX = 1_000
DECISIONS_MAX = 100_000
"""Decisions that are kept, about 200 octets each; beyond, all are made again."""


@dataclass(slots=True, frozen=True)
class Rule:
    resource: str
    """An address, or a pattern of queues or of topics, as settings by name have them; or EVERYTHING."""
    operation: str
    allow: bool
    principal: str
    """The name of an account, or of a group of accounts; or ANYBODY."""
    group: bool = False


def problem(rule: Rule) -> str:
    """What is wrong with it, as a sentence; empty: nothing."""
    if rule.operation not in OPERATIONS:
        return f"the operation must be one of {', '.join(OPERATIONS)}"
    if not rule.principal:
        return "name the account or group that it is for, or * for every one"
    return "" if rule.resource == EVERYTHING else why_not(rule.resource)


class _Resource:
    """What the rules say of one, for one operation."""

    __slots__ = ("_levels", "_pattern", "address", "rank", "rules")

    def __init__(self, address: str) -> None:
        self.address = address
        self.rules: list[Rule] = []
        self._pattern = None if address == EVERYTHING else Pattern(address)
        self._levels = address.partition("/")[2].split(".")
        literal = sum([not has_wildcards(level) for level in self._levels]) if self._pattern is not None else -1
        self.rank = (-literal, any(level in VARIABLE for level in self._levels))
        """The lowest is the most particular."""

    def matches(self, address: str) -> bool:
        return self._pattern is None or (_kind(address) == _kind(self.address) and self._pattern.matches(address))

    def verdict(self, account: str, groups: Sequence[str]) -> bool | None:
        """None: it says nothing of the account."""
        for group, principals in ((False, (account,)), (False, (ANYBODY,)), (True, groups), (True, (ANYBODY,) if groups else ())):
            found = [rule.allow for rule in self.rules if rule.group is group and rule.principal in principals]
            if found:
                return all(found)
        return None

    def covers(self, pattern: str) -> bool:
        """Whether it matches whatever the pattern of topics matches."""
        if self._pattern is None:
            return True
        levels = pattern.partition("/")[2].split(".")
        if _kind(pattern) != _kind(self.address) or (levels[0] == RESERVED and self._levels[0] != RESERVED):
            return False
        return _covers(self._levels, levels)

    def may_meet(self, pattern: str) -> bool:
        """False: nothing that the pattern of topics matches is matched by it."""
        if self._pattern is None:
            return True
        if _kind(pattern) != _kind(self.address):
            return False
        for mine, other in zip(self._levels, pattern.partition("/")[2].split("."), strict=False):
            if mine in VARIABLE or other in VARIABLE:
                return True
            if not (mine == other or has_wildcards(mine) or has_wildcards(other)):
                return False
        return True


class Access:
    """The rules, and what they came to so far."""

    __slots__ = ("_decided", "_groups", "_resources")

    def __init__(self, rules: Iterable[Rule], groups: Mapping[str, Sequence[str]]) -> None:
        """`groups`: of accounts that are in any. All rules must be valid."""
        self._groups = groups
        self._decided: dict[tuple[str, str, str], bool] = {}
        found: dict[tuple[str, str], _Resource] = {}
        for rule in rules:
            found.setdefault((rule.operation, rule.resource), _Resource(rule.resource)).rules.append(rule)
        self._resources: dict[str, list[_Resource]] = {operation: [] for operation in OPERATIONS}
        for (operation, _), resource in found.items():
            self._resources[operation].append(resource)
        for resources in self._resources.values():
            resources.sort(key=_rank)

    def allows(self, account: str, operation: str, address: str) -> bool:
        """`address`: of a queue or a topic, or a pattern of topics, all of which the account must be allowed then."""
        key = (account, operation, address)
        known = self._decided.get(key)
        if known is None:
            if len(self._decided) >= DECISIONS_MAX:
                self._decided.clear()
            decide = self._decide_pattern if has_wildcards(address) else self._decide
            known = self._decided[key] = decide(account, operation, address)
        return known

    def _decide(self, account: str, operation: str, address: str) -> bool:
        groups = self._groups.get(account, ())
        rank: tuple[int, bool] | None = None
        verdict = False
        for resource in self._resources[operation]:
            if rank is not None and resource.rank != rank:
                break
            if resource.matches(address) and (said := resource.verdict(account, groups)) is not None:
                verdict = said and (verdict or rank is None)
                rank = resource.rank
        return verdict

    def _decide_pattern(self, account: str, operation: str, address: str) -> bool:
        """True if no rule can refuse any of its topics. Who would be refused one of them names those that he may have."""
        groups = self._groups.get(account, ())
        allowed_at: tuple[int, bool] | None = None
        for resource in self._resources[operation]:
            if allowed_at is not None and resource.rank != allowed_at:
                break
            said = resource.verdict(account, groups)
            if said is False and resource.may_meet(address):
                return False
            if said and resource.covers(address):
                allowed_at = resource.rank
        return allowed_at is not None


def access_of(rules: Sequence[Rule], groups: Mapping[str, Sequence[str]]) -> Access | None:
    """None: everybody may everything, and nobody need be asked."""
    everybody = {rule.operation for rule in rules if (rule.resource, rule.principal, rule.group) == (EVERYTHING, ANYBODY, False)}
    if everybody == set(OPERATIONS) and all(rule.allow for rule in rules):
        return None
    return Access(rules, groups)


def is_allowed(shard: Shard, peer: int, operation: str, address: str) -> bool:
    """Whether the peer's account may. What nobody of the network asked for is; temporary destinations have rules of their own."""
    access = shard.access
    if access is None or peer == 0 or is_temporary(address):
        return True
    asking = shard.peers.get(peer)
    return asking is not None and (asking.forwards or access.allows(asking.account, operation, address))


def _covers(mine: list[str], other: list[str]) -> bool:
    """Whether levels of a pattern match whatever those of another match."""
    if not mine:
        return not other
    first = mine[0]
    if first == ">":
        return True
    if not other or other[0] == ">":
        return False
    if first == "**":
        return any(_covers(mine[1:], other[taken:]) for taken in range(1, len(other) + 1))
    if other[0] == "**" or (has_wildcards(other[0]) and not has_wildcards(first)):
        return False
    return (first in (other[0], "*")) and _covers(mine[1:], other[1:])


def _kind(address: str) -> str:
    return address.partition("/")[0]


def _rank(resource: _Resource) -> tuple[int, bool]:
    return resource.rank
