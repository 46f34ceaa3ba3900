"""Tells webhooks of alerts, at least once: an event is claimed for a minute, told, and marked. Whoever dies in between has it told again."""

import logging
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from console.models import AlertEvent

from . import webhook
from .alerts import CLAIM_SECONDS, DELIVERED, GIVEN_UP, TEST, WAITING

log = logging.getLogger("surety.alerts")

AT_ONCE = 8
BUDGET_SECONDS = 8.0
"""Other tasks wait meanwhile; what is left is told by the next run."""
BACKOFF_SECONDS, BACKOFF_SECONDS_MAX = 10, 600
GIVE_UP_HOURS = 24
"""An alert of yesterday is no news."""
PROBLEM_CHARACTERS_MAX = 300
NO_WEBHOOK = "The alert has no webhook any more."


def deliver() -> int:
    """Those that are due, in order; the number told."""
    told, until = 0, time.monotonic() + BUDGET_SECONDS
    with ThreadPoolExecutor(AT_ONCE) as together:
        while time.monotonic() < until and (events := _claim()):
            for event, problem in zip(events, together.map(_tell, events), strict=True):
                _note(event, problem)
                told += not problem
    return told


def deliver_one(event: AlertEvent) -> None:
    """One that is claimed."""
    _note(event, _tell(event))


def _claim() -> list[AlertEvent]:
    now = timezone.now()
    with transaction.atomic():
        due = AlertEvent.objects.select_for_update(skip_locked=True, of=("self",)).filter(delivery=WAITING, next_at__lte=now)
        events = list(due.select_related("rule").order_by("next_at", "id")[:AT_ONCE])
        for event in events:
            event.attempts += 1
            event.next_at = now + timedelta(seconds=CLAIM_SECONDS)
            event.save(update_fields=["attempts", "next_at"])
    return events


def _tell(event: AlertEvent) -> str:
    """Without the database, for it is done in a thread. What was wrong; empty: nothing."""
    rule = event.rule
    if rule is None or not rule.webhook:
        return NO_WEBHOOK
    try:
        webhook.tell(rule.webhook, rule.secret, {"event": event.pk, **event.told})
    except webhook.Untold as error:
        return str(error)[:PROBLEM_CHARACTERS_MAX]
    return ""


def _note(event: AlertEvent, problem: str) -> None:
    now = timezone.now()
    row = AlertEvent.objects.filter(pk=event.pk, delivery=WAITING)
    if not problem:
        row.update(delivery=DELIVERED, delivered_at=now, next_at=None, problem="")
        return
    final = problem == NO_WEBHOOK or event.state == TEST or now - event.at > timedelta(hours=GIVE_UP_HOURS)
    wait = min(BACKOFF_SECONDS * 2 ** min(event.attempts - 1, 10), BACKOFF_SECONDS_MAX)
    row.update(delivery=GIVEN_UP if final else WAITING, next_at=None if final else now + timedelta(seconds=wait), problem=problem)
    ending = " It is given up." if final else ""
    log.log(logging.ERROR if final else logging.INFO, "Event %d of alert %r was not told: %s%s", event.pk, event.name, problem, ending)
