"""What can be watched: each topic with who may, and how all that is watched of it is read at once, by selectors only. Reading costs the node nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from hashlib import blake2b

from django.apps import apps

from console.permissions import LOOK, METRICS
from console.rates import Rate, Reading
from console.selectors import alerts, attention, destinations, health, node, operations, totals, warnings
from console.selectors.destinations import Destination
from console.selectors.shapes import SHAPES

from . import texts
from .board import Subject, Told

THING_CHARACTERS_MAX = 32


@dataclass(slots=True, frozen=True)
class Topic:
    read: Callable[[Collection[str]], dict[str, Told]]
    """Of the things that are watched. What is told without cells, or not told, is unknown."""
    right: str
    """LOOK, or a verb that is asked for by destination; empty: everybody who is logged in."""
    is_thing: Callable[[str], bool] = lambda thing: thing == ""


def is_number(thing: str) -> bool:
    digits = thing.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) <= 9


def is_request(thing: str) -> bool:
    return thing.isascii() and thing.isdigit() and len(thing) <= 18


def rate_of(it: Destination) -> Rate | None:
    """By what this process has read of it before."""
    if not it.known:
        return None
    return apps.get_app_config("console").rates.observe(it.number, Reading(it.at, it.accepted_total, it.settled_total))


def _service(_: Collection[str]) -> dict[str, Told]:
    return {"": Told("", texts.of_service(node.node_status()))}


def _overview(_: Collection[str]) -> dict[str, Told]:
    status = node.node_status()
    sums, found = totals.totals(), attention.attention()
    cells = texts.of_overview(sums, status, apps.get_app_config("console").rates.of_sums(sums), found.in_doubt)
    firing = [(each.alert, each.destination) for each in alerts.firing(attention.FIRING_SHOWN + 1)]
    # Of warnings only which: how late and how old is in their sentences.
    wanting = replace(found, in_doubt_ms=None), firing, sorted(warnings.warnings(status))
    shape = _digest(sorted(health.problems(status).items()), [standby.node for standby in status.standbys], *wanting)
    return {"": Told("", {**cells, "shape": shape})}


def _destinations(things: Collection[str]) -> dict[str, Told]:
    return {str(it.number): Told(it.address, texts.of_destination(it, rate_of(it))) for it in destinations.by_numbers([int(thing) for thing in things])}


def _operations(things: Collection[str]) -> dict[str, Told]:
    return {str(it.number): Told(it.address, texts.of_operation(it)) for it in operations.by_numbers([int(thing) for thing in things])}


def _shapes(things: Collection[str]) -> dict[str, Told]:
    return {thing: Told("", {"is": shape_of(thing)}) for thing in things}


def shape_of(thing: str) -> str:
    """Of a list of selectors.shapes: what its cell says now. A page that carries it knows whether it shows that list as it is."""
    return _digest(SHAPES[thing]())


def _digest(*values: object) -> str:
    """Says that something differs, and not what."""
    return blake2b(repr(values).encode(), digest_size=6).hexdigest()


TOPICS = {
    "service": Topic(_service, ""),
    "overview": Topic(_overview, LOOK),
    "destinations": Topic(_destinations, METRICS, is_number),
    "operations": Topic(_operations, METRICS, is_request),
    "shape": Topic(_shapes, "", SHAPES.__contains__),
}
"""By name. A page that shows something else which changes adds a line."""


def pulse() -> object:
    """Another value whenever the node has told something new of destinations or operations: what is watched is read then, and not a second later."""
    return destinations.told_at(), operations.progress()


def subject_of(text: object) -> Subject | None:
    """From what a browser sent: `overview`, `destinations/17`; None: nothing that can be watched."""
    if not isinstance(text, str):
        return None
    name, _, thing = text.partition("/")
    topic = TOPICS.get(name)
    return (name, thing) if topic is not None and len(thing) <= THING_CHARACTERS_MAX and topic.is_thing(thing) else None


def read(subjects: Collection[Subject]) -> dict[Subject, Told]:
    """All of them, each topic once."""
    found: dict[Subject, Told] = {}
    for name, topic in TOPICS.items():
        things = [thing for watched, thing in subjects if watched == name]
        if things:
            told = topic.read(things)
            found.update({(name, thing): told.get(thing, Told("", {})) for thing in things})
    return found
