"""What the ledger says of one message: a piece of its page, fetched once that is shown, and a page of its own for who goes further back."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from broker_core.viewing import life as ledger
from broker_core.viewing.life import DIED, VOLATILE, Event, Outcome, Place, Stop
from console.instants import instant
from console.services import life as service
from console.services.refusals import NotThere

from .actor import actor_of
from .asked import asked, whole
from .finding import destination_of
from .message_search import WrongKey, key_of

DIGITS = {"subscription": 9, "upto": 18, "at": 18}
"""At most, of the numbers in the address."""
_PLACE = re.compile(r"(?P<destination>[0-9]{1,9})-(?P<lane>1?[0-9])-(?P<position>[0-9]{1,18})")
OUTCOMES = {
    Outcome.ACCEPTED: ("good", "acknowledged"),
    Outcome.REJECTED: ("bad", "rejected by its consumer"),
    Outcome.EXPIRED: ("bad", "expired"),
    Outcome.UNDELIVERABLE: ("bad", "given up: it has failed too often"),
    Outcome.PURGED: ("warn", "discarded by an operator"),
    Outcome.DROPPED: ("bad", "dropped, for want of memory"),
    Outcome.EXCLUDED: ("", "left out: the filter does not take it, or the subscription began later"),
    Outcome.OLDEST: ("bad", "removed as the oldest, to make room"),
    Outcome.LOW_PRIORITY: ("bad", "removed as the least important, to make room"),
    Outcome.MOVED: ("info", "moved by an operator"),
    Outcome.RESTORED: ("info", "brought back: the purge was undone"),
}


@dataclass(slots=True, frozen=True)
class Row:
    at: Any
    where: str
    """The address, if it is another place than the one before; else empty."""
    tone: str
    words: str
    subscription: str
    consumer: str
    """Where it is shown; empty: it is nobody's that is there."""
    message: str
    """Where the message is shown to which or from which it went; empty: nowhere."""
    number: int
    epoch: int


@dataclass(slots=True, frozen=True)
class Note:
    """What is not known, and where one may look on; empty: nowhere."""

    words: str
    href: str


@require_safe
def life(request: HttpRequest, number: str, key: str) -> HttpResponse:
    """`upto`, a commit, and `of`, a place, as a link of this page has them: from there on back."""
    it, wanted = destination_of(request, number), asked(request, texts=("subscription", "upto", "of", "at"))
    try:
        place = Place(it.number, *key_of(key))
    except WrongKey as error:
        raise Http404("A message's key is like 4-123.") from error
    if found := _PLACE.fullmatch(wanted["of"]):
        place = Place(int(found["destination"]), int(found["lane"]), int(found["position"]))
    context: dict[str, Any] = {"it": it, "key": key, "asked": wanted}
    if place.lane >= VOLATILE or place.destination < 0:
        return render(request, "console/message_life.html", {**context, "volatile": True})
    number_of = {name: whole(wanted[name], digits) for name, digits in DIGITS.items()}
    try:
        told = service.life_of(
            actor_of(request), place, subscription=number_of["subscription"] or None, accepted_at=number_of["at"] or None, upto=number_of["upto"]
        )
    except NotThere as error:
        raise Http404(str(error)) from error
    rows, notes = _told(told, reverse("message_life", args=[it.number, key]), {name: wanted[name] for name in ("subscription", "at") if wanted[name]})
    return render(request, "console/message_life.html", {**context, "rows": rows, "notes": notes, "whole": not notes, "later": bool(number_of["upto"])})


