"""What the document of definitions has, a row a kind: what an entry may say, how all of them are read, and how one is created, changed and removed.

Everything goes through the services, which have the rules, the permissions and the audit. A row's functions return warnings for the operator.
"""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from broker_core import control
from console.permissions import VERBS
from console.selectors import accounts as account_rows
from console.selectors import alerts as alert_rows
from console.selectors import destinations as destination_rows
from console.selectors import names, operators
from console.selectors import schedule as schedule_rows

from . import access, accounts, alerts, destinations, foreign, grants, objects, policies, schedule
from .audit import Actor
from .requests import Outcome

Fields = dict[str, Any]
Key = tuple[Any, ...]
PAGE_ROWS = 1_000
PASSWORD_OCTETS = 32


class NodeRefused(ValueError):
    """The node's sentence."""


class Unanswered(Exception):
    """The node has not answered in time; it may still do it."""


@dataclass(slots=True, frozen=True)
class Required:
    """In place of a default: each entry says it."""

    like: Any
    """A value of its type."""


REQUIRED, REQUIRED_NUMBER = Required(""), Required(0)


@dataclass(slots=True, frozen=True)
class Found:
    """What is there."""

    fields: Fields
    number: int = 0
    """By which its service knows it, if that is not its name."""
    automatic: bool = False
    """A client's use created it: it is no definition until a document names it."""
    stays: bool = False
    """It is the broker's own: nobody removes it."""


@dataclass(slots=True, frozen=True)
class Kind:
    name: str
    read: Callable[[Actor], dict[Key, Found]]
    create: Callable[[Actor, Key, Fields], list[str]]
    change: Callable[[Actor, Key, Found, Fields], list[str]]
    """The fields are all of the entry."""
    remove: Callable[[Actor, Key, Found], list[str]]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Of each field; an entry that does not say it has this. Empty: an entry has what it says, and its service says what it may."""
    key: tuple[str, ...] = ()
    """Entries are a list, and these fields tell them apart. Empty: they stand by name."""
    fixed: tuple[str, ...] = ()
    """Never changed."""
    problem: Callable[[Key, Fields], str] | None = None
    """Why such an entry cannot be, as a sentence; of what the node keeps. What the database keeps is tried there."""
    normal: Callable[[Fields], Fields] = dict
    """In the order in which it is kept."""
    removed_first: bool = False
    """Its name may be another kind's then."""

    @property
    def of_node(self) -> bool:
        return self.problem is not None


def _all(page: Callable[[Any, int], tuple[list[Any], str]], after: Any = "") -> list[Any]:
    found: list[Any] = []
    while True:
        shown, following = page(after, PAGE_ROWS)
        found += shown
        if not following:
            return found
        after = type(after)(following)


def _picked(thing: object, fields: Mapping[str, Any]) -> Fields:
    return {name: getattr(thing, name) for name in fields}


def _answered(outcome: Outcome) -> list[str]:
    """Raises NodeRefused, Unanswered."""
    if outcome.answer is None:
        raise Unanswered(f"The node has not answered yet: ask GET requests/{outcome.request}.")
    if outcome.refused:
        raise NodeRefused(outcome.refused)
    return list(outcome.answer.result.get("warnings", ()))


def _differing(now: Fields, wanted: Fields) -> Fields:
    return {name: value for name, value in wanted.items() if name not in now or now[name] != value}


# -- destinations, settings by pattern, aliases: the node's ---------------------------------------------------------------------------
def _destinations(_: Actor) -> dict[Key, Found]:
    def page(after: str, limit: int) -> tuple[list[Any], str]:
        listed = destination_rows.page(after=after, limit=limit)
        return listed.destinations, listed.after

    return {
        (it.address,): Found({**control.default_settings(), **it.settings}, automatic=it.automatic, stays=it.reserved) for it in _all(page)
    }


def _destination_problem(key: Key, fields: Fields) -> str:
    verb = "update" if control.is_reserved(key[0]) else "create"
    return control.request_problem(verb, key[0], fields) or control.settings_problem(key[0], fields)


def _change_destination(actor: Actor, key: Key, found: Found, fields: Fields) -> list[str]:
    return _answered(destinations.update(actor, key[0], _differing(found.fields, fields) or fields))


DESTINATIONS = Kind(
    "destinations", _destinations,
    lambda actor, key, fields: _answered(destinations.create(actor, key[0], fields)),
    _change_destination,
    lambda actor, key, found: _answered(destinations.destroy_unused(actor, key[0])),
    defaults=control.default_settings(), problem=_destination_problem, removed_first=True,
)  # fmt: skip


def _policy_problem(key: Key, fields: Fields) -> str:
    return control.request_problem("set_policy", key[0], fields) or control.settings_problem(key[0], fields)


