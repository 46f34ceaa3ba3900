"""Alerts: rules that compare what is known of a destination, or of the broker, with a threshold, and tell a webhook when that begins and ends.

Rules are looked at by a task of the schedule. What has been so for as long as the rule says fires, once; when it is so no more it is resolved. Each is an
event of the history, told at least once: the webhook's own trouble is waited out, ever longer, for a day. Whatever is cut off is done by the next run.
"""

import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from console.models import Alert, AlertEvent, AlertRule
from console.permissions import MANAGE_ALERTS, invalid_pattern
from console.selectors import alert_values
from console.selectors.alert_values import COMPARATORS, METRICS, SUBJECTS_MAX, WINDOW_SECONDS

from . import webhook
from .audit import Actor, record, require
from .refusals import AlreadyThere, NotThere

RULES_MAX = 100
FOR_SECONDS_MAX = 7 * 86_400
NAME_CHARACTERS_MAX, SECRET_CHARACTERS_MAX = 100, 200
WAITING_MAX = 1_000
"""Events of one rule whose webhook is not told yet; what comes beyond is in the history only."""
KEPT_DAYS = 30
CLAIM_SECONDS = 60
"""Who tells an event has so long for it; then it is told again."""
FIRING, RESOLVED, TEST = EVENT_STATES = ("firing", "resolved", "test")
NONE, WAITING, DELIVERED, GIVEN_UP = DELIVERIES = ("none", "waiting", "delivered", "given up")
FIELDS = ("metric", "pattern", "comparator", "threshold", "for_seconds", "webhook", "secret", "enabled")
DEFAULTS: dict[str, Any] = {"pattern": "", "comparator": ">", "for_seconds": 0, "webhook": "", "secret": "", "enabled": True}
SECRETS = ("webhook", "secret")
"""Said to nobody: many webhooks' addresses are as good as a password."""
HIDDEN = "***"
LOCK = 0x616C6572


class InvalidAlert(ValueError):
    """The rule cannot be like this; the message is a sentence that says why."""


class AlertExists(InvalidAlert, AlreadyThere):
    """Another has the name."""


class NoAlert(InvalidAlert, NotThere):
    """None has the name."""


# -- what administrators do ---------------------------------------------------------------------------------------------------------------
def create(actor: Actor, name: str, fields: Mapping[str, Any]) -> list[str]:
    """`fields`: those of FIELDS; what is missing has its default. Warnings for the operator. Raises PermissionDenied, InvalidAlert."""
    require(actor, MANAGE_ALERTS, "alert create", name)
    given = {**DEFAULTS, **fields}
    _check(name, given)
    if AlertRule.objects.count() >= RULES_MAX:
        raise InvalidAlert(f"There are {RULES_MAX} rules already, which is as many as there may be.")
    try:
        with transaction.atomic():
            AlertRule.objects.create(name=name, **given)
            record(actor.name, actor.origin, "alert create", name, _told(given))
    except IntegrityError as error:
        raise AlertExists(f"There is an alert {name} already.") from error
    return _warnings(given)


def update(actor: Actor, name: str, fields: Mapping[str, Any]) -> list[str]:
    """What it does not name stays. What the rule has found so far is forgotten, without a word to its webhook, if it looks for something else now. Warnings
    for the operator. Raises PermissionDenied, InvalidAlert."""
    require(actor, MANAGE_ALERTS, "alert update", name)
    with transaction.atomic():
        rule = _locked(name)
        now = {field: getattr(rule, field) for field in FIELDS}
        given = {**now, **fields}
        _check(name, given)
        if any(given[field] != now[field] for field in ("metric", "pattern", "comparator", "threshold", "enabled")):
            Alert.objects.filter(rule=rule).delete()
            rule.memory = []
        for field in FIELDS:
            setattr(rule, field, given[field])
        rule.save()
        record(actor.name, actor.origin, "alert update", name, _told(fields))
    return _warnings(given)


def delete(actor: Actor, name: str) -> None:
    """Its history stays. Raises PermissionDenied, NoAlert."""
    require(actor, MANAGE_ALERTS, "alert delete", name)
    with transaction.atomic():
        rule = _locked(name)
        AlertEvent.objects.filter(rule=rule, delivery=WAITING).update(delivery=GIVEN_UP, problem="The alert was deleted.")
        rule.delete()
        record(actor.name, actor.origin, "alert delete", name)