def _told(told: service.Told, path: str, query: dict[str, str]) -> tuple[list[Row], list[Note]]:
    """The oldest first."""
    events = told.life.events[::-1]
    rows: list[Row] = []
    before: Place | None = None
    offered: set[tuple[Place, int]] = set()
    for event in events:
        again = event.kind == ledger.OFFERED and (event.place, event.subscription) in offered
        if event.kind == ledger.OFFERED:
            offered.add((event.place, event.subscription))
        if event.kind != ledger.ACCEPTED or not any(other.kind == ledger.CAME and other.number == event.number for other in events):
            rows.append(_row(told, event, "" if before == event.place else told.addresses.get(event.place.destination, ""), again=again))
            before = event.place
    notes = [_note(stop, path, query) for stop in told.life.stops[-1:] if stop.why != ledger.ACCEPTANCE]
    if len(told.life.stops) > 1:
        between = told.life.stops[0]
        words = f"Between its arrival and {_shown(between.at)} nothing was looked at, for want of time."
        notes.append(Note(words, _further(between, path, query)))
    return rows, notes


def _row(told: service.Told, event: Event, where: str, *, again: bool) -> Row:
    tone, words, consumer, message = "", "", "", ""
    if event.kind == ledger.ACCEPTED:
        tone, words = "good", "accepted"
    elif event.kind == ledger.OFFERED:
        tone, words, consumer = _offered(told, event, again=again)
    elif event.kind == ledger.FAILED:
        tone, words = "warn", f"its delivery failed; failures so far: {event.value}"
    elif event.kind == ledger.SETTLED:
        tone, words = OUTCOMES.get(Outcome(event.value), ("", "ended")) if event.value in set(Outcome) else ("", "ended")
    else:
        tone, words, message = _carried(told, event)
    return Row(
        instant(event.at), where, tone, words, told.subscriptions.get(event.subscription, ""), consumer, message, event.number, event.epoch,
    )  # fmt: skip


def _offered(told: service.Told, event: Event, *, again: bool) -> tuple[str, str, str]:
    """Tone, words, and where the consumer is shown."""
    if not event.value:
        return "info", "may have been delivered before it was discarded and brought back", ""
    words = f"left{' again' if again else ''} for consumer {event.value}"
    known = told.consumers.get(event.value)
    if known is not None:
        return "info", f"{words} of {known.get('account', 'an unknown account')}", reverse("holds", args=[event.value])
    return "info", f"{words}, who has gone" if event.epoch != told.epoch else words, ""


def _carried(told: service.Told, event: Event) -> tuple[str, str, str]:
    """Tone, words, and where the other message is shown."""
    died, other = event.value == DIED, event.other
    if other is None:
        return "bad", "nothing of it was kept", ""
    address, key = told.addresses.get(other.destination, ""), f"{other.lane}-{other.position}"
    href = reverse("message_life", args=[other.destination, key]) if address else ""
    place = f"{address} as {key}" if address else "a place that you may not see"
    if event.kind == ledger.WENT:
        return ("bad", f"died, and went to {place}", href) if died else ("info", f"an operator had it go to {place}", href)
    return ("bad", f"came here dead, from {place}", href) if died else ("info", f"an operator had it come from {place}", href)


def _note(stop: Stop, path: str, query: dict[str, str]) -> Note:
    if stop.why == ledger.END:
        since = f"The ledger goes back no further than {_shown(stop.at)}." if stop.at is not None else "The ledger has nothing of that time."
        return Note(f"{since} What was before is not known any more.", "")
    if stop.why == ledger.HIDDEN:
        return Note("Where it was before you may not look.", "")
    far = f"Looked back as far as {_shown(stop.at)}" if stop.at is not None else "Nothing could be looked at"
    return Note(f"{far}, {'for there is much' if stop.why == ledger.MANY else 'in the time that this may take'}.", _further(stop, path, query))


def _further(stop: Stop, path: str, query: dict[str, str]) -> str:
    of = f"{stop.place.destination}-{stop.place.lane}-{stop.place.position}"
    return f"{path}?{urlencode({**query, 'upto': stop.number, 'of': of})}"


def _shown(milliseconds: int | None) -> str:
    at = instant(milliseconds)
    return "an unknown time" if at is None else f"{at:%Y-%m-%d %H:%M:%S} UTC"
