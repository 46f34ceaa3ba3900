"""Where the kill loop's messages end: queues, and durable subscriptions of a topic. The headers by which selectors choose, and what they choose."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Headers = Mapping[str, str]
COLOURS = ("red", "green", "blue")
DELAYED_EVERY, DELAY_MS = 25, (100, 3_000)
"""One message in so many is delayed, by so much."""


def _everything(_headers: Headers) -> bool:
    return True


@dataclass(slots=True, frozen=True)
class Place:
    """One that takes a message gets a copy of its own, to be acknowledged there."""

    name: str
    destination: str
    client_id: str = ""
    subscribe: Headers = field(default_factory=dict)
    """Headers of its SUBSCRIBE."""
    takes: Callable[[Headers], bool] = _everything
    """What its selector says, in Python."""
    alone: bool = False
    """It has one consumer, who sees each producer's messages in order."""


TOPIC = "/topic/torture"
QUEUE = Place("queue", "/queue/torture")
TASKS = Place("tasks", "/queue/torture.tasks")
"""Consumed within transactions, which send the results."""
RESULTS = Place("results", "/queue/torture.results", alone=True)
EVERYTHING = Place("everything", TOPIC, "torture-everything", {"durable-subscription-name": "d"}, alone=True)
HEAVY = Place(
    "heavy", TOPIC, "torture-heavy", {"durable-subscription-name": "d", "selector": "weight >= 50 AND colour <> 'green'"},
    lambda headers: int(headers["weight"]) >= 50 and headers["colour"] != "green", alone=True,
)  # fmt: skip
SHARED = Place(
    "shared", TOPIC, "", {"durable-subscription-name": "torture-shared", "shared": "true", "selector": "colour IN ('red', 'green')"},
    lambda headers: headers["colour"] in ("red", "green"),
)  # fmt: skip
SORTED = "/queue/torture.sorted"
"""A queue whose consumers all have selectors; together they take everything."""
RED = Place("red", SORTED, "", {"selector": "colour = 'red'"}, lambda headers: headers["colour"] == "red", alone=True)
REST = Place("rest", SORTED, "", {"selector": "colour <> 'red'"}, lambda headers: headers["colour"] != "red")
ONCE = Place("once", "/queue/torture.once")
"""A queue with a duplicate window: producers repeat what is in doubt under its old name."""
GROUPED = Place("grouped", "/queue/torture.grouped")
"""A queue of message groups (grouped.py)."""
PLACES = (QUEUE, TASKS, RESULTS, EVERYTHING, HEAVY, SHARED, RED, REST, ONCE, GROUPED)


def headers_of(message: str) -> dict[str, str]:
    """What a message of this name says about itself; the same however often it is sent."""
    digest = zlib.crc32(message.encode())
    headers = {"colour": COLOURS[digest % len(COLOURS)], "weight": str(digest % 100)}
    if digest % DELAYED_EVERY == 0:
        least, most = DELAY_MS
        headers["delay"] = str(least + digest // DELAYED_EVERY % (most - least))
    return headers


def places_of(destination: str, headers: Headers) -> list[str]:
    """Who must get a message sent there."""
    return [place.name for place in PLACES if place.destination == destination and place.takes(headers)]