def test(actor: Actor, name: str) -> AlertEvent:
    """Tell its webhook now that this is a test; what became of it is in the event. Raises PermissionDenied, InvalidAlert."""
    from .alert_delivery import deliver_one  # it writes what is here

    require(actor, MANAGE_ALERTS, "alert test", name)
    with transaction.atomic():
        rule = _locked(name)
        if not rule.webhook:
            raise InvalidAlert("This alert has no webhook that could be told.")
        event = _event(rule, TEST, "", None, f"This is a test of the alert {rule.name}, by {actor.name}.")
        event.attempts, event.next_at = 1, timezone.now() + timedelta(seconds=CLAIM_SECONDS)
        event.save()
        record(actor.name, actor.origin, "alert test", name)
    deliver_one(event)
    return AlertEvent.objects.get(pk=event.pk)


def _locked(name: str) -> AlertRule:
    rule = AlertRule.objects.select_for_update().filter(name=name.replace("\x00", "")).first()
    if rule is None:
        raise NoAlert(f"There is no alert {name}.")
    return rule


def _check(name: str, given: Mapping[str, Any]) -> None:
    """Raises InvalidAlert."""
    metric = METRICS.get(given.get("metric", ""))
    threshold, seconds = given.get("threshold"), given["for_seconds"]
    wrong = ""
    if not (0 < len(name) <= NAME_CHARACTERS_MAX and name.isprintable()) or name != name.strip():
        wrong = f"a name has 1 to {NAME_CHARACTERS_MAX} characters that can be printed"
    elif unknown := sorted(set(given) - set(FIELDS)):
        wrong = f"an alert has no {unknown[0]}"
    elif metric is None:
        wrong = f"the metric is one of {', '.join(METRICS)}"
    elif metric.of_destinations and not given["pattern"]:
        wrong = f"{given['metric']} is of destinations: say of which by a pattern, such as queue/> for all queues"
    elif not metric.of_destinations and given["pattern"]:
        wrong = f"{given['metric']} is of the whole broker and takes no pattern"
    elif given["pattern"]:
        wrong = invalid_pattern(given["pattern"])
    if not wrong and given["comparator"] not in COMPARATORS:
        wrong = "the comparator is > or <"
    elif not wrong and (isinstance(threshold, bool) or not isinstance(threshold, int | float) or not math.isfinite(threshold) or abs(threshold) > 1e18):
        wrong = "the threshold is a number"
    elif not wrong and (isinstance(seconds, bool) or not isinstance(seconds, int) or not 0 <= seconds <= FOR_SECONDS_MAX):
        wrong = f"say for_seconds from 0 to {FOR_SECONDS_MAX}"
    elif not wrong and not isinstance(given["enabled"], bool):
        wrong = "enabled is true or false"
    elif not wrong and not all(isinstance(given[each], str) for each in SECRETS):
        wrong = "webhook and secret are texts"
    elif not wrong and given["webhook"]:
        wrong = webhook.problem(given["webhook"])
    if not wrong and (len(given["secret"]) > SECRET_CHARACTERS_MAX or "\x00" in given["secret"]):
        wrong = f"a secret has at most {SECRET_CHARACTERS_MAX} characters"
    if wrong:
        raise InvalidAlert(f"{wrong[0].upper()}{wrong[1:]}.")


def _told(given: Mapping[str, Any]) -> dict[str, Any]:
    """What the audit may say."""
    return {name: HIDDEN if name in SECRETS and value else value for name, value in given.items()}


def _warnings(given: Mapping[str, Any]) -> list[str]:
    if not given["webhook"]:
        return ["nobody is told: it has no webhook, and is only in the history"]
    return [] if given["secret"] else ["what the webhook is told is not signed: it has no secret"]