POLICIES = Kind(
    "policies", lambda actor: {(it.pattern,): Found(it.settings) for it in _all(names.POLICIES.page)},
    lambda actor, key, fields: _answered(policies.put(actor, key[0], fields)),
    lambda actor, key, found, fields: _answered(policies.put(actor, key[0], fields)),
    lambda actor, key, found: _answered(policies.drop(actor, key[0])),
    problem=_policy_problem,
)  # fmt: skip

_ALIAS: Fields = {"target": REQUIRED, "default_reliability": "inherit", "maximum_reliability": "inherit", "reliability_override": True}


def _create_alias(actor: Actor, key: Key, fields: Fields) -> list[str]:
    others = {name: value for name, value in fields.items() if name != "target"}
    return _answered(destinations.create_alias(actor, key[0], fields["target"], others))


ALIASES = Kind(
    "aliases", lambda actor: {(it.address,): Found(_picked(it, _ALIAS)) for it in _all(names.ALIASES.page)},
    _create_alias,
    lambda actor, key, found, fields: _answered(destinations.update_alias(actor, key[0], _differing(found.fields, fields))),
    lambda actor, key, found: _answered(destinations.delete_alias(actor, key[0])),
    defaults=_ALIAS, problem=lambda key, fields: control.request_problem("create_alias", key[0], fields), removed_first=True,
)  # fmt: skip


# -- accounts, rules of access, grants ------------------------------------------------------------------------------------------------
_ACCOUNT: Fields = {
    "disabled": False, "loopback_only": False, "groups": [], "persistent_reliability": "", "nonpersistent_reliability": "", "connections_max": 0,
    "sessions_max": 0,
}  # fmt: skip
_LEVELS = ("persistent_reliability", "nonpersistent_reliability")


def _create_account(actor: Actor, key: Key, fields: Fields) -> list[str]:
    """Nobody knows its password, so that nobody logs in before it is given one: a document has no secrets."""
    with transaction.atomic():
        accounts.create(actor, key[0], secrets.token_urlsafe(PASSWORD_OCTETS), loopback_only=fields["loopback_only"])
        told = _change_account(actor, key, Found({**_ACCOUNT, "loopback_only": fields["loopback_only"]}), fields)
    return [*told, "nobody can log in as this account before you set its password: PATCH accounts"]


def _change_account(actor: Actor, key: Key, found: Found, fields: Fields) -> list[str]:
    changed: Fields = _differing(found.fields, fields)
    if any(name in changed for name in _LEVELS):
        changed = {name: value for name, value in changed.items() if name not in _LEVELS} | {"levels": tuple(fields[name] for name in _LEVELS)}
    return accounts.update(actor, key[0], **changed) if changed else []


def _delete_account(actor: Actor, key: Key, found: Found) -> list[str]:
    accounts.delete(actor, key[0])
    return []


ACCOUNTS = Kind(
    "accounts", lambda actor: {(it.name,): Found(_picked(it, _ACCOUNT)) for it in _all(account_rows.page)},
    _create_account, _change_account, _delete_account,
    defaults=_ACCOUNT, fixed=("loopback_only",), normal=lambda fields: {**fields, "groups": sorted(set(fields["groups"]))},
)  # fmt: skip

_RULE: Fields = {"resource": REQUIRED, "operation": REQUIRED, "allow": True, "principal": REQUIRED, "group": False}


def _of_key(_actor: Actor, _key: Key, _found: Found, _fields: Fields) -> list[str]:
    """All of it is its key: one that says something else is another."""
    return []


ACCESS = Kind(
    "access", lambda actor: {tuple(_picked(it, _RULE).values()): Found(_picked(it, _RULE), it.number) for it in _all(account_rows.access_page, 0)},
    lambda actor, key, fields: access.create(actor, control.Rule(**fields)).warnings,
    _of_key,
    lambda actor, key, found: access.delete(actor, found.number),
    defaults=_RULE, key=tuple(_RULE),
)  # fmt: skip

_GRANT: Fields = {"role": "", "operator": "", "pattern": REQUIRED, "verbs": []}


def _create_grant(actor: Actor, _key: Key, fields: Fields) -> list[str]:
    grants.create(actor, fields["pattern"], fields["verbs"], role=fields["role"], operator=fields["operator"])
    return []


def _change_grant(actor: Actor, _key: Key, found: Found, fields: Fields) -> list[str]:
    grants.update(actor, found.number, fields["verbs"])
    return []


def _delete_grant(actor: Actor, _key: Key, found: Found) -> list[str]:
    grants.delete(actor, found.number)
    return []


def _ordered_verbs(fields: Fields) -> Fields:
    unknown = sorted(set(fields["verbs"]) - set(VERBS))
    return {**fields, "verbs": [*(verb for verb in VERBS if verb in fields["verbs"]), *unknown]}


