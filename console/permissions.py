"""Who may do what. A stranger must log in; what somebody may do then follows from his role, from what is granted to him by name, and from the token
that he gave to a machine, if one asks.

Most verbs are of a destination, and are granted by pattern: `queue/orders.*`, `topic/**`, `>` for everything. The rest are of the whole broker.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.db.models import Q, Subquery, Value
from django.db.models.functions import Coalesce

from broker_core.control import pattern_problem
from console.models import Grant, OperatorRole

if TYPE_CHECKING:
    from console.services.audit import Actor

METRICS, BROWSE_HEADERS, BROWSE_BODIES, SEND, MOVE, PURGE, DELETE, RESOLVE_TRANSACTIONS, MANAGE = VERBS = (
    "metrics", "browse_headers", "browse_bodies", "send", "move", "purge", "delete", "resolve_transactions", "manage",
)  # fmt: skip
"""What is granted by destination. `purge`: discard all of its messages, destroying it among them; `delete`: some of them; `move`: out of it (`send`: into
it); `manage`: create, change, pause and resume it."""
READS = frozenset((METRICS, BROWSE_HEADERS, BROWSE_BODIES))
"""They change nothing: a token that may only read may have them."""
VIEWER, OPERATOR, RESTRICTED = GIVEN_ROLES = ("viewer", "operator", "restricted")
ADMINISTRATOR = "administrator"
ROLES = (*GIVEN_ROLES, ADMINISTRATOR)
"""An administrator (Django's superuser) may everything; what viewers and operators may is granted to the role. The role `restricted` has nothing, so that
who has it may what is granted to him by name and no more. Who was given no role is a viewer."""

MANAGE_DESTINATION = "console.manage_destination"
DISCARD_MESSAGE = "console.discard_message"
MANAGE_ACCOUNT = "console.manage_account"
MANAGE_OPERATOR = "console.manage_operator"
"""Nobody can be granted it, so that only superusers have it: whoever may make operators may make himself anything."""
MANAGE_SCHEDULE = "console.manage_schedule"
"""Neither can anybody be granted this: the clean-up of the audit is on the schedule."""
MANAGE_NODE = "console.manage_node"
"""Nor this: to quiesce or drain a node, to have another take over, to close a listener is to take the service from everybody,
and to compact is to move what is everybody's."""
MANAGE_ALERTS = "console.manage_alerts"
"""Nor this: an alert has the console ask any address that somebody wrote."""
LOOK = "console.look"
"""What is of the whole broker, such as accounts, links and the audit: for who may see the counters of every destination. It is granted by that."""
GRANTABLE = {
    "manage_destination": "Manage destinations: create, change, pause, resume",
    "discard_message": "Discard messages: purge and destroy destinations",
    "manage_account": "Manage client accounts",
    "resolve_transactions": "End prepared branches of distributed transactions by hand",
}
"""Of the whole broker: the permissions that an operator may have, and what they are called where somebody grants them."""
EVERYWHERE = {
    MANAGE: MANAGE_DESTINATION,
    PURGE: DISCARD_MESSAGE,
    DELETE: DISCARD_MESSAGE,
    RESOLVE_TRANSACTIONS: "console.resolve_transactions",
}
"""Verbs that somebody may of every destination who has the permission of the whole broker."""
ALL = ">"
"""The pattern of every destination, the broker's own and temporary ones among them."""
PATTERN_CHARACTERS_MAX = 261


@dataclass(slots=True, frozen=True)
class Sight:
    """Of which destinations somebody may something, for the WHERE of a list: those whose address matches one of each group. No group: all of them."""

    groups: tuple[tuple[str, ...], ...] = ()

    @property
    def all(self) -> bool:
        return not self.groups

    def condition(self, column: str = "address") -> tuple[str, dict[str, list[str]]]:
        """As SQL, to be joined by AND, and its parameters. `column` is the program's own."""
        named = {f"sight_{number}": list(group) for number, group in enumerate(self.groups)}
        return " AND ".join([f"{column} ~ ANY (%({name})s::text[])" for name in named]) or "true", named

    def shows(self, address: str) -> bool:
        return all(any(re.search(pattern, address) for pattern in group) for group in self.groups)


EVERYTHING, NOTHING = Sight(), Sight(((),))


def may(actor: Actor, right: str, address: str = "") -> bool:
    """`right`: one of VERBS, of the destination `address` (empty: of every destination), or a permission of the whole broker."""
    if not (actor.user.is_authenticated and actor.user.is_active):
        return False
    if right == LOOK:
        return not actor.is_limited and may(actor, METRICS)
    if right not in VERBS:
        return not actor.is_limited and _of_broker(actor, right)
    groups = _groups(actor, right)
    return groups is not None and (not groups or (address != "" and Sight(groups).shows(address)))


def sight(actor: Actor, verb: str = METRICS) -> Sight:
    """Of which destinations the actor may it."""
    groups = _groups(actor, verb) if actor.user.is_authenticated and actor.user.is_active else None
    return NOTHING if groups is None else Sight(groups)


def only(address: str) -> Sight:
    """One destination, which the actor is known to see."""
    return Sight(((expression(address),),))


def role_of(user: Any) -> str:
    if user.is_superuser:
        return ADMINISTRATOR
    return OperatorRole.objects.filter(user=user).values_list("role", flat=True).first() or VIEWER


def grants_of(user: Any) -> list[tuple[str, list[str]]]:
    """Patterns and verbs that he has by name or by his role."""
    return [(ALL, list(VERBS))] if user.is_superuser else list(_grants(user))


def standing(actor: Actor) -> list[Any]:
    """All that what the actor may follows from, in a form for JSON: with the same, he may the same."""
    user: Any = actor.user
    of_broker = [] if user.is_superuser else sorted(user.get_all_permissions())
    return [user.is_superuser, of_broker, sorted(grants_of(user)), actor.read_only, actor.verbs, actor.patterns]


def invalid_pattern(pattern: str) -> str:
    """What is wrong with it, as a sentence; empty: nothing."""
    if pattern == ALL:
        return ""
    if len(pattern) > PATTERN_CHARACTERS_MAX:
        return f"a pattern has at most {PATTERN_CHARACTERS_MAX} characters"
    return pattern_problem(pattern)


@lru_cache(1024)
def expression(pattern: str) -> str:
    """A valid pattern as a regular expression, the same for Python and for PostgreSQL."""
    if pattern == ALL:
        return "^"
    kind, _, name = pattern.partition("/")
    levels = name.split(".")
    parts = [_LEVELS.get(level) or re.escape(level) for level in levels]
    found = r"\.".join(parts)
    if levels[-1] == ">" and len(levels) > 1:  # any number of levels, so that the dot before them goes with them
        found = r"\.".join(parts[:-1]) + r"(\..*)?"
    # The broker's own have to be asked for by name.
    return f"^{re.escape(kind)}/{'' if levels[0] == 'mq' else _NOT_RESERVED}{found}$"


_LEVELS = {"*": "[^.]*", "**": ".*", ">": ".*"}
_NOT_RESERVED = r"(?!mq\.)"


def _of_broker(actor: Actor, right: str) -> bool:
    """Who may something of every destination by his role or by name has the permission of the whole broker that stands for it."""
    verbs = [verb for verb, permission in EVERYWHERE.items() if permission == right]
    if verbs:
        return all(_groups(actor, verb) == () for verb in verbs)
    return bool(actor.user.has_perm(right))


def _groups(actor: Actor, verb: str) -> tuple[tuple[str, ...], ...] | None:
    """As Sight has them; None: of none."""
    if actor.read_only and verb not in READS:
        return None
    if actor.verbs and verb not in actor.verbs:
        return None
    own = _patterns(actor.user, verb)
    if not own:
        return None
    return tuple(tuple(map(expression, patterns)) for patterns in (own, actor.patterns) if patterns and ALL not in patterns)


def _patterns(user: Any, verb: str) -> Sequence[str]:
    if user.is_superuser or (verb in EVERYWHERE and user.has_perm(EVERYWHERE[verb])):
        return (ALL,)
    return [pattern for pattern, verbs in _grants(user) if verb in verbs]


def _grants(user: Any) -> list[tuple[str, list[str]]]:
    """Of him and of his role; one query a request, as Django's own permissions are kept with the person who asks."""
    kept = getattr(user, "_surety_grants", None)
    if kept is None:
        role = Coalesce(Subquery(OperatorRole.objects.filter(user=user).values("role")[:1]), Value(VIEWER))
        kept = list(Grant.objects.filter(Q(user=user) | Q(role=role)).values_list("pattern", "verbs"))
        user._surety_grants = kept
    return kept
