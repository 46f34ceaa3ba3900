"""Rules of access: which client accounts may produce to, consume from, browse and create which destinations. Connected clients feel a change within the
second. broker_core.engine.access says which rule decides."""

from dataclasses import dataclass

from django.db import IntegrityError, connection, transaction

from broker_core.control import ANYBODY, EVERYTHING, RULES_MAX, Rule, access_problem
from console.permissions import MANAGE_ACCOUNT

from .audit import Actor, record, require
from .refusals import AlreadyThere, NotThere

CHANNEL = "surety_access"
"""Notified when rules, or the groups of accounts, change: the node reads all of them again."""
NAME_CHARACTERS_MAX = 255


class InvalidRule(ValueError):
    """The rule cannot be made like this; the message is a sentence that says why."""


class RuleExists(InvalidRule, AlreadyThere):
    """There is one that says the same."""


class NoRule(InvalidRule, NotThere):
    """None has the number."""


@dataclass(slots=True, frozen=True)
class Made:
    number: int
    warnings: list[str]
    """What its operator may not have meant."""


def create(actor: Actor, rule: Rule) -> Made:
    """Raises PermissionDenied, InvalidRule."""
    require(actor, MANAGE_ACCOUNT, "access create", rule.resource)
    problem = access_problem(rule)
    if not problem and (len(rule.principal) > NAME_CHARACTERS_MAX or not rule.principal.isprintable()):
        problem = f"the name of an account or group has at most {NAME_CHARACTERS_MAX} printable characters"
    if problem:
        raise InvalidRule(f"{problem[0].upper()}{problem[1:]}.")
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM surety.access_rule")
            if cursor.fetchone()[0] >= RULES_MAX:
                raise InvalidRule(f"There are {RULES_MAX} rules; use patterns and groups that say more.")
            cursor.execute(
                """INSERT INTO surety.access_rule (resource, operation, allow, principal, of_group)
                   VALUES (%(resource)s, %(operation)s, %(allow)s, %(principal)s, %(group)s) RETURNING rule""",
                _values(rule),
            )
            number = cursor.fetchone()[0]
            record(actor.name, actor.origin, "access create", rule.resource, _told(rule))
            tell(cursor)
    except IntegrityError as error:
        raise RuleExists("There is a rule that says this already.") from error
    return Made(number, _warnings(rule))


def delete(actor: Actor, number: int) -> list[str]:
    """What nothing else allows is refused from now on. Warnings for the operator. Raises PermissionDenied, InvalidRule."""
    require(actor, MANAGE_ACCOUNT, "access delete", str(number))
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM surety.access_rule WHERE rule = %(number)s RETURNING resource, operation, allow, principal, of_group", {"number": number}
        )
        found = cursor.fetchone()
        if found is None:
            raise NoRule(f"There is no rule {number}.")
        rule = Rule(*found)
        record(actor.name, actor.origin, "access delete", rule.resource, _told(rule))
        tell(cursor)
    opens = rule.allow and rule.resource == EVERYTHING and rule.principal == ANYBODY
    return [f"no account may {rule.operation} now but where another rule allows it"] if opens else []


def tell(cursor: object) -> None:
    """The node, when the caller's transaction commits."""
    cursor.execute("SELECT pg_notify(%(channel)s, '')", {"channel": CHANNEL})  # type: ignore[attr-defined]


def _values(rule: Rule) -> dict[str, object]:
    return {"resource": rule.resource, "operation": rule.operation, "allow": rule.allow, "principal": rule.principal, "group": rule.group}


def _told(rule: Rule) -> dict[str, object]:
    return {name: value for name, value in _values(rule).items() if name != "resource"}


def _warnings(rule: Rule) -> list[str]:
    if not rule.allow and rule.principal == ANYBODY and rule.resource == EVERYTHING:
        return [f"no account may {rule.operation} now but where a more particular rule allows it"]
    return []