def _grants(actor: Actor) -> dict[Key, Found]:
    listed = _all(lambda after, limit: operators.grants_for(actor, after, limit), 0)
    return {(it.role, it.operator, it.pattern): Found(_picked(it, _GRANT), it.number) for it in listed}


GRANTS = Kind("grants", _grants, _create_grant, _change_grant, _delete_grant, defaults=_GRANT, key=("role", "operator", "pattern"), normal=_ordered_verbs)


# -- administered objects, links to other brokers -------------------------------------------------------------------------------------
_OBJECT: Fields = {"kind": REQUIRED, "attributes": {}, "read_only": False}


def _delete_object(actor: Actor, key: Key, _found: Found) -> list[str]:
    objects.delete(actor, key[0])
    return []


OBJECTS = Kind(
    "objects", lambda actor: {(it.name,): Found(_picked(it, _OBJECT)) for it in _all(names.OBJECTS.page)},
    lambda actor, key, fields: objects.create(actor, key[0], fields["kind"], fields["attributes"], read_only=fields["read_only"]),
    lambda actor, key, found, fields: objects.update(actor, key[0], fields["attributes"], read_only=fields["read_only"]),
    _delete_object,
    defaults=_OBJECT, fixed=("kind",),
)  # fmt: skip


def _without_secret(fields: Fields) -> Fields:
    """Raises InvalidLink."""
    if foreign.SECRET in fields:
        raise foreign.InvalidLink(f"A document has no secrets: leave the {foreign.SECRET} out, and give it with PUT links.")
    return fields


def _create_link(actor: Actor, key: Key, fields: Fields) -> list[str]:
    told = foreign.create(actor, key[0], _without_secret(fields))
    return [*told, "it logs in without a passcode before you give it one: PUT links"] if fields.get("login") else told


LINKS = Kind(
    "links", lambda actor: {(it.name,): Found(it.attributes) for it in _all(names.LINKS.page)},
    _create_link,
    lambda actor, key, found, fields: foreign.update(actor, key[0], _without_secret(fields)),
    lambda actor, key, found: foreign.delete(actor, key[0]),
)  # fmt: skip

# -- alerts: whom they tell is secret ------------------------------------------------------------------------------------------------------
_ALERT: Fields = {"metric": REQUIRED, "pattern": "", "comparator": ">", "threshold": Required(0.0), "for_seconds": 0, "enabled": True}


def _create_alert(actor: Actor, key: Key, fields: Fields) -> list[str]:
    alerts.create(actor, key[0], fields)
    return ["it tells nobody before you give it a webhook: PATCH alerts"]


def _change_alert(actor: Actor, key: Key, _found: Found, fields: Fields) -> list[str]:
    alerts.update(actor, key[0], fields)
    return []


def _delete_alert(actor: Actor, key: Key, _found: Found) -> list[str]:
    alerts.delete(actor, key[0])
    return []


ALERTS = Kind(
    "alerts", lambda actor: {(it.name,): Found(_picked(it, _ALERT)) for it in _all(alert_rows.definitions)},
    _create_alert, _change_alert, _delete_alert, defaults=_ALERT,
)  # fmt: skip


# -- the schedule: its tasks are the service's, how often they run is the administrator's ------------------------------------------------
_TASK: Fields = {"seconds": REQUIRED_NUMBER, "enabled": True}


def _change_task(actor: Actor, key: Key, _found: Found | None, fields: Fields) -> list[str]:
    schedule.update(actor, key[0], seconds=fields["seconds"], enabled=fields["enabled"])
    return []


def _keep_task(_actor: Actor, _key: Key, _found: Found) -> list[str]:
    """It stays: a document that does not name it leaves it as it is."""
    return []


SCHEDULE = Kind(
    "schedule", lambda actor: {(it.name,): Found(_picked(it, _TASK), stays=True) for it in schedule_rows.tasks()},
    lambda actor, key, fields: _change_task(actor, key, None, fields), _change_task, _keep_task, defaults=_TASK,
)  # fmt: skip

KINDS = {kind.name: kind for kind in (LINKS, DESTINATIONS, POLICIES, ALIASES, ACCOUNTS, ACCESS, OBJECTS, GRANTS, ALERTS, SCHEDULE)}
"""In the order in which they are created; links before the queues that are forwarded over them."""
REFUSALS = (
    NodeRefused, control.InvalidRequest, access.InvalidRule, accounts.InvalidAccount, alerts.InvalidAlert, foreign.InvalidLink, grants.InvalidGrant,
    objects.InvalidObject, schedule.InvalidSchedule,
)  # fmt: skip
"""What creating, changing and removing may raise, beside PermissionDenied and Unanswered."""
