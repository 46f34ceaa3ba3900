"""Alerts: the rules with what each has found, what fires, and the history, by keyset pages. Nothing of it says a secret."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Q

from console.models import Alert, AlertEvent, AlertRule
from console.services.alerts import SECRETS
from console.services.webhook import shown

PAGE_ROWS = 100


@dataclass(slots=True, frozen=True)
class Rule:
    name: str
    metric: str
    pattern: str
    comparator: str
    threshold: float
    for_seconds: int
    webhook: str
    """Where it is; not all of the address, which may be a secret."""
    signed: bool
    enabled: bool
    firing: int
    """Destinations, or 1 for the broker."""
    pending: int
    """Those that are beyond the threshold, and not for long enough."""


@dataclass(slots=True, frozen=True)
class Event:
    number: int
    alert: str
    state: str
    destination: str | None
    value: float | None
    message: str
    at: datetime
    delivery: str
    attempts: int
    next_at: datetime | None
    delivered_at: datetime | None
    problem: str


@dataclass(slots=True, frozen=True)
class Firing:
    alert: str
    destination: str | None
    value: float
    since: datetime
    fired_at: datetime


def page(after: str = "", limit: int = PAGE_ROWS) -> tuple[list[Rule], str]:
    """At most `limit` rules whose names follow `after`, and the key of the next page, empty if this is the last. One query."""
    found = list(_rules().filter(name__gt=after.replace("\x00", "")).order_by("name")[: limit + 1])
    return [_rule(each) for each in found[:limit]], found[limit - 1].name if len(found) > limit else ""


def by_name(name: str) -> Rule | None:
    found = _rules().filter(name=name.replace("\x00", "")).first()
    return _rule(found) if found is not None else None


def definitions(after: str = "", limit: int = PAGE_ROWS) -> tuple[list[AlertRule], str]:
    """The same as they are kept, less what is secret."""
    found = list(AlertRule.objects.defer(*SECRETS, "memory").filter(name__gt=after).order_by("name")[: limit + 1])
    return found[:limit], found[limit - 1].name if len(found) > limit else ""


def firing(limit: int = PAGE_ROWS) -> list[Firing]:
    """What is an alert now, the newest first. One query."""
    found = Alert.objects.select_related("rule").exclude(fired_at=None).order_by("-fired_at", "-id")[:limit]
    return [Firing(each.rule.name, each.subject or None, each.value, each.since, each.fired_at) for each in found]


def events(before: int = 0, limit: int = PAGE_ROWS, *, alert: str = "", undelivered: bool = False) -> tuple[list[Event], str]:
    """At most `limit` of the history with lower numbers than `before` (0: the newest), of one alert or of all; and the key of the next page. One query."""
    found = AlertEvent.objects.order_by("-id")
    if before:
        found = found.filter(pk__lt=before)
    if alert:
        found = found.filter(name=alert.replace("\x00", ""))
    if undelivered:
        found = found.filter(delivery__in=("waiting", "given up"))
    listed = list(found[: limit + 1])
    return [_event(each) for each in listed[:limit]], str(listed[limit - 1].pk) if len(listed) > limit else ""


def event(number: int) -> Event | None:
    found = AlertEvent.objects.filter(pk=number).first()
    return _event(found) if found is not None else None


def _rules() -> Any:
    counted = {"firing": Count("alert", filter=Q(alert__fired_at__isnull=False)), "pending": Count("alert", filter=Q(alert__fired_at=None, alert__id__gt=0))}
    return AlertRule.objects.annotate(**counted)


def _rule(it: Any) -> Rule:
    return Rule(
        it.name, it.metric, it.pattern, it.comparator, it.threshold, it.for_seconds, shown(it.webhook), bool(it.secret), it.enabled, it.firing, it.pending
    )  # fmt: skip


def _event(it: AlertEvent) -> Event:
    told = it.told
    return Event(
        it.pk, it.name, it.state, told.get("destination"), told.get("value"), told.get("message", ""), it.at, it.delivery, it.attempts, it.next_at,
        it.delivered_at, it.problem,
    )  # fmt: skip
