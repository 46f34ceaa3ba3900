"""What became of single messages of an operation, in words."""

from __future__ import annotations

from console.selectors.operations import Operation
from console.services import operations as service
from console.services.audit import Actor

DONE = {
    "move": "moved", "copy": "copied", "retry": "retried", "delete": "deleted", "purge": "deleted", "expire": "made to expire", "reprioritize": "reprioritized",
}  # fmt: skip
WORDS = {service.SKIPPED: ("warn", "left alone"), service.FAILED: ("bad", "failed"), service.GONE: ("", "gone before"), service.LEFT: ("", "not dealt with")}
STILL_THERE = frozenset((service.SKIPPED, service.FAILED))


def item_results(actor: Actor, it: Operation) -> list[tuple[str, bool, str, str, str]]:
    """Key, whether it was there afterwards, tone, words and reason of each. Empty: it runs, or there is none to tell of."""
    told = service.results(actor, it) if it.ended_at is not None else None
    return [(each.key, each.result in STILL_THERE, *_words(it, each), each.why) for each in told or ()]


def _words(it: Operation, each: service.Result) -> tuple[str, str]:
    if each.result == service.DONE:
        return "good", DONE[it.verb]
    return WORDS[each.result]