# -- what the schedule does ---------------------------------------------------------------------------------------------------------------
def evaluate() -> int:
    """Look at every rule; the number of events. A second run at the same time does nothing."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [LOCK])
            if not cursor.fetchone()[0]:
                return 0
        rules = list(AlertRule.objects.filter(enabled=True).order_by("name"))
        broker = alert_values.of_broker() if rules else {}
        events = sum(_look(rule, broker) for rule in rules)
        AlertEvent.objects.filter(at__lt=timezone.now() - timedelta(days=KEPT_DAYS)).delete()
    return events


def _look(rule: AlertRule, broker: Mapping[str, tuple[float | None, str]]) -> int:
    metric = METRICS.get(rule.metric)
    if metric is None:  # of another version
        return 0
    known = {alert.subject: alert for alert in Alert.objects.filter(rule=rule)}
    if metric.column:
        return _look_at_destinations(rule, known)
    value, detail = (_growth(rule), "") if metric.sum else broker[rule.metric]
    if value is None:
        return 0
    return _found(rule, "", value, known.get(""), detail) if _is_beyond(rule, value) else _over(rule, "", value, known.get(""))


def _look_at_destinations(rule: AlertRule, known: Mapping[str, Alert]) -> int:
    found = dict(alert_values.exceeding(rule.metric, rule.pattern, rule.comparator, rule.threshold))
    now = alert_values.values(rule.metric, [subject for subject in known if subject not in found])
    events = 0
    for subject, alert in known.items():
        if subject in found:
            continue
        value = now.get(subject)
        if subject not in now:
            events += _over(rule, subject, None, alert)
        elif value is not None:
            events += _found(rule, subject, value, alert) if _is_beyond(rule, value) else _over(rule, subject, value, alert)
    room = max(SUBJECTS_MAX - len(known), 0)
    for subject, value in found.items():
        if subject in known:
            events += _found(rule, subject, value, known[subject])
        elif room:
            room -= 1
            events += _found(rule, subject, value, None)
    return events


def _is_beyond(rule: AlertRule, value: float) -> bool:
    return value > rule.threshold if rule.comparator == ">" else value < rule.threshold


def _growth(rule: AlertRule) -> float | None:
    """Within the window, or as long as it is looked at; None: unknown. A sum that has become smaller began anew."""
    total = alert_values.grown(rule.metric, rule.pattern)
    if total is None:
        return None
    now = int(timezone.now().timestamp())
    kept = [each for each in rule.memory if now - WINDOW_SECONDS <= each[0] <= now and each[1] <= total]
    known = bool(kept)
    if not kept or now - kept[-1][0] >= WINDOW_SECONDS // 20:
        kept.append([now, total])
        rule.memory = kept
        AlertRule.objects.filter(pk=rule.pk).update(memory=kept)
    return float(total - kept[0][1]) if known else None


def _found(rule: AlertRule, subject: str, value: float, alert: Alert | None, detail: str = "") -> int:
    """It is beyond the threshold. The number of events."""
    now = timezone.now()
    if alert is None:
        alert = Alert(rule=rule, subject=subject, since=now)
    alert.value = value
    fires = alert.fired_at is None and now - alert.since >= timedelta(seconds=rule.for_seconds)
    if fires:
        alert.fired_at = now
        _event(rule, FIRING, subject, alert, detail)
    alert.save()
    return int(fires)


def _over(rule: AlertRule, subject: str, value: float | None, alert: Alert | None) -> int:
    """It is not beyond it, or gone (no value). The number of events."""
    if alert is None:
        return 0
    if alert.fired_at is not None:
        alert.value = alert.value if value is None else value
        _event(rule, RESOLVED, subject, alert, f"{subject} is gone." if value is None else "")
    alert.delete()
    return int(alert.fired_at is not None)


def _event(rule: AlertRule, state: str, subject: str, alert: Alert | None, detail: str = "") -> AlertEvent:
    now = timezone.now()
    value = None if alert is None else alert.value
    told = {
        "alert": rule.name, "state": state, "destination": subject or None, "metric": rule.metric, "comparator": rule.comparator,
        "threshold": rule.threshold, "value": value, "since": None if alert is None else alert.since.isoformat(), "at": now.isoformat(),
        "message": " ".join(filter(None, [_sentence(rule, subject, value), detail])),
    }  # fmt: skip
    delivery, problem = (WAITING if rule.webhook else NONE), ""
    if delivery == WAITING and AlertEvent.objects.filter(rule=rule, delivery=WAITING).count() >= WAITING_MAX:
        delivery, problem = GIVEN_UP, f"{WAITING_MAX} others wait already."
    return AlertEvent.objects.create(
        rule=rule, name=rule.name, state=state, told=told, at=now, delivery=delivery, problem=problem, next_at=now if delivery == WAITING else None
    )


def _sentence(rule: AlertRule, subject: str, value: float | None) -> str:
    if value is None:
        return ""
    of = subject or (f"of destinations {rule.pattern}" if rule.pattern else "the broker")
    return f"{rule.name}: {METRICS[rule.metric].words} of {of.removeprefix('of ')} is {value:g} (threshold: {rule.comparator} {rule.threshold:g})."
